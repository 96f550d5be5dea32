"""Conv2d, MaxPool2d and BatchNorm2d of stage4_numba_cuda.interchange beside PyTorch's own."""

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

    from stage4_numba_cuda import convolution_passes
    from stage4_numba_cuda.interchange import (
        BatchNorm2d,
        Conv2d,
        Dense,
        LeakyReLU,
        MaxPool2d,
        batch_norm,
        conv2d,
        max_pool2d,
    )

    functional = torch.nn.functional

pytestmark = needs_torch

DTYPES = ("float32", "float64")
CLOSE = {"float32": {"rtol": 2e-5, "atol": 2e-5}, "float64": {"rtol": 1e-11, "atol": 1e-11}}

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, Any]] = {
    "one of all": ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0),
    "primes": ((3, 2, 11, 7), (5, 2, 3, 5), 1, (2, 1)),
    "pairs": ((2, 3, 9, 8), (4, 3, 2, 3), (2, 3), (0, 2)),
    "larger than a tile": ((2, 3, 10, 10), (35, 3, 4, 4), 2, 1),
    "one image": ((2, 6, 5), (3, 2, 3, 3), 1, 1),
}
"""The shapes of x and weight, stride and padding."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv2d_and_its_gradients_are_pytorchs(dtype: str, name: str) -> None:
    shape, kernels, stride, padding = CONVOLUTIONS[name]

    def ours(*tensors: Any) -> Any:
        return conv2d(*tensors, stride, padding)

    def theirs(*tensors: Any) -> Any:
        return functional.conv2d(*tensors, stride, padding)

    tensors = [
        random(*shape, dtype=dtype),
        random(*kernels, dtype=dtype, seed=1),
        random(kernels[0], dtype=dtype, seed=2),
    ]
    grad_output = random(*theirs(*tensors).shape, dtype=dtype, seed=3)
    exact = [t.double() for t in tensors]
    expected = gradients(theirs, exact, grad_output.double())
    scales = gradients(theirs, [t.abs() for t in exact], grad_output.double().abs())
    places = grad_output.numel() // kernels[0]
    terms = [int(np.prod(kernels[1:])) + 1, int(np.prod(kernels)) // kernels[1], places, places]
    got = gradients(ours, tensors, grad_output)
    each = zip(("conv2d", "grad_x", "grad_weight", "grad_bias"), got, expected, scales, terms, strict=True)
    for what, tensor, reference, scale, k in each:
        assert (tensor.shape, tensor.dtype) == (reference.shape, getattr(torch, dtype))
        found = compare(what, host(tensor), host(reference), dtype, k, scale=host(scale))
        assert found.ok, str(found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "size", "stride"),
    [((2, 3, 6, 4), 2, None), ((1, 2, 7, 5), (3, 2), (2, 1)), ((2, 5, 5), 2, 3), ((1, 1, 1, 1), 1, 1)],
    ids=["side by side", "overlapping", "one image", "one of all"],
)
def test_max_pool_and_its_gradient_are_pytorchs(dtype: str, shape: Any, size: Any, stride: Any) -> None:
    x = random(*shape, dtype=dtype).mul(2).round()  # with equal numbers
    x.view(-1)[-1] = torch.nan
    grad_output = random(*functional.max_pool2d(x, size, stride).shape, dtype=dtype, seed=1)
    expected = gradients(torch.nn.MaxPool2d(size, stride), [x], grad_output)
    for got, reference in zip(gradients(MaxPool2d(size, stride), [x], grad_output), expected, strict=True):
        assert got.dtype == reference.dtype
        torch.testing.assert_close(got, reference, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("training", [True, False], ids=["training", "in use"])
@pytest.mark.parametrize("shape", [(3, 2, 5, 7), (5, 3), (2, 4, 3)], ids=["images", "rows", "lines"])
def test_batch_norm_and_its_gradients_are_pytorchs(dtype: str, training: bool, shape: tuple[int, ...]) -> None:
    channels = shape[1]
    tensors = [random(*shape, dtype=dtype) + 3, random(channels, dtype=dtype, seed=1), random(channels, dtype=dtype)]
    grad_output = random(*shape, dtype=dtype, seed=3)
    running = [random(channels, dtype=dtype, seed=4), random(channels, dtype=dtype, seed=5).abs() + 0.5]

    def by(function: Any, dtype: Any) -> list[Any]:
        own = [t.to(dtype, copy=True) for t in running]
        results = gradients(
            lambda x, weight, bias: function(x, *own, weight, bias, training, 0.3, 1e-3),
            [t.to(dtype) for t in tensors],
            grad_output.to(dtype),
        )
        return [*results, *own]

    got, expected = by(batch_norm, getattr(torch, dtype)), by(functional.batch_norm, torch.float64)
    for ours, reference in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.double(), reference, **CLOSE[dtype])
    assert torch.equal(got[-1], running[-1]) is not training


@pytest.mark.parametrize("momentum", [0.1, None], ids=str)
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}], ids=str)
def test_batch_norm_keeps_pytorchs_running_statistics(momentum: float | None, options: dict[str, bool]) -> None:
    layers = [
        kind(3, momentum=momentum, dtype=torch.float64, device=device(), **options)
        for kind in (torch.nn.BatchNorm2d, BatchNorm2d)
    ]
    for step in range(3):
        outputs = [layer(random(2, 3, 4, 2, seed=step)) for layer in layers]
        torch.testing.assert_close(*outputs, **CLOSE["float64"])
    torch.testing.assert_close(*(layer.state_dict() for layer in layers), **CLOSE["float64"])
    outputs = [layer.eval()(random(2, 3, 4, 2, seed=9)) for layer in layers]
    torch.testing.assert_close(*outputs, **CLOSE["float64"])
    assert "num_batches_tracked" not in layers[1].state_dict() or layers[1].num_batches_tracked == 3


@pytest.mark.parametrize("wanted", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1)], ids=str)
def test_any_subset_of_the_gradients_can_be_asked_for(wanted: tuple[int, ...], monkeypatch: Any) -> None:
    summed = []
    weights_parts = convolution_passes.weights_parts
    monkeypatch.setattr(convolution_passes, "weights_parts", lambda *a: (summed.append(1), weights_parts(*a)))
    running = [random(2, seed=3), random(2, seed=4).abs()]
    for function, first, second in (
        (conv2d, random(2, 2, 4, 3), random(2, 2, 3, 3, seed=1)),
        (lambda x, weight, bias: batch_norm(x, *running, weight, bias, True), random(3, 2, 2, 2), random(2, seed=1)),
    ):
        tensors = [first, second, random(2, seed=2)]
        grad_output = torch.randn_like(function(*tensors))
        everything = gradients(function, tensors, grad_output)[1:]
        own = [t.detach().clone().requires_grad_(bool(w)) for t, w in zip(tensors, wanted, strict=True)]
        function(*own).backward(grad_output)
        for tensor, w, expected in zip(own, wanted, everything, strict=True):
            assert (tensor.grad is not None) == bool(w)
            assert tensor.grad is None or torch.equal(tensor.grad, expected)
    assert len(summed) == (2 if wanted[1] or wanted[2] else 1)  # frozen weights cost no pass


def test_a_batch_without_images_gives_none_and_gradients_of_zero() -> None:
    running = [torch.full((3,), number, dtype=torch.float64, device=device()) for number in (0.0, 1.0)]
    none = random(0, 3, 4, 4)
    for function, tensors, shape in (
        (conv2d, [random(0, 2, 4, 4), random(3, 2, 3, 3), random(3)], (0, 3, 2, 2)),
        (lambda x, *rest: batch_norm(x, *running, *rest, True), [none, random(3), random(3)], (0, 3, 4, 4)),
        (lambda x: max_pool2d(x, 2), [none], (0, 3, 2, 2)),
    ):
        output, *grads = gradients(function, tensors, random(*shape))
        assert output.shape == shape
        assert [grad.shape for grad in grads] == [tensor.shape for tensor in tensors]
        assert not any(grad.any() for grad in grads)
    assert not running[0].any()
    assert (running[1] == 1).all()


@pytest.mark.parametrize("lie", ["channels last", "transposed", "every second", "one channel last"])
def test_images_that_lie_otherwise_in_memory_give_what_packed_ones_give(lie: str) -> None:
    x = {
        "channels last": lambda: random(2, 3, 6, 4).to(memory_format=torch.channels_last),
        "transposed": lambda: random(3, 2, 4, 6).transpose(0, 1).transpose(2, 3),
        "every second": lambda: random(4, 6, 6, 8)[::2, ::2, :, ::2],
        "one channel last": lambda: random(2, 6, 4, 1).permute(0, 3, 1, 2),
    }[lie]()
    channels = x.shape[1]
    weight = random(3, channels, 3, 3, seed=1).to(memory_format=torch.channels_last)
    vectors = [random(2 * channels, seed=seed)[::2] for seed in (2, 3)]
    running = [torch.zeros(channels, 2, dtype=x.dtype, device=device())[:, 0] for _ in range(2)]
    for function, tensors in (
        (conv2d, [x, weight, random(1).expand(3)]),
        (lambda x, *rest: batch_norm(x, *running, *rest, True), [x, *vectors]),
        (lambda x: max_pool2d(x, 2), [x]),
    ):
        grad_output = random(1, 1, 1, 1).expand_as(function(*tensors))
        packed = [t.contiguous().clone(memory_format=torch.contiguous_format) for t in tensors]
        expected = gradients_of_views(function, packed, grad_output.contiguous())
        for ours, reference in zip(gradients_of_views(function, tensors, grad_output), expected, strict=True):
            assert torch.equal(ours, reference)
    assert running[0].all()  # changed, though it lies with gaps


def test_a_running_mean_that_a_graph_has_saved_may_not_change_unseen() -> None:
    mean, x = random(2, seed=1), random(2, 2, 3, 3).requires_grad_()
    loss = (x * mean.view(1, 2, 1, 1)).sum()
    batch_norm(x, mean, random(2), training=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_minus_sign_beside_the_memory_is_not_forgotten() -> None:
    x, weight = random(2, 2, 4, 4), random(3, 2, 3, 3)
    assert torch.equal(conv2d(torch._neg_view(x), weight), conv2d(-x, weight))


def test_the_layers_are_pytorchs_with_their_first_weights_and_names() -> None:
    for ours, theirs, arguments, options in (
        (Conv2d, torch.nn.Conv2d, (2, 3, (3, 5)), {"stride": (2, 1), "padding": (1, 2)}),
        (Conv2d, torch.nn.Conv2d, (2, 3, 3, 2, 1), {"bias": False, "dtype": torch.float64}),
        (BatchNorm2d, torch.nn.BatchNorm2d, (3, 1e-3, None), {}),
        (BatchNorm2d, torch.nn.BatchNorm2d, (3,), {"affine": False}),
        (MaxPool2d, torch.nn.MaxPool2d, (2,), {"stride": (2, 1)}),
    ):
        layers = []
        for kind in (ours, theirs):
            torch.manual_seed(3)
            layers.append(kind(*arguments, **options))
        own, other = layers
        assert isinstance(own, theirs)
        assert repr(own) == repr(other)
        assert [*own.state_dict()] == [*other.state_dict()]
        torch.testing.assert_close(own.state_dict(), other.state_dict(), rtol=0, atol=0)
        other.load_state_dict(own.state_dict())
        own.load_state_dict(other.state_dict())


def lenet5(layers: Any) -> Any:
    relu = {"negative_slope": 0.0}
    return torch.nn.Sequential(
        *(layers.Conv2d(1, 6, 5, padding=2), layers.LeakyReLU(**relu), layers.MaxPool2d(2)),
        *(layers.Conv2d(6, 16, 5), layers.LeakyReLU(**relu), layers.MaxPool2d(2), torch.nn.Flatten()),
        *(layers.Linear(400, 120), layers.LeakyReLU(**relu), layers.Linear(120, 84), layers.LeakyReLU(**relu)),
        layers.Linear(84, 10),
    )


class Residual(torch.nn.Module if HAS_TORCH else object):
    """Two convolutions with batch normalisation, and the input added to what they give."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.first = torch.nn.Sequential(layers.Conv2d(1, 4, 3, padding=1), layers.BatchNorm2d(4))
        self.second = torch.nn.Sequential(layers.Conv2d(4, 4, 3, padding=1, bias=False), layers.BatchNorm2d(4))
        self.last = torch.nn.Sequential(layers.MaxPool2d(3, 2), torch.nn.Flatten(), layers.Linear(36, 10))

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.last(x + self.second(x))


