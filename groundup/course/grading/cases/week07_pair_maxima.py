"""7.d: of every two neighbours in a row the larger one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_programs import c_program
from groundup.course.grading.calling.fenced_arrays import filled, read


def pair_maxima() -> list[Check]:
    """Rows of even and of odd length; the margins show what is read behind the matrix."""
    function = c_program("pair_maxima", ("size", "size", "array", "array"))

    def call(x: np.ndarray) -> np.ndarray:
        rows, columns = x.shape
        out = filled("out", (rows, (columns + 1) // 2))
        maxima: np.ndarray = fenced_arrays.run("pair_maxima", function, rows, columns, read("x", x), out)["out"]
        return maxima

    def right(x: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, x.shape[1] % 2)), constant_values=-np.inf)
        maxima: np.ndarray = padded.reshape(len(x), -1, 2).max(axis=2)
        return maxima

    def into_the_next_row(x: np.ndarray) -> Any:
        """The last number of a row is compared with the first of the next, and that of the last row is kept."""
        columns = x.shape[1]
        if columns % 2 == 0:
            return None
        after = np.append(x[1:, 0], -np.inf)
        return right(np.column_stack([x, after]))

    return checks_of(
        Exercise(
            call=call,
            reference=right,
            show=lambda x: f"pair_maxima of x {x.shape}",
            hand=[
                ((np.array([[1.0, 5, 2, 2], [-3, -4, -6, -5]]),), [[5, 2], [-3, -5]]),
                ((np.array([[1.0, 5, 2, 2, -4], [-3, -4, -6, -5, -7]]),), [[5, 2, -4], [-3, -5, -7]]),
            ],
            arguments=lambda rng, size: (rng.standard_normal(size) - 2,),
            typical=(4, 7),
            sizes=[(1, 1), (3, 1), (1, 2), (5, 9), (7, 8), (2, 31)],
            mistakes=[
                Mistake("the last number of an odd row is compared with the first of the next row", into_the_next_row),
                Mistake(
                    "the last number of an odd row is compared with 0, which is larger than a negative number",
                    lambda x: right(np.column_stack([x, np.zeros(len(x))])) if x.shape[1] % 2 else None,
                ),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"7.d": pair_maxima}
