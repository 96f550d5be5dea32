"""11.d: a matrix times a vector through shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

TILE = 64

THROUGH_THE_TILE = "each block copies the vector to shared memory once; the sum reads it from there"


def multiply() -> list[Check]:
    """Right for any size, without a race, and still through the tile."""
    kernel = kernel_of("week11_matrix_vector", "multiply")

    def launch(rows: int) -> Launch:
        return Launch(-(-rows // TILE), TILE)

    def call(transposed: np.ndarray, vector: np.ndarray) -> np.ndarray:
        rows = transposed.shape[1]
        product: np.ndarray = launched(kernel, launch(rows), transposed, vector, Out((rows,)))
        return product

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda transposed, vector: vector.astype(np.float64) @ transposed,
            show=lambda transposed, vector: f"multiply of transposed {transposed.shape} and vector {vector.shape}",
            hand=[((as_float([[1, 2, 3], [4, 5, 6]]), as_float([10, 1])), [14, 25, 36])],
            arguments=lambda rng, size: (random(rng, *size), random(rng, size[0])),
            typical=(70, 40),
            sizes=[(1, 1), (63, 2), (65, 65), (128, 5), (200, 70)],
            dtype="float32",
            terms=lambda transposed, vector: vector.size,
            scale=lambda transposed, vector: np.abs(vector).astype(np.float64) @ np.abs(transposed),
            mistakes=races(),
            memory=watched(
                kernel,
                launch(128),
                lambda rng: (random(rng, 130, 128), random(rng, 130), Out((128,))),
                reads(1, 1, THROUGH_THE_TILE),
                coalesced(place=0),
                work=[Work(2, 1)],
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"11.d": multiply}
