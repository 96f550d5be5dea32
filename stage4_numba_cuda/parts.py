"""The layers that have no weights: activation, pooling, flattening, dropout. Forward stands beside backward.

A layer keeps from its last `forward` the arrays that its `backward` needs. The layers with weights (dense, convolution,
batch normalisation) are in files of their own; network.py puts all of them in a row. Every result is a new array.
"""

from __future__ import annotations

from collections.abc import Callable

from shared import layers

from . import activations, launch
from .arrays import Array, empty
from .kernels import dense as dense_kernels
from .kernels import residual as residual_kernels
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
        size, stride = self._description.size, self._description.stride
        return max_pool2d_backward(grad_output, self._indices, self._shape, size=size, stride=stride)


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
        self._z = as_rows(x)
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
        return as_rows(x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return grad_output.reshape(self._shape)


class Dropout:
    """Dropout: x times a mask of 0 and 1 / (1 - rate). The training loop makes one a step for each such layer."""

    def forward(self, x: Array, mask: Array | None) -> Array:
        """x of any shape (N, …) -> the same shape. mask: (N, numbers of one sample); None drops nothing."""
        self._mask = mask
        return _times(x, mask)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput: what was multiplied by the mask forward is multiplied by it backward."""
        return _times(grad_output, self._mask)


def as_rows(array: Array) -> Array:
    """(N, …) as (N, numbers of one sample), without a copy."""
    return array.reshape(array.shape[0], array.size // array.shape[0])


def added(a: Array, b: Array) -> Array:
    """The sum, element by element, as a new array."""
    out = empty(a.shape, a.dtype)
    residual_kernels.join[launch.elementwise(a.size)](_flat(a), _flat(b), 0, _flat(out))
    return out


def _times(a: Array, mask: Array | None) -> Array:
    """The product, element by element, as a new array shaped like a; a itself where nothing is dropped."""
    if mask is None:
        return a
    out = empty(a.shape, a.dtype)
    dense_kernels.multiply[launch.elementwise(a.size)](_flat(a), _flat(mask), _flat(out))
    return out


def _flat(array: Array) -> Array:
    return array.reshape(array.size)
