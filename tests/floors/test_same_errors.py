"""The same mistake with a network or an optimizer is answered by the same error in the same words on every stage."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import Stage

X = [[1.0, 2.0], [3.0, 4.0]]
WEIGHTS, BIAS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0]
NUMBERS = "asarray: expected real numbers"
Mistakes = dict[str, tuple[Any, type[Exception], str]]


def assert_refused(stage: Stage, mistake: Callable[[Stage], Any], kind: type[Exception], sentence: str) -> None:
    """Assert that the mistake raises exactly this type of error with this sentence.

    A sentence without ", got …" is compared with what the stage says before it: each stage may tell in its own words
    what came, for a list has no dtype. Stage 4 may say "device array" for "array".
    """
    with pytest.raises(Exception) as caught:  # noqa: PT011 (type and words are compared below)
        mistake(stage)
    said = str(caught.value).replace("a device array", "an array").replace("device arrays", "arrays")
    if ", got " not in sentence:
        said = said.partition(", got ")[0]
    assert (caught.type, said) == (kind, sentence)


def network(stage: Stage, loss: str = "softmax_cross_entropy") -> Any:
    """2 inputs, 3 hidden neurons with dropout, 2 outputs."""
    return stage.network.Network(mlp([2, 3, 2], dropout=0.5), loss=loss, seed=1, dtype="float64")


def train_step(stage: Stage, x: Any, y: Any, masks: Any = None, loss: str = "softmax_cross_entropy") -> Any:
    return network(stage, loss).train_step(x, y, stage.optimizers.SGD(0.1), masks)


BAD_X: Mistakes = {
    "text": ([["a", "b"]], TypeError, NUMBERS),
    "three dimensions": ([[[1.0, 2.0]]], ValueError, "asarray: expected 1, 2 or 4 dimensions"),
    "no rows": ([], ValueError, "asarray: expected at least one value"),
    "ragged rows": ([[1.0, 2.0], [3.0]], ValueError, "asarray: expected rows of equal length"),
    "three columns": ([[1.0, 2.0, 3.0]], ValueError, "Network: x is (1, 3), expected (batch, 2)"),
}


@pytest.mark.parametrize(("x", "kind", "sentence"), BAD_X.values(), ids=BAD_X)
def test_a_network_names_an_x_that_it_cannot_take(stage: Stage, x: Any, kind: type[Exception], sentence: str) -> None:
    calls: list[Callable[[Stage], Any]] = [
        lambda stage: network(stage).forward(x),
        lambda stage: network(stage).predict(x),
        lambda stage: network(stage).gradients(x, [0, 1]),
        lambda stage: train_step(stage, x, [0, 1]),
    ]
    for call in calls:
        assert_refused(stage, call, kind, sentence)


BAD_LABELS: Mistakes = {
    "floats": ([0.0, 1.0], TypeError, "{}: labels must be whole numbers"),
    "truth values": ([True, False], TypeError, "{}: labels must be whole numbers"),
    "too many": ([0, 1, 1], ValueError, "{}: expected 2 labels, one a row"),
    "targets": ([[1.0, 0.0], [0.0, 1.0]], ValueError, "{}: expected 2 labels, one a row"),
    "a negative one": ([0, -1], ValueError, "{}: labels[1] is -1, expected 0 to 1 (2 classes)"),
    "one too large": (np.array([2, 0]), ValueError, "{}: labels[0] is 2, expected 0 to 1 (2 classes)"),
}
BAD_TARGETS: Mistakes = {
    "text": ([["a", "b"], ["c", "d"]], TypeError, NUMBERS),
    "labels": ([0, 1], ValueError, "{}: targets: expected 2 dimensions (rows, columns), got 1 with shape (2,)"),
    "a column": ([[0], [1]], ValueError, "{}: targets is (2, 1) but outputs is (2, 2); they must have the same shape"),
}
BAD_ANSWERS = [
    *((loss, *mistake) for loss in ("softmax_cross_entropy", "hinge") for mistake in BAD_LABELS.values()),
    *(("mean_squared_error", *mistake) for mistake in BAD_TARGETS.values()),
]


@pytest.mark.parametrize(("loss", "y", "kind", "sentence"), BAD_ANSWERS)
def test_labels_and_targets_that_do_not_fit_are_named(
    stage: Stage, loss: str, y: Any, kind: type[Exception], sentence: str
) -> None:
    calls: list[Callable[[Stage], Any]] = [
        lambda stage: network(stage, loss).loss(X, y),
        lambda stage: network(stage, loss).gradients(X, y),
        lambda stage: train_step(stage, X, y, loss=loss),
    ]
    if "labels" in sentence:
        calls.append(lambda stage: getattr(stage.losses, loss)(stage.arrays.asarray(X), y))
    for call in calls:
        assert_refused(stage, call, kind, sentence.format(loss))


BAD_MASKS: Mistakes = {
    "a number": (5, TypeError, "dropout_masks: expected a list of arrays, got int"),
    "too many": ([X, X], ValueError, "dropout_masks: expected 1, one for each Dropout layer, got 2"),
    "text": (["ab"], TypeError, NUMBERS),
    "another shape": ([[[1.0] * 4] * 2], ValueError, "dropout_masks: mask 1 is (2, 4), expected (2, 3)"),
}


@pytest.mark.parametrize(("masks", "kind", "sentence"), BAD_MASKS.values(), ids=BAD_MASKS)
def test_dropout_masks_that_do_not_fit_are_named(
    stage: Stage, masks: Any, kind: type[Exception], sentence: str
) -> None:
    assert_refused(stage, lambda stage: network(stage).forward(X, masks), kind, sentence)
    assert_refused(stage, lambda stage: train_step(stage, X, [0, 1], masks), kind, sentence)


BAD_PARAMETERS: Mistakes = {
    "None": (None, TypeError, "parameters: expected a list [W1, b1, W2, b2, …], got NoneType"),
    "an odd number": ([WEIGHTS], ValueError, "parameters: expected [W1, b1, W2, b2, …], pairs, got 1 arrays"),
    "None for weights": ([None, BIAS], TypeError, NUMBERS),
    "a bias of two dimensions": (
        [WEIGHTS, [BIAS]],
        ValueError,
        "parameters: layer 1, Dense: bias is (1, 2), expected (2,)",
    ),
    "layers that do not fit": (
        [WEIGHTS, BIAS, WEIGHTS, BIAS],
        ValueError,
        "parameters: layer 1 has 2 outputs but layer 2 takes 3 inputs",
    ),
}


@pytest.mark.parametrize(("parameters", "kind", "sentence"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_parameters_that_do_not_fit_are_named(
    stage: Stage, parameters: Any, kind: type[Exception], sentence: str
) -> None:
    assert_refused(stage, lambda stage: stage.network.Network.from_parameters(parameters), kind, sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"activation": "relo"}, "unknown activation 'relo'; choose one of identity, relu, leaky_relu, "),
        ({"loss": None}, "unknown loss None; choose one of mean_squared_error, softmax_cross_entropy, "),
        ({"dtype": "float16"}, "Network: unknown dtype 'float16'; choose one of float32, float64"),
        ({"initializer": "she"}, "unknown initializer 'she'; choose one of he, he_normal, "),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"layer_sizes": [2]}, "layer_sizes: expected at least an input and an output size, got [2]"),
        ({"layer_sizes": [2, 0]}, "layer_sizes: every size must be a whole number of at least 1, got 0 in [2, 0]"),
    ],
)
def test_names_and_sizes_that_no_stage_knows_are_refused(
    stage: Stage, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        stage.network.Network(**({"layer_sizes": [2, 3]} | arguments))


def test_a_training_step_needs_an_optimizer(stage: Stage) -> None:
    sentence = "train_step: optimizer: expected an optimizer, got str"
    assert_refused(stage, lambda stage: network(stage).train_step(X, [0, 1], "Adam"), TypeError, sentence)


# ---- an optimizer


def arrays(stage: Stage, *values: Any) -> list[Any]:
    return [stage.arrays.asarray(each, "float64") for each in values]


def moments(first: Any) -> dict[str, Any]:
    return {"steps": 1, "buffers": {"first_moment": first, "second_moment": ()}}


BAD_STATES: Mistakes = {
    "None": (None, TypeError, "load_state: expected what state() returns, got NoneType"),
    "no buffers": ({"steps": 1}, ValueError, "load_state: expected the keys steps and buffers, got ['steps']"),
    "steps below 0": (
        {"steps": -1, "buffers": {}},
        ValueError,
        "load_state: steps: expected a whole number of at least 0, got -1",
    ),
    "a list of buffers": (
        {"steps": 1, "buffers": []},
        ValueError,
        "load_state: buffers: expected lists of arrays by name, got list",
    ),
    "another optimizer's": (
        {"steps": 1, "buffers": {"velocity": []}},
        ValueError,
        "load_state: expected buffers ['first_moment', 'second_moment'], got ['velocity']: "
        "this state is another optimizer's",
    ),
    "text for arrays": (moments("ab"), TypeError, "load_state: first_moment: expected a list of arrays, got str"),
    "text in an array": (moments([["a"]]), TypeError, f"load_state: number 0 of first_moment: {NUMBERS}"),
}


@pytest.mark.parametrize(("state", "kind", "sentence"), BAD_STATES.values(), ids=BAD_STATES)
def test_what_is_no_state_is_refused_and_the_old_state_stays(
    stage: Stage, state: Any, kind: type[Exception], sentence: str
) -> None:
    optimizer = stage.optimizers.Adam()
    optimizer.step(arrays(stage, WEIGHTS), arrays(stage, WEIGHTS))
    before = optimizer.state()
    assert_refused(stage, lambda _: optimizer.load_state(state), kind, sentence)
    after = optimizer.state()
    assert after["steps"] == 1
    for name, buffers in before["buffers"].items():
        np.testing.assert_array_equal(after["buffers"][name], buffers)


def test_a_state_of_other_shapes_is_refused_by_the_first_step(stage: Stage) -> None:
    optimizer, parameters = stage.optimizers.Adam(), arrays(stage, WEIGHTS, BIAS)
    buffers = [[X[0]], BIAS]
    optimizer.load_state({"steps": 1, "buffers": {"first_moment": buffers, "second_moment": buffers}})
    sentence = "step: parameter 0 is (3, 2) but number 0 of the optimizer's first_moment is (1, 2)"
    assert_refused(stage, lambda _: optimizer.step(parameters, arrays(stage, WEIGHTS, BIAS)), ValueError, sentence)
    np.testing.assert_array_equal(stage.arrays.to_host(parameters[0]), WEIGHTS)
    assert optimizer.state()["steps"] == 1


AT_LEAST_ZERO = "expected a finite number of at least 0"
FRACTION = "expected a number of at least 0 and below 1"
BAD_SETTINGS: list[tuple[str, str, Any, type[Exception], str]] = [
    ("SGD", "learning_rate", -0.1, ValueError, f"learning_rate: {AT_LEAST_ZERO}, got -0.1"),
    ("SGD", "learning_rate", math.nan, ValueError, f"learning_rate: {AT_LEAST_ZERO}, got nan"),
    ("SGD", "learning_rate", [1.0], TypeError, "learning_rate: expected a number, got [1.0]"),
    ("SGD", "weight_decay", -1e-9, ValueError, f"weight_decay: {AT_LEAST_ZERO}, got -1e-09"),
    ("SGD", "momentum", 1.5, ValueError, f"momentum: {FRACTION}, got 1.5"),
    ("SGD", "nesterov", True, ValueError, "nesterov: needs a momentum above 0, got momentum 0"),
    ("RMSProp", "alpha", 1.0, ValueError, f"alpha: {FRACTION}, got 1.0"),
    ("RMSProp", "epsilon", -1.0, ValueError, f"epsilon: {AT_LEAST_ZERO}, got -1.0"),
    ("Adam", "beta1", -0.1, ValueError, f"beta1: {FRACTION}, got -0.1"),
    ("Adam", "beta2", "0.9", TypeError, "beta2: expected a number, got '0.9'"),
    ("Adam", "epsilon", math.inf, ValueError, f"epsilon: {AT_LEAST_ZERO}, got inf"),
]


@pytest.mark.parametrize(("name", "setting", "value", "kind", "sentence"), BAD_SETTINGS)
def test_a_hyperparameter_is_checked_when_it_is_given_and_when_it_is_set(
    stage: Stage, name: str, setting: str, value: Any, kind: type[Exception], sentence: str
) -> None:
    make = getattr(stage.optimizers, name)
    optimizer = make(0.1)
    before = getattr(optimizer, setting)
    assert_refused(stage, lambda _: make(**{"learning_rate": 0.1, setting: value}), kind, sentence)
    assert_refused(stage, lambda _: setattr(optimizer, setting, value), kind, sentence)
    assert getattr(optimizer, setting) == before


BAD_GRADIENTS: Mistakes = {
    "a number": (5, TypeError, "step: gradients is a int, expected a list of arrays"),
    "too few": ([WEIGHTS], ValueError, "step: there are 2 parameters but 1 arrays in gradients"),
    "another shape": ([WEIGHTS, [1.0]], ValueError, "step: parameter 1 is (2,) but number 1 of gradients is (1,)"),
    "None": ([WEIGHTS, None], TypeError, "step: number 1 of gradients is a NoneType, expected an array; see asarray"),
}


@pytest.mark.parametrize(("gradients", "kind", "sentence"), BAD_GRADIENTS.values(), ids=BAD_GRADIENTS)
@pytest.mark.parametrize("name", ["SGD", "RMSProp", "Adam"])
def test_a_step_names_what_it_cannot_take_and_nothing_moves(
    stage: Stage, name: str, gradients: Any, kind: type[Exception], sentence: str
) -> None:
    optimizer, parameters = getattr(stage.optimizers, name)(0.1), arrays(stage, WEIGHTS, BIAS)
    if isinstance(gradients, list):
        gradients = [each and stage.arrays.asarray(each, "float64") for each in gradients]
    assert_refused(stage, lambda _: optimizer.step(parameters, gradients), kind, sentence)
    assert optimizer.state()["steps"] == 0
    np.testing.assert_array_equal(stage.arrays.to_host(parameters[0]), WEIGHTS)


def test_a_gradient_of_another_dtype_is_refused_and_nothing_moves(stage: Stage) -> None:
    parameter, gradient = stage.arrays.asarray(BIAS, "float32"), stage.arrays.asarray(BIAS, "float64")
    if not hasattr(parameter, "dtype"):
        pytest.skip(f"{stage.title} computes in Python floats, whatever dtype is asked for")
    sentence = "step: parameter 0 is float32 but number 0 of gradients is float64; convert one of them"
    for optimizer in (stage.optimizers.SGD(0.1), stage.optimizers.RMSProp(), stage.optimizers.Adam()):
        assert_refused(stage, lambda _, o=optimizer: o.step([parameter], [gradient]), TypeError, sentence)  # type: ignore[misc]
    np.testing.assert_array_equal(stage.arrays.to_host(parameter), BIAS)
