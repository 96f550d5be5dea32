"""15.d: the squared length of a gradient, added up by many blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuda_emulator.inspection import analyse
from groundup.course.checks.check import Check, Tally, both
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.kernel_launches import Both, Launch, as_float, filled, launched, random
from groundup.course.grading.calling.kernel_memory import ask_profile, coalesced, traced
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of, no_plain_writes_of_several_blocks
from groundup.course.grading.calling.shared_work import Work, share_work, touched

THREADS = 64

LOST = "x[0] += y reads, adds and writes: what another block writes in between is lost; one operation does all three"


def squared_length() -> list[Check]:
    """Many blocks, none of which loses its sum, and all of which work."""
    kernel = kernel_of("week15_gradient_norm", "squared_length")

    def call(gradient: np.ndarray, blocks: int) -> np.ndarray:
        total: np.ndarray = launched(kernel, Launch(blocks, THREADS), gradient, Both(np.zeros(1, np.float32)))
        return total

    def right(gradient: np.ndarray, blocks: int) -> np.ndarray:
        return np.array([gradient.astype(np.float64) @ gradient])

    watch = Launch(3, THREADS)

    def memory(tally: Tally) -> None:
        """The check `memory` of `watched`, but for a kernel that needs an atomic operation."""
        numbers = random(np.random.default_rng(6), 500), Both(np.zeros(1, np.float32))
        tally.looks_at(kernel, watch, [filled(argument) for argument in numbers])
        trace = traced(kernel, watch, *numbers)
        ask_profile(tally, analyse(trace), coalesced(place=0), race=LOST)
        share_work(tally, Work(0, 3, "load"), touched(trace, 0, "load"), 3, THREADS)

    inputs = (np.ones(500, np.float32), np.zeros(1, np.float32))
    return kernel_checks(
        Exercise(
            call=call,
            reference=right,
            show=lambda gradient, blocks: f"squared_length[{blocks}, {THREADS}] of {gradient.size} numbers",
            hand=[((as_float([3, 4]), 1), [25]), ((as_float([2] * 100), 2), [400])],
            arguments=lambda rng, size: (random(rng, size[0]), size[1]),
            typical=(300, 3),
            sizes=[(1, 1), (63, 2), (65, 4), (200, 1)],
            dtype="float32",
            terms=lambda gradient, blocks: gradient.size,
            scale=right,
            memory=both(memory, no_plain_writes_of_several_blocks(kernel, watch, 1, lambda: inputs, LOST)),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"15.d": squared_length}
