"""A drawing as it comes from the page: rows of whole numbers from 0, black, to 255, white; for MNIST 28 rows of 28.

The page has already scaled and moved it as MNIST's digits were (static/centre.js), so that an exported page, which has
no server, does the same. Its ink is white on black paper as theirs, or black on white for a set that is so.
"""

from __future__ import annotations

import numpy as np

from shared.data.datasets import FORMS, Form

MNIST = FORMS["mnist"]


def drawing(pixels: object, form: Form = MNIST) -> np.ndarray:
    """The drawing as uint8 (height * width,). form: of the network's images

    Raises ValueError if pixels is no list of so many whole numbers from 0 to 255, or if no pixel has ink.
    """
    _, rows, columns = form.shape
    if not isinstance(pixels, list) or len(pixels) != rows * columns:
        came = f"a list of {len(pixels)}" if isinstance(pixels, list) else type(pixels).__name__
        raise ValueError(f"pixels: expected a list of {rows * columns} numbers, {rows} rows of {columns}, got {came}")
    for number, value in enumerate(pixels):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
            raise ValueError(f"pixels: expected whole numbers from 0 to 255, but number {number} is {str(value)[:20]}")
    if set(pixels) == {255 if form.on_white else 0}:
        raise ValueError("pixels: the drawing is empty; draw a digit first")
    return np.array(pixels, np.uint8)


def as_input(pixels: np.ndarray, channels: int = 1) -> np.ndarray:
    """The drawing as a data set has it: float32 (1, channels * height * width), pixel / 255, in every channel."""
    x = np.tile(pixels.astype(np.float32), channels)[np.newaxis]
    x /= 255
    return x
