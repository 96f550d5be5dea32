"""The layer that normalises each channel of a batch: torch.nn.BatchNorm2d by our kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from shared.shapes import check_several

from ..batch_norm import Forward, launch_backward, launch_forward
from .tensors import array, check, from_autocast, packed, shape, torch_stream


class BatchNorm2d(torch.nn.BatchNorm2d):
    """batch_norm of images by this stage's kernels: torch.nn.BatchNorm2d with another forward.

    Everything that BatchNorm2d has is here too, since it is one: the arguments (num_features, eps=1e-5, momentum=0.1,
    affine=True, track_running_stats=True, device, dtype), also momentum=None, the average over all batches so far;
    weight and bias, and the buffers running_mean, running_var and num_batches_tracked, by their names in the
    state_dict. A call that raises leaves the buffers as they were.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, num_features, H, W) -> the same shape; see `batch_norm`."""
        if isinstance(x, torch.Tensor) and x.ndim != 4:
            raise ValueError(f"BatchNorm2d: x is {shape(x)}, expected (batch, channels, rows, columns)")
        by_batch = self.training or self.running_mean is None
        tracks = self.training and self.track_running_stats and self.num_batches_tracked is not None
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / (float(self.num_batches_tracked) + 1) if tracks else 0.0
        known = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if known else (None, None)
        output = batch_norm(x, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)
        if tracks:
            self.num_batches_tracked.add_(1)
        return output


def batch_norm(
    x: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """(x - mean) / sqrt(variance + eps) · weight + bias, channel by channel. Same as torch.nn.functional.batch_norm.

    x: (N, C) or (N, C, …), also with N = 0; all others (C,). weight None is 1, bias None is 0.
    training: by the mean and the biased variance of the batch, over all but the channels. Where they are given, the
        running ones are then changed in place, towards the mean and the unbiased variance, by the share `momentum`.
        Else by the running ones, which are then needed.
    float32 or float64, the same for all. Gradients of first order, of x, weight and bias. Autocast as in `conv2d`.
    Raises ValueError where shapes or devices do not fit, or while training with one value a channel or an eps that is
    not above 0; TypeError for another dtype or a mix of them. Nothing has been changed then.
    """
    vectors = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    tensors = {name: vector for name, vector in vectors.items() if vector is not None}
    x = from_autocast(x, next(iter(tensors.values()), None))
    check("batch_norm", {"x": x} | tensors)
    if x.ndim < 2:
        raise ValueError(f"batch_norm: x is {shape(x)}, expected (batch, channels) or (batch, channels, …)")
    for name, vector in tensors.items():
        if vector.shape != x.shape[1:2]:
            raise ValueError(
                f"batch_norm: {name} is {shape(vector)} but x is {shape(x)}; expected one number for each channel, "
                f"({x.shape[1]},)"
            )
    if (running_mean is None) != (running_var is None) or (running_mean is None and not training):
        raise ValueError(
            "batch_norm: expected running_mean and running_var, both of them; only with training=True can both be None"
        )
    if training and not eps > 0:
        raise ValueError(f"batch_norm: eps: expected a number above 0 when training, got {eps}")
    if training and x.numel():
        check_several(shape(x))
    lines = x.reshape(*x.shape[:2], x.shape[2:].numel())
    numbers = bool(training), float(momentum), float(eps)
    return _BatchNorm.apply(lines, weight, bias, running_mean, running_var, *numbers).reshape(x.shape)


class _BatchNorm(torch.autograd.Function):
    """x (N, C, L) -> the same shape."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
    ) -> torch.Tensor:
        x, channels = packed(x), x.shape[1]
        weight = x.new_ones(channels) if weight is None else packed(weight)
        bias = x.new_zeros(channels) if bias is None else packed(bias)
        # Kernels change copies of the running ones: PyTorch has to see its own tensors change, since a graph may have
        # saved them. Where there are none, no kernel reads what is in their place.
        tracked = [tensor for tensor in (running_mean, running_var) if tensor is not None]
        copies = [packed(tensor.clone()) for tensor in tracked]
        tracking = training and bool(tracked)
        statistics, output = x.new_empty(3, channels), torch.empty_like(x)
        ctx.save_for_backward(x, weight, statistics)
        ctx.training = training
        if x.numel():
            vectors = tuple(array(vector) for vector in (weight, bias, *(copies or (weight, bias))))
            with torch_stream(x):
                forward = Forward(array(x), vectors, momentum, eps, array(statistics))
                launch_forward(forward, array(output), training, tracking)
            if tracking:
                for tensor, changed in zip(tracked, copies, strict=True):
                    tensor.copy_(changed)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """dL/dx, dL/dweight and dL/dbias; one kernel computes all three, and what nobody asked for is dropped."""
        x, weight, statistics = ctx.saved_tensors
        fresh = torch.empty_like if x.numel() else torch.zeros_like  # of no numbers all sums are 0
        grads = [fresh(x), fresh(weight), fresh(weight)]
        if x.numel():
            grad_output = packed(grad_output)
            with torch_stream(x):
                forward = Forward(array(x), (array(weight),), 0.0, 0.0, array(statistics))
                grad_x, *rest = (array(grad) for grad in grads)
                launch_backward(forward, array(grad_output), (rest[0], rest[1]), grad_x, ctx.training)
        wanted = (grad if needs else None for grad, needs in zip(grads, ctx.needs_input_grad, strict=False))
        return *wanted, None, None, None, None, None
