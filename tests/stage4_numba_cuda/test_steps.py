"""The four ways through a training step of stage 4 end at the same numbers, whatever the network and the optimizer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from cuda_emulator.inspection import detecting, hooks
from shared.architectures import mlp
from shared.contract import Stage, load_stage
from shared.dropout import step_masks
from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES
from stage4_numba_cuda import backend
from stage4_numba_cuda.kernels import head
from stage4_numba_cuda.plans import mlp_launches
from tests.wide import wide

STAGE: Stage = load_stage("stage4_numba_cuda")
REFERENCE = load_stage("stage2_numpy")
RUNGS: dict[str, Callable[..., float]] = STAGE.network.STEP_LADDER
NAMES = [pytest.param(name, marks=wide) if name == "persistent" else name for name in RUNGS]
"""The persistent kernel takes twenty seconds to compile."""
SIZES = [13, 37, 11, 7, 5]
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda room: room.SGD(0.1),
    "SGD, weight decay": lambda room: room.SGD(0.1, weight_decay=0.01),
    "SGD, momentum": lambda room: room.SGD(0.1, momentum=0.9),
    "SGD, Nesterov": lambda room: room.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "RMSProp": lambda room: room.RMSProp(0.01, epsilon=1e-3, weight_decay=0.01),
    "Adam": lambda room: room.Adam(0.01, epsilon=1e-3, weight_decay=0.01),
}


def batch(loss: str, rows: int, sizes: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, sizes[0]))
    if loss in LABEL_LOSSES:
        return x, rng.integers(0, sizes[-1], rows)
    return x, rng.random((rows, sizes[-1]))


def trained(
    step: Callable[..., float],
    stage: Stage,
    optimizer: Any,
    *,
    loss: str = "softmax_cross_entropy",
    activation: str = "relu",
    dropout: float = 0.0,
    sizes: list[int] = SIZES,
    dtype: str = "float64",
    steps: int = 12,
    batches: tuple[int, int] = (9, 6),
) -> tuple[list[float], list[np.ndarray]]:
    """The losses of some steps, and the parameters after them."""
    form = mlp(sizes, activation, dropout)
    network = stage.network.Network(form, loss=loss, seed=1, dtype=dtype)
    losses = []
    for i in range(steps):
        rows = batches[i % 4 == 0]  # the batch shrinks and grows again
        x, y = batch(loss, rows, sizes, seed=i)
        masks = step_masks(rows, form.dropouts(), seed=0, step=i, dtype="float64")
        losses.append(step(network, x, y, optimizer, masks))
    return losses, [np.asarray(stage.arrays.to_host(p)) for p in network.parameters]


def reference_step(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> float:
    return network.train_step(x, y, optimizer, masks)


def assert_same(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-11)
    for g, e in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rung", NAMES)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_every_rung_takes_the_same_steps_with_every_optimizer(rung: str, name: str, dropout: float) -> None:
    ours, theirs = OPTIMIZERS[name](STAGE.optimizers), OPTIMIZERS[name](REFERENCE.optimizers)
    got = trained(RUNGS[rung], STAGE, ours, dropout=dropout)
    assert_same(got, trained(reference_step, REFERENCE, theirs, dropout=dropout))
    mine, other = ours.state(), theirs.state()
    assert mine["steps"] == other["steps"] == 12
    for buffer, arrays in other["buffers"].items():
        for g, e in zip(mine["buffers"][buffer], arrays, strict=True):
            np.testing.assert_allclose(STAGE.arrays.to_host(g), e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rung", NAMES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_rung_takes_the_same_steps_with_every_activation_and_loss(rung: str, activation: str, loss: str) -> None:
    options: dict[str, Any] = {"loss": loss, "activation": activation, "dropout": 0.2, "steps": 5}
    ours, theirs = STAGE.optimizers.SGD(0.05), REFERENCE.optimizers.SGD(0.05)
    assert_same(trained(RUNGS[rung], STAGE, ours, **options), trained(reference_step, REFERENCE, theirs, **options))


@pytest.mark.parametrize("rung", NAMES)
@pytest.mark.parametrize("sizes", [[5, 3], [5, 4, 3], [70, 65, 33, 32], [9, 8, 33], [3, 1, 1], [1, 2, 1, 2, 1, 2]])
def test_every_rung_takes_every_depth_and_width(rung: str, sizes: list[int]) -> None:
    ours, theirs = STAGE.optimizers.SGD(0.05, momentum=0.9), REFERENCE.optimizers.SGD(0.05, momentum=0.9)
    options: dict[str, Any] = {"sizes": sizes, "activation": "tanh", "steps": 6}
    assert_same(trained(RUNGS[rung], STAGE, ours, **options), trained(reference_step, REFERENCE, theirs, **options))


@pytest.mark.parametrize("rung", NAMES)
def test_every_rung_takes_batches_of_more_rows_than_a_tile(rung: str) -> None:
    ours, theirs = STAGE.optimizers.SGD(0.05), REFERENCE.optimizers.SGD(0.05)
    options: dict[str, Any] = {"batches": (70, 33), "steps": 3}
    assert_same(trained(RUNGS[rung], STAGE, ours, **options), trained(reference_step, REFERENCE, theirs, **options))


@wide
@pytest.mark.parametrize("block_rows", [head.HEAD_CPU, head.HEAD_GPU])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_head_takes_more_hidden_features_than_lie_in_shared_memory(
    loss: str, block_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlp_launches, "HEAD_ROWS", block_rows)
    ours, theirs = STAGE.optimizers.SGD(0.05), REFERENCE.optimizers.SGD(0.05)
    options: dict[str, Any] = {"loss": loss, "dropout": 0.2, "sizes": [7, 530, 5], "steps": 2}
    got = trained(RUNGS["few_kernels"], STAGE, ours, **options)
    assert_same(got, trained(reference_step, REFERENCE, theirs, **options))


@pytest.mark.parametrize("rung", NAMES)
def test_every_rung_takes_the_same_steps_in_float32(rung: str) -> None:
    ours, theirs = STAGE.optimizers.SGD(0.05), REFERENCE.optimizers.SGD(0.05)
    got = trained(RUNGS[rung], STAGE, ours, dtype="float32", dropout=0.3)
    expected = trained(reference_step, REFERENCE, theirs, dtype="float64", dropout=0.3)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)
    for g, e in zip(got[1], expected[1], strict=True):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rung", NAMES)
def test_without_an_optimizer_nothing_moves_and_the_gradients_are_left_in_the_layers(rung: str) -> None:
    network = STAGE.network.Network(SIZES, seed=1, dtype="float64")
    theirs = REFERENCE.network.Network(SIZES, seed=1, dtype="float64")
    before = [p.copy_to_host() for p in network.parameters]
    x, y = batch("softmax_cross_entropy", 9, SIZES)
    for gradient in network.layer_gradients:
        gradient.copy_to_device(np.full(gradient.shape, np.nan))
    assert RUNGS[rung](network, x, y, None) == pytest.approx(theirs.loss(x, y), rel=1e-12)
    for p, b in zip(network.parameters, before, strict=True):
        np.testing.assert_array_equal(p.copy_to_host(), b)
    for got, expected in zip(network.layer_gradients, theirs.gradients(x, y), strict=True):
        np.testing.assert_allclose(got.copy_to_host(), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("rung", NAMES)
def test_a_lead_of_exactly_1_is_outside_the_margin_on_every_rung(rung: str) -> None:
    rng = np.random.default_rng(0)
    shapes = [(5, 4), (4,), (4, 3)]
    parameters = [*map(rng.standard_normal, shapes), np.array([0.0, 1.0, 0.5])]
    parameters[2][:] = 0  # the scores are the biases: label 1 leads by 1 and by 0.5
    networks = [
        each.network.Network.from_parameters(parameters, loss="hinge", dtype="float64") for each in (STAGE, REFERENCE)
    ]
    x, y = rng.standard_normal((6, 5)), np.ones(6, np.int64)
    assert RUNGS[rung](networks[0], x, y, None) == pytest.approx(0.5 / 3)
    gradients = networks[1].gradients(x, y)
    np.testing.assert_allclose(gradients[-1], [0, -1 / 3, 1 / 3])
    for got, expected in zip(networks[0].layer_gradients, gradients, strict=True):
        np.testing.assert_allclose(got.copy_to_host(), expected, rtol=1e-12, atol=1e-15)


class Halving:
    """An optimizer of nobody's: halves the parameters, and remembers what gradients it saw."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def step(self, parameters: Any, gradients: Any) -> None:
        self.seen = [g.copy_to_host() for g in gradients]
        for p in parameters:
            p.copy_to_device(p.copy_to_host() / 2)


