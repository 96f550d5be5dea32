"""This floor's kernels inside PyTorch: layers that stand where torch.nn.Linear and torch.nn.LeakyReLU stood.

    Dense(784, 128)                 torch.nn.Linear(784, 128), its products and sums done by our kernels
    LeakyReLU(0.01)                 torch.nn.LeakyReLU(0.01)
    dense(x, weight, bias)          torch.nn.functional.linear
    leaky_relu(z, negative_slope)   torch.nn.functional.leaky_relu

PyTorch does not know what a kernel of ours computes, so it cannot differentiate it. A torch.autograd.Function tells
it: a forward that computes, and a backward that turns the gradient of the output into the gradients of the inputs.
Everything else (the order of the backward passes, adding gradients up, optimizers, checkpoints) stays PyTorch's.

Nothing is copied between the two, on either device. A tensor on a GPU says where its numbers lie
(`__cuda_array_interface__`), and numba-cuda takes that address for an array. The emulator's device is memory of this
process, so there a tensor of the CPU is wrapped the same way. Results are tensors that PyTorch allocated. Only a tensor
with gaps, such as a transposed view, is copied into one without, since kernels walk memory row after row.

Which device it is was chosen by backend.py. Tensors that lie on another are refused, and the error says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError("stage4_numba_cuda.interchange needs PyTorch, which is optional: pip install torch") from error

from torch.autograd.function import once_differentiable

from . import launch
from .arrays import Array
from .backend import BACKEND, TITLES, VARIABLE, cuda
from .kernels import dense as dense_kernels
from .kernels import interchange as kernels
from .matmul import multiply
from .reductions import column_sums

DTYPES = {torch.float32: np.float32, torch.float64: np.float64}
HALVES = (torch.float16, torch.bfloat16)


class Dense(torch.nn.Linear):
    """y = xWᵀ + b by this floor's kernels: torch.nn.Linear with another forward.

    Everything that Linear has is here too, since it is one: the arguments (in_features, out_features, bias=True,
    device, dtype), weight (out_features, in_features) and bias (out_features,), their first values for a seed, and the
    names in the state_dict, so that a checkpoint of either loads into the other.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., in_features) -> (..., out_features); see `dense`."""
        return dense(x, self.weight, self.bias)


class LeakyReLU(torch.nn.LeakyReLU):
    """z where it is positive, negative_slope · z elsewhere, by this floor's kernels.

    inplace=True is refused with a ValueError: the backward pass needs z.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        if inplace:
            raise ValueError("LeakyReLU: inplace=True is not supported, the backward pass needs z; leave it out")
        super().__init__(negative_slope)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """z of any shape -> the same shape; see `leaky_relu`."""
        return leaky_relu(z, self.negative_slope)


def dense(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """xWᵀ + b and, for backward, its gradients. Same as torch.nn.functional.linear.

    x: (..., in_features), any number of dimensions before the last, also none and also no rows
    weight: (out_features, in_features); bias: (out_features,) or None
    Returns (..., out_features). float32 or float64, the same for all. Gradients of first order only.
    Under autocast x in half precision is brought to weight's dtype: these kernels have no half precision.
    Raises ValueError where shapes or devices do not fit, TypeError for another dtype or a mix of them.
    """
    x = _from_autocast(x, weight)
    given = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    _check("dense", given)
    if weight.ndim != 2 or not weight.numel():
        raise ValueError(f"dense: weight is {_shape(weight)}, expected (out_features, in_features), both at least 1")
    if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"dense: x is {_shape(x)} but weight is {_shape(weight)}; "
            "x's last dimension must equal weight's columns, in_features"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"dense: bias is {_shape(bias)}, expected ({len(weight)},), one for each row of weight")
    output = _Dense.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return output.reshape(*x.shape[:-1], len(weight))


def leaky_relu(z: torch.Tensor, negative_slope: float = 0.01) -> torch.Tensor:
    """z where it is positive, negative_slope · z elsewhere (also at 0). Same as torch.nn.functional.leaky_relu.

    z: float32 or float64, of any shape; the result is contiguous. Gradients of first order only.
    Under autocast half precision becomes float32. Raises as `dense` does.
    """
    z = _from_autocast(z, None)
    _check("leaky_relu", {"z": z})
    return _LeakyReLU.apply(z, negative_slope)


