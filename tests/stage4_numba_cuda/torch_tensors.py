"""What the tests of interchange/ share: tensors on the device of the kernels, and gradients of functions of them."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch

    from stage4_numba_cuda import backend

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch: pip install torch")


def device() -> str:
    """Where the tensors of these tests live: on the device of the kernels."""
    return "cuda" if backend.BACKEND.name == "gpu" else "cpu"


def random(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device(), getattr(torch, dtype))


def host(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def gradients(function: Any, tensors: list[Any], grad_output: Any) -> list[Any]:
    """The function's result, and the gradient of each of its arguments."""
    own = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    output = function(*own)
    output.backward(grad_output)
    return [output, *(tensor.grad for tensor in own)]


def gradients_of_views(function: Any, tensors: list[Any], grad_output: Any) -> list[Any]:
    """As `gradients`, of the tensors as they lie in memory."""
    own = [tensor.detach().requires_grad_() for tensor in tensors]
    output = function(*own)
    return [output, *torch.autograd.grad(output, own, grad_output)]