@pytest.mark.parametrize("rung", NAMES)
def test_somebody_elses_optimizer_gets_the_gradients_and_takes_the_step(rung: str) -> None:
    network = STAGE.network.Network(SIZES, seed=1, dtype="float64")
    before = [p.copy_to_host() for p in network.parameters]
    x, y = batch("softmax_cross_entropy", 9, SIZES)
    expected = [g.copy_to_host() for g in network.gradients(x, y)]
    optimizer = Halving()
    RUNGS[rung](network, x, y, optimizer)
    for got, wanted in zip(optimizer.seen, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-16)
    for p, b in zip(network.parameters, before, strict=True):
        np.testing.assert_array_equal(p.copy_to_host(), b / 2)


def test_nan_in_the_input_reaches_the_loss_on_every_rung() -> None:
    x, y = batch("softmax_cross_entropy", 9, SIZES)
    x[3, 2] = np.nan
    for rung in RUNGS.values():
        network = STAGE.network.Network(SIZES, seed=1, dtype="float64")
        assert np.isnan(rung(network, x, y, None))


def test_huge_logits_give_a_finite_loss_on_every_rung() -> None:
    for rung in RUNGS.values():
        network = STAGE.network.Network([2, 3, 2], seed=1, dtype="float64")
        network.layers[-1].bias = STAGE.arrays.asarray([1e4, -1e4], "float64")
        loss = rung(network, np.ones((4, 2)), [0, 1, 0, 1], None)
        assert loss == pytest.approx(1e4, rel=1e-2)
        assert all(np.isfinite(g.copy_to_host()).all() for g in network.layer_gradients)


