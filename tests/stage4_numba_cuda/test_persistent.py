"""The persistent kernel takes the steps that the other rungs take, many in a launch, and says where it does not fit.

Without a GPU it runs on the emulator, whose blocks meet at the same barriers. Its kernels take long to compile, so most
cases share the variant that the ladder of steps takes, too: float64, samples that are float64. The variant for samples
that are bytes, over 255, is in the wide tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from cuda_emulator.inspection import detecting, hooks, limits
from shared.architectures import mlp
from shared.contract import Stage, load_stage
from shared.data.batches import as_targets, batch_order
from shared.data.datasets import Split
from shared.dropout import step_masks
from shared.training.loop import train
from shared.training.schedules import Schedule
from shared.training.settings import TrainingSettings
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels import persistent_tile
from stage4_numba_cuda.plans import choice, cuda_graphs, persistent
from tests.wide import wide, widely

pytestmark = [wide] if BACKEND.name == "emulator" else []  # it compiles the kernel for twenty seconds

STAGE: Stage = load_stage("stage4_numba_cuda")
PURE: Stage = load_stage("stage1_pure_python")
Make = Callable[[Any], Any]

PLAIN = "graph" if cuda_graphs.available() else "few_kernels"
"""The rung below."""

on_the_emulator = pytest.mark.skipif(BACKEND.name != "emulator", reason="it is about the emulator")

OPTIMIZERS: dict[str, Make] = {
    "Adam, weight decay": lambda room: room.Adam(0.01, epsilon=1e-3, weight_decay=0.01),
    "SGD": lambda room: room.SGD(0.1),
    "SGD, momentum": lambda room: room.SGD(0.1, momentum=0.9),
    "SGD, Nesterov, weight decay": lambda room: room.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "RMSProp": lambda room: room.RMSProp(0.01, epsilon=1e-3),
}


AS_BYTES = False
"""Whether `samples` are bytes over 255."""


@pytest.fixture(autouse=True)
def _asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(persistent.VARIABLE, "1")


@pytest.fixture(params=widely(["numbers", "bytes"]))
def either_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test is run with samples that are numbers, and with bytes."""
    monkeypatch.setattr(sys.modules[__name__], "AS_BYTES", request.param == "bytes")


