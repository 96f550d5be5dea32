"""What the extras ask pip for."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINUX = {"sys_platform": "linux"}


def allowed(requirements: list[str], package: str, version: str) -> bool:
    """Whether pip may install this version of the package on Linux beside all of these requirements."""
    found = [each for each in map(Requirement, requirements) if each.name == package]
    return all(each.specifier.contains(version) for each in found if not each.marker or each.marker.evaluate(LINUX))


@pytest.mark.parametrize("extra", ["cu12", "cu13"])
def test_a_gpus_extra_never_brings_a_numpy_with_which_numba_cuda_compiles_nothing(extra: str) -> None:
    """numba-cuda 0.30.4 reads numpy.row_stack, which NumPy 2.5 has no longer; Numba itself allows that NumPy."""
    gpu = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]
    assert not allowed(gpu, "numpy", "2.5.0")
    assert allowed(gpu, "numpy", "2.4.6")
    assert allowed(PROJECT["dependencies"], "numpy", "2.5.0")
