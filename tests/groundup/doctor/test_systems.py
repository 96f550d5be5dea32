"""groundup doctor on systems that are written down as facts: macOS, Windows, and Pythons that lack something."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from groundup import doctor
from groundup.doctor import Facts, Finding, survey
from groundup.doctor.facts import DEPENDENCIES, DataFound, StageFound, Trial
from groundup.doctor.report import plain
from groundup.doctor.trial import ALONE
from shared.machine.processes import python
from tests.groundup.doctor.made_up_machines import (
    COLAB,
    DATA,
    LAPTOP,
    MAC,
    NEW_ENVIRONMENT,
    PYTHON,
    RTX_4070,
    STAGES,
    SYSTEM_PYTHON,
    WINDOWS,
    WSL,
    fixes,
    on,
    said,
    without_compiler,
)
from tests.mpi import needs_mpi


def test_macos_has_no_cuda_and_is_told_of_nothing_to_install() -> None:
    assert fixes(MAC) == {}
    assert said(MAC)["NVIDIA GPU"].text == "CUDA does not exist for macOS; stage 4's kernels run on the emulator"
    assert not {"numba-cuda", "NVIDIA driver", "GPU trial"} & set(said(MAC))


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (LAPTOP, "sudo apt update\nsudo apt install gcc libc6-dev"),
        (replace(LAPTOP, administrator=True), "apt update\napt install gcc libc6-dev"),
        (replace(LAPTOP, distribution=("rocky", "rhel", "centos", "fedora")), "sudo dnf install gcc glibc-devel"),
        (MAC, "xcode-select --install"),
        (WINDOWS, 'C:\\Users\\ada\\groundup\\.venv\\Scripts\\python.exe -m pip install "ziglang>=0.14"'),
    ],
    ids=["Ubuntu", "root", "Rocky", "macOS", "Windows"],
)
def test_no_compiler(facts: Facts, fix: str) -> None:
    facts = without_compiler(facts)
    found = said(facts)
    assert fixes(facts) == {"C compiler": fix}
    assert "(cc: not found; gcc: not found)" in found["C compiler"].text
    assert ("ziglang" in found["C compiler"].text) == (fix.startswith(("sudo", "xcode")))  # the way without sudo
    assert found["stage3_c"].status == "note"
    assert doctor.judge(facts).ok


def test_windows_paths_with_blanks_are_quoted_as_powershell_takes_them() -> None:
    facts = replace(
        WINDOWS, executable="C:\\Users\\Ada L\\venv\\Scripts\\python.exe", root="C:\\Users\\Ada L\\groundup"
    )
    facts = on(replace(RTX_4070, driver="552.22"), (12, 4), facts)
    program = '& "C:\\Users\\Ada L\\venv\\Scripts\\python.exe"'
    assert fixes(facts) == {"numba-cuda": f'{program} -m pip install --upgrade "numba-cuda[cu12]>=0.30"'}
    damaged = replace(facts, data=(DataFound("mnist", "damaged", "truncated", "C:\\Users\\Ada L\\mnist"),))
    assert (said(damaged)["mnist"].fix or "").splitlines() == [
        'move "C:\\Users\\Ada L\\mnist" "C:\\Users\\Ada L\\mnist.damaged"',
        "groundup train 2 --dataset mnist --epochs 1 --download",
    ]


def test_an_externally_managed_python_gets_an_environment_and_never_pip_itself() -> None:
    found = fixes(SYSTEM_PYTHON)
    assert found == dict.fromkeys(("virtual environment", *DEPENDENCIES), NEW_ENVIRONMENT)
    assert not doctor.judge(SYSTEM_PYTHON).ok
    text = plain(doctor.judge(SYSTEM_PYTHON))
    assert text.count("apt install python3-venv") == 1  # the other findings have the same, which is said once
    assert f"not installed: {', '.join(DEPENDENCIES)}" in text
    with_gpu = on(RTX_4070, (13, 0), replace(SYSTEM_PYTHON, ensurepip=True))
    assert fixes(with_gpu)["numba-cuda"].splitlines() == [
        "/usr/bin/python3 -m venv /home/ada/groundup/.venv",
        '/home/ada/groundup/.venv/bin/python -m pip install -e /home/ada/groundup "numba-cuda[cu13]>=0.30"',
    ]


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (LAPTOP, "sudo apt update\nsudo apt install python3.11 python3.11-venv"),
        (
            replace(LAPTOP, other_pythons=("python3.12", "python3.11")),
            "python3.12 -m venv /home/ada/groundup/.venv\n" + f"{PYTHON} -m pip install -e /home/ada/groundup",
        ),
    ],
)
def test_a_python_that_is_too_old(facts: Facts, fix: str) -> None:
    finding = said(replace(facts, python=(3, 9, 2)))["python"]
    assert (finding.status, finding.fix) == ("problem", fix)
    assert "needs 3.11 or newer" in finding.text
    assert len(said(replace(facts, python=(3, 9, 2)))) == 2  # nothing else can be looked at


@pytest.mark.parametrize(("version", "status"), [((3, 11, 0), "ok"), ((3, 14, 8), "ok"), ((3, 15, 0), "note")], ids=str)
def test_pythons_that_will_do(version: tuple[int, ...], status: str) -> None:
    assert said(replace(LAPTOP, python=version))["python"].status == status


def test_packages_that_are_missing_or_too_old_share_one_command() -> None:
    installed = {**LAPTOP.installed, "numba": "0.58.1"}
    del installed["pooch"]
    facts = replace(LAPTOP, installed=installed)
    command = f'{PYTHON} -m pip install "numba>=0.62" "pooch>=1.8"'
    assert fixes(facts) == {"numba": command, "pooch": command}
    assert said(facts)["numba"].text == "0.58.1 is too old; groundup needs 0.62 or newer"
    assert not doctor.judge(facts).ok


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("ImportError: Numba needs NumPy 2.3 or less. Got NumPy 2.4.", f'{PYTHON} -m pip install "numpy<2.4"'),
        ("SyntaxError: invalid syntax", "git -C /home/ada/groundup restore stage4_numba_cuda"),
    ],
)
def test_a_stage_that_does_not_load(error: str, fix: str) -> None:
    facts = replace(LAPTOP, stages=(*STAGES[:3], StageFound("stage4_numba_cuda", "broken", error)))
    finding = said(facts)["stage4_numba_cuda"]
    assert (finding.status, finding.text, finding.fix) == ("problem", f"does not load: {error}", fix)


def test_an_emulator_that_fails_is_a_problem() -> None:
    facts = replace(LAPTOP, emulator=Trial(False, "exit code -11: Segmentation fault"))
    finding = said(facts)["emulator"]
    assert finding.status == "problem"
    assert finding.fix == f'{PYTHON} -m pip install --upgrade --force-reinstall "numba>=0.62" "llvmlite"'
    plain_python = replace(facts, variables={"NUMBA_DISABLE_JIT": "1"})
    assert said(plain_python)["emulator"].fix == "unset NUMBA_DISABLE_JIT"
    full = replace(LAPTOP, emulator=Trial(False, "OSError: [Errno 28] No space left on device"))
    assert said(full)["emulator"].fix == 'export GROUNDUP_CACHE="$HOME/groundup-cache"'


def test_a_cache_that_cannot_be_written_or_is_full() -> None:
    locked = said(replace(LAPTOP, cache_writable=False))["cache"]
    assert (locked.status, locked.fix) == ("note", 'export GROUNDUP_CACHE="$HOME/groundup-cache"')
    windows = said(replace(WINDOWS, cache_writable=False))["cache"]
    assert windows.fix == '$env:GROUNDUP_CACHE = "$HOME\\groundup-cache"'
    temporary = said(replace(LAPTOP, cache="/tmp/groundup-1000", cache_refused="/root/.cache/groundup"))["cache"]
    assert temporary.status == "note"
    assert temporary.text.startswith("/root/.cache/groundup cannot be written; what is compiled is kept in /tmp/ground")
    full = said(replace(LAPTOP, cache_free=10**7))["cache"]
    assert (full.status, full.fix) == ("note", None)
    assert "make room" in full.text


def test_a_stage_whose_cache_cannot_be_written_is_not_restored() -> None:
    text = (
        "OSError: stage 3 cannot be built in the cache folder /x/stage3: Permission denied. Make that folder writable"
    )
    broken = StageFound("stage3_c", "broken", text)
    facts = replace(LAPTOP, stages=tuple(broken if stage.name == "stage3_c" else stage for stage in LAPTOP.stages))
    assert said(facts)["stage3_c"].fix == 'export GROUNDUP_CACHE="$HOME/groundup-cache"'
    assert said(replace(facts, variables={"GROUNDUP_CACHE": "/x"}))["stage3_c"].fix == "unset GROUNDUP_CACHE"


@pytest.mark.parametrize(
    ("value", "text"), [("64", "more threads than the 8 usable cores"), ("many", "expected a number of threads")]
)
def test_thread_variables_that_do_harm_are_unset(value: str, text: str) -> None:
    facts = replace(LAPTOP, blas="openblas 0.3", variables={"OPENBLAS_NUM_THREADS": value})
    assert text in said(facts)["BLAS"].text
    assert fixes(facts) == {"BLAS": "unset OPENBLAS_NUM_THREADS"}
    assert said(replace(facts, variables={"OPENBLAS_NUM_THREADS": "4"}))["BLAS"].text == (
        "openblas 0.3, OPENBLAS_NUM_THREADS=4"
    )


def test_damaged_bundled_data_is_a_problem_and_restored_from_where_it_came() -> None:
    damaged = DataFound("mnist-subset", "damaged", "train-images: truncated")
    facts = replace(LAPTOP, data=(damaged, *DATA[1:]))
    finding = said(facts)["mnist-subset"]
    assert (finding.status, finding.text) == ("problem", "damaged: train-images: truncated")
    assert finding.fix == "git -C /home/ada/groundup restore shared/data/mnist_subset"
    wheel = replace(facts, checkout=False, origin="file:///tmp/groundup.whl")
    assert said(wheel)["mnist-subset"].fix == (
        f'{PYTHON} -m pip install --force-reinstall --no-deps "file:///tmp/groundup.whl"'
    )
    assert said(replace(facts, checkout=False))["mnist-subset"].fix is None


GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "installing.md"


def test_what_the_guide_quotes_is_what_the_doctor_says() -> None:
    rows = [line.split(" | ") for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = rows[next(number for number, row in enumerate(rows) if row[0] == "| python") :]
    quoted = [part for row in rows for part in re.findall(r"`([^`]+)`", row[0] if row[0].startswith("| `") else row[1])]
    source = "".join(path.read_text(encoding="utf-8") for path in Path(doctor.__file__).parent.glob("*.py"))
    elsewhere = ["CC is set to"]  # stage 3's own words
    assert len(quoted) > 50
    assert [each for each in quoted if each not in source and each not in elsewhere] == []


def test_every_line_of_these_machines_that_is_not_well_is_in_the_guide() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    lines = {each.about for facts in (LAPTOP, COLAB, WSL, MAC, WINDOWS, SYSTEM_PYTHON) for each in _not_well(facts)}
    assert lines
    assert [each for each in lines if each not in guide and each not in DEPENDENCIES] == []


def _not_well(facts: Facts) -> list[Finding]:
    return [each for each in doctor.judge(without_compiler(facts)).findings if each.status != "ok"]


MPI = Trial(True, "MPICH 5.0.2")


def test_ranks_are_told_of_only_where_mpi4py_is_installed() -> None:
    assert "ranks" not in said(LAPTOP)
    finding = said(replace(LAPTOP, ranks_trial=MPI, mpiexec="/venv/bin/mpiexec", cores=8))["ranks"]
    assert finding.status == "ok"
    assert finding.text == (
        "MPICH 5.0.2, /venv/bin/mpiexec; up to 8 have a core each, and fewer share the cores among their threads"
    )


def test_mpiexec_of_another_mpi_is_told_with_the_command_that_mends_it() -> None:
    failed = Trial(False, f"RuntimeError: {ALONE} (MPICH 5.0.2)")
    finding = said(replace(LAPTOP, ranks_trial=failed, mpiexec="/usr/bin/mpiexec"))["ranks"]
    assert finding.status == "note"
    assert "is another one than mpiexec's: each of two ranks is alone (MPICH 5.0.2), /usr/bin/mpiexec" in finding.text
    assert finding.fix == f'{PYTHON} -m pip install --force-reinstall "mpi4py" "mpich"'
    windows = said(replace(WINDOWS, ranks_trial=failed))["ranks"]
    assert windows.fix is not None
    assert '"impi-rt"' in windows.fix


@needs_mpi
def test_two_ranks_are_tried_and_two_that_are_alone_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = survey._two_ranks()
    assert found.works, found.said
    # As mpiexec of another MPI: it starts two processes, and mpi4py's MPI knows nothing of it.
    monkeypatch.setattr(
        survey, "python", lambda *words: ["env", "-u", "PMI_FD", "-u", "PMI_SIZE", "-u", "PMI_RANK", *python(*words)]
    )
    alone = survey._two_ranks()
    assert not alone.works
    assert ALONE in alone.said
