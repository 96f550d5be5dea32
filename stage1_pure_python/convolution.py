"""Convolution in pure Python, slowest rung first.

    seven_loops    the definition: every number is looked up by its indices
    zip_rows       a weight meets a whole row of the image: zip pairs it with the row of sums
    im2col         every window becomes one list, and the best matmul of this stage does all sums

All compute out[n][o][r][s] = bias[o] + the sum over c, i, j of
weights[o][c][i][j] * padded[n][c][r * stride + i][s * stride + j]. This is cross-correlation, which PyTorch and
all other frameworks call convolution: the kernel is not flipped.

Shapes: x is (N, C, H, W), weights (O, C, kh, kw), bias (O,), the result (N, O, H', W') with
H' = (H + 2 padding - kh) // stride + 1. `stride` and `padding` are a whole number or a pair (rows, columns).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shared.shapes import KERNEL_AXES, check_channels, check_grad_output, check_kernels
from shared.windows import Pair, output_size, pair

from .arrays import Images, Matrix, Vector, as_images, as_vector, copied, shape_of, zeros
from .matmul import matmul_nt

Channels = list[Matrix]
"""One image: a matrix for each channel."""


@dataclass(frozen=True)
class Geometry:
    """Where the windows of one convolution lie."""

    image: Pair
    window: Pair
    stride: Pair
    padding: Pair
    output: Pair


def seven_loops(x: Images, weights: Images, bias: Vector, stride: Any = 1, padding: Any = 0) -> Images:
    """Image, output channel, row, column; and for each of these, input channel and the two sides of the window."""
    x, weights, bias, g = _prepare("conv2d", x, weights, bias, stride, padding)
    (rows, columns), (output_rows, output_columns) = g.image, g.output
    out = [[[[b] * output_columns for _ in range(output_rows)] for b in bias] for _ in x]
    for n in range(len(x)):
        for o in range(len(weights)):
            for r in range(output_rows):
                for s in range(output_columns):
                    for c in range(len(weights[o])):
                        for i in range(g.window[0]):
                            for j in range(g.window[1]):
                                row = r * g.stride[0] + i - g.padding[0]
                                column = s * g.stride[1] + j - g.padding[1]
                                if 0 <= row < rows and 0 <= column < columns:  # else it lies in the border of zeros
                                    out[n][o][r][s] += weights[o][c][i][j] * x[n][c][row][column]
    return out


def zip_rows(x: Images, weights: Images, bias: Vector, stride: Any = 1, padding: Any = 0) -> Images:
    """One weight at a time: what it is multiplied with, for a row of outputs, is a slice of a row of the image."""
    x, weights, bias, g = _prepare("conv2d", x, weights, bias, stride, padding)
    (output_rows, output_columns), (down, across) = g.output, g.stride
    span = (output_columns - 1) * across + 1
    out = []
    for image in x:
        padded = _pad(image, g)
        outputs = []
        for kernel, b in zip(weights, bias, strict=True):
            output = []
            for r in range(output_rows):
                sums = [b] * output_columns
                for channel, kernel_rows in zip(padded, kernel, strict=True):
                    for row, kernel_row in zip(channel[r * down : r * down + g.window[0]], kernel_rows, strict=True):
                        for j, weight in enumerate(kernel_row):
                            pairs = zip(sums, row[j : j + span : across], strict=True)
                            sums = [total + weight * value for total, value in pairs]
                output.append(sums)
            outputs.append(output)
        out.append(outputs)
    return out


def im2col(x: Images, weights: Images, bias: Vector, stride: Any = 1, padding: Any = 0) -> Images:
    """kernels (O, C kh kw) times windowsᵀ (C kh kw, H' W'), for each image: each output is one dot product in C."""
    x, weights, bias, g = _prepare("conv2d", x, weights, bias, stride, padding)
    kernels = [_flat(kernel) for kernel in weights]
    out = []
    for image in x:
        sums = matmul_nt(kernels, _windows(image, g))
        out.append([_as_rows([y + b for y in line], g.output) for line, b in zip(sums, bias, strict=True)])
    return out


CONVOLUTION_LADDER: dict[str, Callable[..., Images]] = {
    "seven_loops": seven_loops,
    "zip_rows": zip_rows,
    "im2col": im2col,
}


def conv2d(x: Images, weights: Images, bias: Vector, stride: Any = 1, padding: Any = 0) -> Images:
    """x (N, C, H, W) and weights (O, C, kh, kw) -> (N, O, H', W'), by the fastest rung.

    Same as torch.nn.functional.conv2d.
    Raises ValueError where shapes do not fit together or the window is larger than the padded image, TypeError for a
    stride or padding that is not whole.
    """
    return im2col(x, weights, bias, stride, padding)


def conv2d_backward(
    grad_output: Images,
    x: Images,
    weights: Images,
    stride: Any = 1,
    padding: Any = 0,
    needs_grad_input: bool = True,
) -> tuple[Images | None, Images, Vector]:
    """From dL/doutput to (dL/dx or None, dL/dweights, dL/dbias): what autograd gives for torch's conv2d.

    grad_output: (N, O, H', W'), the shape of conv2d's output
    The three gradients are computed apart: the forward pass is kernels @ windowsᵀ, so two of them are products again.
    """
    grad_output, x, weights, g = _prepare_backward(grad_output, x, weights, stride, padding)
    grad_input = _grad_input(grad_output, weights, g) if needs_grad_input else None
    return grad_input, _grad_weights(grad_output, x, g), _grad_bias(grad_output)


def _grad_bias(grad_output: Images) -> Vector:
    """dL/dbias (O,) from grad_output (N, O, H', W'): a bias was added to every output of its channel."""
    return [sum(_flat(of_images)) for of_images in zip(*grad_output, strict=True)]


def _grad_weights(grad_output: Images, x: Images, g: Geometry) -> Images:
    """dL/dweights (O, C, kh, kw) from grad_output (N, O, H', W') and x (N, C, H, W).

    A weight was multiplied by one number of every window, 0 where the window lies on the border, for one output each.
    As one product: grad_output (O, N H' W') @ windows (N H' W', C kh kw).
    """
    of_channels = [_flat(of_images) for of_images in zip(*grad_output, strict=True)]
    windows = [window for image in x for window in _windows(image, g)]
    return [_as_kernel(line, len(x[0]), g.window) for line in matmul_nt(of_channels, _transposed(windows))]


def _grad_input(grad_output: Images, weights: Images, g: Geometry) -> Images:
    """dL/dx (N, C, H, W) from grad_output (N, O, H', W') and weights (O, C, kh, kw).

    A number of x lies in several windows: each hands it a weight times the gradient of the window's output, for every
    kernel. All these parts of one image are a product, kernelsᵀ (C kh kw, O) @ grad_output (O, H' W'). Then each part
    is added to the place that it belongs to, and the border is cut off.
    """
    (down, right), (top, left) = g.stride, g.padding
    weights_in = _transposed([_flat(kernel) for kernel in weights])
    grad_input = []
    for image in grad_output:
        parts = iter(matmul_nt(weights_in, _transposed([_joined(channel) for channel in image])))
        padded = zeros((len(weights[0]), g.image[0] + 2 * top, g.image[1] + 2 * left))
        for channel, i, j in product(padded, range(g.window[0]), range(g.window[1])):
            for r, part_row in enumerate(_as_rows(next(parts), g.output)):
                row = channel[r * down + i]
                for at, part in zip(range(j, len(row), right), part_row, strict=False):
                    row[at] += part
        grad_input.append([[row[left : left + g.image[1]] for row in rows[top : top + g.image[0]]] for rows in padded])
    return grad_input


class Conv2d:
    """A layer of kernels: its forward pass is conv2d, its backward pass conv2d_backward. Same as torch.nn.Conv2d.

    weights: (out_channels, in_channels, kh, kw); bias: (out_channels,). Both are copied.
    stride, padding: a whole number or a pair (rows, columns), kept as pairs
    grad_weights, grad_bias: dL/dweights and dL/dbias as of the last `backward`, zeros before the first.
    Raises ValueError where the shapes do not fit together.
    """

    def __init__(self, weights: Any, bias: Any, stride: Any = 1, padding: Any = 0) -> None:
        weights, bias = _check_kernels("Conv2d", weights, bias)
        self.stride, self.padding = pair("Conv2d: stride", stride, 1), pair("Conv2d: padding", padding, 0)
        self.weights: Images = copied(weights)
        self.bias: Vector = bias
        self.grad_weights: Images = zeros(shape_of(weights))
        self.grad_bias: Vector = zeros(shape_of(bias))
        self._x: Images | None = None

    def forward(self, x: Images) -> Images:
        """x (N, C, H, W) -> (N, O, H', W'). Remembers x for `backward`."""
        output = conv2d(x, self.weights, self.bias, self.stride, self.padding)
        self._x = x
        return output

    def backward(self, grad_output: Images, needs_grad_input: bool = True) -> Images | None:
        """From dL/doutput to grad_weights, grad_bias and dL/dx, which is returned.

        Returns None with needs_grad_input=False: the first layer of a network has nobody to hand dL/dx to.
        """
        if self._x is None:
            raise ValueError("Conv2d.backward: there was no forward pass yet, so there is nothing to differentiate")
        grad_input, self.grad_weights, self.grad_bias = conv2d_backward(
            grad_output, self._x, self.weights, self.stride, self.padding, needs_grad_input
        )
        return grad_input


def _pad(image: Channels, g: Geometry) -> Channels:
    """One image with its border of zeros; the image itself where the border is empty."""
    top, left = g.padding
    if not top and not left:
        return image
    width = g.image[1] + 2 * left
    side = [0.0] * left
    return [
        [[0.0] * width for _ in range(top)]
        + [side + row + side for row in channel]
        + [[0.0] * width for _ in range(top)]
        for channel in image
    ]


def _windows(image: Channels, g: Geometry) -> Matrix:
    """All windows of one image, (H' W', C kh kw): the numbers of each in the order in which a kernel holds its own."""
    padded = _pad(image, g)
    (height, width), (down, right) = g.window, g.stride
    return [
        [value for channel in padded for row in channel[top : top + height] for value in row[left : left + width]]
        for top in range(0, g.output[0] * down, down)
        for left in range(0, g.output[1] * right, right)
    ]


def _flat(kernel: Sequence[Matrix]) -> Vector:
    return [weight for channel in kernel for row in channel for weight in row]


def _as_kernel(line: Vector, channels: int, window: Pair) -> Channels:
    size = window[0] * window[1]
    return [_as_rows(line[c * size : (c + 1) * size], window) for c in range(channels)]


def _as_rows(line: Vector, shape: Pair) -> Matrix:
    return [line[r * shape[1] : (r + 1) * shape[1]] for r in range(shape[0])]


def _joined(rows: Any) -> Vector:
    return [value for row in rows for value in row]


def _transposed(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _prepare(
    function: str, x: Any, weights: Any, bias: Any, stride: Any, padding: Any
) -> tuple[Images, Images, Vector, Geometry]:
    x, shape = as_images(f"{function}: x", x)
    weights, bias = _check_kernels(function, weights, bias)
    return x, weights, bias, _geometry(function, shape, shape_of(weights), stride, padding)


def _prepare_backward(
    grad_output: Any, x: Any, weights: Any, stride: Any, padding: Any
) -> tuple[Images, Images, Images, Geometry]:
    function = "conv2d_backward"
    grad_output, shape = as_images(f"{function}: grad_output", grad_output)
    x, x_shape = as_images(f"{function}: x", x)
    weights, weights_shape = as_images(f"{function}: weights", weights, KERNEL_AXES)
    g = _geometry(function, x_shape, weights_shape, stride, padding)
    check_grad_output(function, shape, (len(x), len(weights), *g.output), "conv2d's output")
    return grad_output, x, weights, g


def _check_kernels(function: str, weights: Any, bias: Any) -> tuple[Images, Vector]:
    weights, shape = as_images(f"{function}: weights", weights, KERNEL_AXES)
    bias = as_vector(f"{function}: bias", bias)
    check_kernels(function, shape, shape_of(bias))
    return weights, bias


def _geometry(function: str, x: tuple[int, ...], weights: tuple[int, ...], stride: Any, padding: Any) -> Geometry:
    check_channels(function, x, weights)
    image, window = (x[2], x[3]), (weights[2], weights[3])
    steps, border = pair(f"{function}: stride", stride, 1), pair(f"{function}: padding", padding, 0)
    return Geometry(image, window, steps, border, output_size(function, image, window, steps, border))
