"""The project's own text of the files with exercises: whole, a function of it, and with stubs."""

from __future__ import annotations

from groundup.course.learner.functions import find, function_text, replaced, stub
from groundup.course.manifest import ROOT, Course, Task


def files(course: Course) -> list[str]:
    """The files that have exercises in them, in the course's order."""
    return list(dict.fromkeys(task.file for task in course.tasks))


def solution_file(file: str) -> str:
    """The project's own text of a file."""
    return (ROOT / file).read_text(encoding="utf-8")


def solution(task: Task) -> str:
    """The project's own text of a task's function."""
    text = solution_file(task.file)
    return function_text(text, find(text, task.function, task.file))


def stubbed(file: str, course: Course) -> str:
    """The project's file with a stub in the place of every exercise."""
    text = solution_file(file)
    for task in course.tasks:
        if task.file == file:
            place = find(text, task.function, file, task.keep)
            text = replaced(text, place, stub(text, task.function, file, task.message, task.keep))
    return text
