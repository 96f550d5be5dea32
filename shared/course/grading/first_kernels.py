"""Phase 4: the first kernels. What is right is said by the floor below, or by NumPy where that has no such function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.course.grading.kernels import (
    Both,
    Budget,
    Launch,
    Out,
    any_grid,
    coalesced,
    launched,
    left_out,
    module,
    previous_floor,
    races,
    random,
    reads,
    stepped,
    watched,
)
from shared.course.likely import Guess
from shared.course.rungs import Exercise, Rung, rungs

COUNTS = (1, 7, 33)
"""One, a prime, one past a warp."""

TILE = 16

RUNS = "each thread has a run of neighbours to itself, so a warp reaches far apart: thread i takes i, i + gridsize, …"
SUM_IN_MEMORY = "the sum is kept in global memory: keep it in a variable, which is a register, and write it once"
DOWN = "x and y mixed up: in this launch x runs down the rows, y along the columns"
ALONG = "x and y mixed up: threadIdx.x has to run along the columns"


def multiply() -> list[Rung]:
    """9.1: out = a * mask."""
    kernel = module("kernels.dense").multiply
    return rungs(
        Exercise(
            call=lambda a, mask, launch: launched(kernel, launch, a, mask, Out(a.shape)),
            reference=lambda a, mask, launch: np.multiply(a, mask, dtype=np.float64),
            show=lambda a, mask, launch: f"multiply{launch} of {a.size} numbers",
            hand=[
                ((as_float([3, -4, 5]), as_float([2, 0.5, 0]), Launch(1, 4)), [6, -2, 0]),
                ((as_float([1, 2, 3, 4, 5]), as_float([1, 2, 3, 4, 5]), Launch(1, 2)), [1, 4, 9, 16, 25]),
            ],
            arguments=lambda rng, size: (random(rng, size[0]), random(rng, size[0]), size[1]),
            typical=(37, Launch(3, 4)),
            sizes=[(count, launch) for count in COUNTS for launch in any_grid(count)],
            dtype="float32",
            guesses=[*left_out(lambda a, mask, launch: a * mask), *races()],
            memory=watched(
                kernel,
                Launch(1, 32),
                lambda rng: (random(rng, 128), random(rng, 128), Out((128,))),
                coalesced(likely=RUNS),
            ),
        )
    )


def add_bias() -> list[Rung]:
    """9.2: z += bias, in place."""
    kernel = module("kernels.dense").add_bias
    rows_first = Guess(
        "row and column exchanged: there is a bias for each column",
        lambda z, bias, launch: z + bias[np.arange(len(z)) % bias.size][:, None] if len(z) <= bias.size else None,
    )
    remainder = Guess(
        "row and column exchanged: number i is in row i // columns, column i % columns",
        lambda z, bias, launch: z + bias[np.minimum(np.arange(z.size) // z.shape[1], bias.size - 1)].reshape(z.shape),
    )
    return rungs(
        Exercise(
            call=lambda z, bias, launch: launched(kernel, launch, Both(z), bias),
            reference=lambda z, bias, launch: np.add(z, bias, dtype=np.float64),
            show=lambda z, bias, launch: f"add_bias{launch} for z {z.shape}",
            hand=[
                ((as_float([[1, 2, 3], [4, 5, 6]]), as_float([10, 20, 30]), Launch(1, 8)), [[11, 22, 33], [14, 25, 36]]),
                ((as_float([[1], [2], [3]]), as_float([5]), Launch(1, 1)), [[6], [7], [8]]),
            ],
            arguments=lambda rng, size: (random(rng, *size[0]), random(rng, size[0][1]), size[1]),
            typical=((5, 7), Launch(3, 4)),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 11), (33, 2)) for launch in any_grid(shape[0] * shape[1])],
            dtype="float32",
            guesses=[
                *left_out(lambda z, bias, launch: z + bias, lambda z, bias, launch: z),
                rows_first,
                remainder,
                Guess("z itself is lost: add to what it holds", lambda z, bias, launch: np.broadcast_to(bias, z.shape)),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(1, 32),
                lambda rng: (Both(random(rng, 4, 32)), random(rng, 32)),
                reads("z", 1, "a number of z is read more than once: each belongs to one thread"),
                coalesced(likely=RUNS),
            ),
        )
    )


def gather_labels() -> list[Rung]:
    """9.3: y[r] = labels[order[position + r]]."""
    kernel = module("kernels.gather").gather_labels

    def right(labels: np.ndarray, order: np.ndarray, position: np.ndarray, rows: int, launch: Launch) -> np.ndarray:
        return labels[order[position[0] : position[0] + rows]].astype(np.float64)

    def arguments(rng: np.random.Generator, size: tuple[int, Launch]) -> tuple[Any, ...]:
        rows, launch = size
        labels, order, position = epoch(rng, rows)
        return labels, order, position, rows, launch

    labels, order = np.array([7, 3, 9, 1, 5], np.int32), np.array([4, 0, 3, 1, 2], np.int32)
    return rungs(
        Exercise(
            call=lambda labels, order, position, rows, launch: launched(
                kernel, launch, labels, order, position, Out((rows,), "int32")
            ),
            reference=right,
            show=lambda labels, order, position, rows, launch: (
                f"gather_labels{launch}, {rows} rows from position {position[0]}"
            ),
            hand=[
                ((labels, order, np.array([0], np.int64), 3, Launch(1, 4)), [5, 7, 1]),
                ((labels, order, np.array([2], np.int64), 3, Launch(1, 2)), [1, 3, 9]),
            ],
            arguments=arguments,
            typical=(13, Launch(2, 4)),
            sizes=[(count, launch) for count in COUNTS for launch in any_grid(count)],
            guesses=[
                *left_out(right),
                Guess(
                    "the position is not added: the batch begins at position[0], not at 0",
                    lambda labels, order, position, rows, launch: labels[order[:rows]],
                ),
                Guess(
                    "the order is not asked: order says which sample comes next",
                    lambda labels, order, position, rows, launch: labels[position[0] : position[0] + rows],
                ),
                Guess(
                    "that is which sample it is: its label is labels[…] of it",
                    lambda labels, order, position, rows, launch: order[position[0] : position[0] + rows],
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(1, 32),
                lambda rng: (*epoch(rng, 64), Out((64,), "int32")),
                coalesced("y", RUNS),
                coalesced("order", RUNS),
            ),
        )
    )


def gather_rows() -> list[Rung]:
    """10.3: x[r] = values[order[position + r]], coalesced."""
    kernel = module("kernels.gather").gather_rows

    def right(values: np.ndarray, order: np.ndarray, position: np.ndarray, rows: int, launch: Launch) -> np.ndarray:
        return values[order[position[0] : position[0] + rows]].astype(np.float64)

    def arguments(rng: np.random.Generator, size: tuple[tuple[int, int], Launch]) -> tuple[Any, ...]:
        (rows, features), launch = size
        labels, order, position = epoch(rng, rows)
        return random(rng, labels.size, features), order, position, rows, launch

    def grids(rows: int, features: int) -> list[Launch]:
        beyond = Launch((-(-features // 4) + 1, -(-rows // 2) + 1), (4, 2))
        return [beyond, Launch((1, 1), (4, 2)), Launch((1, 1), (1, 1))]

    def covered(fits: Callable[[np.ndarray, int, int, int], np.ndarray]) -> Callable[..., Any]:
        """What is written where only some rows and columns are gone to."""

        def wrong(*given: Any) -> Any:
            result, launch = right(*given), given[-1]
            row, column = np.indices(result.shape)
            across, down = (blocks * side for blocks, side in zip(launch.grid, launch.block, strict=True))
            done = (row < (down if fits is _both or fits is _rows else len(row))) & (
                column < (across if fits is _both or fits is _columns else column.shape[1])
            )
            return None if done.all() else np.where(done, result, np.nan)

        return wrong

    values = as_float([[1, 2], [3, 4], [5, 6]])
    order = np.array([2, 0, 1, 0], np.int32)
    return rungs(
        Exercise(
            call=lambda values, order, position, rows, launch: launched(
                kernel, launch, values, order, position, Out((rows, values.shape[1]))
            ),
            reference=right,
            show=lambda values, order, position, rows, launch: (
                f"gather_rows{launch}, {rows} rows of {values.shape[1]} from position {position[0]}"
            ),
            hand=[
                ((values, order, np.array([0], np.int64), 2, Launch((1, 1), (4, 2))), [[5, 6], [1, 2]]),
                ((values, order, np.array([1], np.int64), 3, Launch((1, 1), (1, 2))), [[1, 2], [3, 4], [1, 2]]),
            ],
            arguments=arguments,
            typical=((5, 7), Launch((1, 2), (4, 2))),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 11), (17, 5)) for launch in grids(*shape)],
            dtype="float32",
            guesses=[
                Guess(
                    "the position is not added: the batch begins at position[0], not at 0",
                    lambda values, order, position, rows, launch: values[order[:rows]],
                ),
                Guess(
                    "the order is not asked: order says which sample comes next",
                    lambda values, order, position, rows, launch: (
                        values[position[0] : position[0] + rows] if position[0] + rows <= len(values) else None
                    ),
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((1, 2), (32, 2)),
                lambda rng: (random(rng, 9, 64), rng.permutation(9).astype(np.int32), np.array([3], np.int64), Out((5, 64))),
                coalesced(likely=ALONG),
            ),
        )
    )
