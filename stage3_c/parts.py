"""Parts of a network that have no weights: each is a layer of `shared.layers`, forward beside backward, calls into C.

A part keeps from its last `forward` the arrays that its `backward` needs. Convolution, batch normalisation and the
dense layer are in files of their own; network.py puts all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shared import layers

from . import activations, library
from .arrays import Array, aligned_empty
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


@dataclass(frozen=True)
class Pass:
    """One way through the network. training: whether batch normalisation uses the batch's own statistics.

    masks: the dropout masks (batch, numbers of one sample) of the Dropout layers that are still to come; None drops
        nothing
    """

    training: bool
    masks: Iterator[Array] | None


class MaxPooling:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, layer: layers.MaxPool) -> None:
        self._layer = layer

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = x.shape
        output, self._indices = max_pool2d(x, self._layer.size, self._layer.stride)
        return output

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return max_pool2d_backward(grad_output, self._indices, self._shape)


class AveragePooling:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, layer: layers.AveragePool) -> None:
        self._layer = layer

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = x.shape
        return average_pool2d(x, self._layer.size, self._layer.stride)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return average_pool2d_backward(grad_output, self._shape, self._layer.size, self._layer.stride)


class Activation:
    """An activation function. It takes matrices, so an image is one row of its numbers."""

    def __init__(self, layer: layers.Activate) -> None:
        self._function: Callable[..., Array] = getattr(activations, layer.name)
        self._derivative: Callable[..., Array] = getattr(activations, f"{layer.name}_backward")

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._z = x.reshape(len(x), -1)
        self._output = self._function(self._z)
        return self._output.reshape(x.shape)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        grad = self._derivative(grad_output.reshape(self._z.shape), self._z, self._output)
        return grad.reshape(grad_output.shape)


class Flattening:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C * H * W)."""
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(self._shape)


class Dropping:
    """Dropout: the numbers times the mask of this step, which holds 0 and 1 / (1 - rate)."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._mask = None if way.masks is None else next(way.masks).reshape(x.shape)
        return x if self._mask is None else _of_two("multiply", x, self._mask)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output if self._mask is None else _of_two("multiply", grad_output, self._mask)


class ResidualBlock:
    """parts(x) + x. The gradient takes both ways, and its two shares are added."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return _of_two("add", forward(self.parts, x, way)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        grad = backward(self.parts, grad_output)
        assert grad is not None
        return _of_two("add", grad, grad_output)


def _of_two(name: str, a: Array, b: Array) -> Array:
    """A new array with a and b multiplied or added, element by element."""
    out = aligned_empty(a.shape, a.dtype)
    library.function(name, a.dtype)(a.size, a, b, out)
    return out


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
