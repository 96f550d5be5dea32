"""The child process refuses to pass a task that nothing has graded, and names the learner's own file and line."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from cuda_emulator import KernelError
from groundup.course import assembly, learners_stage
from groundup.course.assembly import Assembly
from groundup.course.checks.check import Check, Wrong
from groundup.course.judging import child


def graded_by(made: list[Check], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    """What the child process tells of a task with these checks."""
    monkeypatch.setattr(child.grading, "task_checks", lambda task: made)
    monkeypatch.setattr(child, "limit_memory", lambda *limit: None)
    told: list[tuple[str, dict[str, object]]] = []
    request = {"task": "1.1", "megabytes": 1}
    child.grade(request, Assembly({}, ""), lambda event, **more: told.append((event, more)))
    return told


def test_a_task_without_checks_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="nothing is graded here"):
        graded_by([], monkeypatch)


def test_a_check_that_compares_nothing_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="the check shape compared nothing"):
        graded_by([Check("shape", lambda tally: None)], monkeypatch)


def test_checks_out_of_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="expected that of"):
        graded_by([Check("values", lambda tally: None), Check("shape", lambda tally: None)], monkeypatch)


def two_files(tmp_path: Path) -> tuple[Assembly, str]:
    """Two assembled files, as of a checkpoint, each a line longer than the learner's; and the path of the second."""
    first, second = str(tmp_path / "a.py"), str(tmp_path / "b.py")
    Path(second).write_text("# the project's own\nx[99] = 1\n", encoding="utf-8")
    lines = {first: [0, 1, 2], second: [0, 1]}
    return Assembly({}, "", lines, {first: "/mine/a.py", second: "/mine/b.py"}), second


def test_a_wrong_place_is_named_in_the_file_that_it_is_in_and_in_no_other(tmp_path: Path) -> None:
    assembled, second = two_files(tmp_path)
    told = child._told(Wrong("out of bounds", line=2, file=second), assembled, [0, 0])
    assert (told["file"], told["line"], told["source"]) == ("/mine/b.py", 1, "x[99] = 1")
    told = child._told(Wrong("not known where", line=2), assembled, [0, 0])
    assert (told["file"], told["line"], told["source"]) == ("", 0, "")


def test_a_wrong_kernel_is_told_with_the_learners_file_and_line(tmp_path: Path) -> None:
    assembled, second = two_files(tmp_path)
    error = KernelError("x[99] is out of bounds", filename=second, line=2)
    told = child._raised(error, assembled, [0, 0])
    assert told["text"] == "x[99] is out of bounds"
    assert (told["file"], told["line"], told["source"], told["traceback"]) == ("/mine/b.py", 1, "x[99] = 1", "")
    assert learners_stage.place_in(assembled, error) == "/mine/b.py:1"


def test_two_texts_of_one_length_and_one_second_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a learner's `-=` and its mend `+=` are, saved one after the other."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "sums.py"
    finder, values = assembly._Finder({"sums": str(file)}), []
    for text in ("value = 0 - 1\n", "value = 0 + 1\n"):
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        spec = finder.find_spec("sums", None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        assert spec.loader is not None
        spec.loader.exec_module(module)
        values.append(module.value)
    assert values == [-1, 1]
    assert list(tmp_path.iterdir()) == [file]
