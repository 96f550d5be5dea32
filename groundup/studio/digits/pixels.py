"""A drawing as it comes from the page: 28 rows of 28 whole numbers from 0, paper, to 255, ink.

The page has already scaled and moved it as MNIST's digits were (static/centre.js), so that an exported page, which has
no server, does the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.data.datasets import SIDE

COUNT = SIDE * SIDE


def drawing(pixels: Any) -> np.ndarray:
    """The drawing as uint8 (784,).

    Raises ValueError if pixels is no list of 784 whole numbers from 0 to 255, or if no pixel has ink.
    """
    if not isinstance(pixels, list) or len(pixels) != COUNT:
        came = f"a list of {len(pixels)}" if isinstance(pixels, list) else type(pixels).__name__
        raise ValueError(f"pixels: expected a list of {COUNT} numbers, {SIDE} rows of {SIDE}, got {came}")
    for number, value in enumerate(pixels):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
            raise ValueError(f"pixels: expected whole numbers from 0 to 255, but number {number} is {str(value)[:20]}")
    if not any(pixels):
        raise ValueError("pixels: the drawing is empty; draw a digit first")
    return np.array(pixels, np.uint8)


def as_input(pixels: np.ndarray) -> np.ndarray:
    """The drawing as a data set has it: float32 (1, 784), pixel / 255."""
    x = pixels.astype(np.float32)[np.newaxis]
    x /= 255
    return x
