"""The oldest versions that pyproject.toml allows, all at once: pip leaves a package that is new enough as it is."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.packaging.test_resolved import python_of
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
OLDEST_PYTHON = "3.11"

WORK = [
    ["-m", "groundup", "doctor"],
    ["-m", "groundup", "check"],
    ["-m", "pytest", "-q", "tests/cuda_emulator/kernels/test_diagnoses.py", "tests/shared/charts"],
    ["-m", "pytest", "-q", "tests/groundup/test_cli.py", "tests/shared/test_terminal_tables.py"],
]


@wide
def test_the_oldest_versions_that_are_allowed_check_all_stages_draw_and_tell_a_kernels_faults(tmp_path: Path) -> None:
    python = python_of(OLDEST_PYTHON)
    if python is None:
        pytest.skip(f"Python {OLDEST_PYTHON} is not found here")
    environment = {**os.environ, "GROUNDUP_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True, env=environment)
    inner = str(tmp_path / "venv" / "bin" / "python")
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    oldest = [each.replace(">=", "==") for each in asked if ">=" in each]
    pip = [inner, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *oldest, "pytest", "hypothesis"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False, env=environment, timeout=900)
    if installed.returncode:
        pytest.skip(f"pip cannot install them here: {installed.stderr.strip().splitlines()[-1]}")
    for words in WORK:
        folder = ROOT if "pytest" in words else tmp_path
        done = subprocess.run(
            [inner, *words], capture_output=True, text=True, check=False, env=environment, timeout=600, cwd=folder
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
