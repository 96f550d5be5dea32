"""Pooling: each window of an image becomes one number, its largest or its average.

A pool has no parameters. It makes the image smaller, so that the next convolution sees more of it at once and costs
less. x is (N, C, H, W), the result (N, C, H', W') with H' = (H - rows of the window) // stride + 1: a window that does
not fit is dropped. `size` and `stride` are a whole number or a pair (rows, columns); stride None means the size, so
that the windows lie side by side.

All take `out=`, the array to write into, and `scratch=`, memory for temporary arrays; both may be left out.
"""

from itertools import product
from typing import Any

import numpy as np

from shared.plain_arrays import as_indices
from shared.windows import Pair, image_shape, pool_windows

from .arrays import Array, Scratch, as_images, borrow, ieee, output_like


def max_pool2d(
    x: Array,
    size: Any,
    stride: Any = None,
    out: Array | None = None,
    out_indices: Array | None = None,
    scratch: Scratch | None = None,
) -> tuple[Array, Array]:
    """The largest number of each window, and where it was. Same as torch's max_pool2d with return_indices=True.

    Returns the output and int64 indices, both (N, C, H', W'). An index counts row by row through the H x W numbers of
    its channel. Of equal numbers the first in that order wins. NaN counts as the largest number of all, and of
    several NaN the last wins, as in PyTorch.

    First the largest along the columns of each row, then of those the largest along the rows: W' kw + W' kh comparisons
    a row and not W' kw kh, and the first winner of the first row is the first of the window.
    """
    x, window, step, places = _prepare("max_pool2d", x, size, stride)
    out = output_like("max_pool2d", out, (*x.shape[:2], *places), x.dtype, x=x)
    out_indices = output_like("max_pool2d", out_indices, out.shape, np.int64, x=x)
    # A row that no window touches is not looked at.
    lines = x[:, :, : step[0] * (places[0] - 1) + window[0]]
    careful = bool(np.isnan(lines.max()))  # max passes a NaN on; without one, the comparisons need not ask for it
    best, which = _largest_along_rows(lines, window, step[1], places[1], careful, scratch)

    best_rows, which_rows = best.swapaxes(2, 3), which.swapaxes(2, 3)  # so that `_every` steps along the rows
    chosen = borrow(scratch, "pool chosen", out.shape, which.dtype)
    np.copyto(out, _every(best_rows, 0, step[0], places[0]).swapaxes(2, 3))
    np.copyto(chosen, _every(which_rows, 0, step[0], places[0]).swapaxes(2, 3))
    for i in range(1, window[0]):
        candidate = _every(best_rows, i, step[0], places[0]).swapaxes(2, 3)
        place = _every(which_rows, i, step[0], places[0]).swapaxes(2, 3)
        place = np.add(place, i * window[1], out=borrow(scratch, "pool place", out.shape, which.dtype))
        _number_where(_wins(candidate, out, careful, scratch), place, chosen, scratch)
        np.maximum(out, candidate, out=out)

    columns = x.shape[3]
    steps_within = np.add.outer(np.arange(window[0]) * columns, np.arange(window[1])).ravel()
    corners = np.add.outer(np.arange(places[0]) * step[0] * columns, np.arange(places[1]) * step[1])
    numbers = borrow(scratch, "pool numbers", out.shape, np.int64)  # take would make such an array itself
    np.copyto(numbers, chosen)
    np.take(steps_within, numbers, out=out_indices, mode="clip")  # "clip" checks nothing, and so needs no copy of out
    out_indices += corners
    return out, out_indices


@ieee
def max_pool2d_backward(
    grad_output: Array,
    indices: Array,
    input_shape: tuple[int, int, int, int],
    out: Array | None = None,
    scratch: Scratch | None = None,
) -> Array:
    """dL/dx (N, C, H, W): each number of grad_output goes to the place that won; where windows overlap, they add up.

    grad_output: (N, C, H', W'), the shape of max_pool2d's output; indices: as max_pool2d returned them
    """
    function = "max_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    indices = as_indices(function, indices, grad_output.shape, shape)
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output, indices=indices)
    target = out if out.flags.c_contiguous else np.empty_like(out, order="C")
    target.fill(0)
    first_of_channel = borrow(scratch, "pool first of channel", (*shape[:2], 1, 1), np.int64)
    first_of_channel.fill(shape[2] * shape[3])
    first_of_channel.flat[0] = 0
    np.cumsum(first_of_channel, out=first_of_channel.reshape(-1))  # 0, H W, 2 H W, …
    flat = np.add(indices, first_of_channel, out=borrow(scratch, "pool flat", indices.shape, np.int64))
    np.add.at(target.reshape(-1), flat.reshape(-1), grad_output.reshape(-1))
    if target is not out:
        np.copyto(out, target)
    return out


