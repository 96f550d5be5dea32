"""Convolution on the GPU: the checks and the launches. The kernels are in kernels/convolution_*.py.

    naive               a thread an output, all from memory            a number of the image is read kh kw O times
    halo_tile           a block's windows of one image in shared       and here O / 4 times, with the halo around the
                        memory                                         tile
    im2col              windows into columns, and one product          all sums in the best kernel of matmul; a number
                                                                       is written kh kw times
    winograd2           F(2x2, 3x3); else im2col                       16 multiplications in place of 36, which round
                                                                       more
    implicit_tile       the same product; the columns exist only as    the columns are not written to memory
                        tiles in shared memory
    implicit_blocked    4 x 4 numbers a thread                         8 numbers of shared memory serve 16 products
    fitted              implicit_blocked on a GPU, implicit_tile on    the registers pay on a GPU only
                        the CPU

All compute out[n, o, r, s] = bias[o] + the sum over c, i, j of weights[o, c, i, j] *
padded[n, c, r * stride + i, s * stride + j]. This is cross-correlation, which PyTorch and all other frameworks call
convolution: the kernel is not flipped.

Shapes: x is (N, C, H, W), weights (O, C, kh, kw), bias (O,), the result (N, O, H', W') with
H' = (H + 2 padding - kh) // stride + 1. `stride` and `padding` are a whole number or a pair (rows, columns). float32 or
float64. Numbers that are not on the device are copied there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.plain_arrays import float_dtype
from shared.shapes import KERNEL_AXES, check_channels, check_dtypes, check_grad_output, checked_kernels
from shared.windows import output_size, pair, within

from . import convolution_passes as passes
from .arrays import Array, as_images, as_vector, asarray, check_layer, copy, empty, output_like, zeros
from .geometry import Geometry
from .kernels.activations import IDENTITY
from .precision import checked
from .tensor_cores import check_device


def naive(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """The definition, one thread an output."""
    return passes.naive(*_prepare(x, weights, bias, stride, padding, out))


def halo_tile(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """A block stages what 16 x 16 places of one image need, channel by channel; naive for windows that do not fit."""
    return passes.halo_tile(*_prepare(x, weights, bias, stride, padding, out))


def im2col(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """Every window into a column of a matrix, then one product for a part of the batch."""
    return passes.im2col(*_prepare(x, weights, bias, stride, padding, out))


def winograd2(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """F(2x2, 3x3): 16 multiplications for 4 outputs in place of 36; im2col for other kernels and strides."""
    return passes.winograd2(*_prepare(x, weights, bias, stride, padding, out))


def implicit_tile(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """A product of matrices whose columns, the windows, exist as tiles in shared memory only."""
    return passes.implicit_tile(*_prepare(x, weights, bias, stride, padding, out))


def implicit_blocked(
    x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None
) -> Array:
    """implicit_tile with 4 x 4 numbers to a thread, in registers."""
    return passes.implicit_blocked(*_prepare(x, weights, bias, stride, padding, out))


def fitted(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """implicit_blocked on a GPU; on a CPU, which keeps nothing in registers either way, implicit_tile."""
    return passes.forward_into(*_prepare(x, weights, bias, stride, padding, out))


CONVOLUTION_LADDER: dict[str, Callable[..., Array]] = {
    "naive": naive,
    "halo_tile": halo_tile,
    "im2col": im2col,
    "winograd2": winograd2,
    "implicit_tile": implicit_tile,
    "implicit_blocked": implicit_blocked,
    "fitted": fitted,
}


def tf32(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """conv2d on tensor cores, the factors rounded to 11 bits. float32 arrays.

    Raises TypeError for float64, BackendError on a GPU older than compute capability 8.0, and what conv2d raises.
    """
    return _on_tensor_cores("tf32", *_prepare(x, weights, bias, stride, padding, out))


def bf16(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """conv2d on tensor cores, the factors rounded to 8 bits; otherwise as tf32."""
    return _on_tensor_cores("bf16", *_prepare(x, weights, bias, stride, padding, out))


TENSOR_CORES: dict[str, Callable[..., Array]] = {"tf32": tf32, "bf16": bf16}
"""Not in CONVOLUTION_LADDER: rounding the factors is more than the rounding that the rungs are held to."""


def _on_tensor_cores(precision: str, x: Array, weights: Array, bias: Array, g: Geometry, out: Array) -> Array:
    if x.dtype != "float32":
        raise TypeError(f"{precision}: x is {x.dtype}; tensor cores round float32, so convert it first")
    check_device(precision)
    return passes.on_tensor_cores(x, weights, bias, g, out, IDENTITY, precision)


def conv2d(x: Array, weights: Array, bias: Array, stride: Any = 1, padding: Any = 0, out: Array | None = None) -> Array:
    """x (N, C, H, W) and weights (O, C, kh, kw) -> (N, O, H', W'), by the last rung. Same as
    torch.nn.functional.conv2d.

    out: where to write the result, a device array that overlaps no input; a new one if None
    Raises ValueError where shapes do not fit together or the window is larger than the padded image, TypeError for a
    mix of dtypes or a stride or padding that is not whole.
    """
    return fitted(x, weights, bias, stride, padding, out)


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
    dL/dx gathers for each number of x; dL/dweights and dL/dbias are sums over parts of the batch, which are then added
    in a fixed order. So equal arguments give equal bits.
    """
    function = "conv2d_backward"
    grad_output, x, weights, g = _prepare_backward(grad_output, x, weights, stride, padding)
    read = {"grad_output": grad_output, "x": x, "weights": weights}
    grad_input = output_like(function, out, x.shape, x.dtype, **read) if needs_grad_input else None
    grad_weights, grad_bias = empty(weights.shape, x.dtype), empty((g.filters,), x.dtype)
    passes.backward_into(grad_output, x, weights, g, grad_input, grad_weights, grad_bias)
    return grad_input, grad_weights, grad_bias


