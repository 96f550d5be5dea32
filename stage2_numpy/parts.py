"""Parts of a network that have no weights: each is a layer of `shared.layers`, forward beside backward.

A part keeps from its last `forward` the arrays that its `backward` needs. Convolution, batch normalisation and the
dense layer are in files of their own; layered.py puts all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared import layers
from shared.windows import output_size, pair

from . import activations
from .arrays import Array, Scratch
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


@dataclass(frozen=True)
class Pass:
    """One way through the network, and back. training: whether batch normalisation uses the batch's own statistics.

    masks: the dropout masks (batch, numbers of one sample) of the Dropout layers that are still to come; None drops
        nothing
    memory: the network's, which is the same on every way: what a part returned is overwritten on the next one
    shapes: of what came into each part, by its id; the backward pass needs them
    """

    training: bool
    masks: Iterator[Array] | None
    memory: Scratch
    shapes: dict[int, Any] = field(default_factory=dict)

    def array(self, part: Any, name: str, shape: tuple[int, ...], like: Array) -> Array:
        """Memory of this part alone, of the dtype of `like`."""
        return self.memory(f"{name} of part {id(part)}", shape, like.dtype)

    def grad(self, part: Any, like: Array) -> Array:
        """Memory for dL/d(what came into this part)."""
        return self.array(part, "grad", self.shapes[id(part)], like)


class MaxPooling:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, layer: layers.MaxPool) -> None:
        self._layer = layer

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        shape = _pooled(x.shape, self._layer)
        out, indices = way.array(self, "output", shape, x), way.memory(f"indices of part {id(self)}", shape, np.int64)
        output, self._indices = max_pool2d(x, self._layer.size, self._layer.stride, out, indices, way.memory)
        return output

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        out = way.grad(self, grad_output)
        return max_pool2d_backward(grad_output, self._indices, way.shapes[id(self)], out, way.memory)


class AveragePooling:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, layer: layers.AveragePool) -> None:
        self._layer = layer

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        out = way.array(self, "output", _pooled(x.shape, self._layer), x)
        return average_pool2d(x, self._layer.size, self._layer.stride, out, way.memory)

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        size, stride, out = self._layer.size, self._layer.stride, way.grad(self, grad_output)
        return average_pool2d_backward(grad_output, way.shapes[id(self)], size, stride, out, way.memory)


class Activation:
    """An activation function. It takes matrices, so an image is one row of its numbers."""

    def __init__(self, layer: layers.Activate) -> None:
        self._function: Callable[..., Array] = getattr(activations, layer.name)
        self._derivative: Callable[..., Array] = getattr(activations, f"{layer.name}_backward")

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._z = x.reshape(len(x), -1)
        self._output = self._function(self._z, way.array(self, "output", self._z.shape, x), way.memory)
        return self._output.reshape(x.shape)

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        out = way.array(self, "grad", self._z.shape, grad_output)
        grad = self._derivative(grad_output.reshape(self._z.shape), self._z, self._output, out, way.memory)
        return grad.reshape(grad_output.shape)


class Flattening:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x (N, C, H, W) -> (N, C * H * W)."""
        return x.reshape(len(x), -1)

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(way.shapes[id(self)])


class Dropping:
    """Dropout: the numbers times the mask of this step, which holds 0 and 1 / (1 - rate)."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._mask = None if way.masks is None else next(way.masks).reshape(x.shape)
        return x if self._mask is None else np.multiply(x, self._mask, out=way.array(self, "output", x.shape, x))

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        if self._mask is None:
            return grad_output
        return np.multiply(grad_output, self._mask, out=way.grad(self, grad_output))


class ResidualBlock:
    """parts(x) + x. The gradient takes both ways, and its two shares are added."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return np.add(forward(self.parts, x, way)[-1], x, out=way.array(self, "output", x.shape, x))

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        grad = backward(self.parts, grad_output, way)
        assert grad is not None
        return np.add(grad, grad_output, out=way.grad(self, grad_output))


def forward(parts: list[Any], x: Array, way: Pass) -> list[Array]:
    """x through the parts, one after the other: the output of each, in the memory of the way."""
    outputs = []
    for part in parts:
        way.shapes[id(part)] = x.shape
        if isinstance(part, BatchNorm):
            x = part.forward(x, way.training, way.array(part, "output", x.shape, x))
        elif isinstance(part, Conv2d):
            x = part.forward(x, way.array(part, "output", part.output_shape(x.shape), x), way.memory)
        elif isinstance(part, Dense):
            x = part.forward(x, way.array(part, "output", (len(x), part.out_features), x))
        else:
            x = part.forward(x, way)
        outputs.append(x)
    return outputs


def backward(parts: list[Any], grad: Array, way: Pass, needs_grad_input: bool = True) -> Array | None:
    """dL/d(last output) through the parts in reverse, after `forward` on the same way -> dL/dx, or None if not needed.

    Afterwards the parts with weights have their gradients. The first part of a network need not compute dL/dx.
    """
    signal: Any = grad
    for i, part in reversed(list(enumerate(parts))):
        needed = needs_grad_input or i > 0
        if isinstance(part, Conv2d):
            signal = part.backward(signal, needed, way.grad(part, signal) if needed else None, way.memory)
        elif isinstance(part, Dense):
            signal = part.backward(signal, needed, way.grad(part, signal) if needed else None)
        elif isinstance(part, BatchNorm):
            signal = part.backward(signal, way.grad(part, signal))
        else:
            signal = part.backward(signal, way)
    return signal if needs_grad_input else None


def _pooled(shape: tuple[int, ...], layer: layers.MaxPool | layers.AveragePool) -> tuple[int, ...]:
    """The shape of a pool's output."""
    size = pair("size", layer.size, 1)
    stride = size if layer.stride is None else pair("stride", layer.stride, 1)
    return (*shape[:2], *output_size("pool", shape, size, stride))
