"""Networks of any architecture: PyTorch's numbers, equal on all stages, whose arrays are whose, and what is refused."""

import copy
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture, mlp, named
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
def test_five_steps_are_pytorchs(stage: Stage, dtype: str) -> None:
    network = oracle_network(stage, dtype)
    optimizer = stage.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.01)
    gradients = network.gradients(
        own(stage, oracle()["x.0"], dtype), oracle()["y.0"], [own(stage, oracle()["mask.0"], dtype)]
    )
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    assert_close(hosts(stage, gradients), numbered("gradients"), tolerance)
    losses = [
        network.train_step(own(stage, x, dtype), y, optimizer, dropout_masks=[own(stage, mask, dtype)])
        for x, y, mask in zip(numbered("x"), numbered("y"), numbered("mask"), strict=True)
    ]
    assert_close([np.array(losses)], [oracle()["losses"]], tolerance)
    assert_close(hosts(stage, network.parameters), numbered("after"), tolerance)
    assert_close(hosts(stage, network.running_statistics), numbered("running"), tolerance)
    evaluated = host(stage, network.forward(own(stage, oracle()["x.0"], dtype)))
    assert_close([evaluated], [oracle()["evaluated"]], tolerance)


def test_a_seed_gives_every_stage_the_same_parameters_bit_for_bit(stage: Stage) -> None:
    network = stage.network.Network(SMALL, initializer="xavier", seed=5, dtype="float64")
    assert [each.tolist() for each in hosts(stage, network.parameters)] == initialize_parameters(SMALL, "xavier", 5)
    assert [each.tolist() for each in hosts(stage, network.running_statistics)] == [[0.0] * 2, [1.0] * 2]


def test_rows_and_images_give_the_same_outputs(stage: Stage) -> None:
    network = stage.network.Network(SMALL, dtype="float64")
    x, _ = batch(4)
    expected = host(stage, network.forward(own(stage, x)))
    assert np.array_equal(host(stage, network.forward(own(stage, x.reshape(4, -1)))), expected)
    assert network.layer_sizes == [30, 3]
    assert network.architecture is SMALL


def test_outputs_has_one_array_a_layer_and_ends_in_forward(stage: Stage) -> None:
    network = oracle_network(stage)
    x = own(stage, oracle()["x.0"])
    outputs = hosts(stage, network.outputs(x))
    assert [each.shape[1:] for each in outputs] == ORACLE.shapes()[1:]
    np.testing.assert_allclose(outputs[-1], host(stage, network.forward(x)), rtol=1e-12, atol=1e-13)


