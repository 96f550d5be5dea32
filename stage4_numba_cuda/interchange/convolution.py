"""The layer of windows over an image: torch.nn.Conv2d, its three passes done by our kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from shared.windows import output_size, pair, within

from .. import convolution_passes as passes
from ..geometry import Geometry
from .tensors import array, check, from_autocast, packed, refuse, shape, torch_stream


class Conv2d(torch.nn.Conv2d):
    """conv2d by this stage's kernels: torch.nn.Conv2d with another forward.

    Arguments as PyTorch's: in_channels, out_channels, kernel_size, stride=1, padding=0, bias=True, device, dtype; sizes
    are a whole number or a pair (rows, columns). dilation, groups and padding_mode can only be what they are by
    default, and padding is no word: anything else is refused with a ValueError, the word with a TypeError.
    weight (out_channels, in_channels, kh, kw) and bias (out_channels,) begin as PyTorch's do for the same seed.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        refuse(self, dilation=1, groups=1, padding_mode="zeros")
        pair("Conv2d: stride", self.stride, 1)
        pair("Conv2d: padding", self.padding, 0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, in_channels, H, W) -> (N, out_channels, H', W'); see `conv2d`."""
        return conv2d(x, self.weight, self.bias, self.stride, self.padding)


def conv2d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Any = 1, padding: Any = 0
) -> torch.Tensor:
    """Every window of x times every kernel, summed, and for backward the gradients. Same as torch.nn.functional.conv2d.

    x: (N, C, H, W), also with N = 0, or (C, H, W)
    weight: (O, C, kh, kw); bias: (O,) or None; stride, padding: a whole number or a pair (rows, columns)
    Returns (N, O, H', W'), contiguous, with H' = (H + 2 padding - kh) // stride + 1; (O, H', W') for one image.
    float32 or float64, the same for all. Gradients of first order only.
    Under autocast x in half precision is brought to weight's dtype: these kernels have no half precision.
    Raises ValueError where shapes or devices do not fit, TypeError for another dtype or a mix of them.
    """
    x = from_autocast(x, weight)
    check("conv2d", {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias}))
    g = _geometry(x, weight, bias, stride, padding)
    if x.ndim == 3:
        return _Conv2d.apply(x.unsqueeze(0), weight, bias, g).squeeze(0)
    return _Conv2d.apply(x, weight, bias, g)


class _Conv2d(torch.autograd.Function):
    """x (N, C, H, W), weight (O, C, kh, kw), bias (O,) or None, sizes -> (N, O, H', W')."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, g: Geometry
    ) -> torch.Tensor:
        x, weight = packed(x), packed(weight)
        bias = weight.new_zeros(g.filters) if bias is None else packed(bias)
        ctx.save_for_backward(x, weight)
        ctx.geometry = g
        output = x.new_empty(len(x), g.filters, *g.output)
        if len(x):
            with torch_stream(x):
                passes.forward_into(array(x), array(weight), array(bias), g, array(output))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradients of x, weight and bias. dL/dx and the other two together are left out where nobody asked."""
        x, weight = ctx.saved_tensors
        g = ctx.geometry
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        grad_x = torch.empty_like(x) if needs_x else None
        if not len(x):  # no images: nothing to sum over
            zeros = torch.zeros_like(weight), weight.new_zeros(g.filters)
            return grad_x, zeros[0] if needs_weight else None, zeros[1] if needs_bias else None, None
        grad_weight = grad_bias = None
        if needs_weight or needs_bias:
            grad_weight, grad_bias = torch.empty_like(weight), weight.new_empty(g.filters)
        grad_output = packed(grad_output)
        with torch_stream(x):
            wanted = [None if grad is None else array(grad) for grad in (grad_x, grad_weight, grad_bias)]
            passes.backward_into(array(grad_output), array(x), array(weight), g, wanted[0], wanted[1], wanted[2])
        return grad_x, grad_weight if needs_weight else None, grad_bias if needs_bias else None, None


def _geometry(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Any, padding: Any) -> Geometry:
    """The sizes of the convolution, or an error that says which do not fit."""
    if weight.ndim != 4 or not weight.numel():
        raise ValueError(
            f"conv2d: weight is {shape(weight)}, expected (out_channels, in_channels, rows, columns), all at least 1"
        )
    if x.ndim not in (3, 4):
        raise ValueError(
            f"conv2d: x is {shape(x)}, expected (batch, in_channels, rows, columns) or (in_channels, rows, columns)"
        )
    if x.shape[-3] != weight.shape[1]:
        raise ValueError(
            f"conv2d: x is {shape(x)} but weight is {shape(weight)}; x's channels must equal weight's in_channels"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"conv2d: bias is {shape(bias)}, expected ({len(weight)},), one for each output channel")
    channels, *image = shape(x)[-3:]
    filters, _, *window = shape(weight)
    steps, border = pair("conv2d: stride", stride, 1), pair("conv2d: padding", padding, 0)
    output = output_size("conv2d", image, (window[0], window[1]), steps, border)
    steps = within(image, steps, border)
    return Geometry(channels, (image[0], image[1]), filters, (window[0], window[1]), steps, border, output)
