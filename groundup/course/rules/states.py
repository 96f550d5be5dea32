"""What has become of each task, in the words of `groundup learn status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    if entry.state == "passed":
        if not workspace.passed(task):
            return "changed since it passed"
        helped = [f"{entry.hints} hint{'' if entry.hints == 1 else 's'}"] if entry.hints else []
        return ", ".join(["passed", *helped, *(["solution seen"] if entry.revealed else [])])
    if entry.state == "skipped":
        return "skipped"
    return "begun" if begun(workspace, task) else ""


def begun(workspace: Workspace, task: Task) -> bool:
    """Whether there is something to grade. That is also so if the file cannot be read any more."""
    try:
        return not workspace.is_stub(task)
    except ValueError:
        return True


def count(tasks: Sequence[Task], states: Mapping[str, str]) -> str:
    """How many of the tasks have passed, and how many were skipped, such as "3 of 4, 1 skipped"."""
    passed = sum(states[task.id].startswith("passed") for task in tasks)
    skipped = sum(states[task.id] == "skipped" for task in tasks)
    return f"{passed} of {len(tasks)}" + (f", {skipped} skipped" if skipped else "")
