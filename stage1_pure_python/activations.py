"""Activations: functions between layers. All but identity are no straight lines: else a stack of layers equals one.

Every function stands beside its derivative. z is the input, (batch, features); output is the result of
the forward pass; grad_output is dL/doutput, the same shape as output. Each backward returns
dL/dz. A NaN in z comes out as NaN, as it does in PyTorch.
"""

import math

from .arrays import Matrix, check_same_shape, matrix_shape

LEAKY_SLOPE = 0.01


def identity(z: Matrix) -> Matrix:
    """z itself, as a new matrix. Same as torch.nn.Identity."""
    matrix_shape("identity: z", z)
    return [list(row) for row in z]


def identity_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """The slope is 1 everywhere: the gradient passes."""
    check_same_shape("identity_backward", grad_output=grad_output, z=z, output=output)
    return [list(row) for row in grad_output]


def relu(z: Matrix) -> Matrix:
    """max(0, z), element by element. Same as torch.nn.functional.relu."""
    matrix_shape("relu: z", z)
    return [[0.0 if v <= 0.0 else v for v in row] for row in z]


def relu_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """The gradient passes where z was positive. Where z <= 0 the result is 0, even if the gradient is infinite."""
    check_same_shape("relu_backward", grad_output=grad_output, z=z, output=output)
    return [
        [0.0 if v <= 0.0 else g for g, v in zip(g_row, z_row, strict=True)]
        for g_row, z_row in zip(grad_output, z, strict=True)
    ]


def leaky_relu(z: Matrix) -> Matrix:
    """z where it is positive, 0.01 z where it is not. Same as torch.nn.functional.leaky_relu."""
    matrix_shape("leaky_relu: z", z)
    return [[v if v > 0.0 else LEAKY_SLOPE * v for v in row] for row in z]


def leaky_relu_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """Slope 1 where z was positive, 0.01 elsewhere (also at z = 0)."""
    check_same_shape("leaky_relu_backward", grad_output=grad_output, z=z, output=output)
    return [
        [g if v > 0.0 else LEAKY_SLOPE * g for g, v in zip(g_row, z_row, strict=True)]
        for g_row, z_row in zip(grad_output, z, strict=True)
    ]


def sigmoid(z: Matrix) -> Matrix:
    """1 / (1 + exp(-z)), between 0 and 1. Same as torch.sigmoid."""
    matrix_shape("sigmoid: z", z)
    return [[sigmoid_of(v) for v in row] for row in z]


def sigmoid_of(v: float) -> float:
    """The sigmoid of one number. exp is only taken of numbers that are not positive, so it cannot overflow."""
    if v >= 0.0:
        return 1.0 / (1.0 + math.exp(-v))
    e = math.exp(v)
    return e / (1.0 + e)


def sigmoid_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """The slope is s (1 - s), s being the output: largest at z = 0, nothing far out."""
    check_same_shape("sigmoid_backward", grad_output=grad_output, z=z, output=output)
    return [
        [g * (s * (1.0 - s)) for g, s in zip(g_row, s_row, strict=True)]
        for g_row, s_row in zip(grad_output, output, strict=True)
    ]


def tanh(z: Matrix) -> Matrix:
    """The hyperbolic tangent, between -1 and 1. Same as torch.tanh."""
    matrix_shape("tanh: z", z)
    return [[math.tanh(v) for v in row] for row in z]


def tanh_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """The slope is 1 - t², t being the output."""
    check_same_shape("tanh_backward", grad_output=grad_output, z=z, output=output)
    return [
        [g * (1.0 - t * t) for g, t in zip(g_row, t_row, strict=True)]
        for g_row, t_row in zip(grad_output, output, strict=True)
    ]


def softmax(z: Matrix) -> Matrix:
    """exp(z) / sum of exp(z) over each row: positive, adding up to 1. Same as torch.softmax(z, dim=1).

    Subtracting the row's maximum changes nothing (it cancels) and keeps exp from overflowing.
    """
    matrix_shape("softmax: z", z)
    output = []
    for row in z:
        largest = max(row)
        exps = [math.exp(v - largest) for v in row]
        total = sum(exps)
        output.append([e / total for e in exps])
    return output


def softmax_backward(grad_output: Matrix, z: Matrix, output: Matrix) -> Matrix:
    """dL/dz_i = s_i (g_i - sum over j of g_j s_j): each output of a row depends on every z of the row."""
    check_same_shape("softmax_backward", grad_output=grad_output, z=z, output=output)
    grad_z = []
    for g_row, s_row in zip(grad_output, output, strict=True):
        weighted = sum(g * s for g, s in zip(g_row, s_row, strict=True))
        grad_z.append([s * (g - weighted) for g, s in zip(g_row, s_row, strict=True)])
    return grad_z
