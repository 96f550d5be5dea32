"""Grading the folders of many learners: what passes in each, on this machine, whatever their progress.toml says.

A learner's files are copied first, so nothing in a folder changes. Each task is graded as `groundup learn check` grades
it: in a process of its own with the same limits, and a pass is confirmed by the examiner.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner import record as record_file
from groundup.course.learner.learners_folder import DEFAULT, has_learners_files, is_checkout
from groundup.course.learner.project_files import MOST_BYTES
from groundup.course.learner.record import LearnersRecord
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Course, Task
from groundup.course.rules.states import begun
from shared.machine import regular
from shared.machine.atomic import write_atomically
from shared.numbers import plural


@dataclass
class Grades:
    """One learner: the verdicts on the tasks that are begun, and what progress.toml tells of hints.

    error: why the folder could not be graded, "" if it could; hints, seen: as the learner's own file has them
    """

    learner: str
    folder: Path
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    error: str = ""

    @property
    def passed(self) -> int:
        """How many tasks pass."""
        return sum(verdict.passed for verdict in self.verdicts.values())

    def state(self, task: Task) -> str:
        """ "passed", "failed", or "" for a task that is not begun."""
        verdict = self.verdicts.get(task.id)
        return "" if verdict is None or verdict.stub else "passed" if verdict.passed else "failed"


def names_of(folders: Sequence[Path]) -> list[str]:
    """A name for each folder: its own; its parent's, if its own is the usual one; its path, if two would be equal."""
    paths = [folder.absolute() for folder in folders]
    names = [path.parent.name if path.name == DEFAULT and path.parent.name else path.name for path in paths]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]


def grade_folders(
    folders: Sequence[Path], course: Course, tasks: Sequence[Task], tell: Callable[[str], None]
) -> Iterator[Grades]:
    """Grade these tasks in each folder. tell: gets a line after each learner."""
    for name, folder in zip(names_of(folders), folders, strict=True):
        grades = Grades(name, folder)
        if not folder.is_dir() or is_checkout(folder) or not has_learners_files(folder, course):
            grades.error = f"{folder} is no course folder: it has none of the files with exercises"
        else:
            _grade(grades, course, tasks)
        passing = f"{grades.passed} of {plural(len(grades.verdicts), 'begun task')} pass"
        tell(f"{name}: {grades.error or passing}")
        yield grades


def _grade(grades: Grades, course: Course, tasks: Sequence[Task]) -> None:
    record = _record(grades.folder)
    with tempfile.TemporaryDirectory(prefix="groundup-grade-") as copy:
        workspace = Workspace(Path(copy), course, record)
        for file in sorted({task.file for task in tasks}):
            try:
                content = regular.read(grades.folder / file, MOST_BYTES)
            except OSError:  # missing, or no regular file: its tasks are not begun
                continue
            (workspace.folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(workspace.folder / file, content)
        for task in tasks:
            if begun(workspace, task):
                grades.verdicts[task.id] = judge(workspace, task)
    for task in tasks:
        entry = record.of(task.id)
        grades.hints[task.id] = entry.hints
        if entry.revealed:
            grades.seen.add(task.id)


def _record(folder: Path) -> LearnersRecord:
    """What progress.toml says; nothing if it is missing or damaged, because no grade rests on it."""
    try:
        return record_file.load(folder / record_file.NAME)
    except (ValueError, OSError):
        return LearnersRecord("")


def as_csv(classes: Sequence[Grades], tasks: Sequence[Task]) -> str:
    """A line for each learner: how many pass, hints and solutions seen, then a column for each task."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["learner", "passed", "of", "hints", "solutions seen", *(task.id for task in tasks), "error"])
    for grades in classes:
        # A spreadsheet takes a cell that begins so for a formula.
        name = f"'{grades.learner}" if grades.learner[:1] in "=+-@" else grades.learner
        counts = [grades.passed, len(tasks), sum(grades.hints.values()), len(grades.seen)]
        table.writerow([name, *counts, *map(grades.state, tasks), grades.error])
    return text.getvalue()


def as_document(classes: Sequence[Grades], tasks: Sequence[Task]) -> dict[str, Any]:
    """The grades of a class with every verdict, as values for JSON."""
    return {
        "schema": 1,
        "kind": "groundup learn grade",
        "tasks": [task.id for task in tasks],
        "learners": [
            {
                "learner": grades.learner,
                "folder": str(grades.folder.absolute()),
                "error": grades.error,
                "passed": grades.passed,
                "tasks": {
                    task.id: {
                        "state": grades.state(task),
                        "hints": grades.hints.get(task.id, 0),
                        "solution_seen": task.id in grades.seen,
                        "verdict": grades.verdicts[task.id].document() if task.id in grades.verdicts else None,
                    }
                    for task in tasks
                },
            }
            for grades in classes
        ],
    }
