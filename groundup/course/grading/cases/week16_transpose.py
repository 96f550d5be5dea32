"""16.d: a matrix transposed in tiles, without bank conflicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, no_bank_conflicts, races, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

TILE = 32

ONE_BANK = "the numbers that a warp reads lie one row of the tile apart, and the rows are as long as there are banks"

BOTH_ALONG_ROWS = "global memory has to be read along rows and written along rows: the tile turns the matrix around"


def transpose() -> list[Check]:
    """Whole sectors in global memory, and one pass for each access to the tile."""
    kernel = kernel_of("week16_transpose", "transpose")

    def launch(rows: int, columns: int) -> Launch:
        return Launch((-(-columns // TILE), -(-rows // TILE)), (TILE, TILE))

    def call(weights: np.ndarray) -> np.ndarray:
        rows, columns = weights.shape
        transposed: np.ndarray = launched(kernel, launch(rows, columns), weights, Out((columns, rows)))
        return transposed

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda weights: weights.T.astype(np.float64),
            show=lambda weights: f"transpose of weights {weights.shape}",
            hand=[((as_float([[1, 2, 3], [4, 5, 6]]),), [[1, 4], [2, 5], [3, 6]])],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(5, 40),
            sizes=[(1, 1), (32, 32), (33, 2), (31, 65)],
            dtype="float32",
            mistakes=races(),
            memory=watched(
                kernel,
                launch(64, 64),
                lambda rng: (random(rng, 64, 64), Out((64, 64))),
                coalesced(cause=BOTH_ALONG_ROWS),
                no_bank_conflicts(ONE_BANK),
                work=[Work(1, 1)],
            ),
        ),
        single=True,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"16.d": transpose}
