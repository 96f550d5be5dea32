"""Activations: functions of y = xW + b that are no straight lines. Without them a stack of layers equals one layer.

Every function stands beside its derivative. z is the input, (batch, features); output is the result of
the forward pass; grad_output is dL/doutput, the same shape as output. Each backward returns
dL/dz. The loops are in csrc/activations.c, one function there for each here.

All take `out=`, the array to write into: a new one if None. It may be z itself, and for a backward grad_output itself,
which are then overwritten; no other input, and no part of one.
"""

from . import library
from .arrays import Array, as_matrix, as_same_shape, output_like


def identity(z: Array, out: Array | None = None) -> Array:
    """z itself, as a new array. Same as torch.nn.Identity."""
    return _forward("identity", z, out)


def identity_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """The slope is 1 everywhere: the gradient passes."""
    return _backward("identity", grad_output, z, output, out)


def relu(z: Array, out: Array | None = None) -> Array:
    """max(0, z), element by element. Same as torch.nn.functional.relu."""
    return _forward("relu", z, out)


def relu_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """The gradient passes where z was positive. Elsewhere it is 0: at z = 0, and an infinite gradient, too."""
    return _backward("relu", grad_output, z, output, out)


def leaky_relu(z: Array, out: Array | None = None) -> Array:
    """z where it is positive, 0.01 z where it is not. Same as torch.nn.functional.leaky_relu."""
    return _forward("leaky_relu", z, out)


def leaky_relu_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """Slope 1 where z was positive, 0.01 elsewhere (also at z = 0)."""
    return _backward("leaky_relu", grad_output, z, output, out)


def sigmoid(z: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-z)), between 0 and 1. Same as torch.sigmoid."""
    return _forward("sigmoid", z, out)


def sigmoid_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """The slope is s (1 - s), s being the output: largest at z = 0, nothing far out."""
    return _backward("sigmoid", grad_output, z, output, out)


def tanh(z: Array, out: Array | None = None) -> Array:
    """The hyperbolic tangent, between -1 and 1. Same as torch.tanh."""
    return _forward("tanh", z, out)


def tanh_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """The slope is 1 - t², t being the output."""
    return _backward("tanh", grad_output, z, output, out)


def softmax(z: Array, out: Array | None = None) -> Array:
    """exp(z) / sum of exp(z) over each row: positive, adding up to 1. Same as torch.softmax(z, dim=1)."""
    return _forward("softmax", z, out)


def softmax_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
    """dL/dz_i = s_i (g_i - sum over j of g_j s_j): each output of a row depends on every z of the row."""
    return _backward("softmax", grad_output, z, output, out)


def _forward(name: str, z: Array, out: Array | None) -> Array:
    z = as_matrix(f"{name}: z", z)
    out = output_like(name, out, z.shape, z.dtype, in_place=z, z=z)
    library.function(library.C_NAMES.get(name, name), z.dtype)(*z.shape, z, out)
    return out


def _backward(name: str, grad_output: Array, z: Array, output: Array, out: Array | None) -> Array:
    function = f"{name}_backward"
    grad_output, z, output = as_same_shape(function, grad_output=grad_output, z=z, output=output)
    out = output_like(
        function, out, z.shape, z.dtype, in_place=grad_output, grad_output=grad_output, z=z, output=output
    )
    library.function(f"{library.C_NAMES.get(name, name)}_backward", z.dtype)(*z.shape, grad_output, z, output, out)
    return out
