"""Convolution in NumPy, slowest rung first.

    sliding_einsum    the windows as a view of 6 dimensions, the sums as one einsum: seven loops, a number at a time
    kernel_loops      one call for each number of the kernels, which scales a shifted batch of images with SIMD
    fourier           the theorem: a product of Fourier transforms; a larger kernel costs no more
    im2col            every window copied into a column, then one product of matrices for the whole batch
    im2col_in_cache   the same for a few images at a time, so that the columns never leave the cache

All compute out[n, o, r, s] = bias[o] + the sum over c, i, j of
weights[o, c, i, j] * padded[n, c, r * stride + i, s * stride + j]. This is cross-correlation, which PyTorch and
all other frameworks call convolution: the kernel is not flipped.

Shapes: x is (N, C, H, W), weights (O, C, kh, kw), bias (O,), the result (N, O, H', W') with
H' = (H + 2 padding - kh) // stride + 1. `stride` and `padding` are a whole number or a pair (rows, columns).
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from shared.plain_arrays import float_dtype
from shared.shapes import KERNEL_AXES, check_channels, check_dtypes, check_grad_output, checked_kernels
from shared.windows import Pair, output_size, pair, within

from .arrays import Array, Scratch, as_images, as_vector, asarray, borrow, ieee, output_like
from .columns import Geometry, columns_by_piece, gather_columns, images_a_piece, pad, pieces, scatter_columns


@ieee
def sliding_einsum(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """The definition as a string; NumPy runs the seven loops in C."""
    x, weights, bias, g, out = _prepare("conv2d", x, weights, bias, stride, padding, out)
    np.einsum("nchwij,ocij->nohw", g.windows(pad(x, g)), weights, out=out)
    out += bias[:, np.newaxis, np.newaxis]
    return out


@ieee
def kernel_loops(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """Four loops over the numbers of the kernels; each adds a shifted batch of images, scaled by its number."""
    x, weights, bias, g, out = _prepare("conv2d", x, weights, bias, stride, padding, out)
    padded = pad(x, g)
    out[...] = bias[:, np.newaxis, np.newaxis]
    for o, c, i, j in product(*map(range, weights.shape)):
        out[:, o] += weights[o, c, i, j] * g.shifted(padded[:, c], i, j)
    return out


@ieee
def fourier(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """The convolution theorem: a convolution is a product where sine waves are the axes.

    The transform of a cross-correlation is X times the conjugate of K; without the conjugate, it would be the
    convolution of mathematics, which flips the kernel. Both are transformed on the grid of the padded image. The
    product is circular there, it wraps around the edges, but no window that fits reaches over an edge. For each
    frequency, the sum over the channels is a small product of matrices.
    """
    x, weights, bias, g, out = _prepare("conv2d", x, weights, bias, stride, padding, out)
    images = np.fft.rfft2(pad(x, g)).transpose(2, 3, 0, 1)  # (frequencies, frequencies, N, C)
    kernels = np.fft.rfft2(weights, g.padded).conj().transpose(2, 3, 1, 0)  # (frequencies, frequencies, C, O)
    everywhere = np.fft.irfft2((images @ kernels).transpose(2, 3, 0, 1), g.padded)
    np.add(g.shifted(everywhere, 0, 0), bias[:, np.newaxis, np.newaxis], out=out)
    return out


@ieee
def im2col(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """weights (O, C kh kw) @ columns (C kh kw, N H' W'): BLAS does all sums, on an image copied kh kw times."""
    x, weights, bias, g, out = _prepare("conv2d", x, weights, bias, stride, padding, out)
    columns = np.empty((x.shape[1], *g.window, len(x), *g.output), x.dtype)
    gather_columns(pad(x, g), columns, g)
    sums = weights.reshape(len(weights), -1) @ columns.reshape(weights[0].size, -1)
    np.add(_by_image(sums, len(x), g.output), bias[:, np.newaxis, np.newaxis], out=out)
    return out


@ieee
def im2col_in_cache(
    x: Array,
    weights: Array,
    bias: Array,
    stride: Any = 1,
    padding: Any = 0,
    out: Array | None = None,
    scratch: Scratch | None = None,
) -> Array:
    """im2col piece by piece: what the product reads was written a moment ago and is still in the cache."""
    x, weights, bias, g, out = _prepare("conv2d", x, weights, bias, stride, padding, out)
    kernels, out_channels = weights.reshape(len(weights), -1), len(weights)
    for piece, columns in columns_by_piece(x, g, scratch):
        sums = borrow(scratch, "convolution sums", (out_channels, columns.shape[1]), x.dtype)
        np.matmul(kernels, columns, out=sums)
        np.add(_by_image(sums, len(x[piece]), g.output), bias[:, np.newaxis, np.newaxis], out=out[piece])
    return out


CONVOLUTION_LADDER: dict[str, Callable[..., Array]] = {
    "sliding_einsum": sliding_einsum,
    "kernel_loops": kernel_loops,
    "fourier": fourier,
    "im2col": im2col,
    "im2col_in_cache": im2col_in_cache,
}


def conv2d(
    x: Array,
    weights: Array,
    bias: Array,
    stride: Any = 1,
    padding: Any = 0,
    out: Array | None = None,
    scratch: Scratch | None = None,
) -> Array:
    """x (N, C, H, W) and weights (O, C, kh, kw) -> (N, O, H', W'), by the fastest rung.

    Same as torch.nn.functional.conv2d. out: where to write the result, not overlapping an input; scratch: memory for
    what is needed on the way; both may be left out.
    Raises ValueError where shapes do not fit together or the window is larger than the padded image, TypeError for a
    mix of dtypes or a stride or padding that is not whole.
    """
    return im2col_in_cache(x, weights, bias, stride, padding, out, scratch)


@ieee
def conv2d_backward(
    grad_output: Array,
    x: Array,
    weights: Array,
    stride: Any = 1,
    padding: Any = 0,
    needs_grad_input: bool = True,
    out: Array | None = None,
    scratch: Scratch | None = None,
) -> tuple[Array | None, Array, Array]:
    """From dL/doutput to (dL/dx or None, dL/dweights, dL/dbias): what autograd gives for torch's conv2d.

    grad_output: (N, O, H', W'), the shape of conv2d's output
    out: where to write dL/dx, (N, C, H, W)
    The forward pass is kernels @ columns, so dL/dkernels = grad_output @ columnsᵀ and dL/dcolumns = kernelsᵀ @
    grad_output, whose numbers are then added up where they came from. dL/dbias is the sum of each channel.
    """
    grad_output, x, weights, g = _prepare_backward(grad_output, x, weights, stride, padding)
    grad_weights = _grad_weights(grad_output, x, weights.shape, g, scratch)
    grad_bias = _grad_bias(grad_output, scratch)
    if not needs_grad_input:
        return None, grad_weights, grad_bias
    out = output_like("conv2d_backward", out, x.shape, x.dtype, grad_output=grad_output, x=x, weights=weights)
    return _grad_input(grad_output, weights, g, out, scratch), grad_weights, grad_bias


def _grad_bias(grad_output: Array, scratch: Scratch | None) -> Array:
    """dL/dbias (O,): a bias was added to every output of its channel."""
    of_images = borrow(scratch, "convolution sums of images", grad_output.shape[:2], grad_output.dtype)
    total: Array = grad_output.sum(axis=(2, 3), out=of_images).sum(axis=0)
    return total


def _grad_weights(grad_output: Array, x: Array, shape: tuple[int, ...], g: Geometry, scratch: Scratch | None) -> Array:
    """dL/dweights: grad_output (O, n H' W') @ columnsᵀ (n H' W', C kh kw), added up over the pieces of the batch."""
    total = np.zeros((shape[0], int(np.prod(shape[1:]))), x.dtype)
    part = borrow(scratch, "convolution part of grad_weights", total.shape, x.dtype)
    for piece, columns in columns_by_piece(x, g, scratch):
        grad = borrow(scratch, "convolution grad", (shape[0], len(x[piece]), *g.output), x.dtype)
        np.copyto(grad, grad_output[piece].transpose(1, 0, 2, 3))
        total += np.matmul(grad.reshape(len(grad), -1), columns.T, out=part)
    return total.reshape(shape)


def _grad_input(grad_output: Array, weights: Array, g: Geometry, out: Array, scratch: Scratch | None) -> Array:
    """dL/dx: dL/dcolumns = kernelsᵀ (C kh kw, O) @ grad_output (O, n H' W'), each number added to the place that it was
    copied from.

    With stride 1, the rows of grad_output are filled up with zeros to the width of the padded image. Then its numbers
    make one long row, and so do the pixels that place (i, j) of the window meets: each channel's addition is one run
    and not H' short ones. For that the padded image is seen as kh long rows, one row of the image apart.
    """
    out_channels, channels, kh, kw = weights.shape
    (rows, columns), (padded_rows, padded_columns) = g.output, g.padded
    in_line = g.stride == (1, 1)
    width = padded_columns if in_line else columns
    seen = replace(g, output=(1, rows * width)) if in_line else g
    kernels = weights.reshape(out_channels, -1).T
    size = images_a_piece(len(kernels) * rows * width * out.itemsize)
    for piece in pieces(len(out), size):
        n = len(out[piece])
        grad = borrow(scratch, "convolution wide grad", (out_channels, n, rows, width), out.dtype)
        grad[..., columns:] = 0
        np.copyto(grad[..., :columns], grad_output[piece].transpose(1, 0, 2, 3))
        parts = borrow(scratch, "convolution columns", (len(kernels), n * rows * width), out.dtype)
        np.matmul(kernels, grad.reshape(out_channels, -1), out=parts)
        line = borrow(scratch, "convolution lines", (channels, n, padded_rows * padded_columns + kw), out.dtype)
        line.fill(0)
        padded = line[..., : padded_rows * padded_columns].reshape(channels, n, padded_rows, padded_columns)
        view = as_strided(line, (channels, n, kh, rows * width + kw - 1), padded.strides) if in_line else padded
        scatter_columns(parts.reshape(channels, kh, kw, n, *seen.output), view, seen)
        np.copyto(out[piece], g.interior(padded).transpose(1, 0, 2, 3))
    return out


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
        weights, bias = asarray(weights, dtype), asarray(bias, dtype)
        weights, bias = checked_kernels(as_images, as_vector, "Conv2d", weights, bias)
        self.stride, self.padding = pair("Conv2d: stride", stride, 1), pair("Conv2d: padding", padding, 0)
        self.weights: Array = weights.copy()
        self.bias: Array = bias.copy()
        self.grad_weights: Array = np.zeros_like(self.weights)
        self.grad_bias: Array = np.zeros_like(self.bias)
        self._x: Array | None = None

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(N, O, H', W') for an x of this shape."""
        window = (self.weights.shape[2], self.weights.shape[3])
        return shape[0], len(self.weights), *output_size("conv2d", shape, window, self.stride, self.padding)

    def forward(self, x: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
        """x (N, C, H, W) -> (N, O, H', W'). Remembers x for `backward`."""
        out = conv2d(x, self.weights, self.bias, self.stride, self.padding, out, scratch)
        self._x = as_images("conv2d: x", x)
        return out

    def backward(
        self,
        grad_output: Array,
        needs_grad_input: bool = True,
        out: Array | None = None,
        scratch: Scratch | None = None,
    ) -> Array | None:
        """From dL/doutput to grad_weights, grad_bias and dL/dx, which is returned, in `out` if given.

        Returns None with needs_grad_input=False: the first layer of a network has nobody to hand dL/dx to.
        """
        if self._x is None:
            raise ValueError("Conv2d.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_input, grad_weights, grad_bias = conv2d_backward(
            grad_output, self._x, self.weights, self.stride, self.padding, needs_grad_input, out, scratch
        )
        np.copyto(self.grad_weights, grad_weights)
        np.copyto(self.grad_bias, grad_bias)
        return grad_input


def _by_image(sums: Array, count: int, output: Pair) -> Array:
    """(O, N H' W') as a view (N, O, H', W')."""
    return sums.reshape(len(sums), count, *output).transpose(1, 0, 2, 3)


def _prepare(
    function: str, x: Any, weights: Any, bias: Any, stride: Any, padding: Any, out: Array | None
) -> tuple[Array, Array, Array, Geometry, Array]:
    x = as_images(f"{function}: x", x)
    weights, bias = checked_kernels(as_images, as_vector, function, weights, bias)
    g = _geometry(function, x, weights, stride, padding)
    check_dtypes(function, x=x, bias=bias)
    out = output_like(function, out, (len(x), len(weights), *g.output), x.dtype, x=x, weights=weights, bias=bias)
    return x, weights, bias, g, out


def _prepare_backward(
    grad_output: Any, x: Any, weights: Any, stride: Any, padding: Any
) -> tuple[Array, Array, Array, Geometry]:
    function = "conv2d_backward"
    grad_output, x = as_images(f"{function}: grad_output", grad_output), as_images(f"{function}: x", x)
    weights = as_images(f"{function}: weights", weights, KERNEL_AXES)
    g = _geometry(function, x, weights, stride, padding)
    check_grad_output(function, grad_output.shape, (len(x), len(weights), *g.output), "conv2d's output")
    check_dtypes(function, grad_output=grad_output, x=x)
    return grad_output, x, weights, g


def _geometry(function: str, x: Array, weights: Array, stride: Any, padding: Any) -> Geometry:
    check_channels(function, x.shape, weights.shape)
    if x.dtype != weights.dtype:
        raise TypeError(f"{function}: x is {x.dtype} but weights are {weights.dtype}; convert one of them")
    image, window = (x.shape[2], x.shape[3]), (weights.shape[2], weights.shape[3])
    steps, border = pair(f"{function}: stride", stride, 1), pair(f"{function}: padding", padding, 0)
    output = output_size(function, image, window, steps, border)
    return Geometry(image, window, within(image, steps, border), border, output)
