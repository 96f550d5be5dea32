"""Activations: functions of y = xW + b that are no straight lines. Without them a stack of layers equals one layer.

Every function stands beside its derivative. z is the input, (batch, features); output is the result of
the forward pass; grad_output is dL/doutput, the same shape as output. Each backward returns
dL/dz. Comparisons are written so that NaN fails them and passes on, as it does in PyTorch.

All take `out=`, the array to write into (not one of the inputs), and `scratch=`, memory for
temporary arrays; both may be left out.
"""

import numpy as np

from .arrays import Array, Scratch, as_matrix, as_same_shape, borrow, ieee, output_like

LEAKY_SLOPE = 0.01


def identity(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """z itself, as a new array. Same as torch.nn.Identity."""
    z = as_matrix("identity: z", z)
    out = output_like("identity", out, z.shape, z.dtype, z=z)
    np.copyto(out, z)
    return out


def identity_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The slope is 1 everywhere: the gradient passes."""
    grad_output, z, output = as_same_shape("identity_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("identity_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    np.copyto(out, grad_output)
    return out


def relu(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """max(0, z), element by element. Same as torch.nn.functional.relu."""
    z = as_matrix("relu: z", z)
    return np.maximum(z, 0, out=output_like("relu", out, z.shape, z.dtype, z=z))


def relu_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The gradient passes where z was positive. Elsewhere it is 0: at z = 0, and an infinite gradient, too."""
    grad_output, z, output = as_same_shape("relu_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("relu_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    stopped = np.less_equal(z, 0, out=borrow(scratch, "stopped", z.shape, bool))
    np.copyto(out, grad_output)
    np.copyto(out, 0, where=stopped)  # not a product with 0 and 1: an infinite gradient times 0 would be NaN
    return out


@ieee
def leaky_relu(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """z where it is positive, 0.01 z where it is not. Same as torch.nn.functional.leaky_relu."""
    z = as_matrix("leaky_relu: z", z)
    out = np.multiply(z, LEAKY_SLOPE, out=output_like("leaky_relu", out, z.shape, z.dtype, z=z))
    return np.maximum(z, out, out=out)  # the larger of the two is the right one, because the slope is below 1


@ieee
def leaky_relu_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """Slope 1 where z was positive, 0.01 elsewhere (also at z = 0)."""
    grad_output, z, output = as_same_shape("leaky_relu_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("leaky_relu_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    positive = np.greater(z, 0, out=borrow(scratch, "positive", z.shape, bool))
    np.multiply(grad_output, LEAKY_SLOPE, out=out)
    np.copyto(out, grad_output, where=positive)
    return out


@ieee
def sigmoid(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """1 / (1 + exp(-z)), between 0 and 1. Same as torch.sigmoid."""
    z = as_matrix("sigmoid: z", z)
    out = np.negative(z, out=output_like("sigmoid", out, z.shape, z.dtype, z=z))
    np.exp(out, out=out)  # far below 0, exp(-z) is inf and 1 / (1 + inf) is 0, which is right
    out += 1
    return np.divide(1, out, out=out)


@ieee
def sigmoid_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The slope is s (1 - s), s being the output: largest at z = 0, nothing far out."""
    grad_output, z, output = as_same_shape("sigmoid_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("sigmoid_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    np.subtract(1, output, out=out)
    out *= output
    return np.multiply(grad_output, out, out=out)


@ieee
def tanh(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """The hyperbolic tangent, between -1 and 1. Same as torch.tanh."""
    z = as_matrix("tanh: z", z)
    return np.tanh(z, out=output_like("tanh", out, z.shape, z.dtype, z=z))


@ieee
def tanh_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """The slope is 1 - t², t being the output."""
    grad_output, z, output = as_same_shape("tanh_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("tanh_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    np.multiply(output, output, out=out)
    np.subtract(1, out, out=out)
    return np.multiply(grad_output, out, out=out)


@ieee
def softmax(z: Array, out: Array | None = None, scratch: Scratch | None = None) -> Array:
    """exp(z) / sum of exp(z) over each row: positive, adding up to 1. Same as torch.softmax(z, dim=1).

    Subtracting the row's maximum changes nothing (it cancels) and keeps exp from overflowing.
    """
    z = as_matrix("softmax: z", z)
    out = output_like("softmax", out, z.shape, z.dtype, z=z)
    per_row = borrow(scratch, "softmax per row", (len(z), 1), z.dtype)
    np.subtract(z, z.max(axis=1, keepdims=True, out=per_row), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True, out=per_row)
    return out


@ieee
def softmax_backward(
    grad_output: Array, z: Array, output: Array, out: Array | None = None, scratch: Scratch | None = None
) -> Array:
    """dL/dz_i = s_i (g_i - sum over j of g_j s_j): each output of a row depends on every z of the row."""
    grad_output, z, output = as_same_shape("softmax_backward", grad_output=grad_output, z=z, output=output)
    out = output_like("softmax_backward", out, z.shape, z.dtype, grad_output=grad_output, z=z, output=output)
    np.multiply(grad_output, output, out=out)
    weighted = out.sum(axis=1, keepdims=True, out=borrow(scratch, "softmax per row", (len(z), 1), z.dtype))
    np.subtract(grad_output, weighted, out=out)
    out *= output
    return out
