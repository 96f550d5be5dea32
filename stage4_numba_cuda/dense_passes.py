"""The passes of a dense layer, unchecked: in one kernel, or on tensor cores where these are asked for and pay.

    forward_into(x, weights, bias, activation, out)    activate(xW + b) into out
    backward_into(…)                                   all gradients

The layer, dense.py, checks and then calls these; a network that has planned its memory calls them directly. Tensor
cores multiply by the rung of matmul.py that rounds on the way: it knows all three forms, and its tiles are 128 x 128. A
layer of few samples and neurons has so few of them that most multiprocessors would have nothing to do, so
tile_choice.py decides, as between all tiles. On tensor cores bias and activation are kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import launch, matmul, tile_choice
from .activations import apply, apply_backward
from .arrays import Array
from .backend import BACKEND
from .kernels import dense as kernels
from .kernels.activations import FORWARD as ACTIVATIONS
from .kernels.activations import IDENTITY
from .reductions import launch_column_sums


def forward_into(
    x: Array, weights: Array, bias: Array, activation: int, out: Array, precision: str | None = None, stream: Any = 0
) -> None:
    """activate(xW + b): x (batch, in), weights (in, out), bias (out,) -> out (batch, out).

    activation: its number in kernels/activations.py, not softmax's
    precision: of tensor cores, "tf32" or "bf16", for float32 arrays; None for ordinary ones
    """
    if not _pays(precision, out, x.shape[1], tile_choice.FUSED):
        matmul.forward_fused(x, weights, bias, activation, out, stream)
        return
    matmul.run_rung(str(precision), "nn", x, weights, out, stream=stream)
    kernels.add_bias[(*launch.elementwise(out.size), stream)](out, bias)
    if activation != IDENTITY:
        apply(list(ACTIVATIONS)[activation], out, out, stream=stream)


def backward_into(
    grad: Array,
    x: Array,
    weights: Array,
    grad_input: Array | None,
    grad_weights: Array,
    grad_bias: Array,
    through: int = IDENTITY,
    precision: str | None = None,
    stream: Any = 0,
) -> None:
    """dL/dW = xᵀ grad, dL/db = column sums of grad and dL/dx = grad Wᵀ; the last not where grad_input is None.

    through: the number of the activation whose output x is: grad_input is then taken back through it, and is the slope
        at the layer below before its activation
    """
    if _pays(precision, grad_weights, len(x), tile_choice.PRODUCTS):
        matmul.run_rung(str(precision), "tn", x, grad, grad_weights, stream=stream)
    else:
        matmul.multiply("tn", x, grad, grad_weights, stream)
    launch_column_sums(grad, grad_bias, stream)
    if grad_input is None:
        return
    if not _pays(precision, grad_input, grad.shape[1], tile_choice.FUSED):
        matmul.backward_fused(grad, weights, x, through, None, grad_input, stream)
        return
    matmul.run_rung(str(precision), "nt", grad, weights, grad_input, stream=stream)
    if through != IDENTITY:
        apply_backward(list(ACTIVATIONS)[through], grad_input, x, grad_input, stream=stream)


def _pays(precision: str | None, out: Array, inner: int, others: Sequence[str]) -> bool:
    """Whether tensor cores compute this product. The emulator has none that would be slower."""
    if precision is None or BACKEND.name != "gpu":
        return precision is not None
    rows, columns = out.shape
    if tile_choice.is_little(rows, columns, inner):
        return False
    return tile_choice.fastest(rows, columns, "float32", among=(precision, *others)) == precision
