"""shared.bench.peers.pytorch_device, as far as a machine without a GPU can tell: on the CPU, and with graphs that run
their step as it is."""

import gc
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import named
from shared.bench.kinds import convolutions, steps
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.peers import pytorch, pytorch_device
from shared.bench.peers.pytorch_device import CONVOLUTION_WAYS, MODEL_WAYS, Way
from tests.fake_stages import say_of_stage_4

LENET = steps.model_cases("lenet5", [2])[0]


@pytest.fixture
def torch() -> Iterator[Any]:
    """PyTorch, whose settings are put back."""
    found = pytest.importorskip("torch", reason="PyTorch is not installed; it is only measured against")
    yield found
    pytorch_device.settle(found, False)


def test_a_step_on_a_device_has_the_losses_of_a_step(torch: Any) -> None:
    random = np.random.default_rng(0)
    parameters = [random.standard_normal(shape).astype(np.float32) for shape in ((6, 4), (4,), (4, 3), (3,))]
    x, y = random.random((5, 6)).astype(np.float32), random.integers(0, 3, 5)
    on_device = pytorch_device.device_step(torch, parameters, x, y, 0.1, device="cpu")
    step = pytorch.stepper(torch, pytorch.network(torch, parameters), 0.1)
    expected = [step(torch.from_numpy(x), torch.from_numpy(y)) for _ in range(3)]
    assert [on_device() for _ in range(3)] == pytest.approx(expected)


def test_a_captured_step_begins_where_it_was_captured(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a graph that runs its step as it is: what must be put back is put back."""

    class Graph:
        def replay(self) -> None:
            step()

    def stream(*others: Any) -> Any:
        return SimpleNamespace(wait_stream=lambda other: None)

    for name, fake in {"Stream": stream, "current_stream": stream, "CUDAGraph": Graph}.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda what: nullcontext())
    collects: list[bool] = []
    parameter = torch.nn.Parameter(torch.ones(2))

    def step() -> Any:
        collects.append(gc.isenabled())
        with torch.no_grad():
            parameter.mul_(2.0)
        return parameter

    replay = pytorch_device.captured(torch, step, [parameter])
    assert parameter.tolist() == [1.0, 1.0]
    assert collects == [True, True, True, False]  # in the capture an array that is freed would end it
    assert gc.isenabled()
    assert replay().tolist() == [2.0, 2.0]


def test_tf32_is_on_only_inside_its_calls(torch: Any) -> None:
    """cuDNN has it on for convolutions unless it is turned off, so that FP32 would be no FP32."""

    def now() -> tuple[bool, str]:
        return torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()

    torch.backends.cudnn.allow_tf32 = True
    seen = [pytorch_device.in_precision(torch, Way(tf32=tf32), now)() for tf32 in (False, True)]
    assert seen == [(False, "highest"), (True, "high")]
    assert now() == (False, "highest")


@pytest.fixture
def precisions(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What the networks of stage 4 are told to round to, in that order. They round nothing, or kernels that take long
    to compile would be compiled."""
    told: list[str | None] = []

    class Told:
        def __set__(self, network: Any, chosen: str | None) -> None:
            told.append(chosen)

        def __get__(self, network: Any, owner: type) -> None:
            return None

    monkeypatch.setattr(contract.load_part("stage4_numba_cuda", "network").Network, "precision", Told())
    return told


def test_every_way_of_a_known_network_takes_stage_2s_steps_beside_a_stage_on_a_gpu(
    torch: Any, precisions: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    monkeypatch.setattr(gpu, "cuda_torch", lambda: torch)
    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(pytorch_device, "captured", lambda torch, step, kept: step)
    stage = contract.load_stage("4")
    rows = list(steps.step_rows([stage], cases=[LENET], effort=Effort(1, 1.0, 0.0, 1)))
    ours = ["fused", "graph", "graph TF32"]
    assert [row.variant for row in rows] == [*(f"{way.name} on the GPU" for way in MODEL_WAYS), *ours]
    assert [row.stage for row in rows] == ["pytorch"] * len(MODEL_WAYS) + [stage.name] * 3
    assert [row.dtype for row in rows[-3:]] == ["float32", "float32", "tf32"]
    assert precisions == [None, None, "tf32"]
    assert [row.skipped for row in rows] == [None] * len(rows)
    assert {row.threads for row in rows} == {1}


def test_rounded_factors_are_allowed_more_and_not_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The convolution of factors that a tensor core has cut off is right, and one without its bias is not."""
    form = convolutions.Form((3, 20, 6, 5), (4, 20, 3, 3), (1, 1), (1, 1))
    numbers = convolutions._numbers(form, "float32")
    room: Any = contract.load_stage("2").convolution
    cut = [(each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for each in numbers[:2]]
    result = room.conv2d(*cut, numbers.bias, form.stride, form.padding)
    wrong = partial(
        convolutions._wrong, part="forward", form=form, numbers=numbers, dtype="float32", to_host=np.asarray, ladder={}
    )
    assert wrong(result, key=("pytorch", "TF32 on the GPU")) is None
    assert wrong(result, key=("stage4_numba_cuda", "tf32")) is None
    assert wrong(result, key=("stage4_numba_cuda", "naive")) is not None
    assert wrong(result - numbers.bias[:, np.newaxis, np.newaxis], key=("pytorch", "TF32 on the GPU")) is not None


def test_tf32_may_be_off_by_more_than_float32_and_not_by_much() -> None:
    expected = [2.0] * (steps.CHECKED_STEPS - 1) + [1.0]

    def is_right(way: str, last: float) -> bool:
        losses = iter([*expected[:-1], last])
        return steps._wrong(("pytorch", way), lambda: next(losses), expected) is None

    assert is_right("eager TF32 on the GPU", 1.005)
    assert not is_right("eager TF32 on the GPU", 1.02)
    assert not is_right("eager", 1.005)
    assert is_right("eager", 1.0)


@pytest.mark.parametrize("way", MODEL_WAYS, ids=lambda way: way.name)
def test_predictions_are_stage_2s(torch: Any, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytorch_device, "captured", lambda torch, step, kept: step)
    parameters = steps.start_parameters(named("lenet5"), "float32")
    images = np.random.default_rng(0).random((20, 784)).astype(np.float32)
    predict = pytorch_device.predictor(torch, parameters, images, way, "lenet5", "cpu")
    network = contract.load_stage("2").network.Network.from_parameters(parameters, architecture=named("lenet5"))
    np.testing.assert_array_equal(predict(), network.predict(images))


@pytest.mark.parametrize("way", CONVOLUTION_WAYS, ids=lambda way: way.what())
def test_convolutions_and_their_gradients_are_stage_2s(torch: Any, way: Way) -> None:
    random = np.random.default_rng(0)
    shapes = ((3, 2, 6, 5), (4, 2, 3, 3), (4,), (3, 4, 3, 5))
    x, weights, bias, grad = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    window = (2, 1), (1, 1)
    forward, backward = pytorch_device.convolution(torch, (x, weights, bias, grad), *window, way, "cpu")
    room = contract.load_stage("2").convolution
    assert room is not None
    near = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)
    near(forward().numpy(), room.conv2d(x, weights, bias, *window))
    for got, expected in zip(backward(), room.conv2d_backward(grad, x, weights, *window), strict=True):
        near(got.numpy(), expected)
