"""stage4_numba_cuda.interchange: our kernels as PyTorch's layers give what PyTorch's own give, and their gradients."""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared.checks.tolerance import compare
from tests.stage4_numba_cuda.torch_tensors import (
    HAS_TORCH,
    device,
    gradients,
    gradients_of_views,
    host,
    needs_torch,
    random,
)

if HAS_TORCH:
    import torch

    from stage4_numba_cuda import backend
    from stage4_numba_cuda.interchange import Dense, LeakyReLU, dense, leaky_relu, tensors
DTYPES = ("float32", "float64")
SHAPES = {
    "one of all": ((1, 1), 1),
    "primes": ((7, 13), 5),
    "long rows": ((3, 97), 2),
    "larger than a tile": ((33, 20), 35),
    "a vector": ((5,), 3),
    "four dimensions": ((2, 3, 1, 4), 3),
}
"""x's shape and out_features."""


def test_without_torch_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "stage4_numba_cuda.interchange", raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module("stage4_numba_cuda.interchange")
    assert str(caught.value) == ("stage4_numba_cuda.interchange needs PyTorch, which is optional: pip install torch")


@needs_torch
@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float32", name) for name in SHAPES] + [("float64", name) for name in SHAPES if "tile" not in name],
)
def test_dense_and_its_gradients_are_the_formulas(dtype: str, name: str) -> None:
    shape, outputs = SHAPES[name]
    x, weight = random(*shape, dtype=dtype), random(outputs, shape[-1], dtype=dtype, seed=1)
    bias, grad_output = random(outputs, dtype=dtype, seed=2), random(*shape[:-1], outputs, dtype=dtype, seed=3)
    got = gradients(dense, [x, weight, bias], grad_output)
    theirs = gradients(torch.nn.functional.linear, [x, weight, bias], grad_output)
    for ours, expected in zip(got, theirs, strict=True):
        assert (ours.shape, ours.dtype, ours.device) == (expected.shape, expected.dtype, expected.device)

    def formulas(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, grad: np.ndarray) -> list[np.ndarray]:
        return [x @ weight.T + bias, grad @ weight, grad.T @ x, grad.sum(axis=0)]

    rows = [host(t).astype(np.float64).reshape(-1, t.shape[-1]) for t in (x, weight, bias, grad_output)]
    terms = [shape[-1] + 1, outputs, len(rows[0]), len(rows[0])]
    names = ("dense", "grad_x", "grad_weight", "grad_bias")
    each = zip(names, got, formulas(*rows), formulas(*map(np.abs, rows)), terms, strict=True)
    for name, ours, expected, scale, k in each:
        found = compare(name, host(ours).reshape(expected.shape), expected, dtype, k, scale=scale)
        assert found.ok, str(found)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("slope", [0.01, 0.0, -0.5])
def test_leaky_relu_and_its_gradient_are_pytorchs_to_the_bit(dtype: str, slope: float) -> None:
    z = random(3, 5, 7, dtype=dtype)
    z.view(-1)[:5] = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])
    grad_output = random(3, 5, 7, dtype=dtype, seed=1)
    got = gradients(LeakyReLU(slope), [z], grad_output)
    for ours, expected in zip(got, gradients(torch.nn.LeakyReLU(slope), [z], grad_output), strict=True):
        np.testing.assert_array_equal(host(ours), host(expected))


@needs_torch
@pytest.mark.parametrize("wanted", [(x, w, b) for x in (0, 1) for w in (0, 1) for b in (0, 1) if x + w + b])
def test_any_subset_of_the_gradients_can_be_asked_for(wanted: tuple[int, int, int]) -> None:
    tensors = [random(3, 4), random(2, 4, seed=1), random(2, seed=2)]
    everything = gradients(dense, tensors, torch.ones(3, 2, dtype=torch.float64, device=device()))[1:]
    own = [t.detach().clone().requires_grad_(bool(w)) for t, w in zip(tensors, wanted, strict=True)]
    dense(*own).sum().backward()
    for tensor, w, expected in zip(own, wanted, everything, strict=True):
        assert (tensor.grad is not None) == bool(w)
        assert tensor.grad is None or torch.equal(tensor.grad, expected)


@needs_torch
def test_a_batch_without_rows_gives_none_and_gradients_of_zero() -> None:
    for shape in ((0, 4), (2, 0, 4)):
        output, *grads = gradients(dense, [random(*shape), random(3, 4), random(3)], random(*shape[:-1], 3))
        assert output.shape == (*shape[:-1], 3)
        assert [tuple(grad.shape) for grad in grads] == [shape, (3, 4), (3,)]
        assert not any(grad.any() for grad in grads)
    output, grad = gradients(leaky_relu, [random(0, 3)], random(0, 3))
    assert output.shape == grad.shape == (0, 3)


