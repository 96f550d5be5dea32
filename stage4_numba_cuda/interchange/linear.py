"""The layer y = xWᵀ + b: torch.nn.Linear, its products and sums done by our kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .. import launch
from ..kernels import dense as dense_kernels
from ..matmul import multiply
from ..reductions import column_sums
from .tensors import array, check, from_autocast, packed, shape, torch_stream


class Dense(torch.nn.Linear):
    """y = xWᵀ + b by this stage's kernels: torch.nn.Linear with another forward.

    Everything that Linear has is here too, since it is one: the arguments (in_features, out_features, bias=True,
    device, dtype), weight (out_features, in_features) and bias (out_features,), their first values for a seed, and the
    names in the state_dict, so that a checkpoint of either loads into the other.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., in_features) -> (..., out_features); see `dense`."""
        return dense(x, self.weight, self.bias)


def dense(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """xWᵀ + b and, for backward, its gradients. Same as torch.nn.functional.linear.

    x: (..., in_features), any number of dimensions before the last, also none and also no rows
    weight: (out_features, in_features); bias: (out_features,) or None
    Returns (..., out_features). float32 or float64, the same for all. Gradients of first order only.
    Under autocast x in half precision is brought to weight's dtype: these kernels have no half precision.
    Raises ValueError where shapes or devices do not fit, TypeError for another dtype or a mix of them.
    """
    x = from_autocast(x, weight)
    tensors = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    check("dense", tensors)
    if weight.ndim != 2 or not weight.numel():
        raise ValueError(f"dense: weight is {shape(weight)}, expected (out_features, in_features), both at least 1")
    if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"dense: x is {shape(x)} but weight is {shape(weight)}; "
            "x's last dimension must equal weight's columns, in_features"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"dense: bias is {shape(bias)}, expected ({len(weight)},), one for each row of weight")
    output = _Dense.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return output.reshape(*x.shape[:-1], len(weight))


class _Dense(torch.autograd.Function):
    """x (batch, in), weight (out, in), bias (out,) or None -> (batch, out)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        x, weight = packed(x), packed(weight)
        ctx.save_for_backward(x, weight)
        output = x.new_empty(len(x), len(weight))
        if len(x):
            if bias is not None:
                bias = packed(bias)  # kept in a name until after the launch: an array does not own its memory
            with torch_stream(x):
                result = multiply("nt", array(x), array(weight), array(output))
                if bias is not None:
                    dense_kernels.add_bias[launch.elementwise(result.size)](result, array(bias))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """dL/dx = g W, dL/dW = gᵀ x, dL/db = column sums of g; those that nobody asked for are not computed."""
        x, weight = ctx.saved_tensors
        if not len(x):  # no rows: nothing to sum over
            zeros = (x, weight, weight[:, 0])
            return tuple(torch.zeros_like(t) if n else None for t, n in zip(zeros, ctx.needs_input_grad, strict=True))
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        grad_x = torch.empty_like(x) if needs_x else None
        grad_weight = torch.empty_like(weight) if needs_weight else None
        grad_bias = weight.new_empty(len(weight)) if needs_bias else None
        grad_output = packed(grad_output)
        with torch_stream(x):
            grad = array(grad_output)
            if grad_x is not None:
                multiply("nn", grad, array(weight), array(grad_x))
            if grad_weight is not None:
                multiply("tn", grad, array(x), array(grad_weight))
            if grad_bias is not None:
                column_sums(grad, array(grad_bias))
        return grad_x, grad_weight, grad_bias
