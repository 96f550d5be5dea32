"""9.d: a row of measurements, smoothed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, Out, any_grid, as_float, launched, left_out, random
from groundup.course.grading.calling.kernel_memory import coalesced, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work


def smooth() -> list[Check]:
    """Both ends are copied, and no thread reads beyond them."""
    kernel = kernel_of("week09_smooth", "smooth")

    def right(values: np.ndarray, launch: Launch) -> np.ndarray:
        exact = values.astype(np.float64)
        exact[1:-1] = (values[:-2].astype(np.float64) + values[1:-1] + values[2:]) / 3
        return exact

    def zero_beyond(values: np.ndarray, launch: Launch) -> np.ndarray:
        smoothed = right(values, launch)
        smoothed[-1] = float(values[-2:].sum()) / 3
        return smoothed

    def without_the_last(values: np.ndarray, launch: Launch) -> np.ndarray:
        smoothed = right(values, launch)
        smoothed[-1] = np.nan
        return smoothed

    return kernel_checks(
        Exercise(
            call=lambda values, launch: launched(kernel, launch, values, Out(values.shape)),
            reference=right,
            show=lambda values, launch: f"smooth{launch} of {values.size} numbers",
            hand=[((as_float([3, 0, 3, 9, 9]), Launch(2, 4)), [3, 2, 4, 7, 9])],
            arguments=lambda rng, size: (random(rng, size[0]) + 3, size[1]),
            typical=(10, Launch(2, 4)),
            sizes=[(size, launch) for size in (2, 7, 97) for launch in any_grid(size)],
            dtype="float32",
            scale=lambda values, launch: np.full(values.shape, np.abs(values).max()),
            mistakes=[
                Mistake("the last number is not copied, but counts a zero behind it as a neighbour", zero_beyond),
                Mistake("the last number is not written: the loop ends before it", without_the_last),
                *left_out(right),
            ],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (random(rng, 256), Out((256,))),
                coalesced(at_least=0.6),
                work=[Work(1, 2)],
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"9.d": smooth}
