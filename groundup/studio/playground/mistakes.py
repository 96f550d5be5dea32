"""Planted mistakes: what the training does wrong on purpose, so that its picture can be recognised later.

    wrong_sign            the optimizer receives -dL/dp: every step climbs the loss
    missing_mean          the gradient is the sum over the batch in place of its mean: batch times too large
    zero_initialisation   every weight starts at 0: all neurons of a layer are equal, and stay equal
    large_rate            the learning rate is LARGE times the one that was chosen

The first two change the gradients on their way to the optimizer, on any stage: a network's train_step hands its
gradients to anything with a method `step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.contract import Optimizer, Stage

LARGE = 50.0


class Meddler:
    """An optimizer that multiplies every gradient by `factor` before the real optimizer receives it."""

    def __init__(self, stage: Stage, optimizer: Optimizer, dtype: str) -> None:
        self.factor = 1.0
        self._stage, self._optimizer, self._dtype = stage, optimizer, dtype

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        arrays = self._stage.arrays
        wrong = [arrays.asarray(np.asarray(arrays.to_host(each)) * self.factor, self._dtype) for each in gradients]
        self._optimizer.step(parameters, wrong)


def gradient_factor(mistake: str, rows: int) -> float:
    """What the gradients of a batch of this many rows are multiplied by."""
    return {"wrong_sign": -1.0, "missing_mean": float(rows)}.get(mistake, 1.0)


def rate_factor(mistake: str) -> float:
    """What the chosen learning rate is multiplied by."""
    return LARGE if mistake == "large_rate" else 1.0
