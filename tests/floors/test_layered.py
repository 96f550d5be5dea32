"""Networks of any architecture: PyTorch's numbers, equal on all stages, whose arrays are whose, and what is refused."""

import copy
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture, lenet5, mlp, named, residual_cnn
from shared.contract import Stage, load_stage
from shared.initialize import initialize_parameters
from shared.layers import (
    Activate,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    MaxPool,
    Residual,
)
from tests.stages import USABLE_STAGES
from tests.wide import wide

ORACLE = Architecture(  # the network of scripts/make_layered_oracle.py
    (2, 8, 9),
    (
        Conv(4, (3, 2), stride=(1, 2), padding=(1, 0)),
        BatchNorm(),
        Activate("relu"),
        Residual((Conv(4, 3, padding=1), BatchNorm(), Activate("tanh"), Conv(4, 1))),
        MaxPool(2),
        AveragePool((2, 1), stride=1),
        Flatten(),
        Dropout(0.25),
        Dense(7),
        BatchNorm(),
        Activate("leaky_relu"),
        Dense(3),
    ),
)
SMALL = Architecture((1, 6, 5), (Conv(2, 3), BatchNorm(), Activate("relu"), Flatten(), Dropout(0.5), Dense(3)))


@pytest.fixture(params=USABLE_STAGES)
def floor(request: pytest.FixtureRequest) -> Stage:
    return load_stage(request.param)


@cache
def oracle() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "layered_oracle.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def numbered(name: str) -> list[np.ndarray]:
    found = [each for each in oracle() if re.fullmatch(rf"{name}\.\d+", each)]
    return [oracle()[f"{name}.{i}"] for i in range(len(found))]


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.array(stage.arrays.to_host(array))


def hosts(stage: Stage, arrays: Any) -> list[np.ndarray]:
    return [host(stage, each) for each in arrays]


def own(stage: Stage, array: np.ndarray, dtype: str = "float64") -> Any:
    return stage.arrays.asarray(array.copy(), dtype)


def oracle_network(stage: Stage, dtype: str = "float64") -> Any:
    return stage.network.Network.from_parameters(
        [own(stage, p, dtype) for p in numbered("before")], architecture=ORACLE, dtype=dtype
    )


def assert_close(got: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()), f"array {i}"


def batch(rows: int, shape: tuple[int, ...] = SMALL.input_shape, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, *shape)), rng.integers(0, 3, rows)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_five_steps_are_pytorchs(floor: Stage, dtype: str) -> None:
    network = oracle_network(floor, dtype)
    optimizer = floor.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01)
    gradients = network.gradients(
        own(floor, oracle()["x.0"], dtype), oracle()["y.0"], [own(floor, oracle()["mask.0"], dtype)]
    )
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    assert_close(hosts(floor, gradients), numbered("gradients"), tolerance)
    losses = [
        network.train_step(own(floor, x, dtype), y, optimizer, dropout_masks=[own(floor, mask, dtype)])
        for x, y, mask in zip(numbered("x"), numbered("y"), numbered("mask"), strict=True)
    ]
    assert_close([np.array(losses)], [oracle()["losses"]], tolerance)
    assert_close(hosts(floor, network.parameters), numbered("after"), tolerance)
    assert_close(hosts(floor, network.running_statistics), numbered("running"), tolerance)
    evaluated = host(floor, network.forward(own(floor, oracle()["x.0"], dtype)))
    assert_close([evaluated], [oracle()["evaluated"]], tolerance)


def test_a_seed_gives_every_floor_the_same_parameters_bit_for_bit(floor: Stage) -> None:
    network = floor.network.Network(SMALL, initializer="xavier", seed=5, dtype="float64")
    assert [each.tolist() for each in hosts(floor, network.parameters)] == initialize_parameters(SMALL, "xavier", 5)
    assert [each.tolist() for each in hosts(floor, network.running_statistics)] == [[0.0] * 2, [1.0] * 2]


def test_rows_and_images_give_the_same_outputs(floor: Stage) -> None:
    network = floor.network.Network(SMALL, dtype="float64")
    x, _ = batch(4)
    expected = host(floor, network.forward(own(floor, x)))
    assert np.array_equal(host(floor, network.forward(own(floor, x.reshape(4, -1)))), expected)
    assert network.layer_sizes == [30, 3]
    assert network.architecture is SMALL


