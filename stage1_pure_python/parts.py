"""Parts of a network that have no weights: each is a layer of `shared.layers`, forward beside backward.

A part keeps from its last `forward` the arrays that its `backward` needs. Convolution, batch normalisation and the
dense layer are in files of their own; layered.py puts all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shared import layers

from . import activations
from .arrays import Images, Matrix, shape_of
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward

Array = Any
"""A matrix (batch, features), or images (batch, channels, rows, columns)."""


@dataclass(frozen=True)
class Pass:
    """One way through the network. training: whether batch normalisation uses the batch's own statistics.

    masks: the dropout masks (batch, numbers of one sample) of the Dropout layers that are still to come; None drops
        nothing
    """

    training: bool
    masks: Iterator[Matrix] | None


class MaxPooling:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, layer: layers.MaxPool) -> None:
        self._layer = layer

    def forward(self, x: Images, way: Pass) -> Images:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape: Any = shape_of(x)
        output, self._indices = max_pool2d(x, self._layer.size, self._layer.stride)
        return output

    def backward(self, grad_output: Images) -> Images:
        """dL/dx from dL/doutput."""
        return max_pool2d_backward(grad_output, self._indices, self._shape)


class AveragePooling:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, layer: layers.AveragePool) -> None:
        self._layer = layer

    def forward(self, x: Images, way: Pass) -> Images:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape: Any = shape_of(x)
        return average_pool2d(x, self._layer.size, self._layer.stride)

    def backward(self, grad_output: Images) -> Images:
        """dL/dx from dL/doutput."""
        return average_pool2d_backward(grad_output, self._shape, self._layer.size, self._layer.stride)


class Activation:
    """An activation function. It takes matrices, so an image is one row of its numbers."""

    def __init__(self, layer: layers.Activate) -> None:
        self._function: Callable[..., Matrix] = getattr(activations, layer.name)
        self._derivative: Callable[..., Matrix] = getattr(activations, f"{layer.name}_backward")

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._shape = shape_of(x)
        self._z = as_rows(x)
        self._output = self._function(self._z)
        return from_rows(self._output, self._shape)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return from_rows(self._derivative(as_rows(grad_output), self._z, self._output), self._shape)


class Flattening:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array, way: Pass) -> Matrix:
        """x (N, C, H, W) -> (N, C * H * W)."""
        self._shape = shape_of(x)
        return as_rows(x)

    def backward(self, grad_output: Matrix) -> Array:
        """dL/dx from dL/doutput."""
        return from_rows(grad_output, self._shape)


class Dropping:
    """Dropout: the numbers times the mask of this step, which holds 0 and 1 / (1 - rate)."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._mask = None if way.masks is None else next(way.masks)
        return self._times_mask(x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return self._times_mask(grad_output)

    def _times_mask(self, x: Array) -> Array:
        if self._mask is None:
            return x
        pairs = zip(as_rows(x), self._mask, strict=True)
        return from_rows([[v * m for v, m in zip(row, mask, strict=True)] for row, mask in pairs], shape_of(x))


class ResidualBlock:
    """parts(x) + x. The gradient takes both ways, and its two shares are added."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return _add(forward(self.parts, x, way)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return _add(backward(self.parts, grad_output), grad_output)


def forward(parts: list[Any], x: Array, way: Pass) -> list[Array]:
    """x through the parts, one after the other: the output of each."""
    outputs = []
    for part in parts:
        if isinstance(part, BatchNorm):
            x = part.forward(x, way.training)
        elif isinstance(part, Conv2d | Dense):
            x = part.forward(x)
        else:
            x = part.forward(x, way)
        outputs.append(x)
    return outputs


def backward(parts: list[Any], grad: Array, needs_grad_input: bool = True) -> Array | None:
    """dL/d(last output) through the parts in reverse -> dL/dx, or None if it is not needed.

    Afterwards the parts with weights have their gradients. The first part of a network need not compute dL/dx.
    """
    for part in reversed(parts[1:]):
        grad = part.backward(grad)
    first = parts[0]
    if isinstance(first, Conv2d | Dense):
        return first.backward(grad, needs_grad_input)
    grad = first.backward(grad)
    return grad if needs_grad_input else None


def as_rows(x: Array) -> Matrix:
    """Each image as one row of its numbers, channel by channel and row by row; a matrix as it is."""
    if not isinstance(x[0][0], list):
        return x
    return [[value for channel in image for row in channel for value in row] for image in x]


def from_rows(rows: Matrix, shape: tuple[int, ...]) -> Array:
    """The rows as images of this shape (batch, channels, rows, columns), or as they are for a matrix."""
    if len(shape) == 2:
        return rows
    _, channels, height, width = shape
    starts = [[(c * height + i) * width for i in range(height)] for c in range(channels)]
    return [[[row[start : start + width] for start in channel] for channel in starts] for row in rows]


def _add(a: Array, b: Array) -> Array:
    rows = zip(as_rows(a), as_rows(b), strict=True)
    return from_rows([[v + w for v, w in zip(x, y, strict=True)] for x, y in rows], shape_of(a))
