"""The layers that have no weights: activation, pooling, flattening, dropout. Forward stands beside backward.

A layer keeps from its last `forward` what its `backward` needs. The layers with weights (dense, convolution, batch
normalisation) are in files of their own; network.py puts all of them in a row.
"""

from shared import layers

from . import activations
from .arrays import Array, Images, Matrix, as_rows, from_rows, shape_of
from .pooling import average_pool2d, average_pool2d_backward, max_pool2d, max_pool2d_backward


class Activate:
    """An activation. Its name picks two functions of activations.py: forward calls relu(z), for example, and backward
    relu_backward(grad_output, z, output), which is grad_output times relu's derivative; z is what came in.

    Both take matrices, so an image becomes one row.
    """

    def __init__(self, description: layers.Activate) -> None:
        self._function = getattr(activations, description.name)
        self._derivative = getattr(activations, f"{description.name}_backward")

    def forward(self, x: Array) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._shape, self._z = shape_of(x), as_rows(x)
        self._output = self._function(self._z)
        return from_rows(self._output, self._shape)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return from_rows(self._derivative(as_rows(grad_output), self._z, self._output), self._shape)


class Dropout:
    """Dropout: x times a mask of 0 and 1 / (1 - rate). The training loop makes one a step for each such layer."""

    def forward(self, x: Array, mask: Matrix | None) -> Array:
        """x of any shape (N, …) -> the same shape. mask: (N, numbers of one sample); None drops nothing."""
        self._mask = mask
        return _times(x, mask)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput: what was multiplied by the mask forward is multiplied by it backward."""
        return _times(grad_output, self._mask)


class MaxPool:
    """The largest number of each window; the gradient goes back to where it stood."""

    def __init__(self, description: layers.MaxPool) -> None:
        self._description = description

    def forward(self, x: Images) -> Images:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = shape_of(x)
        output, self._indices = max_pool2d(x, self._description.size, self._description.stride)
        return output

    def backward(self, grad_output: Images) -> Images:
        """dL/dx from dL/doutput."""
        return max_pool2d_backward(grad_output, self._indices, self._shape)  # type: ignore[arg-type]


class AveragePool:
    """The mean of each window; each of its numbers gets the same share of the gradient."""

    def __init__(self, description: layers.AveragePool) -> None:
        self._description = description

    def forward(self, x: Images) -> Images:
        """x (N, C, H, W) -> (N, C, H', W')."""
        self._shape = shape_of(x)
        return average_pool2d(x, self._description.size, self._description.stride)

    def backward(self, grad_output: Images) -> Images:
        """dL/dx from dL/doutput."""
        return average_pool2d_backward(grad_output, self._shape, self._description.size, self._description.stride)  # type: ignore[arg-type]


class Flatten:
    """(N, C, H, W) -> (N, C * H * W): the same numbers in the same order."""

    def forward(self, x: Array) -> Matrix:
        """x (N, C, H, W) -> (N, C * H * W)."""
        self._shape = shape_of(x)
        return as_rows(x)

    def backward(self, grad_output: Matrix) -> Array:
        """dL/dx from dL/doutput."""
        return from_rows(grad_output, self._shape)


def added(a: Array, b: Array) -> Array:
    """a + b, of the same shape (N, …)."""
    rows = zip(as_rows(a), as_rows(b), strict=True)
    return from_rows([[v + w for v, w in zip(x, y, strict=True)] for x, y in rows], shape_of(a))


def _times(x: Array, mask: Matrix | None) -> Array:
    if mask is None:
        return x
    rows = zip(as_rows(x), mask, strict=True)
    return from_rows([[v * m for v, m in zip(row, m_row, strict=True)] for row, m_row in rows], shape_of(x))
