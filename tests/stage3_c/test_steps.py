"""The three ways through a training step of stage 3 end at the same numbers, whatever the network and the optimizer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture, mlp
from shared.contract import Stage, StageUnavailable, load_stage
from shared.dropout import step_masks
from shared.layers import BatchNorm, Conv, Dense, Flatten, Residual
from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES

try:
    STAGE: Stage = load_stage("stage3_c")
except StageUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

REFERENCE = load_stage("stage2_numpy")
RUNGS: dict[str, Callable[..., float]] = STAGE.network.STEP_LADDER
SIZES = [13, 11, 7, 5]
IMAGES = Architecture(
    (2, 8, 8), (Conv(4, 3, padding=1), BatchNorm(), Residual((Conv(4, 3, padding=1),)), Flatten(), Dense(3))
)
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda room: room.SGD(0.1),
    "SGD, weight decay": lambda room: room.SGD(0.1, weight_decay=0.01),
    "SGD, momentum": lambda room: room.SGD(0.1, momentum=0.9),
    "SGD, Nesterov": lambda room: room.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "RMSProp": lambda room: room.RMSProp(0.01, epsilon=1e-3, weight_decay=0.01),
    "Adam": lambda room: room.Adam(0.01, epsilon=1e-3, weight_decay=0.01),
}


def batch(loss: str, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, SIZES[0]))
    if loss in LABEL_LOSSES:
        return x, rng.integers(0, SIZES[-1], rows)
    return x, rng.random((rows, SIZES[-1]))


def parameters_after(
    step: Callable[..., float],
    stage: Stage,
    optimizer: Any,
    *,
    loss: str,
    activation: str,
    dropout: float,
    steps: int = 20,
) -> tuple[list[float], list[np.ndarray]]:
    network = stage.network.Network(mlp(SIZES, activation, dropout), loss=loss, seed=1, dtype="float64")
    losses = []
    for i in range(steps):
        rows = 9 if i % 4 else 6  # the batch shrinks and grows again
        x, y = batch(loss, rows, seed=i)
        masks = step_masks(rows, network.architecture.dropouts(), seed=0, step=i, dtype="float64")
        losses.append(step(network, x, y, optimizer, masks))
    return losses, [np.array(p) for p in network.parameters]


def reference_step(network: Any, x: Any, y: Any, optimizer: Any, masks: Any) -> float:
    return network.train_step(x, y, optimizer, masks)


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_every_rung_takes_the_same_steps_with_every_optimizer(rung: str, name: str, dropout: float) -> None:
    options: dict[str, Any] = {"loss": "softmax_cross_entropy", "activation": "relu", "dropout": dropout}
    ours, theirs = OPTIMIZERS[name](STAGE.optimizers), OPTIMIZERS[name](REFERENCE.optimizers)
    got = parameters_after(RUNGS[rung], STAGE, ours, **options)
    expected = parameters_after(reference_step, REFERENCE, theirs, **options)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-11)
    for g, e in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)
    mine, other = ours.state(), theirs.state()
    assert mine["steps"] == other["steps"] == 20
    assert mine["buffers"].keys() == other["buffers"].keys()


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_rung_takes_the_same_steps_with_every_activation_and_loss(rung: str, activation: str, loss: str) -> None:
    options: dict[str, Any] = {"loss": loss, "activation": activation, "dropout": 0.3}
    got = parameters_after(RUNGS[rung], STAGE, STAGE.optimizers.SGD(0.05), **options)
    expected = parameters_after(reference_step, REFERENCE, REFERENCE.optimizers.SGD(0.05), **options)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-11)
    for g, e in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_layers_of_more_than_16384_numbers_are_shared_out_over_the_threads(name: str) -> None:
    """And so is what the optimizer keeps for them: each thread has its part of each array."""
    ends = []
    for stage in (STAGE, REFERENCE):
        network = stage.network.Network([13, 1500, 5], dtype="float64")
        optimizer = OPTIMIZERS[name](stage.optimizers)
        for i, rows in enumerate((6, 6, 1)):
            network.train_step(*batch("softmax_cross_entropy", rows, seed=i), optimizer)
        buffers = optimizer.state()["buffers"].values()
        ends.append([*network.parameters, *(array for arrays in buffers for array in arrays)])
    for g, e in zip(*ends, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_rung_takes_a_finite_step_where_exp_of_an_output_would_overflow(rung: str, loss: str) -> None:
    x, y = batch(loss, 6)
    losses = []
    for stage, step in ((STAGE, RUNGS[rung]), (REFERENCE, reference_step)):
        network = stage.network.Network(SIZES, loss=loss, dtype="float64")
        network.parameters[-1][:] = np.linspace(-1000, 1000, SIZES[-1])
        losses.append(step(network, x, y, stage.optimizers.SGD(1e-3), None))
        assert all(np.isfinite(p).all() for p in network.parameters)
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


def test_train_step_is_the_last_rung() -> None:
    assert list(RUNGS) == ["op_by_op", "fused", "one_call"]
    x, y = batch("softmax_cross_entropy", 4)
    a, b = STAGE.network.Network(SIZES), STAGE.network.Network(SIZES)
    assert a.train_step(x, y, STAGE.optimizers.Adam()) == RUNGS["one_call"](b, x, y, STAGE.optimizers.Adam())
    assert all(np.array_equal(p, q) for p, q in zip(a.parameters, b.parameters, strict=True))


@pytest.mark.parametrize("rung", RUNGS)
def test_without_an_optimizer_nothing_moves_and_the_gradients_are_there(rung: str) -> None:
    x, y = batch("softmax_cross_entropy", 4)
    network = STAGE.network.Network(SIZES, dtype="float64")
    before = [p.copy() for p in network.parameters]
    expected = network.gradients(x, y)
    for g in network.layer_gradients:
        g.fill(np.nan)
    RUNGS[rung](network, x, y, None)
    assert all(np.array_equal(p, q) for p, q in zip(network.parameters, before, strict=True))
    for g, e in zip(network.layer_gradients, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-15)


class HalvingOptimizer:
    """An optimizer that this stage does not know: p -= gradient / 2."""

    def step(self, parameters: Any, gradients: Any) -> None:
        for p, g in zip(parameters, gradients, strict=True):
            p -= g / 2


@pytest.mark.parametrize("rung", RUNGS)
def test_an_optimizer_of_ones_own_takes_its_step_on_every_rung(rung: str) -> None:
    x, y = batch("softmax_cross_entropy", 4)
    network = STAGE.network.Network(SIZES, dtype="float64")
    expected = [p - g / 2 for p, g in zip(network.parameters, network.gradients(x, y), strict=True)]
    RUNGS[rung](network, x, y, HalvingOptimizer())
    for p, e in zip(network.parameters, expected, strict=True):
        np.testing.assert_allclose(p, e, rtol=1e-12)


def test_an_optimizer_whose_state_was_replaced_goes_on_from_the_new_one() -> None:
    x, y = batch("softmax_cross_entropy", 4)
    optimizer = STAGE.optimizers.SGD(0.1, momentum=0.9)
    first = STAGE.network.Network(SIZES, dtype="float64")
    first.train_step(x, y, optimizer)
    saved, parameters = optimizer.state(), [p.copy() for p in first.parameters]
    first.train_step(x, y, optimizer)
    optimizer.load_state(saved)
    second = STAGE.network.Network.from_parameters(parameters, dtype="float64")
    second.train_step(x, y, optimizer)
    assert all(np.array_equal(p, q) for p, q in zip(first.parameters, second.parameters, strict=True))


@pytest.mark.parametrize("form", [IMAGES, [128, 5, 3]], ids=["images", "dense"])
def test_one_optimizer_after_the_other_takes_its_own_steps(form: Any) -> None:
    x, y = np.random.default_rng(0).random((5, 128)), np.array([0, 1, 2, 0, 1])
    makes: list[Callable[[], Any]] = [
        lambda: STAGE.optimizers.SGD(0.1),
        lambda: STAGE.optimizers.SGD(0.1, momentum=0.9),
        lambda: STAGE.optimizers.Adam(),
        lambda: STAGE.optimizers.SGD(0.2),
        lambda: STAGE.optimizers.RMSProp(),
    ]
    whole, by_hand = (STAGE.network.Network(form, dtype="float64") for _ in range(2))
    for make in makes:
        one, other = make(), make()
        for _ in range(2):
            other.step(by_hand.parameters, by_hand.gradients(x, y))
            whole.train_step(x, y, one)
        for a, b in zip(whole.parameters, by_hand.parameters, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
