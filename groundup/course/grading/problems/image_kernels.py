"""The convolution of the kernels of week 23: arguments, the right result in float64, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import as_float, random

Steps = tuple[int, int, int, int]
"""(down, right, top, left): the strides and the padding."""


class Sizes(NamedTuple):
    """Of a convolution: images, channels, (H, W), kernels, (kh, kw), and the steps."""

    images: int
    channels: int
    image: tuple[int, int]
    kernels: int
    window: tuple[int, int]
    steps: Steps = (1, 1, 0, 0)


def convolution_arguments(rng: np.random.Generator, sizes: Sizes) -> tuple[Any, ...]:
    """(x, weights, bias, steps)"""
    x = random(rng, sizes.images, sizes.channels, *sizes.image)
    weights = random(rng, sizes.kernels, sizes.channels, *sizes.window)
    return x, weights, random(rng, sizes.kernels), sizes.steps


def output_shape(x: np.ndarray, weights: np.ndarray, steps: Steps) -> tuple[int, int, int, int]:
    """(N, O, H', W')"""
    rows, columns = (
        (x.shape[2 + axis] + 2 * steps[2 + axis] - weights.shape[2 + axis]) // steps[axis] + 1 for axis in (0, 1)
    )
    return len(x), len(weights), rows, columns


def gathered(x: np.ndarray, rows: np.ndarray, columns: np.ndarray, edge: str = "zero") -> np.ndarray:
    """x[:, :, rows, columns] for (R, kh) rows and (S, kw) columns: (N, C, R, kh, S, kw).

    edge: what stands outside the image: "zero", or "nearest" for the number at the edge
    """
    inside = [(index >= 0) & (index < size) for index, size in zip((rows, columns), x.shape[2:], strict=True)]
    within = [index.clip(0, size - 1) for index, size in zip((rows, columns), x.shape[2:], strict=True)]
    numbers = x[:, :, within[0]][..., within[1]]
    return numbers if edge == "nearest" else np.where(inside[0][..., None, None] & inside[1], numbers, 0)


def convolved(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    steps: Steps,
    *,
    begin: Callable[[Steps], tuple[int, int]] = lambda steps: (-steps[2], -steps[3]),
    stride: Callable[[Steps], tuple[int, int]] = lambda steps: steps[:2],
    edge: str = "zero",
) -> np.ndarray:
    """The convolution in float64. begin, stride: of the first window, and from window to window; others are mistakes"""
    _, _, rows, columns = output_shape(x, weights, steps)
    (top, left), (down, right) = begin(steps), stride(steps)
    kh, kw = weights.shape[2:]
    h = np.arange(rows)[:, None] * down + top + np.arange(kh)
    w = np.arange(columns)[:, None] * right + left + np.arange(kw)
    windows = gathered(x.astype(np.float64), h, w, edge)
    return np.einsum("ncrisj,ocij->nors", windows, weights.astype(np.float64)) + bias[:, None, None].astype(np.float64)


def convolution_scale(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
    """The size of what is added up for each output."""
    return convolved(np.abs(x), np.abs(weights), np.abs(bias), steps)


def products(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> int:
    """How many terms an output has."""
    return int(weights[0].size) + 1


def _with_weights(change: Callable[[np.ndarray], np.ndarray | None]) -> Callable[..., Any]:
    def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        changed = change(weights)
        return None if changed is None else convolved(x, changed, bias, steps)

    return wrong


def _only_channels(take: slice) -> Callable[..., Any]:
    def wrong(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> Any:
        if weights.shape[1] < 2:
            return None
        return convolved(x[:, take], weights[:, take], bias, steps)

    return wrong


def _without_last(axis: int) -> Callable[[np.ndarray], np.ndarray | None]:
    def change(weights: np.ndarray) -> np.ndarray:
        less = weights.copy()
        np.moveaxis(less, axis, 0)[-1] = 0
        return less

    return change


CONVOLUTION_MISTAKES = [
    Mistake(
        "the kernel is turned by half a turn: number (i, j) of the kernel meets number (i, j) of the window",
        _with_weights(lambda weights: weights[:, :, ::-1, ::-1]),
    ),
    Mistake(
        "rows and columns of the kernel have changed places: weights[o, c, i, j], i down and j across",
        _with_weights(lambda weights: weights.swapaxes(2, 3) if weights.shape[2] == weights.shape[3] else None),
    ),
    Mistake("the last row of the window is left out", _with_weights(_without_last(2))),
    Mistake("the last column of the window is left out", _with_weights(_without_last(3))),
    Mistake("only the first channel is added up", _only_channels(slice(0, 1))),
    Mistake("only the last channel is there: the sum begins anew in every channel", _only_channels(slice(-1, None))),
    Mistake(
        "the bias is missing",
        lambda x, weights, bias, steps: convolved(x, weights, 0 * bias, steps),
    ),
    Mistake(
        "the bias is added once for every channel: it belongs to the output, not to a channel",
        lambda x, weights, bias, steps: convolved(x, weights, weights.shape[1] * bias, steps),
    ),
    *(
        Mistake(
            "the padding is forgotten: the first window begins at row -top, column -left",
            lambda x, weights, bias, steps, rows=rows, columns=columns: convolved(
                x, weights, bias, steps, begin=lambda steps: (-steps[2] * rows, -steps[3] * columns)
            ),
        )
        for rows, columns in ((0, 0), (0, 1), (1, 0))
    ),
    Mistake(
        "the padding is added: a window begins at r * down - top",
        lambda x, weights, bias, steps: convolved(x, weights, bias, steps, begin=lambda steps: steps[2:]),
    ),
    Mistake(
        "top and left have changed places",
        lambda x, weights, bias, steps: convolved(x, weights, bias, steps, begin=lambda steps: (-steps[3], -steps[2])),
    ),
    *(
        Mistake(
            "the stride is forgotten: place r of the output has its window at row r * down - top, and column s "
            "likewise",
            lambda x, weights, bias, steps, rows=rows, columns=columns: convolved(
                x, weights, bias, steps, stride=lambda steps: (steps[0] ** rows, steps[1] ** columns)
            ),
        )
        for rows, columns in ((0, 0), (0, 1), (1, 0))
    ),
    *(
        Mistake(
            "the strides have changed places: `down` is from row to row, `right` from column to column",
            lambda x, weights, bias, steps, rows=rows, columns=columns: convolved(
                x, weights, bias, steps, stride=lambda steps: (steps[rows], steps[columns])
            ),
        )
        for rows, columns in ((1, 0), (0, 0), (1, 1))
    ),
    Mistake(
        "outside the image the nearest number is taken: there, nothing is added",
        lambda x, weights, bias, steps: convolved(x, weights, bias, steps, edge="nearest"),
    ),
    Mistake(
        "another image: n is what is left of the index when columns, rows and kernels are divided out",
        lambda x, weights, bias, steps: (
            np.broadcast_to(convolved(x[:1], weights, bias, steps), output_shape(x, weights, steps))
            if len(x) > 1
            else None
        ),
    ),
]

IMAGE = as_float([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]])

KERNEL = as_float([[[[1, 0], [0, 2]]]])
"""With IMAGE: 1 + 2 · 5 = 11, 2 + 2 · 6 = 14, 4 + 2 · 8 = 20, 5 + 2 · 9 = 23."""

ROW_KERNELS = as_float([[[[1, 1]], [[0, 1]]], [[[0, 0]], [[1, 0]]]])
"""Two kernels of one row and two columns, over two channels."""

BY_HAND: Sequence[tuple[tuple[Any, ...], Any]] = [
    ((IMAGE, KERNEL, as_float([0.5]), (1, 1, 0, 0)), [[[[11.5, 14.5], [20.5, 23.5]]]]),
    # One row and one column of zeros around the image, every second place.
    ((IMAGE, KERNEL, as_float([0]), (2, 2, 1, 1)), [[[[2, 6], [14, 23]]]]),
    (
        (np.stack([IMAGE[0, 0, :1], IMAGE[0, 0, 1:2]])[None], ROW_KERNELS, as_float([1, 0]), (1, 2, 0, 0)),
        [[[[1 + 3 + 5]], [[4]]]],
    ),
]
"""The last: two channels, 1 2 3 and 4 5 6, and one place: 1 + 2 and 5, beside the bias of 1; 4."""


def tile_mistakes(tile: int) -> list[Mistake]:
    """Known mistakes with strides where a block has a tile of `tile` by `tile` outputs, and a piece of the image."""

    def narrow(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        right = convolved(x, weights, bias, steps)
        r, s = (np.arange(size) % tile * step for size, step in zip(right.shape[2:], steps[:2], strict=True))
        return np.where((r < tile)[:, None] & (s < tile), right, np.nan)

    def begun_early(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, steps: Steps) -> np.ndarray:
        def begun_at(begin: tuple[int, int]) -> np.ndarray:
            return convolved(x, weights, bias, steps, begin=lambda steps: begin)

        found = convolved(x, weights, bias, steps)
        for i, j in np.ndindex(*(-(-size // tile) for size in found.shape[2:])):
            of_tile = begun_at((i * tile * (1 - steps[0]) - steps[2], j * tile * (1 - steps[1]) - steps[3]))
            found[..., i * tile :, j * tile :] = of_tile[..., i * tile :, j * tile :]
        return found

    return [
        Mistake(
            "the piece is too small where there is a stride: it has (TILE - 1) * down + kh rows, columns likewise",
            narrow,
        ),
        Mistake(
            "a tile's piece begins in the image at first_row * down - top, and its columns likewise: row r of the "
            "output is no row of the image",
            begun_early,
        ),
    ]