@pytest.mark.parametrize("pool", [MaxPool, AveragePool])
def test_strides_longer_than_the_images_leave_the_first_places(floor: Stage, pool: type) -> None:
    x, y = batch(3)
    parameters = []
    for stride in (10**30, 8):
        layers = (Conv(2, 3, stride=(stride, 1), padding=1), Activate("relu"), pool(1, stride=(1, stride)))
        network = floor.network.Network(
            Architecture(SMALL.input_shape, (*layers, Flatten(), Dense(3))), seed=0, dtype="float64"
        )
        network.train_step(own(floor, x), y, floor.optimizers.SGD(0.1))
        parameters.append(hosts(floor, network.parameters))
    assert_close(*parameters, 1e-12)


def test_outputs_has_one_array_a_layer_and_ends_in_forward(floor: Stage) -> None:
    network = oracle_network(floor)
    x = own(floor, oracle()["x.0"])
    outputs = hosts(floor, network.outputs(x))
    assert [each.shape[1:] for each in outputs] == ORACLE.shapes()[1:]
    np.testing.assert_allclose(outputs[-1], host(floor, network.forward(x)), rtol=1e-12, atol=1e-13)


def test_only_training_passes_change_the_running_statistics(floor: Stage) -> None:
    network = floor.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    before = hosts(floor, network.running_statistics)

    def changed() -> bool:
        now = hosts(floor, network.running_statistics)
        return any(not np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    network.forward(own(floor, x))
    network.predict(own(floor, x))
    network.loss(own(floor, x), y, training=True)
    network.gradients(own(floor, x), y)
    assert not changed()
    network.forward(own(floor, x), training=True)
    assert changed()


@pytest.mark.parametrize("name", [name for name in USABLE_STAGES if name in ("stage2_numpy", "stage3_c")])
def test_running_statistics_that_are_read_only_are_named(name: str) -> None:
    stage = load_stage(name)
    network: Any = stage.network.Network(Architecture((2, 3, 3), (BatchNorm(), Flatten(), Dense(2))), dtype="float64")
    network.running_statistics[1].flags.writeable = False
    message = "running_var is read-only; pass an array that may be written to"
    with pytest.raises(ValueError, match=message):
        network.gradients(np.ones((3, 18)), [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        network.train_step(np.ones((3, 18)), [0, 1, 1], stage.optimizers.SGD(0.1))
    np.testing.assert_array_equal(network.running_statistics[0], np.zeros(2))


class Refusing:
    """An optimizer whose step fails."""

    def step(self, parameters: Any, gradients: Any) -> None:
        raise ZeroDivisionError("no step today")


def test_an_optimizer_that_fails_leaves_the_running_statistics_as_they_were(floor: Stage) -> None:
    network = floor.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    network.train_step(own(floor, x), y, floor.optimizers.SGD(0.1))
    before = hosts(floor, network.running_statistics)
    with pytest.raises(ZeroDivisionError, match="no step today"):
        network.train_step(own(floor, -x), y, Refusing())
    for array, values in zip(hosts(floor, network.running_statistics), before, strict=True):
        assert np.array_equal(array, values)


NO_NUMBERS: list[tuple[Any, type]] = [(float("nan"), ValueError), (None, TypeError), ("a", TypeError)]
IMPOSSIBLE: dict[str, list[tuple[Any, type]]] = {
    "epsilon": [(-1.0, ValueError), (0.0, ValueError), *NO_NUMBERS],
    "momentum": [(2.0, ValueError), (-1.0, ValueError), *NO_NUMBERS],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_numbers_of_a_normalisation_change_nothing(floor: Stage, name: str) -> None:
    for value, error in IMPOSSIBLE[name]:
        network = floor.network.Network(Architecture((3,), (Dense(4), BatchNorm(), Dense(2))), dtype="float64")
        before = [host(floor, array) for array in (*network.parameters, *network.running_statistics)]
        setattr(network.layers[1], name, value)
        with pytest.raises(error, match=f"batch_norm: {name}: expected a .*number.*, got {value!r}"):
            network.train_step([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]], [0, 1], floor.optimizers.SGD(0.1))
        for array, old in zip((*network.parameters, *network.running_statistics), before, strict=True):
            np.testing.assert_array_equal(host(floor, array), old)


def test_the_gradients_are_those_of_the_loss_in_training(floor: Stage) -> None:
    network = floor.network.Network(SMALL, dtype="float64", seed=3)
    x, y = batch(5, seed=4)
    mask = own(floor, np.where(np.random.default_rng(5).random((5, 24)) < 0.5, 0.0, 2.0))
    gradients = hosts(floor, network.gradients(own(floor, x), y, [mask]))
    values = hosts(floor, network.parameters)
    direction = [np.random.default_rng(6 + i).standard_normal(each.shape) for i, each in enumerate(values)]
    step = 1e-6

    def loss_at(distance: float) -> float:
        moved = [own(floor, v + distance * d) for v, d in zip(values, direction, strict=True)]
        shifted = floor.network.Network.from_parameters(moved, architecture=SMALL, dtype="float64")
        return float(shifted.loss(own(floor, x), y, [mask], training=True))

    slope = (loss_at(step) - loss_at(-step)) / (2 * step)
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_gradients_are_the_callers_to_keep(floor: Stage) -> None:
    network = floor.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    first = network.gradients(own(floor, x), y)
    before = hosts(floor, first)
    network.train_step(own(floor, -x), y, floor.optimizers.SGD(0.1))
    assert all(np.array_equal(a, b) for a, b in zip(hosts(floor, first), before, strict=True))


@pytest.mark.parametrize("form", [SMALL, [30, 4, 3]], ids=["layered", "dense"])
def test_a_copy_of_a_network_trains_apart(floor: Stage, form: Any) -> None:
    network = floor.network.Network(form, dtype="float64")
    x, y = batch(4, (30,))
    network.forward(own(floor, x))
    other = copy.deepcopy(network)
    other.train_step(own(floor, x), y, floor.optimizers.SGD(0.1))
    fresh = floor.network.Network(form, dtype="float64")
    assert all(
        np.array_equal(a, b)
        for a, b in zip(hosts(floor, network.parameters), hosts(floor, fresh.parameters), strict=True)
    )


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_an_mlp_tells_its_sizes_and_activation(stage: Stage, dropout: float) -> None:
    network = stage.network.Network(mlp([4, 5, 6, 3], "tanh", dropout), dtype="float64")
    assert (network.activation, network.layer_sizes) == ("tanh", [4, 5, 6, 3])
    assert network.architecture.dropouts() == ([(5, dropout), (6, dropout)] if dropout else [])


@pytest.mark.parametrize("form", [SMALL, mlp([30, 4, 3], dropout=0.5)], ids=["images", "mlp"])
def test_a_pickled_network_goes_on_with_the_same_numbers(floor: Stage, form: Any) -> None:
    network = floor.network.Network(form, dtype="float64")
    x, y = batch(4, (30,))
    network.train_step(own(floor, x), y, floor.optimizers.SGD(0.1))
    if floor.number == 4:
        pytest.skip("device arrays are not pickled")
    other = pickle.loads(pickle.dumps(network))
    losses = [each.train_step(own(floor, x), y, floor.optimizers.SGD(0.1)) for each in (network, other)]
    assert losses[0] == losses[1]
    for a, b in zip(hosts(floor, network.parameters), hosts(floor, other.parameters), strict=True):
        assert np.array_equal(a, b)


def test_a_dense_stack_is_the_network_of_its_sizes(stage: Stage) -> None:
    made = stage.network.Network(mlp([4, 5, 3], "tanh"), dtype="float64", seed=2)
    listed = stage.network.Network([4, 5, 3], activation="tanh", dtype="float64", seed=2)
    assert type(made) is type(listed)
    assert (made.activation, made.layer_sizes) == ("tanh", [4, 5, 3])
    assert made.architecture == listed.architecture == mlp([4, 5, 3], "tanh")
    assert (made.running_statistics, listed.running_statistics) == ([], [])
    again = stage.network.Network.from_parameters(listed.parameters, architecture=mlp([4, 5, 3], "tanh"))
    assert again.activation == "tanh"
    with pytest.raises(ValueError, match=r"layer 1, Dense: weights is \(4, 5\), expected \(4, 6\)"):
        stage.network.Network.from_parameters(listed.parameters, architecture=mlp([4, 6, 3]))
    with pytest.raises(ValueError, match="activation='sigmoid' goes with layer sizes; this architecture names its own"):
        stage.network.Network(mlp([4, 5, 3], "tanh"), activation="sigmoid")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, n, x, y: n.forward(own(s, x[:, :, :5])), ValueError,
         r"Network: x is (4, 1, 5, 5), expected (batch, 30) or (batch, 1, 6, 5)"),
        (lambda s, n, x, y: n.forward(own(s, np.ones((2, 29)))), ValueError, "x is (2, 29), expected (batch, 30)"),
        (lambda s, n, x, y: n.forward(own(s, x), [own(s, np.ones((4, 23)))]), ValueError,
         "dropout_masks: mask 1 is (4, 23), expected (4, 24)"),
        (lambda s, n, x, y: n.forward(own(s, x), []), ValueError,
         "dropout_masks: expected 1, one for each Dropout layer, got 0"),
        (lambda s, n, x, y: n.forward(own(s, x), 3), TypeError, "dropout_masks: expected a list of arrays, got int"),
        (lambda s, n, x, y: n.train_step(own(s, x), y, None), TypeError, "optimizer: expected an optimizer"),
        (lambda s, n, x, y: n.train_step(own(s, x), y[:3], s.optimizers.SGD(0.1)), ValueError, "expected 4 labels"),
        (lambda s, n, x, y: s.network.Network(Architecture((3,), (BatchNorm(), Dense(2)))).train_step(
            own(s, np.ones((1, 3)), "float32"), [0], s.optimizers.SGD(0.1)), ValueError,
         "batch_norm: expected more than 1 value per channel when training, got x of shape (1, 3)"),
        (lambda s, n, x, y: s.network.Network(Architecture((1, 4, 4), (Conv(2, 3),))), ValueError,
         "Network: the last layer's output is (2, 2, 2), an image"),
        (lambda s, n, x, y: s.network.Network(SMALL, activation="tanh"), ValueError,
         "Network: activation='tanh' goes with layer sizes; this architecture names its own"),
        (lambda s, n, x, y: s.network.Network.from_parameters(n.parameters, "tanh", architecture=SMALL), ValueError,
         "Network: activation='tanh' goes with layer sizes; this architecture names its own"),
        (lambda s, n, x, y: s.network.Network(SMALL, loss="l1"), ValueError, "unknown loss 'l1'; choose one of mean_"),
        (lambda s, n, x, y: s.network.Network.from_parameters([], architecture=SMALL), ValueError,
         "parameters: the architecture has 6 arrays, got 0"),
        (lambda s, n, x, y: s.network.Network.from_parameters(n.parameters, architecture=lenet5()), ValueError,
         "parameters: the architecture has 10 arrays, got 6"),
        (lambda s, n, x, y: s.network.Network.from_parameters([n.parameters[0]] * 6, architecture=SMALL), ValueError,
         "parameters: layer 1, Conv: bias is (2, 1, 3, 3), expected (2,)"),
        (lambda s, n, x, y: s.network.Network.from_parameters(
            n.parameters, architecture=SMALL, running_statistics=[n.parameters[1], n.parameters[5]]), ValueError,
         "running_statistics: variance 1 is (3,), expected (2,)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_the_same_words(floor: Stage, call: Any, error: type, message: str) -> None:
    network = floor.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    before = hosts(floor, network.parameters) + hosts(floor, network.running_statistics)
    with pytest.raises(error, match=re.escape(message)):
        call(floor, network, x, y)
    after = hosts(floor, network.parameters) + hosts(floor, network.running_statistics)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("name", "steps", "first"),
    [
        ("lenet5", 5, 1),
        *(pytest.param(*case, marks=wide) for case in (("lenet5", 30, 1), ("fashion_cnn", 30, 1))),
        *(pytest.param(*case, marks=wide) for case in (("residual_cnn", 2, 1), ("residual_cnn", 30, 2))),
    ],
)
def test_all_floors_take_the_same_steps_of_the_known_networks(name: str, steps: int, first: int) -> None:
    """first: the stage to compare with; 30 steps of the residual network take stage 1 seven minutes."""
    rng = np.random.default_rng(7)
    batches = [(rng.random((2, 784)), rng.integers(0, 10, 2)) for _ in range(steps)]
    ends = {}
    for floor in map(load_stage, USABLE_STAGES):
        if floor.number < first:
            continue
        network = floor.network.Network(named(name), seed=1, dtype="float64")
        optimizer = floor.optimizers.SGD(0.01, momentum=0.9)
        losses = [network.train_step(own(floor, x), y, optimizer) for x, y in batches]
        ends[floor.number] = [np.array(losses), *hosts(floor, network.parameters + network.running_statistics)]
    for number in set(ends) - {first}:
        assert_close(ends[number], ends[first], 1e-10)
        assert ends[number][0][0] != ends[number][0][-1]


def test_the_known_residual_network_takes_a_step(floor: Stage) -> None:
    if floor.number == 1:
        pytest.skip("stage 1 takes minutes for a step of this network")
    network = floor.network.Network(residual_cnn(), seed=1, dtype="float64")
    rng = np.random.default_rng(0)
    x, y = own(floor, rng.random((2, 784))), np.array([3, 1])
    optimizer = floor.optimizers.SGD(0.01, momentum=0.9)
    losses = [network.train_step(x, y, optimizer) for _ in range(4)]
    assert losses[-1] < losses[0]
