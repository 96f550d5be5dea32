"""8.d: the inner product with four sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_programs import c_program
from groundup.course.grading.calling.fenced_arrays import read


def dot() -> list[Check]:
    """Lengths with every remainder, and shorter than four."""
    function = c_program("dot", ("size", "array", "array"), returns_number=True)

    def call(a: np.ndarray, b: np.ndarray) -> float:
        got = fenced_arrays.run("dot", function, a.size, read("a", a), read("b", b))
        return float(got["returned"])

    return checks_of(
        Exercise(
            call=call,
            reference=lambda a, b: a @ b,
            show=lambda a, b: f"dot of {a.size} numbers",
            hand=[
                ((np.array([1.0, 2, 3, 4]), np.array([1.0, 10, 100, 1000])), 4321.0),
                ((np.array([1.0, 2, 3, 4, 5]), np.array([10000.0, 1000, 100, 10, 1])), 12345.0),
            ],
            arguments=lambda rng, size: (rng.standard_normal(size), rng.standard_normal(size)),
            typical=10,
            sizes=[1, 2, 3, 6, 7, 8, 31, 97],
            terms=lambda a, b: a.size,
            scale=lambda a, b: np.abs(a) @ np.abs(b),
            mistakes=[
                Mistake(
                    "the numbers behind the last whole four are left out",
                    lambda a, b: a[: a.size // 4 * 4] @ b[: a.size // 4 * 4] if a.size % 4 else None,
                )
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"8.d": dot}
