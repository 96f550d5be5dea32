"""The layers that have no weights: activation, pooling, flattening, dropout. Forward stands beside backward.

A layer keeps from its last `forward` what its `backward` needs. The layers with weights (dense, convolution, batch
normalisation) are in files of their own; network.py puts all of them in a row.
"""

from __future__ import annotations

from collections.abc import Callable

from shared import layers

from . import activations, library
from .arrays import Array, aligned_empty
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


class MaxPool:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, description: layers.MaxPool) -> None:
        self._description = description

    def forward(self, x: Array) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = x.shape
        output, self._indices = max_pool2d(x, self._description.size, self._description.stride)
        return output

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return max_pool2d_backward(grad_output, self._indices, self._shape)


class AveragePool:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, description: layers.AveragePool) -> None:
        self._description = description

    def forward(self, x: Array) -> Array:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = x.shape
        return average_pool2d(x, self._description.size, self._description.stride)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return average_pool2d_backward(grad_output, self._shape, self._description.size, self._description.stride)


class Activate:
    """An activation function. It takes matrices, so an image is one row of its numbers."""

    def __init__(self, description: layers.Activate) -> None:
        self._function: Callable[..., Array] = getattr(activations, description.name)
        self._derivative: Callable[..., Array] = getattr(activations, f"{description.name}_backward")

    def forward(self, x: Array) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._z = x.reshape(len(x), -1)
        self._output = self._function(self._z)
        return self._output.reshape(x.shape)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        grad = self._derivative(grad_output.reshape(self._z.shape), self._z, self._output)
        return grad.reshape(grad_output.shape)


class Flatten:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array) -> Array:
        """x (N, C, H, W) -> (N, C * H * W)."""
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(self._shape)


class Dropout:
    """Dropout: x times a mask of 0 and 1 / (1 - rate). The training loop makes one a step for each such layer."""

    def forward(self, x: Array, mask: Array | None) -> Array:
        """x of any shape (N, …) -> the same shape. mask: (N, numbers of one sample); None drops nothing."""
        self._mask = None if mask is None else mask.reshape(x.shape)
        return x if self._mask is None else _of_two("multiply", x, self._mask)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output if self._mask is None else _of_two("multiply", grad_output, self._mask)


def added(a: Array, b: Array) -> Array:
    """a + b, of the same shape (N, …)."""
    return _of_two("add", a, b)


def _of_two(name: str, a: Array, b: Array) -> Array:
    """A new array with a and b multiplied or added, element by element."""
    if a.shape != b.shape:  # the layers may have been changed
        raise ValueError(f"{name}: one array is {a.shape} but the other is {b.shape}; they must have the same shape")
    out = aligned_empty(a.shape, a.dtype)
    library.function(name, a.dtype)(a.size, a, b, out)
    return out
