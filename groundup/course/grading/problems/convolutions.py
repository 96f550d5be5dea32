"""Convolutions for weeks 21 and 22: geometries, the right result in float64, and known mistakes.

The arguments of a convolution are (x, weights, bias, stride, padding), the last two as pairs (rows, columns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake
from shared.windows import Pair


@dataclass(frozen=True)
class Sizes:
    """Of one convolution."""

    batch: int
    channels: int
    image: Pair
    filters: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)

    @property
    def padded(self) -> Pair:
        return self.image[0] + 2 * self.padding[0], self.image[1] + 2 * self.padding[1]

    @property
    def output(self) -> Pair:
        rows, columns = ((n - k) // s + 1 for n, k, s in zip(self.padded, self.kernel, self.stride, strict=True))
        return rows, columns


TYPICAL = Sizes(3, 2, (3, 4), 4, (3, 2), (1, 2), (1, 0))

AWKWARD = [
    Sizes(1, 1, (1, 1), 1, (1, 1)),
    Sizes(1, 1, (6, 5), 1, (3, 3)),
    Sizes(1, 2, (5, 4), 3, (2, 3)),
    Sizes(3, 1, (7, 9), 2, (3, 3), (2, 2), (1, 1)),  # the last row and column of the padded image are met by no window
    Sizes(2, 5, (3, 8), 4, (3, 1), (1, 3), (0, 2)),
    Sizes(5, 3, (6, 6), 1, (6, 6)),  # one window
    Sizes(1, 2, (2, 3), 7, (5, 4), (2, 1), (2, 3)),  # a kernel larger than the image
    Sizes(2, 2, (13, 11), 3, (3, 3), (1, 1), (1, 1)),
    Sizes(4, 1, (1, 37), 2, (1, 5), (1, 4), (0, 2)),
]
"""Geometries in which nothing is square, strides and paddings differ, and windows do not fit."""


def arguments(rng: np.random.Generator, s: Sizes) -> tuple[Any, ...]:
    """Random x, weights and bias of these sizes, with stride and padding."""
    x = rng.standard_normal((s.batch, s.channels, *s.image))
    weights = rng.standard_normal((s.filters, s.channels, *s.kernel))
    return x, weights, rng.standard_normal(s.filters), s.stride, s.padding


def shown(name: str) -> Callable[..., str]:
    """How a call of this function reads in a message."""

    def show(x: Any, weights: Any, bias: Any, stride: Pair, padding: Pair) -> str:
        return f"{name} of x {x.shape} and weights {weights.shape}, stride {stride}, padding {padding}"

    return show


def bordered(x: np.ndarray, padding: Pair, **how: Any) -> np.ndarray:
    """x with its border: of zeros, or as np.pad takes it."""
    (rows, columns) = padding
    return np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)), **how)


def windows_of(padded: np.ndarray, kernel: Pair, stride: Pair) -> np.ndarray:
    """All windows, (N, C, H', W', kh, kw)."""
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    return windows[:, :, :: stride[0], :: stride[1]]


def of_padded(padded: np.ndarray, weights: np.ndarray, bias: Any, stride: Pair) -> np.ndarray:
    """The convolution of images that have their border already."""
    windows = windows_of(padded, weights.shape[2:], stride)
    sums: np.ndarray = np.einsum("nchwij,ocij->nohw", windows, weights)
    return sums + np.reshape(bias, (-1, 1, 1))


def right(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
    """The definition."""
    return of_padded(bordered(x, padding), weights, bias, stride)


def scale(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
    """The sums of the absolute values of all terms."""
    return right(np.abs(x), np.abs(weights), np.abs(bias), stride, padding)


def terms(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> float:
    return weights[0].size + 1


IMAGE = np.array([[[[1.0, 2.0, 0.0, 1.0], [0.0, 3.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [1.0, 0.0, 2.0, 1.0]]]])
KERNEL = np.array([[[[1.0, 0.0, -1.0], [2.0, 1.0, 0.0], [0.0, -1.0, 1.0]]]])

HAND: list[tuple[tuple[Any, ...], Any]] = [
    ((IMAGE, KERNEL, np.zeros(1), (1, 1), (0, 0)), [[[[3.0, 9.0], [6.0, 2.0]]]]),
    (
        (IMAGE[:, :, :2, :3], np.array([[[[1.0, 10.0]]], [[[0.0, 1.0]]]]), np.array([0.5, -1.0]), (1, 2), (1, 1)),
        [[[[0.5, 0.5], [10.5, 2.5], [0.5, 13.5], [0.5, 0.5]], [[-1.0, -1.0], [0.0, -1.0], [-1.0, 0.0], [-1.0, -1.0]]]],
    ),
]
"""The example of the guide to convolution; and two filters of 1 by 2, with a stride along the rows and a border."""


def _swapped(x: Any, weights: Any, bias: Any, stride: Pair, padding: Pair) -> Any:
    """Rows and columns of stride and padding exchanged, where the result has the same shape all the same."""
    if stride[0] == stride[1] and padding[0] == padding[1]:
        return None
    padded = bordered(x, padding[::-1])
    if any(k > n for k, n in zip(weights.shape[2:], padded.shape[2:], strict=True)):
        return None
    return of_padded(padded, weights, bias, stride[::-1])


def _to_the_right(x: np.ndarray, weights: Any, bias: Any, stride: Pair, padding: Pair) -> Any:
    """The windows begin at the image's corner and not `padding` before it."""
    (rows, columns) = padding
    return of_padded(np.pad(x, ((0, 0), (0, 0), (0, 2 * rows), (0, 2 * columns))), weights, bias, stride)