class Ours:
    """The names of torch.nn, with our layers behind them."""

    if HAS_TORCH:
        Conv2d, BatchNorm2d, MaxPool2d, LeakyReLU, Linear = Conv2d, BatchNorm2d, MaxPool2d, LeakyReLU, Dense


@pytest.mark.parametrize(("model", "side", "steps"), [(lenet5, 28, 5), (Residual, 8, 20)], ids=["LeNet-5", "residual"])
def test_training_from_the_same_weights_takes_the_same_course(model: Any, side: int, steps: int) -> None:
    torch.manual_seed(1)
    theirs, ours = (model(layers).to(device(), torch.float64) for layers in (torch.nn, Ours))
    ours.load_state_dict(theirs.state_dict())
    x, y = random(6, 1, side, side), torch.arange(6, device=device())

    def losses(model: Any) -> list[float]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        course = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            course.append(loss.item())
        return course

    course = losses(ours)
    np.testing.assert_allclose(course, losses(theirs), rtol=1e-9)
    assert course[-1] < course[0]
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-9, atol=1e-9)
    theirs.load_state_dict(ours.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-10, atol=1e-10)


def test_options_that_the_kernels_have_not_are_refused() -> None:
    for make, kind, message in (
        (lambda: Conv2d(2, 4, 3, groups=2), ValueError, "Conv2d: groups=2 is not supported, only 1; torch.nn.Conv2d"),
        (lambda: Conv2d(2, 4, 3, padding="same"), TypeError, "Conv2d: padding: expected a whole number of at least 0"),
        (lambda: MaxPool2d(2, dilation=2), ValueError, "MaxPool2d: dilation=2 is not supported, only 1"),
        (lambda: MaxPool2d(2, return_indices=True), ValueError, "MaxPool2d: return_indices=True is not supported"),
        (lambda: LeakyReLU(inplace=True), ValueError, "LeakyReLU: inplace=True is not supported, the backward pass"),
    ):
        with pytest.raises(kind) as caught:
            make()
        assert str(caught.value).startswith(message)