def test_only_training_passes_change_the_running_statistics(stage: Stage) -> None:
    network = stage.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    before = hosts(stage, network.running_statistics)

    def changed() -> bool:
        now = hosts(stage, network.running_statistics)
        return any(not np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    network.forward(own(stage, x))
    network.predict(own(stage, x))
    network.loss(own(stage, x), y, training=True)
    network.gradients(own(stage, x), y)
    assert not changed()
    network.forward(own(stage, x), training=True)
    assert changed()


def test_the_gradients_are_those_of_the_loss_in_training(stage: Stage) -> None:
    network = stage.network.Network(SMALL, dtype="float64", seed=3)
    x, y = batch(5, seed=4)
    mask = own(stage, np.where(np.random.default_rng(5).random((5, 24)) < 0.5, 0.0, 2.0))
    gradients = hosts(stage, network.gradients(own(stage, x), y, [mask]))
    values = hosts(stage, network.parameters)
    direction = [np.random.default_rng(6 + i).standard_normal(each.shape) for i, each in enumerate(values)]
    step = 1e-6

    def loss_at(distance: float) -> float:
        moved = [own(stage, v + distance * d) for v, d in zip(values, direction, strict=True)]
        shifted = stage.network.Network.from_parameters(moved, architecture=SMALL, dtype="float64")
        return float(shifted.loss(own(stage, x), y, [mask], training=True))

    slope = (loss_at(step) - loss_at(-step)) / (2 * step)
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("form", [SMALL, [30, 4, 3]], ids=["layered", "dense"])
def test_a_copy_of_a_network_trains_apart(stage: Stage, form: Any) -> None:
    network = stage.network.Network(form, dtype="float64")
    x, y = batch(4, (30,))
    network.forward(own(stage, x))
    other = copy.deepcopy(network)
    other.train_step(own(stage, x), y, stage.optimizers.SGD(0.1))
    fresh = stage.network.Network(form, dtype="float64")
    assert all(
        np.array_equal(a, b)
        for a, b in zip(hosts(stage, network.parameters), hosts(stage, fresh.parameters), strict=True)
    )


@pytest.mark.parametrize("form", [SMALL, mlp([30, 4, 3], dropout=0.5)], ids=["images", "mlp"])
def test_a_pickled_network_goes_on_with_the_same_numbers(stage: Stage, form: Any) -> None:
    network = stage.network.Network(form, dtype="float64")
    x, y = batch(4, (30,))
    network.train_step(own(stage, x), y, stage.optimizers.SGD(0.1))
    if stage.number == 4:
        pytest.skip("device arrays are not pickled")
    other = pickle.loads(pickle.dumps(network))
    losses = [each.train_step(own(stage, x), y, stage.optimizers.SGD(0.1)) for each in (network, other)]
    assert losses[0] == losses[1]
    for a, b in zip(hosts(stage, network.parameters), hosts(stage, other.parameters), strict=True):
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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, n, x, y: n.forward(own(s, x[:, :, :5])), ValueError,
         r"Network: x is (4, 1, 5, 5), expected (batch, 30) or (batch, 1, 6, 5)"),
        (lambda s, n, x, y: n.forward(own(s, np.ones((2, 29)))), ValueError, "x is (2, 29), expected (batch, 30)"),
        (lambda s, n, x, y: s.network.Network(Architecture((3,), (BatchNorm(), Dense(2)))).train_step(
            own(s, np.ones((1, 3)), "float32"), [0], s.optimizers.SGD(0.1)), ValueError,
         "batch_norm: expected more than 1 value per channel when training, got x of shape (1, 3)"),
        (lambda s, n, x, y: s.network.Network(Architecture((1, 4, 4), (Conv(2, 3),))), ValueError,
         "Network: the last layer's output is (2, 2, 2), an image"),
        (lambda s, n, x, y: s.network.Network(SMALL, activation="tanh"), ValueError,
         "Network: activation='tanh' goes with layer sizes; this architecture names its own"),
        (lambda s, n, x, y: s.network.Network.from_parameters([], architecture=SMALL), ValueError,
         "parameters: the architecture has 6 arrays, got 0"),
        (lambda s, n, x, y: s.network.Network.from_parameters([n.parameters[0]] * 6, architecture=SMALL), ValueError,
         "parameters: layer 1, Conv: bias is (2, 1, 3, 3), expected (2,)"),
        (lambda s, n, x, y: s.network.Network.from_parameters(
            n.parameters, architecture=SMALL, running_statistics=[n.parameters[1], n.parameters[5]]), ValueError,
         "running_statistics: variance 1 is (3,), expected (2,)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_the_same_words(stage: Stage, call: Any, error: type, message: str) -> None:
    network = stage.network.Network(SMALL, dtype="float64")
    x, y = batch(4)
    before = hosts(stage, network.parameters) + hosts(stage, network.running_statistics)
    with pytest.raises(error, match=re.escape(message)):
        call(stage, network, x, y)
    after = hosts(stage, network.parameters) + hosts(stage, network.running_statistics)
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
    for stage in map(load_stage, USABLE_STAGES):
        if stage.number < first:
            continue
        network = stage.network.Network(named(name), seed=1, dtype="float64")
        optimizer = stage.optimizers.SGD(0.01, momentum=0.9)
        losses = [network.train_step(own(stage, x), y, optimizer) for x, y in batches]
        ends[stage.number] = [np.array(losses), *hosts(stage, network.parameters + network.running_statistics)]
    for number in set(ends) - {first}:
        assert_close(ends[number], ends[first], 1e-10)
        assert ends[number][0][0] != ends[number][0][-1]
