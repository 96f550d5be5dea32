"""The matrix product and the mini-batch, for the kernels of weeks 9 to 11: arguments, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    Launch,
    Out,
    as_float,
    launched,
    module,
    previous_floor,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.matrices import MATMUL_MISTAKES

SUM_IN_MEMORY = "the sum is kept in global memory: keep it in a variable, which is a register, and write it once"

DOWN = "x and y mixed up: in this launch x runs down the rows, y along the columns"

ALONG = "x and y mixed up: threadIdx.x has to run along the columns"


def epoch(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(labels, order, position) of an epoch whose batch of this many rows begins at position 8."""
    samples = rows + 11
    labels = rng.integers(0, 1_000_000, samples).astype(np.int32)
    return labels, rng.permutation(samples).astype(np.int32), np.array([8], np.int64)


def batch(data: np.ndarray, order: np.ndarray, position: np.ndarray, rows: int, launch: Launch) -> np.ndarray:
    """The numbers that the kernel gathers."""
    return data[order[position[0] : position[0] + rows]].astype(np.float64)


GATHERED = [
    Mistake(
        "the position is not added: the batch begins at position[0] of the order, not at 0",
        lambda data, order, position, rows, launch: data[order[:rows]],
    ),
    Mistake(
        "the order is not used: it says which sample comes next",
        lambda data, order, position, rows, launch: (
            data[position[0] : position[0] + rows] if position[0] + rows <= len(data) else None
        ),
    ),
]


def product(name: str, x_down: bool) -> list[Check]:
    """The checks of 9.4 and 10.1, a thread for each number of ab. x_down: whether x runs down the rows."""
    kernel = getattr(module("kernels.matmul_1_basic"), name)

    def blocks(rows: int, columns: int) -> tuple[int, int]:
        """Launches of 8 x 4 threads, with more blocks than the result needs."""
        across, down = (rows, columns) if x_down else (columns, rows)
        return across // 8 + 1, down // 4 + 2

    def exchanged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The result if x and y have changed places and the guard is right."""
        row, column = np.indices((len(a), b.shape[1]))
        along_x, along_y = (column, row) if x_down else (row, column)
        across, down = blocks(len(a), b.shape[1])
        return np.where((along_x < 8 * across) & (along_y < 4 * down), a @ b, np.nan)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shape = len(a), b.shape[1]
        return launched(kernel, Launch(blocks(*shape), (8, 4)), a, b, Out(shape))

    return kernel_checks(
        matmul_exercise(
            name,
            call,
            sizes=[(1, 1, 1), (2, 70, 70), (67, 3, 2), (17, 1, 5)],
            mistakes=[Mistake(DOWN if x_down else ALONG, exchanged)],
            memory=watched(
                kernel,
                Launch((8, 2) if x_down else (2, 2), (2, 32) if x_down else (32, 4)),
                lambda rng: (random(rng, 8, 16), random(rng, 16, 64), Out((8, 64))),
                reads(2, 0, SUM_IN_MEMORY),
                *([] if x_down else [coalesced(cause=ALONG)]),
                work=[Work(2, 1)],
            ),
            types=only_float32(
                kernel,
                Launch((1, 2) if x_down else (2, 1), (2, 2)),
                lambda rng: (random(rng, 2, 5), random(rng, 5, 3), Out((2, 3))),
            ),
        ),
        special=APART,
    )


def matmul_exercise(
    name: str,
    call: Callable[..., Any],
    sizes: Sequence[Any],
    mistakes: Sequence[Mistake],
    memory: Callable[[Tally], None],
    types: Callable[[Tally], None],
) -> Exercise:
    """The exercise of ab for sizes (M, K, N), against the stage below. call: takes a and b."""
    floor = previous_floor()

    def reference(a: np.ndarray, b: np.ndarray) -> Any:
        return floor.matmul.matmul(a.astype(np.float64), b.astype(np.float64))

    ones = np.ones((4, 16), np.float32), np.ones((16, 4), np.float32)
    a, b = as_float([[1, 2, 3], [4, 5, 6]]), as_float([[1, 0], [0, 1], [2, -1]])
    return Exercise(
        call=call,
        reference=reference,
        show=lambda a, b: f"{name} of a {a.shape} and b {b.shape}",
        hand=[
            ((a, b), [[7, -1], [16, -1]]),
            (ones, np.full((4, 4), 16)),
            ((b, a), [[1, 2, 3], [4, 5, 6], [-2, -1, 0]]),
            # 0 times infinity is NaN: no product may be left out because one of its factors is 0
            ((as_float([[0, 2], [1, 0]]), as_float([[np.inf, 1], [3, np.inf]])), [[np.nan, np.inf], [np.inf, np.nan]]),
            ((as_float([[np.inf, 1], [3, np.inf]]), as_float([[0, 2], [1, 0]])), [[np.nan, np.inf], [np.inf, np.nan]]),
        ],
        arguments=lambda rng, size: (random(rng, size[0], size[1]), random(rng, size[1], size[2])),
        typical=(21, 37, 5),
        sizes=sizes,
        dtype="float32",
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        mistakes=[
            *mistakes,
            *MATMUL_MISTAKES[1:3],  # the last product left out, and alone
            Mistake(
                "the first product is left out: k counts from 0",
                lambda a, b: a[:, 1:] @ b[1:] if a.shape[1] > 1 else None,
            ),
            *races(),
        ],
        memory=memory,
        types=types,
    )