def _into_the_rows_beside(x: np.ndarray, weights: Any, bias: Any, stride: Pair, padding: Pair) -> Any:
    """Where a column lies outside, the number that memory has there, of the row before or the next."""
    if padding[1] == 0:
        return None
    width = x.shape[3]
    line = np.zeros(x.size + 2 * padding[1])
    line[padding[1] : padding[1] + x.size] = x.reshape(-1)
    first = np.arange(x.size // width)[:, np.newaxis] * width + np.arange(width + 2 * padding[1])
    wide = line[first].reshape(*x.shape[:3], -1)
    return of_padded(bordered(wide, (padding[0], 0)), weights, bias, stride)


def _of_x(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """The result with other images; None where they are the same."""
    return lambda x, w, *rest: None if np.array_equal(change(x), x) else right(change(x), w, *rest)


def _of_w(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """The result with other kernels; None where they are the same."""
    return lambda x, w, *rest: None if np.array_equal(change(w), w) else right(x, change(w), *rest)


def _without_last(values: np.ndarray, axis: int) -> np.ndarray:
    """Zeros in the last row (axis 2) or column (axis 3)."""
    rest = values.copy()
    np.moveaxis(rest, axis, 0)[-1] = 0
    return rest


def _at_the_first(weights: np.ndarray, axis: int) -> np.ndarray:
    """All rows (axis 2) or columns (axis 3) added up in the first one."""
    summed = np.zeros_like(weights)
    np.moveaxis(summed, axis, 0)[0] = weights.sum(axis=axis)
    return summed


def _side_by_side(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> Any:
    """The windows of stride 1, as many as there should be."""
    rows, columns = right(x, weights, bias, stride, padding).shape[2:]
    return None if stride == (1, 1) else right(x, weights, bias, (1, 1), padding)[:, :, :rows, :columns]


def _only_channel(channel: int) -> Callable[..., Any]:
    def wrong(x: np.ndarray, weights: np.ndarray, *rest: Any) -> Any:
        one = [channel]
        return right(x[:, one], weights[:, one], *rest) if weights.shape[1] > 1 else None

    return wrong


def _first_for_all(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[:, :1], values.shape[1], axis=1)


MISTAKES = [
    Mistake(
        "all rows of the kernel meet the window's first: row u lies u rows below", _of_w(lambda w: _at_the_first(w, 2))
    ),
    Mistake(
        "all columns of the kernel meet the window's first: column v lies v further on",
        _of_w(lambda w: _at_the_first(w, 3)),
    ),
    Mistake("the kernel is turned by half a turn: frameworks do not flip it", _of_w(lambda w: w[:, :, ::-1, ::-1])),
    Mistake(
        "the kernel's rows and columns have changed places",
        _of_w(lambda w: w.swapaxes(2, 3) if w.shape[2] == w.shape[3] else w),
    ),
    Mistake("the bias is left out", lambda x, w, b, *rest: right(x, w, 0 * b, *rest) if np.any(b) else None),
    Mistake("the windows begin at the image's corner: the first begins `padding` before it", _to_the_right),
    Mistake("the windows lie side by side: they are `stride` apart", _side_by_side),
    Mistake("rows and columns of stride and padding have changed places", _swapped),
    Mistake(
        "the border repeats the outermost pixels: it is 0",
        lambda x, w, b, stride, padding: of_padded(bordered(x, padding, mode="edge"), w, b, stride),
    ),
    Mistake(
        "a column outside the image is read all the same, and memory has the row before or the next one there: ask "
        "for the column, too, not for the row alone",
        _into_the_rows_beside,
    ),
    Mistake("only the first channel is there: the sum goes over all channels", _only_channel(0)),
    Mistake("only the last channel is there: each channel's products are added to the sum", _only_channel(-1)),
    Mistake(
        "all channels meet the first channel of the kernel: w goes on with the channel, too", _of_w(_first_for_all)
    ),
    Mistake("all channels of the kernel meet the first of x: x goes on with the channel, too", _of_x(_first_for_all)),
    Mistake("the last row of the image is left out", _of_x(lambda x: _without_last(x, 2))),
    Mistake("the last column of the image is left out", _of_x(lambda x: _without_last(x, 3))),
    Mistake("the last row of the kernel is left out", _of_w(lambda w: _without_last(w, 2))),
    Mistake("the last column of the kernel is left out", _of_w(lambda w: _without_last(w, 3))),
]
"""Of a whole convolution."""
