"""Dropout masks, made on the device. shared/dropout.py explains dropout, and why numbers come from a counter.

The masks are the same bits as on every other floor. Only the rounding of 1 / (1 - rate) could differ between devices,
so the host computes this number once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shared.names import check_dtype

from . import launch
from .arrays import Array, empty
from .backend import cuda
from .kernels import dropout as kernels

_MASK64 = (1 << 64) - 1


def dropout_mask(
    rows: int, columns: int, rate: float, seed: int, step: int, layer: int, dtype: str = "float32"
) -> Array:
    """The mask of one hidden layer at one step on the device, (rows, columns): 0 dropped, 1 / (1 - rate) kept.

    rows: the batch size; columns: the layer's neurons; both at least 1
    rate: the probability of dropping, at least 0 and below 1
    seed, step (optimizer steps taken before this one, below 2^63), layer (0 for the first hidden layer): at least 0
    Raises ValueError for a number out of its range.
    """
    check_dtype("dropout", dtype)
    if rows < 1 or columns < 1:
        raise ValueError(f"dropout: expected at least one row and one column, got ({rows}, {columns})")
    for name, value in (("seed", seed), ("step", step), ("layer", layer)):
        if value < 0:
            raise ValueError(f"dropout: {name} must be at least 0, got {value}")
    if step >= 1 << 63:
        raise ValueError(f"dropout: step must be below 2^63, got {step}")
    threshold, scale = threshold_and_scale(rate, dtype)
    mask = empty((rows, columns), dtype)
    write_mask(seed, cuda.to_device(np.array([step], np.int64)), layer, threshold, scale, mask)
    return mask


def write_mask(seed: int, steps: Array, layer: int, threshold: np.uint64, scale: Any, mask: Array) -> None:
    """The same into `mask`, with the step count read on the device; unchecked, for the training step.

    steps (1,): int64 on the device; threshold, scale: from `threshold_and_scale`, in mask's dtype
    """
    kernels.dropout_mask[launch.over_matrix(*mask.shape)](
        np.uint64(seed & _MASK64), steps, np.uint64(layer & _MASK64), threshold, scale, mask
    )


def threshold_and_scale(rate: float, dtype: str) -> tuple[np.uint64, Any]:
    """What the kernel takes for a rate: kept where 53 random bits are at least `threshold`; `scale` in dtype.

    Raises ValueError unless rate is at least 0 and below 1.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout: expected a rate of at least 0 and below 1, got {rate}")
    return np.uint64(math.ceil(rate * 2.0**53)), np.dtype(dtype).type(1.0 / (1.0 - rate))
