"""The network: what it is built from, whose arrays are whose, how it predicts, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import LOSSES, Stage, load_stage
from shared.initialize import INITIALIZERS, initialize_parameters
from tests.stages import USABLE_STAGES

X = np.random.default_rng(0).normal(size=(6, 4))


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.array(stage.arrays.to_host(array))


def make_network(stage: Stage, sizes: tuple[int, ...] = (4, 5, 3), **arguments: Any) -> Any:
    return stage.network.Network(list(sizes), **({"dtype": "float64"} | arguments))


def inputs(stage: Stage, dtype: str = "float64") -> Any:
    return stage.arrays.asarray(X.copy(), dtype)


def linear_network(stage: Stage, bias: list[float], loss: str) -> Any:
    """One layer with zero weights: whatever comes in, the outputs are the bias."""
    weights = [[0.0] * len(bias)]
    return stage.network.Network.from_parameters([weights, bias], loss=loss, dtype="float64")


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_a_seed_gives_every_stage_the_same_weights_bit_for_bit(initializer: str) -> None:
    expected = initialize_parameters([7, 5, 3], initializer, seed=42)
    for name in USABLE_STAGES:
        stage = load_stage(name)
        network = make_network(stage, (7, 5, 3), initializer=initializer, seed=42)
        for got, parameter in zip(network.parameters, expected, strict=True):
            assert host(stage, got).tolist() == parameter


def test_seeds_differ_and_the_default_is_zero(stage: Stage) -> None:
    networks = (make_network(stage), make_network(stage, seed=0), make_network(stage, seed=1))
    default, zero, one = (host(stage, network.parameters[0]) for network in networks)
    assert np.array_equal(default, zero)
    assert not np.array_equal(zero, one)


def test_a_network_tells_what_it_is(stage: Stage) -> None:
    network = make_network(stage, (4, 5, 3), activation="tanh", loss="hinge")
    assert (network.layer_sizes, network.activation, network.loss_name) == ([4, 5, 3], "tanh", "hinge")
    assert network.dtype == "float64"
    assert [np.shape(host(stage, p)) for p in network.parameters] == [(4, 5), (5,), (5, 3), (3,)]
    assert len(network.layers) == 3  # dense, activation, dense
    assert network.parameters[0] is network.layers[0].weights


def test_forward_is_the_layers_with_the_activation_between_and_none_at_the_end(stage: Stage) -> None:
    network = make_network(stage, activation="tanh")
    w1, b1, w2, b2 = (host(stage, p) for p in network.parameters)
    expected = np.tanh(X @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(host(stage, network.forward(inputs(stage))), expected, rtol=1e-12)


def test_dropout_masks_multiply_the_hidden_outputs(stage: Stage) -> None:
    network = stage.network.Network(mlp([4, 5, 3], "tanh", dropout=0.5), dtype="float64")
    mask = np.where(np.random.default_rng(1).random((6, 5)) < 0.5, 0.0, 2.0)
    w1, b1, w2, b2 = (host(stage, p) for p in network.parameters)
    expected = (np.tanh(X @ w1 + b1) * mask) @ w2 + b2
    got = network.forward(inputs(stage), [stage.arrays.asarray(mask, "float64")])
    np.testing.assert_allclose(host(stage, got), expected, rtol=1e-12)


def test_train_step_returns_the_loss_before_the_step_and_lowers_it(stage: Stage) -> None:
    network, x, y = make_network(stage), inputs(stage), np.array([0, 1, 2, 0, 1, 2])
    before = network.loss(x, y)
    returned = network.train_step(x, y, stage.optimizers.SGD(0.05))
    assert isinstance(returned, float)
    assert returned == pytest.approx(before, rel=1e-12)
    assert network.loss(x, y) < before


def test_what_forward_and_gradients_return_is_the_callers_to_keep(stage: Stage) -> None:
    network, x, y = make_network(stage), inputs(stage), np.array([0, 1, 2, 0, 1, 2])
    outputs, gradients = network.forward(x), network.gradients(x, y)
    kept = [host(stage, array) for array in (outputs, *gradients)]
    other = stage.arrays.asarray(2 * X + 1, "float64")
    network.forward(other)
    network.gradients(other, y)
    network.train_step(other, y, stage.optimizers.SGD(0.1))
    network.predict(other)
    for array, before in zip((outputs, *gradients), kept, strict=True):
        assert np.array_equal(host(stage, array), before)


def test_no_call_changes_x_or_y(stage: Stage) -> None:
    network, x = make_network(stage, loss="mean_squared_error"), inputs(stage)
    y = stage.arrays.asarray(np.ones((6, 3)), "float64")
    network.train_step(x, y, stage.optimizers.SGD(0.1))
    assert np.array_equal(host(stage, x), X)
    assert np.array_equal(host(stage, y), np.ones((6, 3)))


@pytest.mark.parametrize("loss", LOSSES)
def test_predict_is_the_column_of_the_largest_output(stage: Stage, loss: str) -> None:
    network = linear_network(stage, [0.1, -5.0, 0.3, 0.2], loss)
    got = np.asarray(network.predict(stage.arrays.asarray([[1.0], [2.0]], "float64")))
    assert got.tolist() == [2, 2]
    assert got.dtype.kind == "i"


def test_predict_takes_the_first_of_equal_columns(stage: Stage) -> None:
    network = linear_network(stage, [0.0, 1.0, 1.0], "hinge")
    assert list(network.predict(stage.arrays.asarray([[1.0]], "float64"))) == [1]


@pytest.mark.parametrize(
    ("loss", "output", "expected"),
    [
        ("mean_squared_error", 0.4, 0),
        ("mean_squared_error", 0.5, 0),
        ("mean_squared_error", 0.6, 1),
        ("sigmoid_cross_entropy", -0.1, 0),
        ("sigmoid_cross_entropy", 0.0, 0),
        ("sigmoid_cross_entropy", 0.1, 1),
    ],
)
def test_predict_with_one_column_is_a_threshold(stage: Stage, loss: str, output: float, expected: int) -> None:
    network = linear_network(stage, [output], loss)
    got = np.asarray(network.predict(stage.arrays.asarray([[1.0]], "float64")))
    assert got.tolist() == [expected]
    assert got.dtype.kind == "i"


def test_from_parameters_copies(stage: Stage) -> None:
    given: list[Any] = [[[1.0, 2.0], [3.0, 4.0]], [0.5, 0.5]]
    arrays = [stage.arrays.asarray(p, "float64") for p in given]
    for parameters in (given, arrays):
        network = stage.network.Network.from_parameters(parameters, dtype="float64")
        network.train_step(stage.arrays.asarray([[1.0, 2.0]], "float64"), np.array([0]), stage.optimizers.SGD(0.1))
        assert not np.array_equal(host(stage, network.parameters[0]), [[1.0, 2.0], [3.0, 4.0]])
        assert np.array_equal(parameters[0], [[1.0, 2.0], [3.0, 4.0]])
        assert np.array_equal(parameters[1], [0.5, 0.5])


def test_from_parameters_takes_another_stages_arrays(stage: Stage) -> None:
    for name in USABLE_STAGES:
        other = load_stage(name)
        parameters = [other.arrays.to_host(p) for p in make_network(other).parameters]
        network = stage.network.Network.from_parameters(parameters, dtype="float64")
        np.testing.assert_array_equal(host(stage, network.parameters[2]), np.asarray(parameters[2]))


def test_a_refused_step_leaves_the_network_as_it_was(stage: Stage) -> None:
    network = make_network(stage)
    before = [host(stage, p) for p in network.parameters]
    with pytest.raises(ValueError, match=r"labels\[5\] is 3"):
        network.train_step(inputs(stage), np.array([0, 1, 2, 0, 1, 3]), stage.optimizers.SGD(0.1))
    for parameter, start in zip(network.parameters, before, strict=True):
        assert np.array_equal(host(stage, parameter), start)


def test_predict_takes_nan_for_the_largest_output(stage: Stage) -> None:
    network = stage.network.Network.from_parameters([[[1.0, float("nan"), 2.0]], [0.0, 0.0, 0.0]], dtype="float64")
    assert list(network.predict([[1.0]])) == [1]
