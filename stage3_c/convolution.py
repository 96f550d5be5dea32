"""Convolution in C, slowest rung first.

    direct      the definition: seven loops, one sum at a time
    im2col      the windows of an image as a matrix of columns,          all sums in the packed matmul
                multiplied by the weights
    implicit    the panels of that matrix packed straight from the       the matrix, many times the image, never exists
                image
    winograd2   F(2x2, 3x3): 16 multiplications in place of 36           3x3 kernels with stride 1; else implicit
    winograd4   F(4x4, 3x3): 36 multiplications in place of 144          the same; its sums round more
    threads     all cores, and for each size what is fastest: Winograd   one image, narrow images and few channels
                for many channels, or direct; a register holds           fill the registers, too
                neighbouring channels of an image, or several images

Each rung is a C function in csrc/convolution*.c, whose comments give the reasons. This file checks the shapes.

All compute out[n, o, r, s] = bias[o] + sum over c, i, j of weights[o, c, i, j] * padded[n, c, r * stride + i,
s * stride + j]: cross-correlation, which is what PyTorch calls convolution. The kernel is not flipped.

Shapes: x is (N, C, H, W), weights (O, C, kh, kw), bias (O,), the result (N, O, H', W') with
H' = (H + 2 padding - kh) // stride + 1. `stride` and `padding` are a whole number or a pair (rows, columns).
"""

import ctypes
from collections.abc import Callable
from typing import Any

from shared.plain_arrays import float_dtype
from shared.shapes import KERNEL_AXES, check_channels, check_dtypes, check_grad_output, checked_kernels
from shared.windows import output_size, pair, within

from . import library
from .arrays import (
    Array,
    aligned_copy,
    aligned_empty,
    aligned_zeros,
    as_images,
    as_vector,
    asarray,
    check_writable,
    output_like,
)


class CConvolution(ctypes.Structure):
    """`convolution` in groundup.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "channels",
            "height",
            "width",
            "filters",
            "kernel_height",
            "kernel_width",
            "stride_rows",
            "stride_columns",
            "padding_rows",
            "padding_columns",
            "out_height",
            "out_width",
        )
    )


def direct(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """The definition: for each output a sum over channels and the kernel, on one thread."""
    x, weights, bias, sizes, out = _prepare(x, weights, bias, stride, padding, out)
    library.function("conv2d_direct", x.dtype)(ctypes.byref(sizes), len(x), x, weights, bias, out)
    return out


def im2col(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """weights (O, C kh kw) times the columns (C kh kw, H' W') of one image after the other, on one thread."""
    x, weights, bias, sizes, out = _prepare(x, weights, bias, stride, padding, out)
    try:
        columns = aligned_empty((weights[0].size, sizes.out_height * sizes.out_width), x.dtype)
    except MemoryError as error:
        raise MemoryError(f"conv2d: columns: {error}") from error
    library.function("conv2d_im2col", x.dtype)(
        library.pool(), ctypes.byref(sizes), len(x), x, weights, bias, columns, out
    )
    return out


def implicit(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """The same product, each panel of the columns packed from the image, on one thread."""
    return _rung("conv2d_implicit", x, weights, bias, stride, padding, out)


def winograd2(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """Winograd's F(2x2, 3x3) on one thread; `implicit` for other kernels and strides."""
    return _rung("conv2d_winograd2", x, weights, bias, stride, padding, out)


