"""Week 10: neighbouring threads reach neighbouring numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    RUNS,
    Launch,
    Out,
    any_grid,
    as_float,
    launched,
    left_out,
    module,
    random,
    threads,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, kernel_checks
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.first_kernels import ALONG, GATHERED, SUM_IN_MEMORY, batch, epoch, product

ONCE = (
    "several threads do the same work: where the grid is smaller than the data, a thread goes on by as many as the "
    "whole grid has, cuda.gridsize, and not by its block's"
)


def columns_by_thread() -> list[Check]:
    """10.2: the sum of each column."""
    kernel = module("kernels.sums").columns_by_thread

    def carried_on(matrix: np.ndarray, launch: Launch) -> np.ndarray:
        """The sums if a thread goes on with the sum of its last column."""
        sums, grid = matrix.sum(axis=0, dtype=np.float64), threads(launch)[0]
        return np.array([sums[column % grid : column + 1 : grid].sum() for column in range(sums.size)])

    def first_laps_only(matrix: np.ndarray, launch: Launch) -> np.ndarray:
        """The sums if a thread's loop down the rows has already ended when its second column comes."""
        sums = matrix.sum(axis=0, dtype=np.float64)
        return np.where(np.arange(sums.size) < threads(launch)[0], sums, 0.0)

    return kernel_checks(
        Exercise(
            call=lambda matrix, launch: launched(kernel, launch, matrix, Out((matrix.shape[1],))),
            reference=lambda matrix, launch: matrix.sum(axis=0, dtype=np.float64),
            show=lambda matrix, launch: f"columns_by_thread{launch} of {matrix.shape}",
            hand=[
                ((as_float([[1, 2, 3], [4, 5, 7], [2, 0, 1]]), Launch(1, 4)), [7, 7, 11]),
                ((as_float([[1, 2, 3], [4, 5, 7], [0, -1, 1]]), Launch(1, 2)), [5, 6, 11]),
            ],
            arguments=lambda rng, size: (random(rng, *size[0]), size[1]),
            typical=((7, 13), Launch(2, 4)),
            sizes=[(shape, launch) for shape in ((1, 1), (67, 2), (3, 70)) for launch in any_grid(shape[1])],
            dtype="float32",
            terms=lambda matrix, launch: len(matrix),
            scale=lambda matrix, launch: np.abs(matrix).sum(axis=0),
            mistakes=[
                *left_out(lambda matrix, launch: matrix.sum(axis=0)),
                Mistake(
                    "the last row is left out: does the loop run to the end?",
                    lambda matrix, launch: matrix[:-1].sum(axis=0),
                ),
                Mistake("only the last row is there: add, do not assign", lambda matrix, launch: matrix[-1]),
                Mistake("the first row is left out: rows count from 0", lambda matrix, launch: matrix[1:].sum(axis=0)),
                Mistake("the sum of a thread's column before is still in total: begin anew in each column", carried_on),
                Mistake(
                    "only the first column of each thread is added up: row begins at 0 again in each column",
                    first_laps_only,
                ),
                Mistake(
                    "forgot the batch: the sum over the rows, not their mean",
                    lambda matrix, launch: matrix.mean(axis=0),
                ),
                Mistake(
                    "the sum goes along the rows: one for each column was asked for",
                    lambda matrix, launch: matrix.sum(axis=1) if len(matrix) == matrix.shape[1] else None,
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, 64),
                lambda rng: (random(rng, 5, 256), Out((256,))),
                reads(1, 0, SUM_IN_MEMORY),
                reads(0, 2, ONCE, per="launch"),
                coalesced(cause=RUNS),
                race=ONCE,
                work=[Work(1, 2)],
            ),
            types=only_float32(kernel, Launch(2, 2), lambda rng: (random(rng, 3, 5), Out((5,)))),
        ),
        special=APART,
    )


def _rows_of_a_batch(rng: np.random.Generator, rows: int, features: int) -> tuple[Any, ...]:
    """Arguments of gather_rows: so many rows of a data set, whose batch begins at position 3."""
    order = rng.permutation(rows + 4).astype(np.int32)
    return random(rng, rows + 4, features), order, np.array([3], np.int64), Out((rows, features))


def gather_rows() -> list[Check]:
    """10.3: x[r] = values[order[position + r]], coalesced."""
    kernel = module("kernels.gather").gather_rows
    values, order = as_float([[1, 2], [3, 4], [5, 6]]), np.array([2, 0, 1, 0], np.int32)

    def arguments(rng: np.random.Generator, size: tuple[tuple[int, int], Launch]) -> tuple[Any, ...]:
        (rows, features), launch = size
        labels, order, position = epoch(rng, rows)
        return random(rng, labels.size, features), order, position, rows, launch

    def grids(rows: int, features: int) -> list[Launch]:
        """Launches beyond the edges, launches that are too small along both sides, and one of a single thread."""
        beyond = Launch((features // 4 + 2, rows // 2 + 2), (4, 2))
        return [beyond, Launch((1, 1), (4, 2)), Launch((1, 1), (1, 1))]

    def reached(rows_too: bool, columns_too: bool) -> Callable[..., Any]:
        """The result without the stride along one of the two sides."""

        def wrong(*inputs: Any) -> Any:
            result, launch = batch(*inputs), inputs[-1]
            across, down = (blocks * side for blocks, side in zip(launch.grid, launch.block, strict=True))
            row, column = np.indices(result.shape)
            done = (rows_too | (row < down)) & (columns_too | (column < across))
            return None if done.all() else np.where(done, result, np.nan)

        return wrong

    return kernel_checks(
        Exercise(
            call=lambda values, order, position, rows, launch: launched(
                kernel, launch, values, order, position, Out((rows, values.shape[1]))
            ),
            reference=batch,
            show=lambda values, order, position, rows, launch: (
                f"gather_rows{launch}, {rows} rows of {values.shape[1]} from position {position[0]}"
            ),
            hand=[
                ((values, order, np.array([0], np.int64), 2, Launch((1, 1), (4, 2))), [[5, 6], [1, 2]]),
                ((values, order, np.array([1], np.int64), 3, Launch((1, 1), (1, 2))), [[1, 2], [3, 4], [1, 2]]),
            ],
            arguments=arguments,
            typical=((5, 7), Launch((1, 2), (4, 2))),
            sizes=[(shape, launch) for shape in ((1, 1), (3, 70), (67, 5)) for launch in grids(*shape)],
            dtype="float32",
            mistakes=[
                Mistake(
                    "no grid-stride loop along the columns: go on by the grid's width until the row ends",
                    reached(True, False),
                ),
                Mistake(
                    "only the first lap down the rows is there: the loop down them goes on by the grid's height until "
                    "the last, and the column begins anew in each row",
                    reached(False, True),
                ),
                Mistake("no grid-stride loop: what lies beyond the grid is left out", reached(False, False)),
                *GATHERED,
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((2, 3), (32, 2)),
                lambda rng: _rows_of_a_batch(rng, 12, 128),
                coalesced(cause=ALONG),
                reads(0, 2, ONCE, per="launch"),
                race=ONCE,
                work=[Work(3, 4)],
            ),
            types=only_float32(kernel, Launch((1, 2), (2, 2)), lambda rng: _rows_of_a_batch(rng, 5, 3), remark=True),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "10.1": lambda: product("coalesced", x_down=False),
    "10.2": columns_by_thread,
    "10.3": gather_rows,
}
