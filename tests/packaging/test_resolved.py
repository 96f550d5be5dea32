"""What pip resolves for a GPU's extra on each Python that is found here: does it compile a kernel, without a GPU?

A set of versions that fits by its metadata can still compile nothing, as NumPy 2.5 with numba-cuda 0.30.4 showed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")

COMPILES = """
import importlib, pkgutil, warnings
warnings.simplefilter("ignore")
from numba import cuda, float32
import numba.cuda
for found in pkgutil.walk_packages(numba.cuda.__path__, "numba.cuda."):
    if found.name.endswith(("impl", "decl", "typing", "extending", "cudadecl")) and ".tests" not in found.name:
        importlib.import_module(found.name)

def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * float32(2)

text, _ = cuda.compile(double, (float32[::1],), cc=(8, 0), device=False, abi="numba", output="ptx")
assert ".entry" in text
print("compiled")
"""


def python_of(version: str) -> str | None:
    """The program of this version of Python: this one, one of pyenv's, or one on the PATH that runs."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    candidates = [
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        shutil.which(f"python{version}"),
    ]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@wide
@pytest.mark.skipif(sys.platform != "linux", reason="the extra's wheels are for Linux here")
@pytest.mark.parametrize("version", SUPPORTED)
def test_what_pip_brings_with_a_gpus_extra_compiles_a_kernel(version: str, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"Python {version} is not found here")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True, env=environment)
    inner = str(tmp_path / "venv" / "bin" / "python")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cu13"]]
    pip = [inner, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False, env=environment, timeout=900)
    if installed.returncode:
        pytest.skip(f"pip cannot install the extra here: {installed.stderr.strip().splitlines()[-1]}")
    done = subprocess.run(
        [inner, "-c", COMPILES], capture_output=True, text=True, check=False, env=environment, timeout=300, cwd=tmp_path
    )
    assert done.stdout.strip() == "compiled", done.stderr