@pytest.mark.parametrize("rung", ["fused", "few_kernels", "graph"])
def test_a_second_step_makes_no_new_arrays_on_the_device(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = STAGE.network.Network(mlp(SIZES, dropout=0.3), seed=1, dtype="float64")
    optimizer = STAGE.optimizers.Adam(0.01)
    x, y = batch("softmax_cross_entropy", 9, SIZES)
    masks = step_masks(9, network.architecture.dropouts(), seed=0, step=0, dtype="float64")
    RUNGS[rung](network, x, y, optimizer, masks)
    made = []
    for name in ("device_array", "to_device"):
        monkeypatch.setattr(backend.cuda, name, lambda *arguments, name=name, **options: made.append(name))
    optimizer.learning_rate = 0.02
    RUNGS[rung](network, x, y, optimizer, masks)
    assert made == []


@pytest.mark.parametrize("rung", NAMES)
def test_the_slope_of_a_hinge_loss_is_the_same_where_a_score_is_nan(rung: str) -> None:
    x, y = batch("hinge", 9, SIZES)
    x[3, 2] = np.nan
    ours = STAGE.network.Network(SIZES, loss="hinge", seed=1, dtype="float64")
    theirs = REFERENCE.network.Network(SIZES, loss="hinge", seed=1, dtype="float64")
    RUNGS[rung](ours, x, y, None)
    np.testing.assert_allclose(ours.layers[-1].grad_bias.copy_to_host(), theirs.gradients(x, y)[-1], rtol=1e-12)


@wide  # check mode takes long to compile
@pytest.mark.skipif(backend.BACKEND.name != "emulator", reason="check mode is the emulator's")
@pytest.mark.parametrize("rung", ["fused", "few_kernels"])
def test_no_two_threads_race_in_a_step(rung: str) -> None:
    """The batch has more rows than a tile of the weights' gradient, so that its threads go on to a second one."""
    hooks.register_detector(detecting.detect)
    network = STAGE.network.Network([5, 4, 3], seed=1, dtype="float64")
    x, y = batch("softmax_cross_entropy", 33, [5, 3])
    with options(check=True):
        assert np.isfinite(RUNGS[rung](network, x, y, STAGE.optimizers.SGD(0.1)))
