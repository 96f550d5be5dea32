"""What the tests of the course share: a learner's folder, and writing an answer into it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from groundup.course.learner import record
from groundup.course.learner.functions import replaced
from groundup.course.learner.learners_folder import opened, start
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course


def new_folder(folder: Path) -> Workspace:
    """A learner's folder as `groundup learn start` leaves it: made once, and copied for each test."""
    shutil.copytree(Path(_template().name) / "course", folder, dirs_exist_ok=True)
    return opened(folder, course())


@cache
def _template() -> TemporaryDirectory[str]:
    """A folder that goes with the process, and has a learner's folder in it."""
    folder = TemporaryDirectory(prefix="groundup-tests-")
    start(Path(folder.name) / "course", course())
    return folder


def write(learner: Workspace, task: Task, old: str = "", new: str = "") -> None:
    """The solution in the place of the task's function, with one text in it replaced by another."""
    text = solution(task)
    if old:
        assert old in text, f"{old!r} is not in the solution of {task.id}"
    path = learner.folder / task.file
    before = path.read_text(encoding="utf-8")
    path.write_text(replaced(before, learner.place(task), text.replace(old, new) if old else text), encoding="utf-8")


def mark_passed(learner: Workspace, task: Task) -> None:
    """As if what stands in the file now had passed."""
    entry = learner.record.of(task.id)
    entry.state, entry.digest = "passed", record.digest(learner.function(task))
    learner.save()