class Conv2d:
    """A layer of kernels: its forward pass is conv2d, its backward pass conv2d_backward. Same as torch.nn.Conv2d.

    weights: (out_channels, in_channels, kh, kw); bias: (out_channels,). Both are copied to the device; a float64 array
        stays float64, everything else becomes float32.
    stride, padding: a whole number or a pair (rows, columns), kept as pairs
    grad_weights, grad_bias: as of the last `backward`, zeros before the first, device arrays. They are written in
        place: copy them to keep them.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any, stride: Any = 1, padding: Any = 0) -> None:
        dtype = float_dtype(weights)
        weights, bias = checked_kernels(as_images, as_vector, "Conv2d", asarray(weights, dtype), asarray(bias, dtype))
        self.stride, self.padding = pair("Conv2d: stride", stride, 1), pair("Conv2d: padding", padding, 0)
        self._shape: tuple[int, ...] = weights.shape
        self.weights: Array = copy(weights)
        self.bias: Array = copy(bias)
        self.grad_weights: Array = zeros(weights.shape, dtype)
        self.grad_bias: Array = zeros(bias.shape, dtype)
        self._x: Array | None = None

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(N, O, H', W') for an x of this shape."""
        window = (self._shape[2], self._shape[3])
        return shape[0], self._shape[0], *output_size("conv2d", shape, window, self.stride, self.padding)

    def forward(self, x: Array, out: Array | None = None, precision: str | None = None) -> Array:
        """x (N, C, H, W) -> (N, O, H', W'). Remembers x for `backward`.

        precision: "tf32" or "bf16", on tensor cores; None: the factors are not rounded
        """
        x = as_images("conv2d: x", x)
        self.check_memory("conv2d", x.dtype)
        chosen = checked("Conv2d.forward: precision", precision, x.dtype)
        convolve = conv2d if chosen is None else TENSOR_CORES[chosen]
        out = convolve(x, self.weights, self.bias, self.stride, self.padding, out)
        self._x = x
        return out

    def backward(
        self,
        grad_output: Array,
        needs_grad_input: bool = True,
        out: Array | None = None,
        precision: str | None = None,
    ) -> Array | None:
        """From dL/doutput to grad_weights, grad_bias and dL/dx, which is returned, in `out` if given.

        precision: as of `forward`, for numbers that 32 bits count
        Returns None with needs_grad_input=False: the first layer of a network has nobody to hand dL/dx to.
        """
        if self._x is None:
            raise ValueError("Conv2d.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_output, x, weights, g = _prepare_backward(grad_output, self._x, self.weights, self.stride, self.padding)
        self.check_memory("Conv2d.backward", x.dtype)
        precision = checked("Conv2d.backward: precision", precision, x.dtype)
        apart = {"grad_output": grad_output, "x": x, "weights": weights}
        for name in ("grad_weights", "grad_bias"):
            array = getattr(self, name)
            output_like(f"Conv2d.backward: {name}", array, array.shape, x.dtype, **apart)
        apart |= {"grad_weights": self.grad_weights, "grad_bias": self.grad_bias}
        grad_input = output_like("conv2d_backward", out, x.shape, x.dtype, **apart) if needs_grad_input else None
        written = grad_input, self.grad_weights, self.grad_bias
        passes.backward_into(grad_output, x, weights, g, *written, precision=precision)
        return grad_input

    def check_memory(self, function: str, dtype: Any) -> None:
        """Raise ValueError or TypeError if an array of the layer was replaced by what no kernel can use."""
        shapes = {"weights": self._shape, "bias": self._shape[:1]}
        check_layer(function, self, shapes | {f"grad_{name}": shape for name, shape in shapes.items()}, dtype)


def _prepare(
    x: Any, weights: Any, bias: Any, stride: Any, padding: Any, out: Array | None
) -> tuple[Array, Array, Array, Geometry, Array]:
    x = as_images("conv2d: x", x)
    weights, bias = checked_kernels(as_images, as_vector, "conv2d", weights, bias)
    g = geometry("conv2d", x, weights, stride, padding)
    check_dtypes("conv2d", x=x, bias=bias)
    shape = (len(x), g.filters, *g.output)
    return x, weights, bias, g, output_like("conv2d", out, shape, x.dtype, x=x, weights=weights, bias=bias)


def _prepare_backward(
    grad_output: Any, x: Any, weights: Any, stride: Any, padding: Any
) -> tuple[Array, Array, Array, Geometry]:
    function = "conv2d_backward"
    grad_output, x = as_images(f"{function}: grad_output", grad_output), as_images(f"{function}: x", x)
    weights = as_images(f"{function}: weights", weights, KERNEL_AXES)
    g = geometry(function, x, weights, stride, padding)
    check_grad_output(function, grad_output.shape, (len(x), g.filters, *g.output), "conv2d's output")
    check_dtypes(function, grad_output=grad_output, x=x)
    return grad_output, x, weights, g


def geometry(function: str, x: Array, weights: Array, stride: Any, padding: Any) -> Geometry:
    """The sizes of the convolution of x with these weights. Raises as `conv2d` does."""
    check_channels(function, x.shape, weights.shape)
    if x.dtype != weights.dtype:
        raise TypeError(f"{function}: x is {x.dtype} but weights are {weights.dtype}; convert one of them")
    image, window = (x.shape[2], x.shape[3]), (weights.shape[2], weights.shape[3])
    steps, border = pair(f"{function}: stride", stride, 1), pair(f"{function}: padding", padding, 0)
    output = output_size(function, image, window, steps, border)
    return Geometry(x.shape[1], image, len(weights), window, within(image, steps, border), border, output)
