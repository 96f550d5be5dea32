"""No file of the folder that one stands in is run, and somebody else's package with a name of ours is told of."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from cuda_emulator.inspection import run_script
from groundup import own_packages
from groundup.compiling.check import CompilerMissing
from groundup.compiling.check import Worker as Compiler
from groundup.course.judging.examination import Examiner
from groundup.doctor import survey
from groundup.studio.kernel.workers import Worker
from shared.bench.measuring import children
from shared.machine.processes import ROOT, Finished, python, run
from tests.wide import wide, widely


def trial_of_the_doctor() -> None:
    assert survey.trial("emulator").works


def worker_of_the_studio() -> None:
    worker = Worker()
    try:
        assert "error" not in worker.ask({"do": "open", "target": {"kind": "warm"}})
    finally:
        worker.close()


def compiler() -> None:
    worker = Compiler()
    with contextlib.suppress(CompilerMissing):
        worker.wait_until_ready()
    worker.close()


def examiner() -> None:
    examiner = Examiner()
    examiner.tell(tasks=[], asked=os.devnull, answered=os.devnull)
    examiner.end()


def measuring_child() -> None:
    assert children.ask("import numpy, json; print(json.dumps(len(numpy.zeros(3))))", threads=1) == 3


STARTS = [examiner, trial_of_the_doctor, worker_of_the_studio, compiler, measuring_child]


@pytest.mark.parametrize("start", widely(STARTS))
def test_a_child_runs_no_file_of_the_folder_that_one_stands_in(
    start: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "numba", "json", "groundup", "random", "cuda_emulator"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(open('planted', 'w').write('ran'))")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("raise SystemExit(open('planted', 'w').write('ran'))")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")  # as `python -m` and `python -c` have it
    start()  # type: ignore[operator]
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("name", widely(["shared/__init__.py", "numpy.py", "typer.py", "rich/__init__.py"]))
def test_the_program_runs_no_file_of_the_folder_that_one_stands_in(name: str, tmp_path: Path) -> None:
    planted = tmp_path / name
    planted.parent.mkdir(exist_ok=True)
    planted.write_text("open('planted', 'w').write('ran')")
    done = run([sys.executable, "-m", "groundup", "check", "--help"], 60, folder=tmp_path, variables=finding())
    assert done.code == 0, done.errors
    assert not (tmp_path / "planted").exists()


def finding(*first: Path) -> dict[str, str]:
    """The variables of a process that finds our packages, after those of these folders."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*first, ROOT)))}


def with_package(folder: Path, name: str) -> Path:
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return package


def command(folder: Path, *words: str) -> Finished:
    return run(python("-m", "groundup", *words), 120, folder=folder, variables=finding(folder))


@pytest.mark.parametrize("name", widely(["shared", "cuda_emulator", "stage2_numpy"]))
def test_a_package_in_place_of_ours_ends_a_command_with_one_sentence(name: str, tmp_path: Path) -> None:
    package = with_package(tmp_path, name)
    done = command(tmp_path, "check")
    assert done.code == 2
    assert done.errors == (
        f"error: {package} is not groundup's, and Python imports it in place of groundup's package {name}. "
        "Rename it, or take the folder that holds it from PYTHONPATH, or start in another folder. "
        "See: groundup doctor\n"
    )


@wide
def test_the_doctor_works_beside_it_and_tells_of_it(tmp_path: Path) -> None:
    package = with_package(tmp_path, "shared")
    done = run([sys.executable, "-m", "groundup", "doctor"], 120, folder=tmp_path, variables=finding(tmp_path))
    assert "Traceback" not in done.errors
    assert f"{package} is not groundup's, but has the name of its package" in " ".join(done.output.split())
    assert "stage 1: pure Python" in done.output


def test_our_own_packages_are_nobody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert own_packages.hidden() == ""
    monkeypatch.chdir(ROOT)
    assert own_packages.namesakes() == []
    with_package(tmp_path, "shared")
    monkeypatch.chdir(tmp_path)
    assert own_packages.namesakes() == [str(tmp_path / "shared")]


@pytest.mark.parametrize("stage", widely(["stage4_numba_cuda", "stage1_pure_python", "stage2_numpy", "stage3_c"]))
def test_a_script_beside_a_package_shared_of_its_own_is_told_by_every_stage(stage: str, tmp_path: Path) -> None:
    with_package(tmp_path, "shared")
    (tmp_path / "mine.py").write_text(f"import {stage}")
    done = run([sys.executable, str(tmp_path / "mine.py")], 60, variables=finding())
    (sentence,) = done.errors.splitlines()
    assert sentence.startswith(f"error: <module 'shared' from '{tmp_path / 'shared'}")
    assert sentence.endswith("is imported in place of groundup's package shared: give it another name")
    assert done.code == 1


@pytest.mark.parametrize("line", ["import shared.mine", "from shared import mine", "from stage2_numpy.mine import x"])
def test_a_script_that_groundup_runs_is_told_that_ours_hides_its_package(line: str, tmp_path: Path) -> None:
    with_package(tmp_path, line.split()[1].partition(".")[0])
    script = tmp_path / "script.py"
    script.write_text(line)
    with pytest.raises(ValueError, match=r"is a package of groundup, which hides the \w+ beside the script"):
        run_script(script)
