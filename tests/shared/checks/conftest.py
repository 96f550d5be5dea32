"""What the tests of the checks share."""

from typing import Any

import pytest

from stage4_numba_cuda.backend import BACKEND


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the kernels that stage 4 launches from now on. Skips where they are not the emulator's."""
    if BACKEND.name != "emulator":
        pytest.skip("notes the launches of the emulator")
    from cuda_emulator.inspection import Kernel

    names: set[str] = set()
    run = Kernel.run

    def noted(kernel: Any, *launch: Any) -> None:
        names.add(kernel.py_func.__name__)
        run(kernel, *launch)

    monkeypatch.setattr(Kernel, "run", noted)
    return names
