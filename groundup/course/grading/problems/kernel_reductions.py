"""Softmax and sums, for the kernels of weeks 13 and 14. The right results come from the stage below, in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, previous_floor

WARP = 32

FLOAT64 = "float64"


@cache
def floor() -> Any:
    """The stage below."""
    return previous_floor()


def below(room: str, function: str, *arrays: np.ndarray) -> np.ndarray:
    """A function of the stage below, in float64, as one of NumPy arrays. Whole numbers stay as they are."""
    stage = floor()
    given = [stage.arrays.asarray(a, FLOAT64) if a.dtype.kind == "f" else a for a in arrays]
    result = getattr(getattr(stage, room), function)(*given)
    return np.asarray(stage.arrays.to_host(result) if np.ndim(result) else result, np.float64)


def softmax_of(z: np.ndarray, largest: np.ndarray, axis: int = 1) -> np.ndarray:
    """exp(z - largest), divided by its sum along an axis."""
    exponentials = np.exp(z - largest)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def far_apart(
    rng: np.random.Generator, rows: int, columns: int, far: float = 1000.0, spread: float = 300.0
) -> np.ndarray:
    """Random numbers whose rows lie far apart, some of them all negative, some huge, some spread wide.

    A maximum of the wrong row, column or part of a row, or one that begins at 0, gives NaN in some of them.
    """
    offsets = far * np.resize([-1.0, 0.0, 3.0, -0.05], rows)[:, None]
    spreads = np.resize([1.0, spread, 1.0, spread, 20.0], rows)[:, None]
    return (rng.standard_normal((rows, columns)) * spreads + offsets).astype(np.float32)


def warps(rows: int) -> list[Launch]:
    """Launches with blocks of (32, warps): more warps than rows, and far fewer."""
    return [Launch(rows // 2 + 1, (WARP, 2)), Launch(1, (WARP, 1))]


ROWS_BEFORE = "the sum of the rows before is still in {}: begin anew in each row"


def with_rows_before(sums: np.ndarray, at_once: int, lanes: int = 1) -> np.ndarray:
    """The sums of rows if a variable is not set to 0 again before the next row.

    at_once: the rows that the grid treats at once; lanes: those of a row, each of which brings the old sum along
    """
    found = np.array(sums, np.float64)
    for row in range(at_once, len(found)):
        found[row] += lanes * found[row - at_once]
    return found


BARRIER_IN_TREE = "barrier missing inside the tree: a level must not begin before the one before it is done everywhere"


BARRIER_MISSING = (
    "a barrier is missing: one comes after all sums are in shared memory, before the tree begins, and one after each "
    "of its levels"
)


def block_sum_mistakes(reading: str, block: int, terms: Callable[..., np.ndarray]) -> list[Mistake]:
    """Known mistakes of a tree sum over `block` places of shared memory.

    reading: what one place belongs to, for the messages
    terms: computes the numbers in the places before the tree, (block, sums), from the arguments
    """

    def over(places: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
        def wrong(*arguments: Any) -> Any:
            numbers = terms(*arguments)
            return numbers[places(np.arange(block))].sum(axis=0)

        return wrong

    powers = [0, *(1 << i for i in range(block.bit_length() - 1))]
    return [
        Mistake(
            f"the first level of the tree is left out: it starts with half of all {reading}",
            over(lambda place: place < block // 2),
        ),
        Mistake(
            "the last level of the tree is left out: the loop goes on until the halves are one place long",
            over(lambda place: place % 2 == 0),
        ),
        Mistake(
            BARRIER_IN_TREE,
            over(lambda place: np.isin(place, powers)),
        ),
        Mistake("no tree: only what the first place holds comes out", over(lambda place: place == 0)),
    ]
