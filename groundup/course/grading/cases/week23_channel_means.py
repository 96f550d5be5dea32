"""23.e: the mean of each channel, by a tree in shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling.early_returns import no_early_return
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, races, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.kernel_reductions import BARRIER_MISSING, block_sum_mistakes

THREADS = 64


def channel_means() -> list[Check]:
    """Right for channels that are longer and shorter than a block, by a tree whose barriers all threads reach."""
    kernel = kernel_of("week23_channel_means", "channel_means")

    def call(x: np.ndarray) -> np.ndarray:
        means: np.ndarray = launched(kernel, Launch(x.shape[1], THREADS), x, Out((x.shape[1],)))
        return means

    def shares(x: np.ndarray) -> np.ndarray:
        """What each thread adds to a mean: (THREADS, channels)."""
        numbers = x.astype(np.float64).swapaxes(0, 1).reshape(x.shape[1], -1)
        padded = np.zeros((x.shape[1], -(-numbers.shape[1] // THREADS) * THREADS))
        padded[:, : numbers.shape[1]] = numbers / numbers.shape[1]
        return padded.reshape(x.shape[1], -1, THREADS).sum(axis=1).T

    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda x: x.astype(np.float64).mean(axis=(0, 2)),
            show=lambda x: f"channel_means of x {x.shape}",
            hand=[((as_float([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),), [3.5, 5.5])],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(4, 3, 50),
            sizes=[(1, 1, 1), (2, 2, 32), (3, 1, 100), (1, 5, 65)],
            dtype="float32",
            terms=lambda x: len(x) * x.shape[2],
            scale=lambda x: np.abs(x).mean(axis=(0, 2)),
            mistakes=[*block_sum_mistakes(f"{THREADS} threads", THREADS, shares), *races()],
            memory=no_early_return(
                kernel,
                watched(
                    kernel,
                    Launch(2, THREADS),
                    lambda rng: (random(rng, 2, 2, 96), Out((2,))),
                    coalesced(0),
                    race=BARRIER_MISSING,
                    work=[
                        Work(0, 3, "load"),
                        Work(None, 2 * THREADS.bit_length(), "load", "a tree of halves: 64 numbers, six levels"),
                    ],
                ),
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"23.e": channel_means}
