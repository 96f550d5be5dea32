"""Dropout masks, made on the device. shared/dropout.py explains dropout, and why numbers come from a counter.

The masks are the same bits as on every other floor. Only the rounding of 1 / (1 - rate) could differ between devices,
so the host computes this number once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import launch
from .arrays import Array
from .kernels import dropout as kernels

MASK64 = (1 << 64) - 1


def write_mask(seed: int, steps: Array, layer: int, rate: float, mask: Array, stream: Any = 0) -> None:
    """The mask of one Dropout layer at one step: 0 where a number is dropped, else 1 / (1 - rate).

    seed: of 64 bits; steps (1,): int64 on the device, the optimizer's steps so far, read by the kernel
    layer: 0 for the first Dropout layer; mask (rows, columns): the device array to write to
    """
    threshold, scale = threshold_and_scale(rate, mask.dtype)
    kernels.dropout_mask[*launch.over_matrix(*mask.shape), stream](
        np.uint64(seed & MASK64), steps, np.uint64(layer), threshold, scale, mask
    )


def threshold_and_scale(rate: float, dtype: Any) -> tuple[np.uint64, Any]:
    """What the kernel takes for a rate: kept where 53 random bits are at least `threshold`; `scale` in dtype.

    Raises ValueError unless rate is at least 0 and below 1.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout: expected a rate of at least 0 and below 1, got {rate}")
    return np.uint64(math.ceil(rate * 2.0**53)), np.dtype(dtype).type(1.0 / (1.0 - rate))