@ieee
def average_pool2d(
    x: Array, size: Any, stride: Any = None, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The average of each window, (N, C, H', W'). Same as torch.nn.functional.avg_pool2d without padding."""
    x, window, step, places = _prepare("average_pool2d", x, size, stride)
    out = output_like("average_pool2d", out, (*x.shape[:2], *places), x.dtype, x=x)
    out.fill(0)
    for i, j in product(range(window[0]), range(window[1])):
        out += shifted(x, i, j, step, places)
    out /= window[0] * window[1]
    return out


@ieee
def average_pool2d_backward(
    grad_output: Array,
    input_shape: tuple[int, int, int, int],
    size: Any,
    stride: Any = None,
    out: Array | None = None,
    scratch: Scratch | None = None,
) -> Array:
    """dL/dx (N, C, H, W): each number of a window gets an equal share of its gradient."""
    function = "average_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    window, step, places = pool_windows(function, shape, size, stride)
    if grad_output.shape != (*shape[:2], *places):
        raise ValueError(
            f"{function}: grad_output is {grad_output.shape}, expected {(*shape[:2], *places)}, "
            "the shape of average_pool2d's output"
        )
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output)
    share = borrow(scratch, "pool share", grad_output.shape, grad_output.dtype)
    np.divide(grad_output, window[0] * window[1], out=share)
    out.fill(0)
    for i, j in product(range(window[0]), range(window[1])):
        target = shifted(out, i, j, step, places)
        target += share
    return out


def _prepare(function: str, x: Any, size: Any, stride: Any) -> tuple[Array, Pair, Pair, Pair]:
    x = as_images(f"{function}: x", x)
    return x, *pool_windows(function, x.shape, size, stride)


def _largest_along_rows(
    lines: Array, window: Pair, step: int, count: int, careful: bool, scratch: Scratch | None
) -> tuple[Array, Array]:
    """In each row the largest number of each window's columns, and which column it was: (N, C, rows, W') both."""
    number = np.min_scalar_type(window[0] * window[1])  # of a place in the window: a byte is enough for most
    best = borrow(scratch, "pool best", (*lines.shape[:3], count), lines.dtype)
    which = borrow(scratch, "pool which", best.shape, number)
    np.copyto(best, _every(lines, 0, step, count))
    which.fill(0)
    for j in range(1, window[1]):
        candidate = _every(lines, j, step, count)
        _number_where(_wins(candidate, best, careful, scratch), j, which, scratch)
        np.maximum(best, candidate, out=best)
    return best, which


def _every(lines: Array, first: int, step: int, count: int) -> Array:
    """count numbers of the last axis, beginning with the first, a step apart."""
    return lines[..., first : first + step * (count - 1) + 1 : step]


def shifted(x: Array, i: int, j: int, step: Pair, places: Pair) -> Array:
    """What position (i, j) of the window meets at all its places: a view (N, C, H', W')."""
    return _every(_every(x, j, step[1], places[1]).swapaxes(2, 3), i, step[0], places[0]).swapaxes(2, 3)


def _wins(candidate: Array, best: Array, careful: bool, scratch: Scratch | None) -> Array:
    """Whether each candidate replaces the best so far: it is larger, or it is NaN."""
    wins = np.greater(candidate, best, out=borrow(scratch, "pool wins", best.shape, bool))
    if careful:
        wins |= np.isnan(candidate)
    return wins


def _number_where(wins: Array, number: Any, chosen: Array, scratch: Scratch | None) -> None:
    """Write the number, which is larger than all in `chosen`, over those that it wins against.

    A maximum and a product with 0 or 1: a masked copy would guess at a branch for each element, and guess wrong often.
    """
    won = borrow(scratch, "pool won", chosen.shape, chosen.dtype)
    np.multiply(wins.view(np.uint8), np.asarray(number, chosen.dtype), out=won)
    np.maximum(chosen, won, out=chosen)
