"""`groundup learn grade`: many learners' folders, graded into one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from groundup.course.manifest import Task, course
from groundup.course.rules.class_grading import Grades, as_csv, as_document, grade_folders
from shared.machine.atomic import write_atomically
from shared.machine.results import results_folder, write_json
from shared.terminal import say


def grade(
    folders: Annotated[list[Path], typer.Argument(help="Learners' course folders.", show_default=False)],
    weeks: Annotated[str | None, typer.Option(help="Only these weeks, such as 3 or 1-3.", show_default="all")] = None,
    out: Annotated[Path, typer.Option(help="Where grades.csv and grades.json go.")] = Path("grades"),
) -> None:
    """Grade the folders of many learners into one table.

    Each function is graded as `groundup learn check` does it, in a process of its own with the same limits. Nothing in
    the folders changes, and what their progress.toml says of passes does not count. Hints and solutions seen are told
    as it has them. The files are written after each learner.

    It runs the learners' code with your rights: grade in a container or with an account of its own.

    Exit code: 0; 1 if a folder could not be graded.

    \b
    Examples:
      groundup learn grade submissions/*/groundup-course
      groundup learn grade --weeks 1-3 --out term1 ada grace
    """
    tasks = _tasks(weeks)
    results_folder(out)
    graded: list[Grades] = []
    for grades in grade_folders(folders, course(), tasks, say):
        graded.append(grades)
        write_atomically(out / "grades.csv", as_csv(graded, tasks).encode())
        write_json(out / "grades.json", as_document(graded, tasks))
    say(f"{out / 'grades.csv'} and {out / 'grades.json'}: {len(graded)} learners, {len(tasks)} tasks")
    if any(grades.error for grades in graded):
        raise typer.Exit(1)


def _tasks(weeks: str | None) -> list[Task]:
    """The tasks and detective exercises of some weeks, or all. Raises ValueError for a text that names none."""
    last = len(course().weeks)
    weeks = f"1-{last}" if weeks is None else weeks
    found = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", weeks)
    first, end = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= end <= last:
        raise ValueError(f"grade: expected --weeks as a number or a range from 1 to {last}, such as 1-3, got {weeks}")
    return [task for task in [*course().tasks, *course().cases] if first <= _week(task) <= end]


def _week(task: Task) -> int:
    return int(task.id.partition(".")[0])
