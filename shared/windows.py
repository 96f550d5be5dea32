"""A window that walks over an image: how often it fits, and what is said when it does not.

    pair             a size, stride or padding: one whole number, or a pair of them (rows, columns)
    as_pair          the same without a check
    output_size      how many places the window has in the padded image, (rows, columns)
    check_window     that the window has a place at all
    within           a stride that is no longer than the padded image
    pool_windows     a pool's window, stride and places
    image_shape      a shape (batch, channels, rows, columns), checked

Convolution and pooling ask here on every stage, so a mistake gets the same answer on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

Pair = tuple[int, int]

LONGEST = 2**31 - 1
"""Rows or columns of a padded image: C and CUDA count them with whole numbers of 32 or 64 bits."""


def pair(name: str, value: Any, smallest: int) -> Pair:
    """A whole number n as (n, n), a pair of whole numbers as it is.

    name: what the sentence of an error begins with, "conv2d: stride"; smallest: 1, or 0 for a padding
    Raises TypeError where a number is not whole, ValueError for less than the smallest or for more than two numbers.
    """
    expected = (
        f"{name}: expected a whole number of at least {smallest}, or a pair (rows, columns) of them, got {value!r}"
    )
    if hasattr(value, "tolist"):
        value = value.tolist()
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value, value]
    if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in numbers):
        raise TypeError(expected)
    if len(numbers) != 2 or min(map(index, numbers)) < smallest:
        raise ValueError(expected)
    return index(numbers[0]), index(numbers[1])


def as_pair(value: int | Pair) -> Pair:
    """A size, stride or padding that was checked before, as (rows, columns)."""
    return (value, value) if isinstance(value, int) else value


def output_size(function: str, image: Sequence[int], window: Pair, stride: Pair, padding: Pair = (0, 0)) -> Pair:
    """(rows, columns) of the output: how many places the window has in the padded image. A place that is cut off is no
    place.

    function: what the sentence of an error begins with, "conv2d"; image: (…, rows, columns)
    Raises ValueError where the window has no place at all, and for an image that padding makes longer than LONGEST.
    """
    check_window(function, image, window, padding)
    rows = (int(image[-2]) + 2 * padding[0] - window[0]) // stride[0] + 1
    columns = (int(image[-1]) + 2 * padding[1] - window[1]) // stride[1] + 1
    return rows, columns


def check_window(function: str, image: Sequence[int], window: Pair, padding: Pair) -> None:
    """Raises ValueError, as `output_size` says."""
    size = int(image[-2]), int(image[-1])
    padded = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    if max(padded) > LONGEST:
        raise ValueError(f"{function}: the image {size} padded to {padded} is longer than {LONGEST:,} rows or columns")
    if window[0] > padded[0] or window[1] > padded[1]:
        with_padding = f" padded to {padded}" if any(padding) else ""
        raise ValueError(f"{function}: the window {window} is larger than the image {size}{with_padding}")


def within(image: Sequence[int], stride: Pair, padding: Pair = (0, 0)) -> Pair:
    """The stride, at most the rows and columns of the padded image.

    A longer stride leaves the window its first place only, and so does this one. NumPy, C and CUDA, whose whole numbers
    have 32 or 64 bits, can count with this one.
    """
    rows, columns = int(image[-2]) + 2 * padding[0], int(image[-1]) + 2 * padding[1]
    return min(stride[0], rows), min(stride[1], columns)


def pool_windows(function: str, shape: Sequence[int], size: object, stride: object) -> tuple[Pair, Pair, Pair]:
    """A pool's window, its stride (None: as the window), and how many places it has."""
    window = pair(f"{function}: size", size, 1)
    step = window if stride is None else pair(f"{function}: stride", stride, 1)
    return window, within(shape, step), output_size(function, shape, window, step)


def image_shape(name: str, value: object) -> tuple[int, int, int, int]:
    """(batch, channels, rows, columns) as Python's numbers.

    Raises TypeError where a number is not whole, ValueError unless there are four of at least 1.
    """
    expected = f"{name}: expected 4 whole numbers (batch, channels, rows, columns) of at least 1, got {value!r}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(expected)
    if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in value):
        raise TypeError(expected)
    if len(value) != 4 or min(map(index, value)) < 1:
        raise ValueError(expected)
    batch, channels, rows, columns = map(index, value)
    return batch, channels, rows, columns