def winograd4(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """Winograd's F(4x4, 3x3) on one thread; `implicit` for other kernels and strides."""
    return _rung("conv2d_winograd4", x, weights, bias, stride, padding, out)


def threads(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """The fastest way for these sizes on every thread of the pool; see GROUNDUP_THREADS."""
    return _rung("conv2d_threads", x, weights, bias, stride, padding, out)


CONVOLUTION_LADDER: dict[str, Callable[..., Array]] = {
    "direct": direct,
    "im2col": im2col,
    "implicit": implicit,
    "winograd2": winograd2,
    "winograd4": winograd4,
    "threads": threads,
}


def conv2d(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """x (N, C, H, W) and weights (O, C, kh, kw) -> (N, O, H', W'), by the fastest rung.

    Same as torch.nn.functional.conv2d. out: where to write the result, not overlapping an input; a new array if None
    Raises ValueError where shapes do not fit together or the window is larger than the padded image, TypeError for a
    mix of dtypes or a stride or padding that is not whole.
    """
    return threads(x, weights, bias, stride, padding, out)


def conv2d_backward(
    grad_output: Array,
    x: Array,
    weights: Array,
    stride: Any = 1,
    padding: Any = 0,
    needs_grad_input: bool = True,
    out: Array | None = None,
) -> tuple[Array | None, Array, Array]:
    """From dL/doutput to (dL/dx or None, dL/dweights, dL/dbias): what autograd gives for torch's conv2d.

    grad_output: (N, O, H', W'), the shape of conv2d's output
    out: where to write dL/dx, (N, C, H, W)
    dL/dweights is x correlated with grad_output, dL/dx is grad_output correlated with the kernels turned by half a
    turn, dL/dbias is the sum of each channel. One call into C computes all three, some images at a time.
    """
    function = "conv2d_backward"
    grad_output, x, weights, sizes = _prepare_backward(grad_output, x, weights, stride, padding)
    inputs = {"grad_output": grad_output, "x": x, "weights": weights}
    grad_input = output_like(function, out, x.shape, x.dtype, **inputs) if needs_grad_input else None
    grad_weights = output_like(function, None, weights.shape, x.dtype)
    grad_bias = output_like(function, None, (len(weights),), x.dtype)
    _backward(sizes, grad_output, x, weights, grad_weights, grad_bias, grad_input)
    return grad_input, grad_weights, grad_bias


class Conv2d:
    """A layer of kernels: its forward pass is conv2d, its backward pass conv2d_backward. Same as torch.nn.Conv2d.

    weights: (out_channels, in_channels, kh, kw); bias: (out_channels,). Both are copied; a float64 array stays
        float64, everything else becomes float32.
    stride, padding: a whole number or a pair (rows, columns), kept as pairs
    grad_weights, grad_bias: as of the last `backward`, zeros before the first. They are written in place: copy them
        to keep them.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any, stride: Any = 1, padding: Any = 0) -> None:
        dtype = float_dtype(weights)
        weights, bias = checked_kernels(as_images, as_vector, "Conv2d", asarray(weights, dtype), asarray(bias, dtype))
        self.stride, self.padding = pair("Conv2d: stride", stride, 1), pair("Conv2d: padding", padding, 0)
        self.weights: Array = aligned_copy(weights, dtype)
        self.bias: Array = aligned_copy(bias, dtype)
        self.grad_weights: Array = aligned_zeros(weights.shape, dtype)
        self.grad_bias: Array = aligned_zeros(bias.shape, dtype)
        self._x: Array | None = None

    def forward(self, x: Array, out: Array | None = None) -> Array:
        """x (N, C, H, W) -> (N, O, H', W'). Remembers x for `backward`."""
        x = as_images("conv2d: x", x)
        out = conv2d(x, self.weights, self.bias, self.stride, self.padding, out)
        self._x = x.view()  # its own header on the same memory: whatever becomes of x's shape, this one stays
        return out

    def backward(self, grad_output: Array, needs_grad_input: bool = True, out: Array | None = None) -> Array | None:
        """From dL/doutput to grad_weights, grad_bias and dL/dx, which is returned, in `out` if given.

        Returns None with needs_grad_input=False: the first layer of a network has nobody to hand dL/dx to.
        """
        if self._x is None:
            raise ValueError("Conv2d.backward: there was no forward pass yet, so there is nothing to differentiate")
        function = "conv2d_backward"
        grad_output, x, weights, sizes = _prepare_backward(
            grad_output, self._x, self.weights, self.stride, self.padding
        )
        read = {"grad_output": grad_output, "x": x, "weights": weights}
        grads = {"grad_weights": (self.grad_weights, weights.shape), "grad_bias": (self.grad_bias, self.bias.shape)}
        for name, (array, shape) in grads.items():
            output_like(f"Conv2d.backward: {name}", array, shape, x.dtype, **read)
            check_writable(f"Conv2d.backward: {name}", array)
        apart = read | {name: array for name, (array, _) in grads.items()}
        grad_input = output_like(function, out, x.shape, x.dtype, **apart) if needs_grad_input else None
        _backward(sizes, grad_output, x, weights, self.grad_weights, self.grad_bias, grad_input)
        return grad_input


def _backward(
    sizes: CConvolution,
    grad_output: Array,
    x: Array,
    weights: Array,
    grad_weights: Array,
    grad_bias: Array,
    grad_input: Array | None,
) -> None:
    library.function("conv2d_backward", x.dtype)(
        library.pool(), ctypes.byref(sizes), len(x), grad_output, x, weights, grad_weights, grad_bias, grad_input
    )


def _rung(name: str, x: Array, weights: Array, bias: Array, stride: Any, padding: Any, out: Array | None) -> Array:
    x, weights, bias, sizes, out = _prepare(x, weights, bias, stride, padding, out)
    library.function(name, x.dtype)(library.pool(), ctypes.byref(sizes), len(x), x, weights, bias, out)
    return out


def _prepare(
    x: Any, weights: Any, bias: Any, stride: Any, padding: Any, out: Array | None
) -> tuple[Array, Array, Array, CConvolution, Array]:
    x = as_images("conv2d: x", x)
    weights, bias = checked_kernels(as_images, as_vector, "conv2d", weights, bias)
    sizes = _sizes("conv2d", x, weights, stride, padding)
    check_dtypes("conv2d", x=x, bias=bias)
    shape = (len(x), len(weights), sizes.out_height, sizes.out_width)
    return x, weights, bias, sizes, output_like("conv2d", out, shape, x.dtype, x=x, weights=weights, bias=bias)


def _prepare_backward(
    grad_output: Any, x: Any, weights: Any, stride: Any, padding: Any
) -> tuple[Array, Array, Array, CConvolution]:
    function = "conv2d_backward"
    grad_output, x = as_images(f"{function}: grad_output", grad_output), as_images(f"{function}: x", x)
    weights = as_images(f"{function}: weights", weights, KERNEL_AXES)
    sizes = _sizes(function, x, weights, stride, padding)
    expected = (len(x), len(weights), sizes.out_height, sizes.out_width)
    check_grad_output(function, grad_output.shape, expected, "conv2d's output")
    check_dtypes(function, grad_output=grad_output, x=x)
    return grad_output, x, weights, sizes


def _sizes(function: str, x: Array, weights: Array, stride: Any, padding: Any) -> CConvolution:
    check_channels(function, x.shape, weights.shape)
    if x.dtype != weights.dtype:
        raise TypeError(f"{function}: x is {x.dtype} but weights are {weights.dtype}; convert one of them")
    steps, border = pair(f"{function}: stride", stride, 1), pair(f"{function}: padding", padding, 0)
    output = output_size(function, x.shape, weights.shape[2:], steps, border)
    steps = within(x.shape, steps, border)
    return CConvolution(*x.shape[1:], len(weights), *weights.shape[2:], *steps, *border, *output)
