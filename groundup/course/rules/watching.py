"""Grading a task again whenever its file is saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from groundup.course.judging.verdict import Verdict
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.order import next_task

LOOK_EVERY = 0.1
"""Seconds between two looks at the file."""


def watch(
    workspace: Workspace,
    task: Task,
    grade: Callable[[Task], Verdict],
    unreadable: Callable[[str], None],
    waiting: Callable[[Task], None],
) -> NoReturn:
    """Grade the task whenever its file is saved, and go on to the next task after a pass. A KeyboardInterrupt ends it.

    grade: grades a task and shows the verdict
    unreadable: shows why the file cannot be read; it is called once for each reason
    waiting: shows which task is watched now; it is called after each grading
    """
    seen = shown = None
    while True:
        try:
            text = workspace.text(task.file)
        except ValueError as error:  # an editor moves a file away for a moment while it saves
            if str(error) != shown:
                shown = str(error)
                unreadable(shown)
            pause()
            continue
        if text == seen:
            pause()
            continue
        seen = text
        following = next_task(workspace, task) if grade(task).passed else None
        if following is not None:
            seen = text if following.file == task.file else workspace.text(following.file)
            task = following
        waiting(task)


def pause() -> None:
    """The time between two looks at a file."""
    time.sleep(LOOK_EVERY)
