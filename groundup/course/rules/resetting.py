"""Putting the stub of a task back, and undoing that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groundup.course.learner.functions import FunctionMissing
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task


def reset(workspace: Workspace, task: Task, whole_file: bool) -> Path | None:
    """Put the task's stub back, or every stub of its file, and make it the current task. The program of a
    detective exercise is put back as a whole, and the current task stays.

    Returns where the file was copied before, None if there was no file. Raises ValueError with the way out if the
    function is not in the file.
    """
    with _way_out(f"{task.id} --file brings back all of the file"):
        copy = workspace.reset(task, whole_file=whole_file)
    return _current(workspace, task, copy)


def undo(workspace: Workspace, task: Task, whole_file: bool) -> Path | None:
    """Bring back what the last reset of the task, or the last undo, put away, and make it the current task.

    whole_file: whether the file comes back as a whole although only a function was reset
    Returns where the file was copied before, None if there was no file. Raises ValueError if there is nothing to bring
    back, or with the way out if the function is not in the file.
    """
    with _way_out(f"{task.id} --undo --file brings back all of the file as it was"):
        copy = workspace.undo_reset(task, whole_file)
    return _current(workspace, task, copy)


@contextmanager
def _way_out(command: str) -> Iterator[None]:
    try:
        yield
    except FunctionMissing as missing:
        raise ValueError(f"{missing}; groundup learn reset {command}") from None


def _current(workspace: Workspace, task: Task, copy: Path | None) -> Path | None:
    if not task.fault:
        workspace.record.current = task.id
    workspace.save()
    return copy
