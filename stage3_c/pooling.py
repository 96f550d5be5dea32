"""Pooling in C: a window moves over each plane, and the result is the largest number, or the mean, of each window.

Every function stands beside its backward. csrc/pooling.c has the loops, and one without jumps for windows of 2 x 2.

Shapes: x is (N, C, H, W), the result (N, C, H', W') with H' = (H - rows) // stride + 1; windows that do not fit are
dropped. `size` and `stride` are a whole number or a pair (rows, columns); the stride is the size unless given.
"""

import ctypes
from typing import Any

import numpy as np

from shared.plain_arrays import index_beyond, whole_indices
from shared.windows import Pair, image_shape, output_size, pair, within

from . import library
from .arrays import Array, aligned_empty, as_images, output_like


class CPooling(ctypes.Structure):
    """`pooling` in groundup.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("height", "width", "rows", "columns", "stride_rows", "stride_columns", "out_height", "out_width")
    )


def max_pool2d(x: Array, size: Any, stride: Any = None, out: Array | None = None) -> tuple[Array, Array]:
    """The largest number of each window, and where it was. Same as torch's max_pool2d with return_indices=True.

    Returns (output, indices), both (N, C, H', W'): indices are int64 and count along the rows of a plane, row * W +
    column. Of equal numbers the first is taken, row by row; a NaN counts as the largest of all, and of several NaN the
    last is taken, as in PyTorch.
    """
    x, sizes, shape = _prepare("max_pool2d", x, size, stride)
    out = output_like("max_pool2d", out, shape, x.dtype, x=x)
    indices = aligned_empty(shape, np.int64)
    library.function("max_pool2d", x.dtype)(library.pool(), ctypes.byref(sizes), shape[0] * shape[1], x, out, indices)
    return out, indices


def max_pool2d_backward(grad_output: Array, indices: Array, input_shape: Any, out: Array | None = None) -> Array:
    """dL/dx (N, C, H, W): each slope goes to where its maximum was; where windows overlap, slopes add up.

    grad_output, indices: (N, C, H', W'); input_shape: (N, C, H, W), the shape of max_pool2d's x
    Raises ValueError for an index outside of its plane.
    """
    function = "max_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    indices = _as_indices(function, indices, grad_output.shape, shape)
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output, indices=indices)
    sizes = CPooling(*shape[2:], 1, 1, 1, 1, *grad_output.shape[2:])
    library.function("max_pool2d_backward", grad_output.dtype)(
        library.pool(), ctypes.byref(sizes), shape[0] * shape[1], grad_output, indices, out
    )
    return out


def average_pool2d(x: Array, size: Any, stride: Any = None, out: Array | None = None) -> Array:
    """The mean of each window, (N, C, H', W'). Same as torch.nn.functional.avg_pool2d."""
    x, sizes, shape = _prepare("average_pool2d", x, size, stride)
    out = output_like("average_pool2d", out, shape, x.dtype, x=x)
    library.function("average_pool2d", x.dtype)(library.pool(), ctypes.byref(sizes), shape[0] * shape[1], x, out)
    return out


def average_pool2d_backward(
    grad_output: Array, input_shape: Any, size: Any, stride: Any = None, out: Array | None = None
) -> Array:
    """dL/dx (N, C, H, W): each number of a window gets an equal share of its slope.

    grad_output: (N, C, H', W'); input_shape: (N, C, H, W), the shape of average_pool2d's x
    """
    function = "average_pool2d_backward"
    grad_output = as_images(f"{function}: grad_output", grad_output)
    shape = image_shape(f"{function}: input_shape", input_shape)
    sizes, output = _sizes(function, shape, size, stride)
    expected = (*shape[:2], *output)
    if grad_output.shape != expected:
        raise ValueError(
            f"{function}: grad_output is {grad_output.shape}, expected {expected}, the shape of average_pool2d's output"
        )
    out = output_like(function, out, shape, grad_output.dtype, grad_output=grad_output)
    library.function("average_pool2d_backward", grad_output.dtype)(
        library.pool(), ctypes.byref(sizes), shape[0] * shape[1], grad_output, out
    )
    return out


def _prepare(function: str, x: Any, size: Any, stride: Any) -> tuple[Array, CPooling, tuple[int, int, int, int]]:
    """x as C reads it, the sizes, and the shape of the output."""
    x = as_images(f"{function}: x", x)
    sizes, output = _sizes(function, x.shape, size, stride)
    return x, sizes, (x.shape[0], x.shape[1], *output)


def _sizes(function: str, shape: tuple[int, ...], size: Any, stride: Any) -> tuple[CPooling, Pair]:
    window = pair(f"{function}: size", size, 1)
    steps = window if stride is None else pair(f"{function}: stride", stride, 1)
    output = output_size(function, shape, window, steps)
    return CPooling(*shape[2:], *window, *within(shape, steps), *output), output


def _as_indices(function: str, indices: Any, expected: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Indices as int64, each within its plane. A copy: no other thread may change one between the check and its use."""
    array = whole_indices(function, indices, expected, shape)
    copy, plane = np.array(array, np.int64, order="C"), shape[2] * shape[3]
    bad = library.function("first_bad_index", np.dtype("float32"))(copy.size, plane, copy)
    if bad < copy.size:
        raise ValueError(index_beyond(function, array, bad, plane - 1))
    return copy
