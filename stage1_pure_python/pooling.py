"""Pooling: each window of an image becomes one number, its largest or its average.

A pool has no parameters. It makes the image smaller, so that the next convolution sees more of it at once and costs
less. x is (N, C, H, W), the result (N, C, H', W') with H' = (H - rows of the window) // stride + 1: a window that does
not fit is dropped. `size` and `stride` are a whole number or a pair (rows, columns); stride None means the size, so
that the windows lie side by side.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

from shared.shapes import check_indices
from shared.windows import Pair, image_shape, pool_windows

from .arrays import Images, Matrix, as_images, zeros


def max_pool2d(x: Images, size: Any, stride: Any = None) -> tuple[Images, list[list[list[list[int]]]]]:
    """The largest number of each window, and where it was. Same as torch's max_pool2d with return_indices=True.

    Returns the output and the indices, both (N, C, H', W'). An index counts row by row through the H x W numbers of its
    channel. Of equal numbers the first in that order wins. NaN counts as the largest number of all, and of several
    NaN the last wins, as in PyTorch.
    """
    x, shape = as_images("max_pool2d: x", x)
    window, step, places = pool_windows("max_pool2d", shape, size, stride)
    winners = [[_winners(channel, window, step, places) for channel in image] for image in x]
    output = [
        [
            [[channel[at // shape[3]][at % shape[3]] for at in row] for row in rows]
            for channel, rows in zip(image, of_image, strict=True)
        ]
        for image, of_image in zip(x, winners, strict=True)
    ]
    return output, winners


def _winners(channel: Matrix, window: Pair, step: Pair, places: Pair) -> list[list[int]]:
    """For each window of a channel, where its largest number is."""
    columns = len(channel[0])
    winners = []
    for top in range(0, places[0] * step[0], step[0]):
        row_of_winners = []
        for left in range(0, places[1] * step[1], step[1]):
            best, winner = channel[top][left], top * columns + left
            for i in range(top, top + window[0]):
                for j in range(left, left + window[1]):
                    value = channel[i][j]
                    if value > best or value != value:  # only NaN differs from itself
                        best, winner = value, i * columns + j
            row_of_winners.append(winner)
        winners.append(row_of_winners)
    return winners


def max_pool2d_backward(grad_output: Images, indices: Any, input_shape: tuple[int, int, int, int]) -> Images:
    """dL/dx (N, C, H, W): each number of grad_output goes to the place that won; where windows overlap, they add up.

    grad_output: (N, C, H', W'), the shape of max_pool2d's output; indices: as max_pool2d returned them
    """
    function = "max_pool2d_backward"
    grad_output, grad_shape = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    indices = _checked_indices(function, indices, grad_shape, shape)
    grad_input = zeros(shape)
    for image, grads, winners in zip(grad_input, grad_output, indices, strict=True):
        for channel, grad_rows, winner_rows in zip(image, grads, winners, strict=True):
            for grad_row, winner_row in zip(grad_rows, winner_rows, strict=True):
                for grad, winner in zip(grad_row, winner_row, strict=True):
                    channel[winner // shape[3]][winner % shape[3]] += grad
    return grad_input


def average_pool2d(x: Images, size: Any, stride: Any = None) -> Images:
    """The average of each window, (N, C, H', W'). Same as torch.nn.functional.avg_pool2d without padding."""
    x, shape = as_images("average_pool2d: x", x)
    window, step, places = pool_windows("average_pool2d", shape, size, stride)
    count = window[0] * window[1]
    return [
        [
            [
                [
                    sum([sum(row[left : left + window[1]]) for row in channel[top : top + window[0]]]) / count
                    for left in range(0, places[1] * step[1], step[1])
                ]
                for top in range(0, places[0] * step[0], step[0])
            ]
            for channel in image
        ]
        for image in x
    ]


def average_pool2d_backward(
    grad_output: Images, input_shape: tuple[int, int, int, int], size: Any, stride: Any = None
) -> Images:
    """dL/dx (N, C, H, W): each number of a window gets an equal share of its gradient."""
    function = "average_pool2d_backward"
    grad_output, grad_shape = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    window, step, places = pool_windows(function, shape, size, stride)
    if grad_shape != (*shape[:2], *places):
        raise ValueError(
            f"{function}: grad_output is {grad_shape}, expected {(*shape[:2], *places)}, "
            "the shape of average_pool2d's output"
        )
    count = window[0] * window[1]
    grad_input = zeros(shape)
    for image, grads in zip(grad_input, grad_output, strict=True):
        for channel, grad_rows in zip(image, grads, strict=True):
            for r, grad_row in enumerate(grad_rows):
                for row in channel[r * step[0] : r * step[0] + window[0]]:
                    for s, grad in enumerate(grad_row):
                        for at in range(s * step[1], s * step[1] + window[1]):
                            row[at] += grad / count
    return grad_input


def _checked_indices(function: str, indices: Any, expected: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The indices as nested lists, each within its channel, or an error that says which is not."""
    indices = indices.tolist() if hasattr(indices, "tolist") else indices
    at_hand = _whole_shape(indices)
    if at_hand is None:
        raise TypeError(f"{function}: indices must be whole numbers, as max_pool2d returned them")
    check_indices(function, at_hand, expected, shape)
    last = shape[2] * shape[3] - 1
    for n, image in enumerate(indices):
        for c, channel in enumerate(image):
            for r, row in enumerate(channel):
                for s, number in enumerate(row):
                    if not 0 <= index(number) <= last:
                        raise ValueError(f"{function}: indices[{n}, {c}, {r}, {s}] is {number}, expected 0 to {last}")
    return indices


def _whole_shape(values: Any) -> tuple[int, ...] | None:
    """The shape of equally long nested sequences of whole numbers; None where one is no whole number."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        return None if isinstance(values, bool) or not hasattr(values, "__index__") else ()
    shapes = set(map(_whole_shape, values))
    if len(shapes) != 1 or None in shapes:
        return None
    return len(values), *(shapes.pop() or ())
