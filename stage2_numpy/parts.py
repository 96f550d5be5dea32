"""The layers that have no weights: activation, pooling, flattening, dropout. Forward stands beside backward.

A layer keeps from its last `forward` the arrays that its `backward` needs. The layers with weights (dense, convolution,
batch normalisation) are in files of their own; network.py puts all of them in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared import layers
from shared.windows import pool_windows

from . import activations
from .arrays import Array, Scratch
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


@dataclass(slots=True)
class Pass:
    """One pass through the network, and back. training: whether batch normalisation uses the batch's own statistics.

    masks: (batch, numbers of one sample) each, of the Dropout layers that are still to come; None drops nothing
    scratch: the network's named arrays, used again by every pass, which overwrites what a layer returned before
    shapes: the shape of each layer's input in this pass, by id(layer); the backward pass needs it
    """

    training: bool
    masks: Iterator[Array] | None
    scratch: Scratch
    shapes: dict[int, Any] = field(default_factory=dict)

    def array(self, layer: Any, name: str, shape: tuple[int, ...], like: Array) -> Array:
        """An array of this layer alone, with the dtype of `like`; name tells its arrays apart."""
        return self.scratch((name, id(layer)), shape, like.dtype)

    def grad_array(self, layer: Any, like: Array) -> Array:
        """An array for dL/d(input of this layer)."""
        return self.array(layer, "grad", self.shapes[id(layer)], like)


class Activate:
    """An activation function. It takes matrices, so an image is one row of its numbers."""

    def __init__(self, description: layers.Activate) -> None:
        self._function: Callable[..., Array] = getattr(activations, description.name)
        self._derivative: Callable[..., Array] = getattr(activations, f"{description.name}_backward")

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._z = _as_rows(x)
        self._output = self._function(self._z, this_pass.array(self, "output", self._z.shape, x), this_pass.scratch)
        return self._output if x.ndim == 2 else self._output.reshape(x.shape)

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        out = this_pass.array(self, "grad", self._z.shape, grad_output)
        grad = self._derivative(_as_rows(grad_output), self._z, self._output, out, this_pass.scratch)
        return grad if grad_output.ndim == 2 else grad.reshape(grad_output.shape)


class Dropout:
    """Dropout: x times a mask of 0 and 1 / (1 - rate). The training loop makes one a step for each such layer."""

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._mask = None if this_pass.masks is None else next(this_pass.masks).reshape(x.shape)
        return x if self._mask is None else np.multiply(x, self._mask, out=this_pass.array(self, "output", x.shape, x))

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        if self._mask is None:
            return grad_output
        return np.multiply(grad_output, self._mask, out=this_pass.grad_array(self, grad_output))


class MaxPool:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, description: layers.MaxPool) -> None:
        self._description = description

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        shape = _pooled(x.shape, self._description)
        out = this_pass.array(self, "output", shape, x)
        indices = this_pass.scratch(("indices", id(self)), shape, np.int64)
        output, self._indices = max_pool2d(
            x, self._description.size, self._description.stride, out, indices, this_pass.scratch
        )
        return output

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        shape, out = this_pass.shapes[id(self)], this_pass.grad_array(self, grad_output)
        return max_pool2d_backward(grad_output, self._indices, shape, out, this_pass.scratch)


class AveragePool:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, description: layers.AveragePool) -> None:
        self._description = description

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        out = this_pass.array(self, "output", _pooled(x.shape, self._description), x)
        return average_pool2d(x, self._description.size, self._description.stride, out, this_pass.scratch)

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        size, stride, out = self._description.size, self._description.stride, this_pass.grad_array(self, grad_output)
        return average_pool2d_backward(grad_output, this_pass.shapes[id(self)], size, stride, out, this_pass.scratch)


class Flatten:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x (N, C, H, W) -> (N, C * H * W)."""
        return _as_rows(x)

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(this_pass.shapes[id(self)])


def _as_rows(x: Array) -> Array:
    """Each image as one row of its numbers; a matrix as it is."""
    return x if x.ndim == 2 else x.reshape(len(x), -1)


def _pooled(shape: tuple[int, ...], layer: layers.MaxPool | layers.AveragePool) -> tuple[int, ...]:
    """The shape of a pool's output."""
    return (*shape[:2], *pool_windows("pool", shape, layer.size, layer.stride)[2])
