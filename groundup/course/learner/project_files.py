"""The project's own text of the files with exercises: the whole file, one function of it, or the file with stubs."""

from __future__ import annotations

from groundup.course.learner.functions import find, function_text, replaced, stub
from groundup.course.manifest import ROOT, Course, Task


def files(course: Course) -> list[str]:
    """The files with exercises, in the order of the course."""
    return list(dict.fromkeys(task.file for task in course.tasks))


def solution_file(file: str) -> str:
    """The project's own text of a file."""
    return (ROOT / file).read_text(encoding="utf-8")


def solution(task: Task) -> str:
    """The project's own text of a task's function."""
    text = solution_file(task.file)
    return function_text(text, find(text, task.function, task.file))


def stubbed(file: str, course: Course) -> str:
    """The project's file with a stub in place of every exercise."""
    text = solution_file(file)
    for task in course.tasks:
        if task.file == file:
            place = find(text, task.function, file, task.keep)
            text = replaced(text, place, stub(text, task.function, file, task.message, task.keep))
    return text
