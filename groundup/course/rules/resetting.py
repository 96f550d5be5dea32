"""Putting the stub of a task back."""

from __future__ import annotations

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
    try:
        copy = workspace.reset(task, whole_file=whole_file)
    except FunctionMissing as missing:
        raise ValueError(f"{missing}; groundup learn reset {task.id} --file brings back all of the file") from None
    if not task.fault:
        workspace.record.current = task.id
    workspace.save()
    return copy
