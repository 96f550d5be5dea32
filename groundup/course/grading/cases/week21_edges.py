"""21.d: a convolution with a kernel of 3 by 3 and a border that is not in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_programs import c_program
from groundup.course.grading.calling.fenced_arrays import filled, read


def edges() -> list[Check]:
    """Images of one row, one column, one pixel, and larger ones; the margins show what is read beside the image."""
    function = c_program("edges", ("size", "size", "array", "array", "array"))

    def call(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        arguments = (*x.shape, read("x", x), read("w", w), filled("out", x.shape))
        found: np.ndarray = fenced_arrays.run("edges", function, *arguments)["out"]
        return found

    def summed(padded: np.ndarray, w: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
        total: np.ndarray = np.einsum("hwij,ij->hw", windows, w)
        return total

    def right(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return summed(np.pad(x, 1), w)

    def without(border: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        def wrong(x: np.ndarray, w: np.ndarray) -> np.ndarray:
            cut = x.copy()
            cut[(slice(None), -1) if border == "column" else -1] = 0
            return right(cut, w)

        return wrong

    laplace = np.array([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]])
    return checks_of(
        Exercise(
            call=call,
            reference=right,
            show=lambda x, w: f"edges of x {x.shape}",
            hand=[
                ((np.array([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]), laplace), [[2, -3, 2], [-3, 16, -3], [2, -3, 2]]),
                ((np.array([[1.0, 2], [3, 4]]), np.arange(9.0).reshape(3, 3)), [[67, 57], [37, 27]]),
            ],
            arguments=lambda rng, size: (rng.standard_normal(size), rng.standard_normal((3, 3))),
            typical=(4, 5),
            sizes=[(1, 1), (1, 6), (7, 1), (2, 3), (9, 13)],
            scale=lambda x, w: right(np.abs(x), np.abs(w)),
            mistakes=[
                Mistake(
                    "the last column of the image is left out: the image's own columns are 1 to columns",
                    without("column"),
                ),
                Mistake("the last row of the image is left out: the image's own rows are 1 to rows", without("row")),
                Mistake(
                    "the border repeats the outermost pixels: it is 0",
                    lambda x, w: summed(np.pad(x, 1, mode="edge"), w),
                ),
                Mistake(
                    "the kernel is turned by half a turn: output (i, j) meets w[0] above it",
                    lambda x, w: right(x, w[::-1, ::-1]),
                ),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"21.d": edges}
