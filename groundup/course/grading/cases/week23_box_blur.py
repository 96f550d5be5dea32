"""23.d: a box blur through a tile with its halo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, Out, as_float, launched, random
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.programs import kernel_of
from groundup.course.grading.calling.shared_work import Work

TILE = 8

FROM_THE_TILE = "a block fetches each number once, into its tile, corners and all; the mean reads it from there"

HALO = "a block needs the halo once: a thread copies one number of its own, and those at the edges one or two more"


def blurred(image: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean of the 3 x 3 numbers around each, in float64. weights: (3, 3) in place of ones"""
    padded = np.pad(image.astype(np.float64), 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    result: np.ndarray = np.einsum("rsij,ij->rs", windows, np.ones((3, 3)) if weights is None else weights) / 9
    return result


def box_blur() -> list[Check]:
    """Right in every place, those at the corners of a tile included, and every number fetched once by a block."""
    kernel = kernel_of("week23_box_blur", "box_blur")

    def call(image: np.ndarray) -> np.ndarray:
        launch = Launch((-(-image.shape[1] // TILE), -(-image.shape[0] // TILE)), (TILE, TILE))
        out: np.ndarray = launched(kernel, launch, image, Out(image.shape))
        return out

    def without_corners(image: np.ndarray) -> Any:
        """Zeros where another tile, or the image's outside, meets a tile at its corner."""
        right, row, column = blurred(image), *np.indices(image.shape)
        for down in (-1, 1):
            for across in (-1, 1):
                at_corner = (row % TILE == (TILE - 1 if down > 0 else 0)) & (
                    column % TILE == (TILE - 1 if across > 0 else 0)
                )
                shifted = np.zeros((3, 3))
                shifted[1 + down, 1 + across] = 1
                right = right - at_corner * blurred(image, shifted)
        return right

    return kernel_checks(
        Exercise(
            call=call,
            reference=blurred,
            show=lambda image: f"box_blur of image {image.shape}",
            hand=[
                ((as_float([[9, 18], [27, 36]]),), [[10, 10], [10, 10]]),
                ((np.full((10, 9), 9, np.float32),), 9 * blurred(np.ones((10, 9)))),
            ],
            arguments=lambda rng, size: (random(rng, *size),),
            typical=(20, 17),
            sizes=[(1, 1), (8, 8), (9, 16), (3, 33), (24, 5)],
            dtype="float32",
            terms=lambda image: 9,
            scale=lambda image: blurred(np.abs(image)),
            mistakes=[
                Mistake(
                    "the corners of the tile count as zeros: what belongs there lies in the image", without_corners
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((2, 2), (TILE, TILE)),
                lambda rng: (random(rng, 16, 16), Out((16, 16))),
                reads(0, 1, FROM_THE_TILE),
                coalesced(1),
                work=[Work(1, 1), Work(0, 4, "load", HALO)],
            ),
        ),
        single=True,
        special=APART,
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"23.d": box_blur}
