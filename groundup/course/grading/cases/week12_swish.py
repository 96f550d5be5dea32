"""12.d: the activation swish, in float32 alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import Launch, Out, any_grid, as_float, launched, left_out, random
from groundup.course.grading.calling.kernel_memory import COALESCED, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work


def swish() -> list[Check]:
    """Swish: right and finite for any z, without an operation in float64."""
    kernel = kernel_of("week12_swish", "swish")

    def right(z: np.ndarray, launch: Launch) -> np.ndarray:
        exact = z.astype(np.float64)
        values: np.ndarray = exact * np.exp(np.minimum(exact, 0)) / (1 + np.exp(-np.abs(exact)))
        return values

    return kernel_checks(
        Exercise(
            call=lambda z, launch: launched(kernel, launch, z, Out(z.shape)),
            reference=right,
            show=lambda z, launch: f"swish{launch} of {z.size} numbers",
            hand=[
                ((as_float([0, np.log(3), -np.log(3), 1000, -1000]), Launch(2, 4)), [0, 0.8239592, -0.2746531, 1000, 0])
            ],
            arguments=lambda rng, size: (3 * random(rng, size[0]), size[1]),
            typical=(10, Launch(2, 4)),
            sizes=[(size, launch) for size in (1, 7, 97) for launch in any_grid(size)],
            dtype="float32",
            scale=lambda z, launch: np.full(z.shape, np.abs(z).max() + 1),
            mistakes=left_out(right),
            memory=watched(
                kernel, Launch(2, 64), lambda rng: (random(rng, 256), Out((256,))), COALESCED, work=[Work(1, 2)]
            ),
            types=only_float32(kernel, Launch(2, 4), lambda rng: (random(rng, 9), Out((9,)))),
        ),
        single=True,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"12.d": swish}
