"""Parts of a network that have no weights: each is a layer of `shared.layers`, forward beside backward.

A part keeps from its last `forward` the arrays that its `backward` needs. Convolution, batch normalisation and the
dense layer are in files of their own; layered.py puts all of them together. Everything is on the device, and every
result is a new array: this is the way that is easy to follow. layered_plan.py has the one with memory of its own and
fewer kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shared import layers

from . import activations, launch
from .arrays import Array, empty
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .kernels import dense as dense_kernels
from .kernels import residual as residual_kernels
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


@dataclass(frozen=True)
class Pass:
    """One way through the network. training: whether batch normalisation uses the batch's own statistics.

    masks: the dropout masks (batch, numbers of one sample) of the Dropout layers that are still to come; None drops
        nothing
    precision: what convolutions and dense layers round their factors to; None: nothing is rounded
    """

    training: bool
    masks: Iterator[Array] | None
    precision: str | None = None


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
        size, stride = self._layer.size, self._layer.stride
        return max_pool2d_backward(grad_output, self._indices, self._shape, size=size, stride=stride)


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
        self._z = as_rows(x)
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
        return as_rows(x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(self._shape)


class Dropping:
    """Dropout: the numbers times the mask of this step, which holds 0 and 1 / (1 - rate)."""

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._mask = None if way.masks is None else next(way.masks)
        return x if self._mask is None else _times(x, self._mask)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output if self._mask is None else _times(grad_output, self._mask)


class ResidualBlock:
    """parts(x) + x. The gradient takes both ways, and its two shares are added."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._precision = way.precision
        return _plus(forward(self.parts, x, way)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        grad = backward(self.parts, grad_output, precision=self._precision)
        assert grad is not None
        return _plus(grad, grad_output)


def forward(parts: list[Any], x: Array, way: Pass) -> list[Array]:
    """x through the parts, one after the other: the output of each."""
    outputs = []
    for part in parts:
        if isinstance(part, BatchNorm):
            x = part.forward(x, way.training)
        elif isinstance(part, Dense):
            # One kernel for product and bias, which adds as that of a planned step does.
            x = part.forward_fused(x, precision=way.precision)
        elif isinstance(part, Conv2d):
            x = part.forward(x, precision=way.precision)
        else:
            x = part.forward(x, way)
        outputs.append(x)
    return outputs


def backward(
    parts: list[Any], grad: Array, needs_grad_input: bool = True, precision: str | None = None
) -> Array | None:
    """dL/d(last output) through the parts in reverse, after `forward` -> dL/dx, or None if not needed.

    Afterwards the parts with weights have their gradients. The first part of a network need not compute dL/dx.
    precision: as of a Pass
    """
    signal: Any = grad
    for i, part in reversed(list(enumerate(parts))):
        if isinstance(part, Conv2d | Dense):
            signal = part.backward(signal, needs_grad_input or i > 0, precision=precision)
        else:
            signal = part.backward(signal)
    return signal if needs_grad_input else None


def as_rows(array: Array) -> Array:
    """(N, …) as (N, numbers of one sample), without a copy."""
    return array.reshape(array.shape[0], array.size // array.shape[0])


def _times(a: Array, mask: Array) -> Array:
    """The product, element by element, as a new array shaped like a."""
    out = empty(a.shape, a.dtype)
    dense_kernels.multiply[launch.elementwise(a.size)](_flat(a), _flat(mask), _flat(out))
    return out


def _plus(a: Array, b: Array) -> Array:
    """The sum, element by element, as a new array."""
    out = empty(a.shape, a.dtype)
    residual_kernels.join[launch.elementwise(a.size)](_flat(a), _flat(b), 0, _flat(out))
    return out


def _flat(array: Array) -> Array:
    return array.reshape(array.size)