def test_wrong_arguments_are_named_and_change_nothing() -> None:
    x, weight, vector = random(2, 2, 4, 4), random(3, 2, 3, 3), random(2)
    mean, var = torch.zeros_like(vector), torch.ones_like(vector)
    layer = BatchNorm2d(2, dtype=torch.float64, device=device())
    for call, kind, message in (
        (lambda: conv2d(x[:, :1], weight), ValueError, "conv2d: x is (2, 1, 4, 4) but weight is (3, 2, 3, 3); x's"),
        (lambda: conv2d(x, weight[0]), ValueError, "conv2d: weight is (2, 3, 3), expected (out_channels, in_channels"),
        (lambda: conv2d(x, weight, vector), ValueError, "conv2d: bias is (2,), expected (3,), one for each output"),
        (lambda: conv2d(x[..., :2], weight), ValueError, "conv2d: the window (3, 3) is larger than the image (4, 2)"),
        (lambda: conv2d(x.float(), weight), TypeError, "conv2d: weight is torch.float64 but x is torch.float32; conv"),
        (lambda: max_pool2d(x[0, 0], 2), ValueError, "max_pool2d: x is (4, 4), expected (batch, channels, rows, colu"),
        (lambda: batch_norm(x, mean[:1], var), ValueError, "batch_norm: running_mean is (1,) but x is (2, 2, 4, 4);"),
        (lambda: batch_norm(x, None, None), ValueError, "batch_norm: expected running_mean and running_var, both"),
        (lambda: layer(x[0]), ValueError, "BatchNorm2d: x is (2, 4, 4), expected (batch, channels, rows, columns)"),
        (lambda: layer(x[:1, :, :1, :1]), ValueError, "batch_norm: expected more than 1 value per channel when train"),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value).startswith(message)
    assert layer.num_batches_tracked == 0
    assert (layer.running_mean == 0).all()
    assert not mean.any()
