"""The child process refuses to pass a task that nothing has graded."""

import pytest

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
