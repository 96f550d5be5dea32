"""A learner's folder of commit d0c3bb7: the same progress, the same verdicts, and the course goes on."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groundup.course.manifest import course
from tests.program import run
from tests.promises.earlier_files import COURSE, copied
from tests.wide import wide, widely

MOVED = ("3.4", "3.5", "5.3", "8.4", "15.3")
"""Tasks that ask for other functions today."""

VERDICTS: dict[str, str] = json.loads((COURSE / "course-verdicts.json").read_text())
"""By task: "passed", or the first check that failed."""
VERDICTS |= dict.fromkeys(MOVED, "import")

OF_EACH_KIND = ("1.2", "5.4", "17.1")
"""A right one, one in a copy of a file that does not fit any more, and one in a file that is no stage's."""

ANSWERS = widely(sorted(VERDICTS, key=lambda name: name not in OF_EACH_KIND), first=len(OF_EACH_KIND))


def run_apart(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what trains with the learner's functions puts them in place of ours."""
    code = "from groundup.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=1200, check=False
    )


def test_the_learners_progress_is_what_it_was(learner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((COURSE / "course-status.json").read_text())
    expected["tasks"] |= dict.fromkeys(MOVED, "changed since it passed")
    expected["tasks"] |= {task.id: "" for task in course().tasks if task.id not in expected["tasks"]}
    assert run("learn", "status", "--json") == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert run("learn", "status", "--all") == 0
    shown = capsys.readouterr().out
    assert "passed, 3 hints, solution seen" in shown
    assert "changed since it passed" in shown
    assert "reached 20" in shown, "the checkpoint of phase 4"


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_passes_or_fails_as_it_did(name: str, learner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passes = VERDICTS[name] == "passed"
    assert run("learn", "check", name, "--json") == (0 if passes else 1)
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"].values()
    assert (verdict["rung"] or "passed") == VERDICTS[name], verdict


def test_the_course_goes_on_where_the_learner_stood(learner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    current = json.loads((COURSE / "course-status.json").read_text())["current"]
    assert run("learn", "next") == 0
    assert f"now: {current}" in capsys.readouterr().out
    assert run("learn", "hint", "1.2") == 0
    assert "1.2, hint 2 of 3" in capsys.readouterr().out, "the first was taken"
    assert run("learn", "start") == 0
    shown = capsys.readouterr().out
    (written,) = re.findall(r"is there; written: (.*)\n", shown)
    assert {"stage4_numba_cuda/network.py", "shared/dropout.py"} <= {*written.split(", ")}, "new, and not the learner's"


def test_a_stub_that_was_left_is_still_not_written(learner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("learn", "check", "4.3") == 1
    assert "not written yet" in capsys.readouterr().out


@wide
def test_a_network_of_the_learners_own_functions_goes_on_training(learner: Path, data: Path, tmp_path: Path) -> None:
    folder = copied("mine", tmp_path)
    done = run_apart("train", "1", "--resume", str(folder), "--epochs", "2", "--data-dir", str(data), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["epochs"]) == 2
    of_stage1 = [task.id for task in course().tasks if task.stage == "stage1_pure_python"]
    assert found["mine"] == [name for name in of_stage1 if VERDICTS.get(name) == "passed"]
