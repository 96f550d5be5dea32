"""Leaky ReLU with any slope: torch.nn.LeakyReLU by our kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .. import launch
from ..kernels import interchange as kernels
from .tensors import DTYPES, check, from_autocast, packed, torch_stream, vector


class LeakyReLU(torch.nn.LeakyReLU):
    """z where it is positive, negative_slope · z elsewhere, by this stage's kernels.

    inplace=True is refused with a ValueError: the backward pass needs z.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        if inplace:
            raise ValueError("LeakyReLU: inplace=True is not supported, the backward pass needs z; leave it out")
        super().__init__(negative_slope)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """z of any shape -> the same shape; see `leaky_relu`."""
        return leaky_relu(z, self.negative_slope)


def leaky_relu(z: torch.Tensor, negative_slope: float = 0.01) -> torch.Tensor:
    """z where it is positive, negative_slope · z elsewhere (also at 0). Same as torch.nn.functional.leaky_relu.

    z: float32 or float64, of any shape; the result is contiguous. Gradients of first order only.
    Under autocast half precision becomes float32. Raises as `dense` does.
    """
    z = from_autocast(z, None)
    check("leaky_relu", {"z": z})
    return _LeakyReLU.apply(z, negative_slope)


class _LeakyReLU(torch.autograd.Function):
    """z of any shape -> the same shape."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, slope: float) -> torch.Tensor:
        z = packed(z)
        ctx.save_for_backward(z)
        ctx.slope = DTYPES[z.dtype](slope)
        output = torch.empty_like(z)
        if z.numel():
            with torch_stream(z):
                kernels.leaky_relu[launch.elementwise(z.numel())](vector(z), ctx.slope, vector(output))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        (z,) = ctx.saved_tensors
        grad_output, grad_z = packed(grad_output), torch.empty_like(z)
        if z.numel():
            blocks = launch.elementwise(z.numel())
            with torch_stream(z):
                kernels.leaky_relu_backward[blocks](vector(grad_output), vector(z), ctx.slope, vector(grad_z))
        return grad_z, None
