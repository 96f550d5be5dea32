"""`groundup learn debug`: the script reproduces the failure, and stops in the learner's function."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

import pytest

from groundup.course.learner.functions import replaced
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from groundup.course.rules.debugging import debug
from shared.machine import processes
from tests.groundup.commands.test_learn import run
from tests.groundup.course.course_helpers import write
from tests.groundup.course.test_exercises import MUTANTS, label
from tests.stages import REASONS
from tests.wide import wide, widely

WRONG = {
    "1.1": ("+=", "-=", "values", "call"),
    "3.1": ("for row in matmul(x, self.weights)", "for row in matmul(x, self.weights)[:1]", "shape", "rerun"),
    "4.3": ("    return ", "    return -", "values", "call"),
    "6.2": ("i * columns + j", "i * rows + j", "values", "call"),
    "9.1": ("a[", "mask[", "values", "call"),
}
"""Task -> the text that is replaced, and by what; the check that fails, and how the script makes the call."""


def started(command: str, typed: str = "", **variables: str) -> processes.Finished:
    """A command as the learner types it, and what is typed in the debugger."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    if typed:
        words = [
            sys.executable,
            "-c",
            f"import subprocess, sys; sys.exit(subprocess.run({words!r}, text=True, input={typed!r}).returncode)",
        ]
    environment = {**processes.finding_our_packages(os.environ), **variables}
    return processes.run(words, 120, variables=environment, together=True)


@pytest.mark.parametrize("name", widely(WRONG, 1))
def test_the_script_makes_the_call_that_fails_and_stops_in_the_function(learner: Workspace, name: str) -> None:
    task = course().task(name)
    if reason := REASONS.get(task.stage):
        pytest.skip(reason)
    old, new, check, form = WRONG[name]
    write(learner, task, old, new)
    script, command = debug(learner, task)
    assert script == learner.folder / "debug" / f"{name}.py"
    text = script.read_text(encoding="utf-8")
    assert f"{name} fails its check {check}: " in text
    assert ("failing_call.rerun(" in text) is (form == "rerun")
    assert len(text.splitlines()) < 28
    alone = started(f"python {shlex.quote(str(script))}", PYTHONBREAKPOINT="0")
    assert alone.code == 1
    assert ("AssertionError" if form == "call" else "Wrong") in alone.output
    if command.startswith("gdb"):
        stopped = started(command, "info locals\nkill\nquit\n")
        assert f"{task.function}_f64 (rows=" in stopped.output
        assert "i = 0" in stopped.output
    elif command.startswith("python"):
        stopped = started(command, "where\nq\n")
        assert f"> {learner.folder / task.file}(" in stopped.output
        assert f"){task.function.rpartition('.')[2]}()" in stopped.output
        assert "Traceback" not in stopped.output


@wide
def test_the_script_ends_without_an_error_once_the_function_is_right(learner: Workspace) -> None:
    task = course().task("1.1")
    write(learner, task, "+=", "-=")
    script, command = debug(learner, task)
    write(learner, task)
    assert started(command, PYTHONBREAKPOINT="0").code == 0
    script.write_text("# mine", encoding="utf-8")
    write(learner, task, "+=", "-=")
    debug(learner, task)
    (kept,) = (learner.folder / ".groundup" / "old").rglob("1.1.py")
    assert kept.read_text(encoding="utf-8") == "# mine", "a script that was changed is not lost"


@wide
def test_a_call_that_fails_because_of_earlier_ones_is_reached_again(learner: Workspace) -> None:
    task = course().task("1.1")
    text = solution(task).replace("    return c\n", "    return KEPT.setdefault((m, n), c)\n")
    path = learner.folder / task.file
    before = path.read_text(encoding="utf-8")
    path.write_text(replaced(before, learner.place(task), text) + "\n\nKEPT = {}\n", encoding="utf-8")
    script, command = debug(learner, task)
    assert "alone it does not fail" in script.read_text(encoding="utf-8")
    assert "Wrong: index_loops" in started(command, PYTHONBREAKPOINT="0").output
    assert "-> m, k_size, n = _check_nn(a, b)" in started(command, "q\n").output


@wide
def test_a_call_that_never_ends_and_one_that_raises_are_written(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_LEARN_SECONDS", "3")
    monkeypatch.setattr("groundup.course.rules.debugging.MOST_SECONDS", 3)
    task = course().task("1.2")
    write(learner, task, "    return c", "    while c:\n        pass")
    script, _ = debug(learner, task)
    assert "it did not end within 3 seconds" in script.read_text(encoding="utf-8")
    assert "got = function(a, b)" in script.read_text(encoding="utf-8")
    write(learner, task, "    return c", "    return c[99]")
    script, command = debug(learner, task)
    assert "IndexError: list index out of range" in started(command, PYTHONBREAKPOINT="0").output


def test_without_a_failing_call_one_sentence_says_so(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("debug", "1.1") == 1
    write(learner, course().task("1.1"))
    assert run("debug", "1.1") == 1
    write(learner, course().task("1.2"), "    return c", "    return (")
    assert run("debug", "1.2") == 1
    assert run("debug", "checkpoint", "1") == 2
    shown = capsys.readouterr()
    assert "1.1 is not written yet; groundup learn hint 1.1 helps" in shown.out
    assert "1.1 passes: there is no failing call" in shown.out
    assert "1.2 fails its check import, which is about no single call; groundup learn check 1.2 shows it" in shown.out
    assert not (learner.folder / "debug").exists()


@wide
def test_a_checkpoint_and_a_machine_without_gdb_are_told_in_a_sentence(
    learner: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("debug", "checkpoint") == 2
    assert "a checkpoint names the function that is wrong; name the task" in capsys.readouterr().err
    task = course().task("6.2")
    if reason := REASONS.get(task.stage):
        pytest.skip(reason)
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name == "gdb" else real(name, **more))
    write(learner, task, "+= bias", "-= bias")
    script, command = debug(learner, task)
    assert command == f"python {script}"
    assert "No gdb is installed here" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", widely(["9.d", "7.d"], 0))
def test_the_call_of_a_detective_exercise_is_written(learner: Workspace, name: str) -> None:
    case = course().task(name)
    if reason := REASONS.get(case.stage):
        pytest.skip(reason)
    path = learner.folder / case.file
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    script, command = debug(learner, case)
    assert script is not None, command
    assert started(f"python {shlex.quote(str(script))}", PYTHONBREAKPOINT="0").code == 1


def of_every_week() -> list[object]:
    """The first wrong answer of each week that fails in a call."""
    no_call = ("import", "compile", "types", "way", "speed", "memory")
    firsts = {course().task(each.task).week: each for each in reversed(MUTANTS) if each.check not in no_call}
    return [pytest.param(each, id=label(course().task(each.task), "debug"), marks=wide) for each in firsts.values()]


@pytest.mark.parametrize("mutant", of_every_week())
def test_a_script_reproduces_a_wrong_answer_of_every_week(learner: Workspace, mutant: object) -> None:
    task = course().task(mutant.task)
    if reason := REASONS.get(task.stage):
        pytest.skip(reason)
    write(learner, task, mutant.old, mutant.new)
    script, _ = debug(learner, task)
    text = script.read_text(encoding="utf-8")
    ran = started(f"python {shlex.quote(str(script))}", PYTHONBREAKPOINT="0")
    assert ran.code != 0, f"{text}\n{ran.output}"
