"""shared.machine.misfits: which versions are known not to work together."""

import pytest

from shared.machine.misfits import misfit


@pytest.mark.parametrize(("numpy", "numba_cuda"), [("2.5.0", "0.30.4"), ("2.5.0rc1", "0.30.0"), ("3.0", "0.29")])
def test_a_numpy_without_row_stack_is_named_beside_numba_cuda(numpy: str, numba_cuda: str) -> None:
    found = misfit({"numpy": numpy, "numba-cuda": numba_cuda})
    assert found is not None
    assert found.text == (
        f"numba-cuda {numba_cuda} compiles no kernel with NumPy {numpy}, which no longer has numpy.row_stack"
    )
    assert found.requirement == "numpy<2.5"


@pytest.mark.parametrize(
    "installed",
    [
        {"numpy": "2.4.6", "numba-cuda": "0.30.4"},
        {"numpy": "2.5.0", "numba-cuda": "0.31.0"},
        {"numpy": "2.5.0"},
        {"numba-cuda": "0.30.4"},
        {},
    ],
)
def test_other_versions_are_not_suspected(installed: dict[str, str]) -> None:
    assert misfit(installed) is None
