"""How far the help with a task goes: an idea first, then a plan, then nearly the code."""

from __future__ import annotations

from groundup.course.learner.record import HINTS
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task

NAMES = ("an idea", "a plan", "nearly the code")
LAST = HINTS


def take_hint(workspace: Workspace, task: Task, level: int | None) -> int:
    """Write down that a hint was taken. Returns its level, from 1: the one that is asked for, or the next one.

    Hints cost nothing: `groundup learn status` shows how many were taken, and nothing else happens.
    """
    entry = workspace.record.of(task.id)
    taken = level or min(entry.hints + 1, LAST)
    entry.hints = max(entry.hints, taken)
    workspace.save()
    return taken
