"""A network is made of lists and attributes that anybody may change between two steps. C is told addresses and sizes,
so whatever was changed must be noticed before the next call: on every rung, also after a first step went well, and
whether the next batch fits into the memory that is there or asks for more."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.contract import Stage, StageUnavailable, load_stage
from shared.layers import BatchNorm, Conv, Flatten, Residual
from shared.layers import Dense as DenseLayer

try:
    STAGE: Stage = load_stage("stage3_c")
except StageUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

Dense = STAGE.dense.Dense
SIZES = [64, 300, 10]
RUNGS: dict[str, Callable[..., float]] = STAGE.network.STEP_LADDER  # type: ignore[attr-defined]
LAYERS = (Conv(4, 3, padding=1), BatchNorm(), Residual((Conv(4, 3, padding=1),)), Flatten(), DenseLayer(3))
IMAGES = Architecture((2, 8, 8), LAYERS)

rungs = pytest.mark.parametrize("step", RUNGS.values(), ids=RUNGS)
planned_rungs = pytest.mark.parametrize("step", [RUNGS["fused"], RUNGS["one_call"]], ids=["fused", "one_call"])


def batch(features: int = SIZES[0], rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((rows, features), np.float32), rng.integers(0, SIZES[-1], rows)


def after_a_first_step(step: Callable[..., float], optimizer: Any = None) -> Any:
    network = STAGE.network.Network(SIZES)
    step(network, *batch(), optimizer)
    return network


def set_sizes(network: Any) -> None:
    layer = network.layers[0]
    layer.in_features = 1
    layer.weights, layer.grad_weights = np.ones((1, 300), np.float32), np.ones((1, 300), np.float32)


OTHERWISE = "architecture, activation, dtype, loss_name, layer_sizes or layers were changed; make a new network"

CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another layer": (lambda n: n.layers.__setitem__(0, Dense(np.ones((64, 300)), np.ones(300))), OTHERWISE),
    "no layers": (lambda n: n.layers.clear(), OTHERWISE),
    "one layer too many": (lambda n: n.layers.append(Dense(np.ones((10, 10)), np.ones(10))), OTHERWISE),
    "in_features": (set_sizes, r"weights was replaced by float32 \(1, 300\)|x is \(8, 64\) but weights are \(1, 300\)"),
    "classes": (lambda n: n.layer_sizes.__setitem__(2, 11), OTHERWISE),
    "architecture": (lambda n: setattr(n, "architecture", STAGE.network.Network([64, 10]).architecture), OTHERWISE),
    "dtype": (lambda n: setattr(n, "dtype", "float64"), OTHERWISE),
    "loss": (lambda n: setattr(n, "loss_name", "hinge"), OTHERWISE),
    "activation": (lambda n: setattr(n, "activation", "tanh"), OTHERWISE),
    "unknown dtype": (lambda n: setattr(n, "dtype", "float16"), OTHERWISE),
    "read-only weights": (lambda n: setattr(n.layers[0].weights.flags, "writeable", False), "weights is read-only"),
    "weights of another shape": (
        lambda n: n.layers[0].weights.resize((300, 64), refcheck=False),
        "weights was replaced",
    ),
    "gradient in the weights": (
        lambda n: setattr(n.layers[2], "grad_weights", n.layers[2].weights),
        "overlaps|share memory",
    ),
}


@rungs
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_refused_with_a_sentence(step: Callable[..., float], change: str) -> None:
    network = after_a_first_step(step)
    apply, message = CHANGES[change]
    apply(network)
    with pytest.raises((ValueError, TypeError), match=message):
        step(network, *batch(), None)


@rungs
def test_an_input_in_the_networks_own_memory_gives_what_a_copy_gives(step: Callable[..., float]) -> None:
    losses, gradients = [], []
    for copied in (True, False):
        network = STAGE.network.Network([16, 16, 10])
        x, y = batch(16, 16)
        step(network, x, y, None)
        mine = network.parameters[1][:, None] + np.zeros((16, 16), np.float32)
        network.layers[0].weights[...] = mine
        mine = network.layers[0].weights
        losses.append(step(network, mine.copy() if copied else mine, y, None))
        gradients.append(network.layers[2].grad_weights.copy())
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(*gradients)


@planned_rungs
def test_a_gradient_as_input_is_copied_before_it_is_written_over(step: Callable[..., float]) -> None:
    losses, gradients = [], []
    for copied in (True, False):
        network = STAGE.network.Network([16, 16, 10])
        x, y = batch(16, 16)
        step(network, x, y, None)
        mine = network.layers[0].grad_weights
        losses.append(step(network, mine.copy() if copied else mine, y, None))
        gradients.append(network.layers[2].grad_weights.copy())
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(*gradients)


@rungs
def test_an_optimizers_memory_that_is_read_only_is_refused(step: Callable[..., float]) -> None:
    optimizer = STAGE.optimizers.SGD(0.1, momentum=0.9)
    network = after_a_first_step(step, optimizer)
    optimizer._state.buffers["velocity"][0].flags.writeable = False  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="velocity is read-only"):
        step(network, *batch(), optimizer)


@rungs
def test_an_optimizers_memory_that_is_a_parameter_is_refused(step: Callable[..., float]) -> None:
    optimizer = STAGE.optimizers.SGD(0.1, momentum=0.9)
    network = after_a_first_step(step, optimizer)
    optimizer._state.buffers["velocity"][0] = network.layers[0].weights  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="overlaps"):
        step(network, *batch(), optimizer)


@rungs
def test_an_optimizer_that_has_kept_nothing_yet_takes_over_from_one_that_never_does(step: Callable[..., float]) -> None:
    network = after_a_first_step(step, STAGE.optimizers.SGD(0.5))
    expected = [p.copy() for p in network.parameters]
    fresh = STAGE.optimizers.SGD(0.5, momentum=0.9)
    gradients = network.gradients(*batch())
    step(network, *batch(), fresh)
    for p, before, g in zip(network.parameters, expected, gradients, strict=True):
        np.testing.assert_allclose(p, before - 0.5 * g, rtol=1e-5, atol=1e-7)
    velocity = fresh.state()["buffers"]["velocity"]
    for v, g in zip(velocity, gradients, strict=True):
        np.testing.assert_allclose(v, g, rtol=1e-5, atol=1e-7)


# ---- a network on images -----------------------------------------------------------------------------------------


def halve_the_filters(network: Any) -> None:
    part = network.layers[2].layers[0]
    for name in ("weights", "bias", "grad_weights", "grad_bias"):
        setattr(part, name, getattr(part, name)[:2].copy())


IMAGE_CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "stride": (
        lambda n: setattr(n.layers[0], "stride", (2, 2)),
        r"1: stride was changed to \(2, 2\), expected \(1, 1\)",
    ),
    "stride in a block": (
        lambda n: setattr(n.layers[2].layers[0], "stride", (6, 6)),
        "layer 3.1: stride was changed to",
    ),
    "padding": (lambda n: setattr(n.layers[0], "padding", (9, 9)), "layer 1: padding was changed to"),
    "fewer filters in a block": (halve_the_filters, r"3.1: weights was replaced by float32 \(2, 4, 3, 3\), expected"),
    "momentum": (lambda n: setattr(n.layers[1], "momentum", 7), "momentum: expected a number from 0 to 1, got 7"),
    "epsilon": (lambda n: setattr(n.layers[1], "epsilon", -1.0), "epsilon: expected a finite number above 0, got -1"),
    "architecture": (lambda n: setattr(n, "architecture", Architecture((2, 4, 4), LAYERS)), OTHERWISE),
    "classes": (lambda n: n.layer_sizes.__setitem__(1, 9), OTHERWISE),
}


@pytest.mark.parametrize("rows", [2, 40], ids=["memory is there", "memory is made"])
@pytest.mark.parametrize("change", IMAGE_CHANGES)
def test_what_was_changed_after_a_forward_pass_is_an_error(change: str, rows: int) -> None:
    network: Any = STAGE.network.Network(IMAGES)
    network.forward(np.ones((2, 2, 8, 8)))
    apply, message = IMAGE_CHANGES[change]
    apply(network)
    x, labels = np.ones((rows, *IMAGES.input_shape)), np.zeros(rows, np.int64)
    with pytest.raises(ValueError, match=message):
        network.train_step(x, labels, STAGE.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match=message):
        network.forward(x)


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
