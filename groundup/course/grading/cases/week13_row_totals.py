"""13.d: the sum of each row by a tree in shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check, both
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, races, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

THREADS = 64

UNWRITTEN_PARTIAL = "a thread that has no number of the row still has an element in partial, which has to hold a zero"


def row_totals() -> list[Check]:
    """Rows shorter and longer than a block."""
    kernel = kernel_of("week13_row_totals", "row_totals")

    def call(exponentials: np.ndarray) -> np.ndarray:
        rows = len(exponentials)
        totals: np.ndarray = launched(kernel, Launch(rows, THREADS), exponentials, Out((rows,)))
        return totals

    def watch(columns: int, most: int) -> Callable[..., None]:
        return watched(
            kernel,
            Launch(2, THREADS),
            lambda rng: (random(rng, 2, columns), Out((2,))),
            coalesced(place=0),
            uninitialised=UNWRITTEN_PARTIAL,
            work=[Work(0, most, "load")],
        )

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda exponentials: exponentials.astype(np.float64).sum(axis=1),
            show=lambda exponentials: f"row_totals of exponentials {exponentials.shape}",
            hand=[((as_float([[1, 2, 3], [4, 5, 6]]),), [6, 15])],
            arguments=lambda rng, size: (np.exp(random(rng, *size)),),
            typical=(3, 100),
            sizes=[(1, 1), (2, 63), (2, 64), (3, 65), (2, 200)],
            dtype="float32",
            terms=lambda exponentials: exponentials.shape[1],
            scale=lambda exponentials: exponentials.sum(axis=1),
            mistakes=races(),
            memory=both(watch(40, 1), watch(128, 2)),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"13.d": row_totals}
