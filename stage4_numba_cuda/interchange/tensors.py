"""PyTorch's tensors as arrays of the device: their memory, their stream, and the checks that all layers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

from ..arrays import Array
from ..backend import BACKEND, TITLES, VARIABLE, cuda

DTYPES = {torch.float32: np.float32, torch.float64: np.float64}
HALVES = (torch.float16, torch.bfloat16)


def array(tensor: torch.Tensor) -> Array:
    """The tensor's own memory as a device array; tensor: contiguous, and alive for as long as the array is used."""
    tensor = tensor.detach()  # a tensor that records gradients hands its memory to nobody
    if tensor.is_cuda:
        return cuda.as_cuda_array(tensor, sync=False)
    return _host_array()(tensor.numpy())


def vector(tensor: torch.Tensor) -> Array:
    return array(tensor.detach().view(-1))


@cache
def _host_array() -> Any:
    """The emulator's device array, or the simulator's: a wrapper around a NumPy array, here around a tensor's."""
    return type(cuda.device_array(1))


@contextmanager
def torch_stream(tensor: torch.Tensor) -> Iterator[None]:
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


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its memory holds its numbers row after row and begins at a multiple of 16 bytes, as 128-bit
    loads need; else a copy whose memory does. PyTorch can note a minus sign beside the memory: it is applied, too."""
    tensor = tensor.resolve_neg().contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def from_autocast(tensor: torch.Tensor, like: torch.Tensor | None) -> torch.Tensor:
    """Half precision becomes full inside autocast, where it is PyTorch and not the caller that chose it."""
    if isinstance(tensor, torch.Tensor) and tensor.dtype in HALVES and torch.is_autocast_enabled(tensor.device.type):
        return tensor.to(torch.float32 if like is None else like.dtype)
    return tensor


def check(function: str, tensors: dict[str, torch.Tensor]) -> None:
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
    check_device(function, first, expected.device)


def check_device(function: str, name: str, device: torch.device) -> None:
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


def shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)


def refuse(layer: torch.nn.Module, **supported: Any) -> None:
    """ValueError where an option of PyTorch's layer, by name, is set to what our kernels have not."""
    kind = type(layer).__name__
    for name, only in supported.items():
        given = getattr(layer, name)
        if given not in (only, (only, only)):
            raise ValueError(
                f"{kind}: {name}={given!r} is not supported, only {only!r}; torch.nn.{kind} can stand in its place"
            )
