"""What the documents of commit aa8f7fd said to import or to run, and what has moved since, still works."""

import subprocess
import sys

import cuda_emulator
from groundup.course.manifest import ROOT
from tests.house.source_tree import imports, sources

MOVED = ("shared.doctor", "stage4_numba_cuda.emulator", "stage4_numba_cuda.gpu_report")


def module(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)


def test_the_emulator_is_found_under_its_former_name() -> None:
    from stage4_numba_cuda import emulator

    assert set(emulator.__all__) <= set(cuda_emulator.__all__)  # what came later has no former name
    assert all(getattr(emulator, name) is getattr(cuda_emulator, name) for name in emulator.__all__)


def test_the_doctor_answers_under_its_former_name() -> None:
    old = module("shared.doctor")
    assert (old.returncode, old.stderr) == (0, "")
    assert "NumPy" in old.stdout


def test_the_gpu_report_starts_under_its_former_name() -> None:
    done = module("stage4_numba_cuda.gpu_report", "--only", "nonsense")
    assert done.returncode == 2
    assert "error: only: expected some of device, compile, " in done.stderr


def test_nothing_of_ours_uses_a_former_name() -> None:
    assert [str(each) for each in imports(sources()) if each.imported in MOVED] == []
