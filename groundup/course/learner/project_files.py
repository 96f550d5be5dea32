"""The project's own text of the files with exercises: the whole file, one function of it, or the file with stubs.

A detective exercise is a whole program, which has a fault where other exercises have a stub.
"""

from __future__ import annotations

from groundup.course.faults import mended
from groundup.course.learner.functions import find, function_text, replaced, stub
from groundup.course.manifest import ROOT, Course, Task

CASES = "detective"
"""The folder of the detective exercises, in the learner's folder."""

MOST_BYTES = 4_000_000
"""Of a file with exercises; the longest of them has a hundredth of it."""

PROGRAMS = ROOT / "groundup" / "course" / "programs"


def files(course: Course) -> list[str]:
    """The files with exercises, in the order of the course."""
    return list(dict.fromkeys(task.file for task in course.tasks))


def solution_file(file: str) -> str:
    """The project's own text of a file."""
    return (ROOT / file).read_text(encoding="utf-8")


def program(task: Task) -> str:
    """The program of a detective exercise as the learner gets it, with its fault."""
    return (PROGRAMS / task.file.removeprefix(f"{CASES}/")).read_text(encoding="utf-8")


def solution(task: Task) -> str:
    """The project's own text of a task's function; of a detective exercise, the whole program without its fault."""
    if task.fault:
        return mended(program(task), task.fault)
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
