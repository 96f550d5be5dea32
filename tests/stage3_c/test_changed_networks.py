"""A network is made of lists and attributes that anybody may change between two steps. C is told addresses and sizes,
so whatever was changed must be noticed before the next call: on every rung, also after a first step went well."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, StageUnavailable, load_stage

try:
    STAGE: Stage = load_stage("stage3_c")
except StageUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

Dense = STAGE.dense.Dense
SIZES = [64, 300, 10]
rungs = pytest.mark.parametrize("step", STAGE.network.STEP_LADDER.values(), ids=STAGE.network.STEP_LADDER)  # type: ignore[attr-defined]


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


CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a layer that does not fit": (
        lambda n: n.layers.__setitem__(0, Dense(np.ones((64, 2)), np.ones(2))),
        r"layer 1 has 2 outputs but layer 2 takes 300 inputs|expected float|convert",
    ),
    "no layers": (lambda n: n.layers.clear(), "there is no layer left"),
    "one layer too many": (
        lambda n: n.layers.append(Dense(np.ones((7, 10), np.float32), np.ones(10, np.float32))),
        "layer 2 has 10 outputs but layer 3 takes 7 inputs",
    ),
    "in_features": (set_sizes, r"x is \(8, 64\) but weights are \(1, 300\)"),
    "dtype": (lambda n: setattr(n, "dtype", "float64"), "float64 but weights is float32"),
    "unknown dtype": (lambda n: setattr(n, "dtype", "float16"), "unknown dtype 'float16'"),
    "read-only weights": (lambda n: setattr(n.layers[0].weights.flags, "writeable", False), "weights is read-only"),
    "weights of another shape": (
        lambda n: n.layers[0].weights.resize((300, 64), refcheck=False),
        "weights was replaced",
    ),
    "gradient in the weights": (lambda n: setattr(n.layers[1], "grad_weights", n.layers[1].weights), "overlaps"),
}


@rungs
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_refused_with_a_sentence(step: Callable[..., float], change: str) -> None:
    network = after_a_first_step(step)
    how, message = CHANGES[change]
    how(network)
    with pytest.raises((ValueError, TypeError), match=message):
        step(network, *batch(), None)


@rungs
def test_two_layers_that_share_weights_are_refused_by_the_whole_step(step: Callable[..., float]) -> None:
    network = STAGE.network.Network([10, 10, 10])
    network.layers[1].weights = network.layers[0].weights
    with pytest.raises(ValueError, match=r"layer 1's weights overlaps layer 2's weights"):
        step(network, *batch(10), None)


@rungs
def test_layer_sizes_are_only_said_not_used(step: Callable[..., float]) -> None:
    network = after_a_first_step(step)
    network.layer_sizes[0] = 2
    with pytest.raises(ValueError, match=r"x is \(8, 2\) but weights are \(64, 300\)"):
        step(network, *batch(2), None)


@rungs
def test_a_network_with_other_layers_that_fit_goes_on_with_them(step: Callable[..., float]) -> None:
    network = after_a_first_step(step)
    network.layers.pop()
    network.layers[0] = Dense(np.zeros((64, 700), np.float32), np.zeros(700, np.float32))
    x, _ = batch()
    assert step(network, x, np.arange(8) * 99, None) == pytest.approx(np.log(700), rel=1e-5)
    assert network.forward(x).shape == (8, 700)


@rungs
def test_an_input_in_the_networks_own_memory_gives_what_a_copy_gives(step: Callable[..., float]) -> None:
    losses, gradients = [], []
    for copied in (True, False):
        network = STAGE.network.Network([16, 16, 10])
        x, y = batch(16, 16)
        step(network, x, y, None)
        mine = network.layers[0].grad_weights
        losses.append(step(network, mine.copy() if copied else mine, y, None))
        gradients.append(network.layers[1].grad_weights.copy())
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
def test_another_optimizer_takes_over(step: Callable[..., float]) -> None:
    network = after_a_first_step(step, STAGE.optimizers.Adam())
    expected = [p.copy() for p in network.parameters]
    plain = STAGE.optimizers.SGD(0.5)
    gradients = network.gradients(*batch())
    step(network, *batch(), plain)
    for p, before, g in zip(network.parameters, expected, gradients, strict=True):
        np.testing.assert_allclose(p, before - 0.5 * g, rtol=1e-5, atol=1e-7)


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
