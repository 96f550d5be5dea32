"""14.d: the gradient of a bias, ROWS rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, races, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

BLOCK = (32, 8)


def bias_gradient() -> list[Check]:
    """Numbers of samples that are no multiple of the rows that a block adds at a time."""
    kernel = kernel_of("week14_bias_gradient", "bias_gradient")

    def launch(columns: int) -> Launch:
        return Launch(-(-columns // BLOCK[0]), BLOCK)

    def call(grad: np.ndarray) -> np.ndarray:
        columns = grad.shape[1]
        sums: np.ndarray = launched(kernel, launch(columns), grad, Out((columns,)))
        return sums

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda grad: grad.astype(np.float64).sum(axis=0),
            show=lambda grad: f"bias_gradient of grad {grad.shape}",
            hand=[((as_float(np.arange(1, 33).reshape(16, 2)),), [256, 272])],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(20, 5),
            sizes=[(1, 1), (8, 32), (9, 33), (31, 2), (16, 70)],
            dtype="float32",
            terms=lambda grad: len(grad),
            scale=lambda grad: np.abs(grad).sum(axis=0),
            mistakes=races(),
            memory=watched(
                kernel,
                launch(64),
                lambda rng: (random(rng, 20, 64), Out((64,))),
                coalesced(place=0),
                work=[Work(0, 3, "load")],
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"14.d": bias_gradient}
