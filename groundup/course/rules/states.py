"""What has become of each task, in the words of `groundup learn status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundup.course.learner import record as record_file
from groundup.course.learner.migration import is_moved
from groundup.course.learner.record import TaskRecord
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task


def states_of(workspace: Workspace) -> dict[str, str]:
    """The state of every task, by its id: see `state`."""
    return {task.id: state(workspace, task) for task in workspace.course.tasks}


def state(workspace: Workspace, task: Task) -> str:
    """ "passed", "changed since it passed", "skipped", "begun", or "" for a task that still is a stub.

    After "passed" come the hints that were taken, and whether the solution was seen.
    """
    entry = workspace.record.of(task.id)
    if task.fault and entry.state == "":
        return _state_of_case(workspace, task, entry)
    if entry.state == "passed":
        if not workspace.passed(task):
            return "changed since it passed"
        helped = [f"{entry.hints} hint{'' if entry.hints == 1 else 's'}"] if entry.hints else []
        return ", ".join(["passed", *helped, *(["solution seen"] if entry.revealed else [])])
    if entry.state == "skipped":
        return "skipped"
    return "begun" if begun(workspace, task) else ""


def _state_of_case(workspace: Workspace, task: Task, entry: TaskRecord) -> str:
    """The state of a detective exercise that has not passed: found, mended, begun, or neither."""
    if entry.found:
        return "found, not mended yet"
    if is_mended(workspace, task):
        return "mended, not named yet"
    return "begun" if begun(workspace, task) else ""


def is_mended(workspace: Workspace, case: Task) -> bool:
    """Whether the program of a detective exercise is the text that was graded as mended."""
    try:
        return workspace.record.of(case.id).digest == record_file.digest(workspace.function(case))
    except ValueError:  # the file is missing or unreadable
        return False


def begun(workspace: Workspace, task: Task) -> bool:
    """Whether there is something to grade: not if the file is missing or an earlier one, which asked for another
    function, but also if it cannot be read any more."""
    if not (workspace.folder / task.file).exists() or is_moved(workspace.folder, task):
        return False
    try:
        return not workspace.is_stub(task)
    except ValueError:
        return True


def count(tasks: Sequence[Task], states: Mapping[str, str]) -> str:
    """How many of the tasks have passed, and how many were skipped, such as "3 of 4, 1 skipped"."""
    passed = sum(states[task.id].startswith("passed") for task in tasks)
    skipped = sum(states[task.id] == "skipped" for task in tasks)
    return f"{passed} of {len(tasks)}" + (f", {skipped} skipped" if skipped else "")
