"""The order of the tasks: which one is meant, which is next, and skipping one."""

from __future__ import annotations

import datetime

from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task


def chosen_task(workspace: Workspace, name: str | None) -> Task:
    """The task of that name; without a name the current task.

    The first task is the current one if progress.toml names a task that does not exist (any more).
    """
    if name is not None:
        return workspace.course.task(name)
    known = {task.id: task for task in workspace.course.tasks}
    return known.get(workspace.record.current, workspace.course.tasks[0])


def next_task(workspace: Workspace, after: Task, itself: bool = False) -> Task | None:
    """The first task after this one that has neither passed nor been skipped; None if there is none.

    After the last task the search goes on with the first. The task that is found becomes the current one.
    itself: whether `after` may be found, too
    """
    tasks = workspace.course.tasks
    if after.fault:
        return None  # a detective exercise stands beside the weeks' tasks
    place = tasks.index(after) + (0 if itself else 1)
    for task in [*tasks[place:], *tasks[:place]]:
        skipped = workspace.record.of(task.id).state == "skipped"
        if (itself or task != after) and not workspace.passed(task) and not skipped:
            workspace.record.current = task.id
            workspace.save()
            return task
    return None


def skip(workspace: Workspace, task: Task) -> bool:
    """Write down that the task is left out. Returns False, and writes nothing, if it has passed."""
    entry = workspace.record.of(task.id)
    if workspace.passed(task):
        return False
    entry.state, entry.on, entry.digest = "skipped", today(), ""
    workspace.save()
    return True


def today() -> str:
    """Today's date as progress.toml has it."""
    return datetime.date.today().isoformat()
