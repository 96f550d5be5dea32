"""The layer that keeps the largest number of each window: torch.nn.MaxPool2d by our kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from shared.windows import Pair, output_size, pair, within

from .. import pooling as passes
from .tensors import array, check, from_autocast, packed, refuse, shape, torch_stream


class MaxPool2d(torch.nn.MaxPool2d):
    """max_pool2d by this stage's kernels: torch.nn.MaxPool2d with another forward.

    Arguments as PyTorch's: kernel_size, stride=None (then the window's size); a whole number or a pair (rows, columns).
    padding, dilation, return_indices and ceil_mode can only be what they are by default, else a ValueError says so.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        refuse(self, padding=0, dilation=1, return_indices=False, ceil_mode=False)
        pair("MaxPool2d: kernel_size", self.kernel_size, 1)
        pair("MaxPool2d: stride", self.stride, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, C, H, W) -> (N, C, H', W'); see `max_pool2d`."""
        return max_pool2d(x, self.kernel_size, self.stride)


def max_pool2d(x: torch.Tensor, kernel_size: Any, stride: Any = None) -> torch.Tensor:
    """The largest number of each window; backward hands each gradient to the number that won.

    Same as torch.nn.functional.max_pool2d, also for equal numbers (the first wins) and NaN (which wins).
    x: (N, C, H, W) or (C, H, W), float32 or float64; kernel_size, stride: a whole number or a pair (rows, columns);
    stride None is the window's size
    Returns (N, C, H', W'), contiguous, with H' = (H - rows of the window) // stride + 1. Gradients of first order only.
    Under autocast half precision becomes float32. Raises as `conv2d` does.
    """
    x = from_autocast(x, None)
    check("max_pool2d", {"x": x})
    if x.ndim not in (3, 4):
        raise ValueError(
            f"max_pool2d: x is {shape(x)}, expected (batch, channels, rows, columns) or (channels, rows, columns)"
        )
    window = pair("max_pool2d: kernel_size", kernel_size, 1)
    step = window if stride is None else pair("max_pool2d: stride", stride, 1)
    places = output_size("max_pool2d", shape(x), window, step)
    step = within(shape(x), step)
    planes = x.reshape(x.shape[:-2].numel(), *x.shape[-2:])
    return _MaxPool2d.apply(planes, window, step, places).reshape(*x.shape[:-2], *places)


class _MaxPool2d(torch.autograd.Function):
    """x (planes, H, W) -> (planes, H', W'): the channels of all images, one plane after the other."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, window: Pair, step: Pair, places: Pair) -> torch.Tensor:
        x = packed(x)
        output = x.new_empty(len(x), *places)
        indices = torch.empty_like(output, dtype=torch.int32)
        if len(x):
            with torch_stream(x):
                passes.launch_max_pool(array(x), window, step, passes.IDENTITY, array(output), array(indices))
        ctx.save_for_backward(indices)
        ctx.sizes = window, step, x.shape
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (indices,) = ctx.saved_tensors
        window, step, of_x = ctx.sizes
        grad_output = packed(grad_output)
        grad_x = grad_output.new_empty(of_x)
        if len(grad_x):
            with torch_stream(grad_x):
                grad, target = array(grad_output), array(grad_x)
                # No activation before or after the pool: the arrays that only those read are not read.
                none = passes.IDENTITY
                passes.launch_max_backward(grad, grad, none, array(indices), target, none, window, step, target)
        return grad_x, None, None, None
