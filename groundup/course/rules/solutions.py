"""When the project's own function may be seen, and how it differs from the learner's."""

from __future__ import annotations

import difflib

from groundup.course.learner.functions import dedented
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task


def open_solution(workspace: Workspace, task: Task, reveal: bool) -> bool:
    """Whether the solution may be seen: the task has passed, or the learner asks for it now.

    If it is seen before the task has passed, that is written down.
    """
    if workspace.passed(task):
        return True
    entry = workspace.record.of(task.id)
    if reveal and not entry.revealed:
        entry.revealed = True
        workspace.save()
    return reveal


def difference(workspace: Workspace, task: Task) -> list[str]:
    """The lines of a unified difference from the learner's function to the project's; [] if they are the same.

    If the learner's function cannot be found, every line of the project's is new.
    """
    theirs = dedented(solution(task))
    try:
        yours = dedented(workspace.function(task))
    except ValueError:
        yours = ""
    lines = yours.splitlines(), theirs.splitlines()
    return list(difflib.unified_diff(*lines, "yours", f"the project's {task.file}", n=1000, lineterm=""))