class _Dense(torch.autograd.Function):
    """x (batch, in), weight (out, in), bias (out,) or None -> (batch, out)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        x, weight = _packed(x), _packed(weight)
        ctx.save_for_backward(x, weight)
        output = x.new_empty(len(x), len(weight))
        if len(x):
            if bias is not None:
                bias = _packed(bias)  # kept in a name until after the launch: an array does not own its memory
            with _torch_stream(x):
                result = multiply("nt", _array(x), _array(weight), _array(output))
                if bias is not None:
                    dense_kernels.add_bias[launch.elementwise(result.size)](result, _array(bias))
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
        grad_output = _packed(grad_output)
        with _torch_stream(x):
            grad = _array(grad_output)
            if grad_x is not None:
                multiply("nn", grad, _array(weight), _array(grad_x))
            if grad_weight is not None:
                multiply("tn", grad, _array(x), _array(grad_weight))
            if grad_bias is not None:
                column_sums(grad, _array(grad_bias))
        return grad_x, grad_weight, grad_bias


class _LeakyReLU(torch.autograd.Function):
    """z of any shape -> the same shape."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, slope: float) -> torch.Tensor:
        z = _packed(z)
        ctx.save_for_backward(z)
        ctx.slope = DTYPES[z.dtype](slope)
        output = torch.empty_like(z)
        if z.numel():
            with _torch_stream(z):
                kernels.leaky_relu[launch.elementwise(z.numel())](_vector(z), ctx.slope, _vector(output))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        (z,) = ctx.saved_tensors
        grad_output, grad_z = _packed(grad_output), torch.empty_like(z)
        if z.numel():
            blocks = launch.elementwise(z.numel())
            with _torch_stream(z):
                kernels.leaky_relu_backward[blocks](_vector(grad_output), _vector(z), ctx.slope, _vector(grad_z))
        return grad_z, None


def _array(tensor: torch.Tensor) -> Array:
    """The tensor's own memory as a device array; tensor: contiguous, and alive for as long as the array is used."""
    tensor = tensor.detach()  # a tensor that records gradients hands its memory to nobody
    if tensor.is_cuda:
        return cuda.as_cuda_array(tensor, sync=False)
    return _host_array()(tensor.numpy())


def _vector(tensor: torch.Tensor) -> Array:
    return _array(tensor.detach().view(-1))


@cache
def _host_array() -> Any:
    """The emulator's device array, or the simulator's: a wrapper around a NumPy array, here around a tensor's."""
    return type(cuda.device_array(1))


@contextmanager
def _torch_stream(tensor: torch.Tensor) -> Iterator[None]:
    """Kernels launched inside come after what PyTorch has queued, and before what it queues next.

    They run on the device's default stream, which is PyTorch's current one too unless the program chose another. Then
    each stream waits for the other, on the device: the host goes on.
    """
    if not tensor.is_cuda:
        yield
        return
    current, default = torch.cuda.current_stream(tensor.device), torch.cuda.default_stream(tensor.device)
    if current != default:
        default.wait_stream(current)
    yield
    if current != default:
        current.wait_stream(default)


def _packed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its numbers lie row after row and begin at a multiple of 16 bytes, as 128-bit loads need;
    else a copy that does."""
    tensor = tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _from_autocast(tensor: torch.Tensor, like: torch.Tensor | None) -> torch.Tensor:
    """Half precision becomes full inside autocast, where it is PyTorch and not the caller that chose it."""
    if isinstance(tensor, torch.Tensor) and tensor.dtype in HALVES and torch.is_autocast_enabled(tensor.device.type):
        return tensor.to(torch.float32 if like is None else like.dtype)
    return tensor


def _check(function: str, tensors: dict[str, torch.Tensor]) -> None:
    """TypeError or ValueError unless all are dense tensors of one dtype that we know, on the device of the kernels."""
    first, expected = next(iter(tensors.items()))
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            kind = tensor.layout if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise TypeError(f"{function}: {name} must be a dense torch.Tensor, got {kind}")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{function}: {name} is {tensor.dtype}, expected torch.float32 or torch.float64")
        if tensor.dtype != expected.dtype:
            raise TypeError(
                f"{function}: {name} is {tensor.dtype} but {first} is {expected.dtype}; convert one of them"
            )
        if tensor.device != expected.device:
            raise ValueError(f"{function}: {name} is on {tensor.device} but {first} is on {expected.device}; move one")
    _check_device(function, first, expected.device)


def _check_device(function: str, name: str, device: torch.device) -> None:
    if BACKEND.name != "gpu":
        if device.type != "cpu":
            raise ValueError(
                f"{function}: {name} is on {device}, but stage 4 runs its kernels on {TITLES[BACKEND.name]} "
                f"({BACKEND.reason}); move the module and its input there with .cpu()"
            )
        return
    if device.type != "cuda":
        raise ValueError(
            f"{function}: {name} is on {device}, but stage 4 runs its kernels on the GPU; move the module and its "
            f"input there with .cuda(), or set {VARIABLE}=emulator before Python starts"
        )
    index = cuda.get_current_device().id
    if device.index != index:
        raise ValueError(
            f"{function}: {name} is on {device}, but numba-cuda's current device is {index}; "
            f"call numba.cuda.select_device({device.index}) first"
        )


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
