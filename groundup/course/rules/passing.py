"""Grading a task and writing the result down: when a task has passed, and when a pass is taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner import record as record_file
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.order import next_task, today
from groundup.course.rules.states import begun


@dataclass(frozen=True)
class Graded:
    """The verdict on a task, and what follows from it.

    changed: whether the function was saved again during the grading: then the verdict is about the earlier text
    following: after a pass the next task, None if there is none
    """

    verdict: Verdict
    changed: bool
    following: Task | None


def grade(workspace: Workspace, task: Task, report: Path | None = None) -> Graded:
    """Grade a task and write the result to progress.toml. After a pass the next task is the current one.

    A pass counts only for the text that was graded. It is taken back if the same text fails later, because something
    that it uses has changed. A skipped task that is graded again is no longer skipped.

    A detective exercise passes when its program is mended and its fault named, in whichever order.
    report: as of `judge`
    """
    graded = _digest(workspace, task)
    verdict = judge(workspace, task, report)
    # Another command may have written the file during the grading.
    workspace.record = record_file.load(workspace.folder / record_file.NAME)
    entry = workspace.record.of(task.id)
    if task.fault and not entry.found:
        verdict = replace(verdict, cause="")  # it would name the kind of the fault
    if not task.fault:
        workspace.record.current = task.id
    changed = _digest(workspace, task) != graded
    if verdict.passed and not changed and graded is not None:
        if entry.state != "passed" or entry.digest != graded:
            entry.state, entry.on, entry.digest = "passed", today(), graded
        if task.fault and not entry.found:
            entry.state, entry.on = "", ""  # mended; it passes when its fault is named
    elif not verdict.passed and not verdict.stub and (entry.state == "skipped" or entry.digest == graded):
        entry.state, entry.on, entry.digest = "", "", ""
    following = next_task(workspace, task) if verdict.passed and not changed else None
    workspace.save()
    return Graded(verdict, changed, following)


def grade_again(workspace: Workspace, show: Callable[[Task, Verdict], None]) -> None:
    """Grade every task that is written, because progress.toml does not tell any more which have passed.

    show: called with each verdict as it comes. Afterwards the first task that does not pass is the current one.
    """
    for task in [*workspace.course.tasks, *workspace.course.cases]:
        if begun(workspace, task):
            show(task, grade(workspace, task).verdict)
    next_task(workspace, workspace.course.tasks[0], itself=True)


def ends_a_phase(workspace: Workspace, task: Task) -> bool:
    """Whether every task of this task's phase has passed."""
    phase = workspace.course.phase_of(task)
    return all(workspace.passed(each) for week in phase.weeks for each in week.tasks)


def _digest(workspace: Workspace, task: Task) -> str | None:
    """The digest of the task's function as it is now; None if it cannot be found."""
    try:
        return record_file.digest(workspace.function(task))
    except ValueError:
        return None
