"""10.d: brighter images; a warp reads whole sectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import (
    RUNS,
    Launch,
    Out,
    any_grid,
    as_float,
    launched,
    left_out,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

FACTOR, OFFSET = np.float32(0.5), np.float32(10)


def brighten() -> list[Check]:
    """Brightening: equal numbers for any grid, few sectors of memory, and work for all blocks."""
    kernel = kernel_of("week10_brighten", "brighten")

    def right(pixels: np.ndarray, launch: Launch) -> np.ndarray:
        return 0.5 * pixels.astype(np.float64) + 10

    watch = Launch(2, 64)

    def arguments(rng: np.random.Generator) -> tuple[object, ...]:
        return random(rng, 1000), FACTOR, OFFSET, Out((1000,))

    return kernel_checks(
        Exercise(
            call=lambda pixels, launch: launched(kernel, launch, pixels, FACTOR, OFFSET, Out(pixels.shape)),
            reference=right,
            show=lambda pixels, launch: f"brighten{launch} of {pixels.size} pixels",
            hand=[((as_float([0, 2, 4, 6, 8]), Launch(2, 2)), [10, 11, 12, 13, 14])],
            arguments=lambda rng, size: (random(rng, size[0]), size[1]),
            typical=(10, Launch(2, 4)),
            sizes=[(size, launch) for size in (1, 7, 97) for launch in any_grid(size)],
            dtype="float32",
            scale=lambda pixels, launch: np.full(pixels.shape, 10 + np.abs(pixels).max()),
            mistakes=left_out(right),
            memory=watched(kernel, watch, arguments, coalesced(cause=RUNS), work=[Work(3, 8)]),
        ),
        single=True,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"10.d": brighten}
