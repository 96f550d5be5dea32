"""Activations: functions of y = xW + b that are no straight lines. Without them a stack of layers equals one layer.

Every function stands beside its derivative. z is the input, (batch, features); output is the result of
the forward pass; grad_output is dL/doutput, the same shape as output. Each backward returns
dL/dz. The kernels are in kernels/activations.py, one for each function here, and the softmax ladder's in
kernels/softmax.py.

All take `out=`, the array to write into: a new one if None. It may be z itself, and for a backward grad_output itself,
which are then overwritten; no other input, and no part of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import launch
from .arrays import Array, as_matrix, as_same_shape, output_like
from .backend import BACKEND
from .kernels import activations as kernels
from .kernels import softmax as softmax_kernels

WIDEST_WARP = 1024
"""Up to this many columns softmax gives a row to a warp (32 numbers a lane), beyond it to a block."""


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


def apply(name: str, z: Array, output: Array, rung: str | None = None, stream: Any = 0) -> None:
    """Launch the activation of that name on matrices that are known to fit; output may be z.

    rung: for softmax, one of SOFTMAX_LADDER instead of the one that suits the shape
    """
    if name == "softmax":
        _softmax_kernel(0, z.shape, rung, stream)(z, output)
    else:
        kernels.FORWARD[name][(*launch.elementwise(z.size), stream)](_flat(z), _flat(output))


def apply_backward(
    name: str, grad_output: Array, output: Array, grad_z: Array, rung: str | None = None, stream: Any = 0
) -> None:
    """Launch its derivative on matrices that are known to fit: grad_z, which may be grad_output, is dL/dz."""
    if name == "softmax":
        _softmax_kernel(1, output.shape, rung, stream)(grad_output, output, grad_z)
    else:
        kernel = kernels.BACKWARD[name][(*launch.elementwise(output.size), stream)]
        kernel(_flat(grad_output), _flat(output), _flat(grad_z))


def softmax_rung(columns: int) -> str:
    """The rung that rows of this length take. Numba's simulator has no shuffles, so there it is always the block."""
    return "warp" if columns <= WIDEST_WARP and BACKEND.name != "simulator" else "block"


_SOFTMAX_KERNELS: Mapping[str, tuple[Any, Any]] = {
    "thread": (softmax_kernels.softmax_thread, softmax_kernels.softmax_thread_backward),
    "warp": (softmax_kernels.softmax_warp, softmax_kernels.softmax_warp_backward),
    "block": (softmax_kernels.softmax_block, softmax_kernels.softmax_block_backward),
}


def _softmax_kernel(direction: int, shape: tuple[int, int], rung: str | None, stream: Any = 0) -> Any:
    """The kernel (0 forward, 1 backward) of that rung, or of the one that suits the shape, with its grid."""
    rows, columns = shape
    rung = rung or softmax_rung(columns)
    grids = {
        "thread": launch.elementwise(rows),
        "warp": launch.warp_per_row(rows),
        "block": (rows, softmax_kernels.BLOCK),
    }
    return _SOFTMAX_KERNELS[rung][direction][(*grids[rung], stream)]


def _flat(matrix: Array) -> Array:
    """The same memory as one vector: kernels that work number by number need no rows and columns."""
    return matrix.reshape(matrix.size)


def _forward(name: str, z: Array, out: Array | None, rung: str | None = None) -> Array:
    z = as_matrix(f"{name}: z", z)
    out = output_like(name, out, z.shape, z.dtype, in_place=z, z=z)
    apply(name, z, out, rung)
    return out


def _backward(
    name: str, grad_output: Array, z: Array, output: Array, out: Array | None, rung: str | None = None
) -> Array:
    function = f"{name}_backward"
    grad_output, z, output = as_same_shape(function, grad_output=grad_output, z=z, output=output)
    out = output_like(
        function, out, z.shape, z.dtype, in_place=grad_output, grad_output=grad_output, z=z, output=output
    )
    apply_backward(name, grad_output, output, out, rung)
    return out


def _forward_rung(rung: str) -> Callable[..., Array]:
    def softmax(z: Array, out: Array | None = None) -> Array:
        return _forward("softmax", z, out, rung)

    return softmax


def _backward_rung(rung: str) -> Callable[..., Array]:
    def softmax_backward(grad_output: Array, z: Array, output: Array, out: Array | None = None) -> Array:
        return _backward("softmax", grad_output, z, output, out, rung)

    return softmax_backward


SOFTMAX_LADDER: Mapping[str, Callable[..., Array]] = {rung: _forward_rung(rung) for rung in _SOFTMAX_KERNELS}
"""Every way this stage knows to compute softmax, (z, out=None) each; `softmax` takes the one `softmax_rung` names."""

SOFTMAX_BACKWARD_LADDER: Mapping[str, Callable[..., Array]] = {rung: _backward_rung(rung) for rung in _SOFTMAX_KERNELS}
"""The same for the derivative, (grad_output, z, output, out=None) each."""
