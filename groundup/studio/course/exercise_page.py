"""The learner's folder, and what the page shows of it: progress, a task, hints, the solution.

Everything is read anew for each question, because the learner and `groundup learn` in a terminal may change it.
"""

from __future__ import annotations

import ast
import contextlib
import re
import textwrap
from pathlib import Path
from typing import Any

from groundup.course.faults import KINDS
from groundup.course.learner import record as record_file
from groundup.course.learner.functions import FunctionMissing, dedented, find
from groundup.course.learner.learners_folder import DEFAULT, commit_first, locate, start
from groundup.course.learner.project_files import solution_file
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from groundup.course.rules import hints
from groundup.course.rules.checkpoints import entry_name
from groundup.course.rules.detecting import answer as judge_answer
from groundup.course.rules.order import chosen_task, next_task, skip
from groundup.course.rules.solutions import difference, open_solution
from groundup.course.rules.states import state
from groundup.studio.course import week_text
from groundup.studio.floors.colouring import coloured

LONGEST = 400
"""Lines of a function that are shown."""


def workspace(here: Path) -> Workspace:
    """The learner's folder that is found from a folder. Raises ValueError, with what helps, where there is none."""
    return locate(None, course(), here)


def begin(here: Path) -> Workspace:
    """Make a course folder in a folder."""
    found, _ = start(here / DEFAULT, course())
    commit_first(found.folder)
    return found


def task_of(learner: Workspace, name: str | None) -> Task:
    """The task of that id; without one the current task."""
    return chosen_task(learner, name or None)


def progress(learner: Workspace) -> dict[str, Any]:
    """Every phase, week and task with its state, and how many have passed."""
    with contextlib.suppress(ValueError, OSError):  # another program writes progress.toml just now
        learner.record = record_file.load(learner.folder / record_file.NAME)
    states = {task.id: state(learner, task) for task in [*learner.course.tasks, *learner.course.cases]}
    passed = sum(states[task.id].startswith("passed") for task in learner.course.tasks)
    phases = []
    for phase in learner.course.phases:
        weeks = []
        for week in phase.weeks:
            cases = [case for case in learner.course.cases if case.week == week.number]
            tasks = [_listed(task, states[task.id]) for task in (*week.tasks, *cases)]
            weeks.append({"number": week.number, "title": week.title, "hours": list(week.hours), "tasks": tasks})
        reached = learner.record.of(entry_name(phase)).state == "passed"
        phases.append(
            {
                "number": phase.number,
                "title": phase.title,
                "checkpoint": phase.checkpoint,
                "reached": reached,
                "weeks": weeks,
            }
        )
    return {
        "passed": passed,
        "tasks": len(learner.course.tasks),
        "current": task_of(learner, None).id,
        "phases": phases,
    }


def _listed(task: Task, state: str) -> dict[str, Any]:
    title = f"Find the fault: {task.title}" if task.fault else task.title
    return {"id": task.id, "title": title, "state": state}


def shown(learner: Workspace, task: Task) -> dict[str, Any]:
    """A task: its title, its week's page, and the hints that were taken."""
    week = next(week for week in learner.course.weeks if week.number == task.week)
    taken = learner.record.of(task.id).hints
    return {
        "id": task.id,
        "title": f"Find the fault: {task.title}" if task.fault else task.title,
        "function": task.function,
        "case": task.fault is not None,
        "shows": task.fault.shows if task.fault else "",
        "kinds": [{"name": name, "meaning": meaning} for name, meaning in KINDS.items()] if task.fault else [],
        "week": {"number": week.number, "title": week.title, "hours": list(week.hours)},
        "text": week_text.page(task.week),
        "about": about(task),
        "place": place(learner, task),
        "source": source(learner, task),
        "hints": [_hint(task, level) for level in range(1, taken + 1)],
        "last": hints.LAST,
    }


def about(task: Task) -> str:
    """What the task's file says of itself in its first lines: its ladder, its shapes."""
    if task.fault:
        return ""  # the whole program is shown
    text = solution_file(task.file)
    if task.file.endswith(".py"):
        return ast.get_docstring(ast.parse(text)) or ""
    comment = re.match(r"\s*/\*(.*?)\*/", text, re.DOTALL)
    return textwrap.dedent(f"   {comment[1].strip()}") if comment else ""


def place(learner: Workspace, task: Task) -> str:
    """file:line of the task's function, as an editor opens it; the file alone where the function cannot be found."""
    path = learner.folder / task.file
    try:
        return f"{path}:{find(learner.text(task.file), task.function, task.file).first}"
    except (ValueError, OSError):
        return str(path)


def source(learner: Workspace, task: Task) -> dict[str, Any]:
    """The learner's function in coloured parts, and the line of its beginning; or why it cannot be shown."""
    try:
        first = learner.place(task).first
        text = dedented(learner.function(task))
    except (FunctionMissing, ValueError, OSError) as error:
        return {"said": str(error), "first": 0, "lines": []}
    language = "c" if task.file.endswith((".c", ".h")) else "python"
    lines = coloured(text, language)
    return {"said": "", "first": 1 if task.fault else first, "lines": lines[:LONGEST]}


def take_hint(learner: Workspace, task: Task) -> dict[str, Any]:
    """The next hint, as `groundup learn hint` counts it."""
    return _hint(task, hints.take_hint(learner, task, None))


def _hint(task: Task, level: int) -> dict[str, Any]:
    return {"level": level, "name": hints.NAMES[level - 1], "text": " ".join(task.hints[level - 1].split())}


def answer(learner: Workspace, case: Task, line: str, kind: str) -> dict[str, Any]:
    """Judge where the fault of a detective exercise is said to be, and of which kind; a right answer is written down.

    Raises ValueError for a task that is none, a line that is not there, or an unknown kind.
    """
    if case.fault is None:
        raise ValueError(f"{case.id} is no detective exercise: it has no fault to find")
    told = judge_answer(learner, case, line, kind)
    return {
        "line": told.line_right,
        "kind": told.kind_right,
        "source": told.source,
        "help": list(told.help),
        "because": " ".join(case.fault.because.split()) if told.right else "",
        "passed": told.passed,
    }


def leave_out(learner: Workspace, task: Task) -> str | None:
    """Skip a task: the id of the next one, None if there is none. Raises ValueError for a task that has passed."""
    if not skip(learner, task):
        raise ValueError(f"{task.id} has passed, so there is nothing to skip")
    following = next_task(learner, task)
    return following.id if following else None


def solution(learner: Workspace, task: Task, reveal: bool) -> dict[str, Any]:
    """The project's function as the difference from the learner's: open once the task has passed, or with reveal."""
    if not open_solution(learner, task, reveal):
        return {"open": False, "lines": []}
    return {"open": True, "lines": difference(learner, task)}
