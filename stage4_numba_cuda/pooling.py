"""Pooling: each window of an image becomes one number, its largest or its average.

A pool has no parameters. It makes the image smaller, so that the next convolution sees more of it at once and costs
less. x is (N, C, H, W), the result (N, C, H', W') with H' = (H - rows of the window) // stride + 1: a window that does
not fit is dropped. `size` and `stride` are a whole number or a pair (rows, columns); stride None means the size, so
that the windows lie side by side.

All take `out=`, the device array to write into. The kernels are in kernels/pooling.py.
"""

from typing import Any

import numpy as np

from shared.plain_arrays import as_indices
from shared.shapes import check_grad_output
from shared.windows import Pair, image_shape, pool_windows

from . import launch
from .arrays import Array, as_images, empty, is_packed, on_device, output_like, to_host
from .backend import BACKEND, cuda
from .kernels import pooling as kernels

IDENTITY = 0
"""The number of no activation in kernels/activations.py."""


def max_pool2d(x: Array, size: Any, stride: Any = None, out: Array | None = None) -> tuple[Array, Array]:
    """The largest number of each window, and where it was. Same as torch's max_pool2d with return_indices=True.

    Returns the output and int64 indices, both (N, C, H', W'). An index counts row by row through the H x W numbers of
    its channel. Of equal numbers the first in that order wins. NaN counts as the largest number of all, and of
    several NaN the last wins, as in PyTorch.
    """
    x, window, step, places = _prepare("max_pool2d", x, size, stride)
    out = output_like("max_pool2d", out, (*x.shape[:2], *places), x.dtype, x=x)
    indices = empty(out.shape, np.int64)
    launch_max_pool(planes(x), window, step, IDENTITY, planes(out), planes(indices))
    return out, indices


def max_pool2d_backward(
    grad_output: Array,
    indices: Array,
    input_shape: tuple[int, int, int, int],
    out: Array | None = None,
    size: Any = None,
    stride: Any = None,
) -> Array:
    """dL/dx (N, C, H, W): each number of grad_output goes to the place that won; where windows overlap, they add up.

    grad_output: (N, C, H', W'), the shape of max_pool2d's output; indices: as max_pool2d returned them
    size, stride: those of the pool. With them every number of dL/dx has a thread, which looks into the windows that it
        lies in; indices outside of their windows are then not found. Without a size every plane has a thread.
    """
    function = "max_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    indices = _checked_indices(function, indices, grad_output.shape, shape)
    known = None if size is None else pool_windows(function, shape, size, stride)
    if known is not None:
        check_grad_output(function, grad_output.shape, (*grad_output.shape[:2], *known[2]), "max_pool2d's output")
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output, indices=indices)
    if known is not None:
        grad, target = planes(grad_output), planes(out)
        launch_max_backward(grad, grad, IDENTITY, planes(indices), target, IDENTITY, *known[:2], target)
        return out
    count = shape[0] * shape[1]
    lines = (array.reshape(count, array.size // count) for array in (grad_output, indices))
    kernels.max_backward_plane[launch.elementwise(count)](*lines, planes(out))
    return out


def average_pool2d(x: Array, size: Any, stride: Any = None, out: Array | None = None) -> Array:
    """The average of each window, (N, C, H', W'). Same as torch.nn.functional.avg_pool2d without padding."""
    x, window, step, places = _prepare("average_pool2d", x, size, stride)
    out = output_like("average_pool2d", out, (*x.shape[:2], *places), x.dtype, x=x)
    launch_average_pool(planes(x), window, step, planes(out))
    return out


def average_pool2d_backward(
    grad_output: Array,
    input_shape: tuple[int, int, int, int],
    size: Any,
    stride: Any = None,
    out: Array | None = None,
) -> Array:
    """dL/dx (N, C, H, W): each number of a window gets an equal share of its gradient."""
    function = "average_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    window, step, places = pool_windows(function, shape, size, stride)
    check_grad_output(function, grad_output.shape, (*shape[:2], *places), "average_pool2d's output")
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output)
    launch_average_backward(planes(grad_output), window, step, planes(out))
    return out


# ---- launches, unchecked: images are (planes, rows, columns)


def launch_max_pool(
    x: Array, window: Pair, step: Pair, activation: int, output: Array, indices: Array, stream: Any = 0
) -> None:
    """output = activate(the largest of each window), by the activation's number; indices: int32 or int64."""
    kernels.max_pool[(*_over(output), stream)](x, *window, *step, activation, output, indices)


def launch_max_backward(
    grad_output: Array,
    output: Array,
    after: int,
    indices: Array,
    x: Array,
    before: int,
    window: Pair,
    step: Pair,
    grad_input: Array,
    stream: Any = 0,
) -> None:
    """The gradient through the pool, the activation `after` it and the one `before` it, which made x."""
    kernels.max_backward[(*_over(grad_input), stream)](
        grad_output, output, after, indices, x, before, *window, *step, grad_input
    )


def launch_average_pool(x: Array, window: Pair, step: Pair, output: Array, stream: Any = 0) -> None:
    """output = the mean of each window."""
    kernels.average_pool[(*_over(output), stream)](x, *window, *step, output)


def launch_average_backward(grad_output: Array, window: Pair, step: Pair, grad_input: Array, stream: Any = 0) -> None:
    """The gradient through it."""
    kernels.average_backward[(*_over(grad_input), stream)](grad_output, *window, *step, grad_input)


def planes(images: Array) -> Array:
    """(N, C, H, W) as (N C, H, W), without a copy."""
    return images.reshape(images.shape[0] * images.shape[1], *images.shape[2:])


def _over(written: Array) -> tuple[int, tuple[int, int]]:
    """The grid and block for a kernel that writes these planes."""
    return launch.over_lines(written.shape[0] * written.shape[1], written.shape[2], BACKEND.name != "gpu")


# ---- checks


def _prepare(function: str, x: Any, size: Any, stride: Any) -> tuple[Array, Pair, Pair, Pair]:
    x = as_images(f"{function}: x", x)
    return x, *pool_windows(function, x.shape, size, stride)


def _checked_indices(function: str, indices: Any, expected: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The indices on the device as int64, each within its channel, or an error that says which is not.

    They are checked on the host, because a kernel writes where an index says.
    """
    array = as_indices(function, to_host(indices) if on_device(indices) else indices, expected, shape)
    if on_device(indices) and is_packed(indices) and indices.dtype == np.int64:
        return indices
    return cuda.to_device(np.ascontiguousarray(array))
