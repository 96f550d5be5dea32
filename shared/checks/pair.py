"""Two stages side by side: the stage under test and the reference that it is compared with.

Both get the same numbers, which are rounded to the dtype beforehand. So a float32 stage can be compared with a float64
reference, and only the computing differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shared.checks.tolerance import Comparison, compare, failed
from shared.contract import Stage
from shared.names import LABEL_LOSSES


class Pair:
    """The stage under test and the reference side by side, with one dtype between them."""

    def __init__(self, stage: Stage, reference: Stage, dtype: str) -> None:
        self.stage, self.reference, self.dtype = stage, reference, dtype

    def rounded(self, values: object) -> np.ndarray:
        """Values as float64 after rounding to the dtype: numbers that both stages can hold exactly."""
        return np.asarray(values, self.dtype).astype(np.float64)

    def to_stage(self, values: object) -> Any:
        """Values as an array of the stage under test."""
        return self.stage.arrays.asarray(np.asarray(values, self.dtype), self.dtype)

    def to_reference(self, values: object) -> Any:
        """Values as an array of the reference, in float64."""
        return self.reference.arrays.asarray(np.asarray(values, np.float64), "float64")

    def from_stage(self, array: Any) -> np.ndarray:
        """A result of the stage under test as a NumPy array in float64, copied."""
        return host(self.stage, array)

    def from_reference(self, array: Any) -> np.ndarray:
        """A result of the reference as a NumPy array in float64, copied."""
        return host(self.reference, array)

    def check(
        self, op: str, run: Callable[[], Any], expected: ArrayLike, k: float, scale: ArrayLike | None, **where: Any
    ) -> Comparison:
        """Run an operation of the stage and compare its result.

        where: layer, level and case, as in `Comparison`
        An exception gives a failed comparison that quotes it: one broken operation must not end the whole check.
        """
        try:
            got = self.from_stage(run())
        except Exception as error:
            return failed(op, f"raised {type(error).__name__}: {error}", **where)
        return compare(op, got, expected, self.dtype, k, scale=scale, **where)


def host(stage: Stage, array: Any) -> np.ndarray:
    """A stage's array or number as a NumPy array in float64, copied."""
    return np.array(array if np.ndim(array) == 0 else stage.arrays.to_host(array), np.float64)


def random_targets(pair: Pair, rng: np.random.Generator, loss: str, shape: tuple[int, int]) -> np.ndarray:
    """Random second arguments of a loss for outputs of this shape: labels, targets in 0 … 1, or any numbers."""
    if loss in LABEL_LOSSES:
        return rng.integers(0, shape[1], shape[0])
    return pair.rounded(rng.random(shape) if loss == "sigmoid_cross_entropy" else rng.standard_normal(shape))