def samples(count: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if AS_BYTES:
        x = rng.integers(0, 256, (count, features)).astype(np.float32) / np.float32(255)
    else:
        x = rng.random((count, features))
    return x, rng.integers(0, classes, count)


def of_mlp(stage: Stage, sizes: tuple[int, ...], dropout: float, activation: str = "relu", **kinds: str) -> Any:
    return stage.network.Network(mlp(sizes, activation, dropout), seed=4, **kinds)


def by_launches(
    sizes: tuple[int, ...], count: int, batch: int, steps: int, make: Make, dropout: float, at_once: int, **kinds: str
) -> tuple[list[float], list[np.ndarray]]:
    """The losses and the parameters after so many steps of the persistent kernel, epoch after epoch."""
    x, labels = samples(count, sizes[0], max(2, sizes[-1]))
    network, optimizer = of_mlp(STAGE, sizes, dropout, **kinds), make(STAGE.optimizers)
    run = network.resident(x, labels, optimizer, batch, 5)
    assert (run.rung, run.reason, run.is_bytes) == ("persistent", None, AS_BYTES)
    losses: list[float] = []
    while len(losses) < steps:
        first = len(losses) % run.steps
        if first == 0:
            run.begin_epoch(batch_order(count, 3, len(losses) // run.steps))
        taken = min(at_once, run.steps - first, steps - len(losses))
        losses += run.take(first, [rate(len(losses) + i) for i in range(taken)], len(losses))
    assert optimizer.state()["steps"] == steps
    return losses, [p.copy_to_host() for p in network.parameters]


def rate(step: int) -> float:
    """A schedule: another learning rate at each step."""
    return 0.1 / (1 + 0.05 * step)


def by_hand(
    stage: Stage, sizes: tuple[int, ...], count: int, batch: int, steps: int, make: Make, dropout: float, **kinds: str
) -> tuple[list[float], list[np.ndarray]]:
    """The same by `train_step` of a stage, each batch, mask and target made on the host."""
    x, labels = samples(count, sizes[0], max(2, sizes[-1]))
    network, optimizer = of_mlp(stage, sizes, dropout, **kinds), make(stage.optimizers)
    per_epoch = -(-count // batch)
    losses = []
    for step in range(steps):
        start = step % per_epoch * batch
        indices = batch_order(count, 3, step // per_epoch)[start : start + batch]
        optimizer.learning_rate = rate(step)
        masks = step_masks(len(indices), network.architecture.dropouts(), 5, step, "float64")
        own = None if masks is None else [stage.arrays.asarray(mask, "float64") for mask in masks]
        y = as_targets(labels[indices], network.loss_name, sizes[-1], "float64")
        given = [int(label) for label in y] if y.ndim == 1 else stage.arrays.asarray(y, "float64")
        losses.append(network.train_step(stage.arrays.asarray(x[indices], "float64"), given, optimizer, own))
    return losses, [np.asarray(stage.arrays.to_host(p), np.float64) for p in network.parameters]


def assert_same(got: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(got[0], expected[0], rtol=tolerance, atol=tolerance)
    for mine, theirs in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance)


# ---------------------------------------------------------------- the numbers

SHAPES = [
    # sizes that fill no tile; samples, batch: the last batch of an epoch is smaller; dropout; kinds
    ((21, 12, 3), 53, 8, 0.3, {"activation": "tanh"}),
    ((70, 33, 10), 75, 37, 0.25, {"loss": "hinge"}),
    ((65, 17, 1), 40, 33, 0.0, {"loss": "sigmoid_cross_entropy", "activation": "sigmoid"}),
    ((5, 40, 32), 13, 5, 0.5, {"loss": "mean_squared_error", "activation": "leaky_relu"}),
    ((130, 16, 2), 11, 1, 0.0, {"activation": "identity"}),
    # more hidden neurons than a block has threads, and more parts than a thread asks for at once
    ((20, 300, 4), 19, 9, 0.2, {}),
    ((1090, 17, 3), 9, 4, 0.0, {"activation": "tanh"}),
]


@pytest.mark.usefixtures("either_kind")
@pytest.mark.parametrize("name", widely(OPTIMIZERS))
def test_a_hundred_steps_end_where_stage_1_ends(name: str) -> None:
    sizes, count, batch, dropout, kinds = SHAPES[0]
    case = (sizes, count, batch, 100, OPTIMIZERS[name], dropout)
    got = by_launches(*case, at_once=7, dtype="float64", **kinds)
    assert_same(got, by_hand(PURE, *case, dtype="float64", **kinds))


@pytest.mark.usefixtures("either_kind")
@pytest.mark.parametrize("number", widely(range(len(SHAPES)), first=3))
@pytest.mark.parametrize("at_once", widely([5, 1]))
def test_any_shape_loss_and_activation_ends_where_the_step_by_hand_ends(number: int, at_once: int) -> None:
    sizes, count, batch, dropout, kinds = SHAPES[number]
    case = (sizes, count, batch, 12, OPTIMIZERS["SGD, momentum"], dropout)
    got = by_launches(*case, at_once=at_once, dtype="float64", **kinds)
    assert_same(got, by_hand(STAGE, *case, dtype="float64", **kinds))


@pytest.mark.usefixtures("either_kind")
def test_a_batch_of_several_pieces_fetches_each_again() -> None:
    """In float64 a block computes 32 rows at a time."""
    case = ((21, 12, 3), 170, 90, 6, OPTIMIZERS["SGD"], 0.0)
    assert_same(by_launches(*case, at_once=2, dtype="float64"), by_hand(STAGE, *case, dtype="float64"))


@pytest.mark.usefixtures("either_kind")
@wide
def test_float32_stays_near_float64() -> None:
    case = ((70, 33, 10), 150, 64, 20, OPTIMIZERS["SGD, momentum"], 0.25)
    got = by_launches(*case, at_once=3, dtype="float32")
    assert_same(got, by_hand(STAGE, *case, dtype="float64"), tolerance=2e-5)


@pytest.mark.usefixtures("either_kind")
@on_the_emulator
def test_a_training_run_takes_it_and_ends_where_another_rung_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = samples(53, 21, 3)
    settings = TrainingSettings(epochs=2, batch_size=8, schedule=Schedule("cosine"), seed=3)

    def trained() -> list[np.ndarray]:
        network = STAGE.network.Network(mlp([21, 12, 3], dropout=0.3), seed=1, dtype="float64")
        train(STAGE, network, STAGE.optimizers.Adam(0.01), Split(x, labels), settings)
        return [p.copy_to_host() for p in network.parameters]

    launched: list[int] = []
    launch = persistent.PersistentPlan.launch

    def counted(self: persistent.PersistentPlan, *arguments: Any, **keywords: Any) -> None:
        launched.append(1)
        launch(self, *arguments, **keywords)

    monkeypatch.setattr(persistent.PersistentPlan, "launch", counted)
    ours = trained()
    assert len(launched) == 14  # seven steps an epoch; the emulator's interval is one step
    monkeypatch.setenv(persistent.VARIABLE, "0")
    theirs = trained()
    assert len(launched) == 14
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dropout", widely([0.4, 0.0], first=0))
def test_as_a_rung_it_leaves_gradients_where_there_is_no_optimizer(dropout: float) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((9, 21)), rng.integers(0, 3, 9)
    masks = step_masks(9, [(12, dropout)], 0, 0, "float64")
    ladder, found = STAGE.network.STEP_LADDER, {}
    assert list(ladder)[-2:] == ["graph", "persistent"]
    for name in ("op_by_op", "persistent"):
        network = STAGE.network.Network(mlp([21, 12, 3], dropout=dropout), seed=2, dtype="float64")
        before = [p.copy_to_host() for p in network.parameters]
        loss = ladder[name](network, x, y, None, masks)
        found[name] = [np.array(loss), *(array.copy_to_host() for array in network.layer_gradients)]
        assert all(np.array_equal(a, b.copy_to_host()) for a, b in zip(before, network.parameters, strict=True))
    for got, expected in zip(found["persistent"], found["op_by_op"], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)


# ---------------------------------------------------------------- the kernel


def test_a_slice_of_bytes_becomes_the_numbers_that_stand_for_them() -> None:
    _, ask, put, *_ = persistent_tile.make_tile(32, as_bytes=True)
    lanes = persistent_tile.THREADS // 32
    each = persistent_tile.K_TILE // lanes

    @cuda.jit
    def fetch(values, x_tile):  # type: ignore[no-untyped-def]
        asked = cuda.local.array(each, values.dtype)
        ask(values, cuda.threadIdx.x // lanes, 0, asked)
        put(asked, x_tile)

    values = np.random.default_rng(0).permutation(32 * 61).astype(np.uint8).reshape(32, 61)  # 61 of 64 inputs
    table = np.arange(256, dtype=np.float32) / np.float32(255)
    x_tile = cuda.to_device(np.full((64, 36), np.nan))
    fetch[1, persistent_tile.THREADS](cuda.to_device(values), x_tile)
    got = x_tile.copy_to_host()
    np.testing.assert_array_equal(got[:61, :32], table[values].T)
    np.testing.assert_array_equal(got[61:, :32], table[0])
    assert np.isnan(got[:, 32:]).all()


@wide
@on_the_emulator
def test_no_two_threads_race_in_it() -> None:
    """Check mode looks at every access of a launch of two steps, in all its blocks, and runs it in four orders."""
    hooks.register_detector(detecting.detect)
    with options(check=True):
        case = ((70, 20, 3), 12, 5, 2, OPTIMIZERS["SGD, momentum"], 0.3)
        got = by_launches(*case, at_once=2, dtype="float64")
    assert_same(got, by_hand(STAGE, *case, dtype="float64"))


@wide
@on_the_emulator
def test_without_its_second_barrier_blocks_would_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: each barrier is needed."""
    from cuda_emulator import KernelError
    from stage4_numba_cuda.kernels import persistent as kernels

    @cuda.jit(device=True)
    def meet_at_the_first(meetings, target):  # type: ignore[no-untyped-def]
        if target // cuda.gridDim.x % 2 == 1:
            cuda.cg.this_grid().sync()
        return True

    monkeypatch.setattr(kernels, "meet", meet_at_the_first)
    monkeypatch.setitem(kernels.PERSISTENT, (32, False), kernels.make_persistent(32, False))
    monkeypatch.setitem(kernels.PERSISTENT, (16, False), kernels.make_persistent(16, False))
    hooks.register_detector(detecting.detect)
    with options(check=True), pytest.raises(KernelError, match="Only a barrier across the grid orders two blocks"):
        by_launches((70, 20, 3), 12, 5, 2, OPTIMIZERS["SGD, momentum"], 0.3, at_once=2, dtype="float64")


# ---------------------------------------------------------------- what does not fit


def run_of(sizes: list[int], batch: int = 8, optimizer: Any = None, **kinds: str) -> Any:
    x, labels = samples(max(batch, 8), sizes[0], sizes[-1])
    network = STAGE.network.Network(sizes, dtype="float64", **kinds)
    return network.resident(x, labels, optimizer or STAGE.optimizers.SGD(0.1), batch, 0)


@pytest.mark.parametrize(
    ("sizes", "batch", "kinds", "rung", "reason"),
    [
        ([6, 5, 4, 3], 8, {}, PLAIN, "the network has 2 hidden layers, and the kernel takes one"),
        ([6, 3], 8, {}, "fused", "the network has 0 hidden layers, and the kernel takes one"),
        ([6, 5, 33], 8, {}, "fused", "the network has 33 outputs, and the kernel takes 32"),
        ([6, 513, 3], 8, {}, PLAIN, "the network has 513 hidden neurons, and the kernel takes 512"),
        ([6, 5, 3], 1025, {}, PLAIN, "a batch has 1025 samples, and the kernel takes 1024"),
        ([6, 5, 3], 8, {"activation": "softmax"}, "fused", "softmax between the layers needs whole rows"),
    ],
)
def test_what_does_not_fit_takes_another_rung_and_says_why(
    sizes: list[int], batch: int, kinds: dict[str, str], rung: str, reason: str
) -> None:
    run = run_of(sizes, batch, **kinds)
    assert (run.rung, run.reason) == (rung, reason)
    assert run.network.told == f"steps by {rung}: {reason}"
    run.begin_epoch(np.arange(run.count))
    assert np.isfinite(run.take(0, [0.1], 0)).all()


def test_a_grid_that_the_device_cannot_hold_at_once_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_of([70, 20, 3]).rung == "persistent"  # two tiles down, two across
    monkeypatch.setattr(persistent, "together", lambda chunk, values, dtype: 4 if chunk == 16 else 1)
    run = run_of([70, 20, 3])
    assert run.rung == "persistent"
    assert persistent.chunk_of(run.network, "float64") == 16  # smaller pieces of a batch take less shared memory
    monkeypatch.setattr(persistent, "together", lambda chunk, values, dtype: 3)
    run = run_of([70, 20, 3])
    assert run.rung == PLAIN
    assert run.reason == "it needs 4 blocks at the same time, and this device holds 3"


def test_a_device_without_cooperative_launches_does_not_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    network = run_of([6, 5, 3]).network
    device = SimpleNamespace(COOPERATIVE_LAUNCH=0)  # numba-cuda's name for the driver's attribute
    monkeypatch.setattr(persistent, "cuda", SimpleNamespace(get_current_device=lambda: device))
    monkeypatch.setattr(persistent, "BACKEND", SimpleNamespace(name="gpu"))
    reason = "this device and its driver have no cooperative launches, as may be on Windows in WDDM mode"
    assert persistent.misfit(network, 8, "float64") == reason


@wide
@on_the_emulator
@pytest.mark.parametrize("values", ["uint8", "float64"])
def test_what_the_device_holds_is_asked_of_the_compiled_kernel(values: str) -> None:
    most = {chunk: persistent.together(chunk, values, "float64") for chunk in (32, 16)}
    assert most == {32: limits.MULTIPROCESSORS, 16: 2 * limits.MULTIPROCESSORS}  # by their shared memory


def test_another_optimizer_takes_its_steps_itself() -> None:
    class Still:
        learning_rate = 0.1

        def step(self, parameters: Any, gradients: Any) -> None:
            pass

    run = run_of([6, 5, 3], optimizer=Still())
    assert (run.rung, run.reason) == ("fused", "Still is no optimizer of this stage")


@on_the_emulator
def test_on_the_cpu_it_is_taken_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, "0"):
        if value is None:
            monkeypatch.delenv(persistent.VARIABLE)
        else:
            monkeypatch.setenv(persistent.VARIABLE, value)
        run = run_of([6, 5, 3])
        assert run.rung == "few_kernels"
        assert run.network.told == ""
        assert run.reason == "it is for GPUs (GROUNDUP_PERSISTENT=1 takes it on the CPU, too)"


def test_a_gpu_takes_the_graph_for_large_batches_unless_the_kernel_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimizer = STAGE.optimizers.SGD(0.1)
    monkeypatch.setattr(persistent, "BACKEND", SimpleNamespace(name="gpu"))
    assert persistent.slower_with(256) is None  # asked for
    monkeypatch.delenv(persistent.VARIABLE)
    assert persistent.slower_with(128) is None
    said = "a batch has 129 samples, and the persistent kernel is the faster one up to 128"
    assert persistent.slower_with(129) == said
    assert choice.rung_in_use(optimizer, 128) is choice.persistent_kernel
    assert choice.rung_in_use(optimizer, 129) is choice.graph
    assert choice.rung_in_use(None, 128) is choice.graph
    monkeypatch.setattr(persistent, "BACKEND", BACKEND)
    monkeypatch.setenv(persistent.VARIABLE, "1")
    monkeypatch.setattr(persistent, "slower_with", lambda rows: f"{rows} samples are many")
    run = run_of([6, 5, 3])
    assert (run.rung, run.reason) == (PLAIN, f"{run.batch_size} samples are many")
    assert run.network.told == f"steps by {PLAIN}: {run.reason}"
