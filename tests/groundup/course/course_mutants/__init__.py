"""Wrong answers to every exercise, the kind that learners give: the grader has to find each, and say what it may be.

Beside them right answers that are written in another way than the project's own, which the grader has to let pass.
A file a week; tests/groundup/course/test_exercises.py puts them in the learner's file and reads the verdict.
right_kernels.py has right answers to kernels that look otherwise; test_kernels.py does the same with them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """task: its id; old, new: what is replaced in the solution, and by what; check: which has to fail

    says: what has to stand in the verdict's `what` or `likely`
    """

    task: str
    old: str
    new: str
    check: str
    says: str


@dataclass(frozen=True)
class RightAnswer:
    """task: its id; old, new: what is replaced in the solution, and by what"""

    task: str
    old: str
    new: str
