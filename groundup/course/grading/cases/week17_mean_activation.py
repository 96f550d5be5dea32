"""17.d: the mean activation of every neuron, by shuffles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

LANES = 32


def mean_activation() -> list[Check]:
    """Fewer samples than lanes, and more."""
    kernel = kernel_of("week17_mean_activation", "mean_activation")

    def call(outputs: np.ndarray) -> np.ndarray:
        neurons = len(outputs)
        means: np.ndarray = launched(kernel, Launch(neurons, LANES), outputs, Out((neurons,)))
        return means

    def of_lanes(outputs: np.ndarray, step: int) -> np.ndarray:
        """The means over every `step`-th lane only, divided by all samples."""
        kept = np.arange(outputs.shape[1]) % LANES % step == 0
        means: np.ndarray = outputs[:, kept].astype(np.float64).sum(axis=1) / outputs.shape[1]
        return means

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda outputs: outputs.astype(np.float64).mean(axis=1),
            show=lambda outputs: f"mean_activation of outputs {outputs.shape}",
            hand=[((as_float([[1] * 64, [0, 2] * 32]),), [1, 1])],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(3, 100),
            sizes=[(1, 1), (2, 31), (2, 33), (3, 97)],
            dtype="float32",
            terms=lambda outputs: outputs.shape[1],
            scale=lambda outputs: np.abs(outputs).mean(axis=1),
            mistakes=[
                Mistake("the sums of the odd lanes are left out", lambda outputs: of_lanes(outputs, 2)),
                Mistake("only lane 0's own sum is left", lambda outputs: of_lanes(outputs, LANES)),
            ],
            memory=watched(
                kernel,
                Launch(2, LANES),
                lambda rng: (random(rng, 2, 128), Out((2,))),
                coalesced(place=0),
                work=[Work(0, 4, "load")],
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"17.d": mean_activation}