@needs_torch
def test_tensors_with_gaps_give_what_their_packed_copies_give() -> None:
    x, weight, grad_output = random(4, 6).T[::2], random(8, 5)[:4, 1::2].T, random(1, 1).expand(3, 2)
    bias = random(4)[::2]
    got = gradients_of_views(dense, [x, weight[:, :4], bias], grad_output)
    packed = [t.contiguous() for t in (x, weight[:, :4], bias)]
    for ours, expected in zip(got, gradients_of_views(dense, packed, grad_output.contiguous()), strict=True):
        assert torch.equal(ours, expected)
    assert torch.equal(leaky_relu(x), torch.nn.functional.leaky_relu(x))


@needs_torch
def test_a_tensor_that_begins_at_an_odd_address_is_copied_to_an_even_one() -> None:
    memory = random(1 + 3 * 4, dtype="float32")
    x = memory[1:].view(3, 4)
    assert x.data_ptr() % 16
    assert tensors.packed(x).data_ptr() % 16 == 0
    weight = random(2, 4, dtype="float32")
    assert torch.equal(dense(x, weight), dense(x.clone(), weight))


@needs_torch
@pytest.mark.parametrize("name", ["dense", "leaky_relu"])
def test_a_second_derivative_is_refused(name: str) -> None:
    z = random(3, 4).requires_grad_()
    output = dense(z, z.detach()[:2]) if name == "dense" else leaky_relu(z)
    (grad,) = torch.autograd.grad(output.square().sum(), z, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        grad.sum().backward()


@needs_torch
def test_under_autocast_half_precision_becomes_the_weights_dtype() -> None:
    layer, x = Dense(4, 2, device=device()), random(3, 4, dtype="float32")
    with torch.autocast(device(), dtype=torch.bfloat16):
        half = torch.nn.Linear(4, 4, device=device())(x)
        assert half.dtype == torch.bfloat16
        assert layer(half).dtype == LeakyReLU()(half).dtype == torch.float32
        layer(half).sum().backward()
    assert layer.weight.grad.dtype == torch.float32
    with pytest.raises(TypeError, match=r"^dense: x is torch.bfloat16, expected torch.float32 or torch.float64$"):
        layer(half.detach())


@needs_torch
def test_wrong_arguments_are_named() -> None:
    x, weight, bias = random(3, 4), random(2, 4), random(2)
    for given, kind, message in (
        ((random(3, 5), weight, bias), ValueError, "x is (3, 5) but weight is (2, 4); x's last dimension must equal"),
        ((x, weight[0], bias), ValueError, "weight is (4,), expected (out_features, in_features), both at least 1"),
        ((x, weight, bias[:1]), ValueError, "bias is (1,), expected (2,), one for each row of weight"),
        ((x.float(), weight, bias), TypeError, "weight is torch.float64 but x is torch.float32; convert one"),
        ((host(x), weight, bias), TypeError, "x must be a dense torch.Tensor, got ndarray"),
        ((x, weight.to("meta"), bias), ValueError, f"weight is on meta but x is on {x.device}; move one"),
    ):
        with pytest.raises(kind) as caught:
            dense(*given)
        assert str(caught.value).startswith(f"dense: {message}")
    with pytest.raises(TypeError, match=r"^leaky_relu: z is torch.int64, expected torch.float32 or torch.float64$"):
        leaky_relu(x.long())


@needs_torch
def test_a_tensor_of_another_device_than_the_kernels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = backend.Backend("emulator", None, "numba-cuda is not installed")
    monkeypatch.setattr(tensors, "BACKEND", emulated)
    with pytest.raises(ValueError, match="is on meta, but stage 4 runs its kernels on the CPU, emulated") as caught:
        leaky_relu(random(3).to("meta"))
    assert str(caught.value).endswith("(numba-cuda is not installed); move the module and its input there with .cpu()")

    gpu = SimpleNamespace(get_current_device=lambda: SimpleNamespace(id=0))
    monkeypatch.setattr(tensors, "BACKEND", backend.Backend("gpu", gpu, "NVIDIA T4"))
    monkeypatch.setattr(tensors, "cuda", gpu)
    with pytest.raises(ValueError, match="z is on cpu, but stage 4 runs its kernels on the GPU; move the module and"):
        leaky_relu(random(3).cpu())
    tensors.check_device("dense", "x", torch.device("cuda", 0))
    with pytest.raises(ValueError, match=r"^dense: x is on cuda:1, but numba-cuda's current device is 0; call numba."):
        tensors.check_device("dense", "x", torch.device("cuda", 1))


@needs_torch
@pytest.mark.parametrize("side", [True, False], ids=["side stream", "default stream"])
def test_kernels_wait_for_pytorchs_stream_and_it_for_them(monkeypatch: pytest.MonkeyPatch, side: bool) -> None:
    order = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, other: Any) -> None:
            order.append(f"{self.name} waits for {other.name}")

    default, current = Stream("default"), Stream("current")
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: default)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current if side else default)
    with tensors.torch_stream(SimpleNamespace(is_cuda=True, device="cuda:0")):
        order.append("launch")
    waits = ["default waits for current", "launch", "current waits for default"]
    assert order == (waits if side else ["launch"])
