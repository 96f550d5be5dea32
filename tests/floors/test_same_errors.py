"""The same mistake in using a network is answered by the same error in the same words on every floor."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import Stage
from tests.floors.refusals import assert_refused

X = [[1.0, 2.0], [3.0, 4.0]]
WEIGHTS, BIAS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0]


def network(stage: Stage, loss: str = "softmax_cross_entropy") -> Any:
    """2 inputs, 3 hidden neurons with dropout, 2 outputs."""
    return stage.network.Network(mlp([2, 3, 2], dropout=0.5), loss=loss, seed=1, dtype="float64")


# ---- a network's input

NUMBERS = "asarray: expected real numbers"
BAD_X: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, NUMBERS),
    "text": ([["a", "b"]], TypeError, NUMBERS),
    "complex numbers": ([[1j, 2.0]], TypeError, NUMBERS),
    "a dict": ({"a": 1}, TypeError, NUMBERS),
    "an iterator": (iter(X), TypeError, NUMBERS),
    "a number": (5, ValueError, "asarray: expected 1, 2 or 4 dimensions, got 0"),
    "three dimensions": ([[[1.0, 2.0]]], ValueError, "asarray: expected 1, 2 or 4 dimensions"),
    "no rows": ([], ValueError, "asarray: expected at least one value"),
    "an empty row": ([[]], ValueError, "asarray: expected at least one value"),
    "no rows of an array": (np.ones((0, 2)), ValueError, "asarray: expected at least one value"),
    "ragged rows": ([[1.0, 2.0], [3.0]], ValueError, "asarray: expected rows of equal length"),
    "a number among rows": ([[1.0, 2.0], 3.0], ValueError, "asarray: expected rows of equal length"),
    "one dimension": ([1.0, 2.0], ValueError, "Network: x is (2,), expected (batch, 2)"),
    "three columns": ([[1.0, 2.0, 3.0]], ValueError, "Network: x is (1, 3), expected (batch, 2)"),
    "images": ([[[[1.0], [2.0]]]], ValueError, "Network: x is (1, 1, 2, 1), expected (batch, 2)"),
}
CALLS: dict[str, Callable[[Stage, Any], Any]] = {
    "forward": lambda stage, x: network(stage).forward(x),
    "predict": lambda stage, x: network(stage).predict(x),
    "loss": lambda stage, x: network(stage).loss(x, [0, 1]),
    "gradients": lambda stage, x: network(stage).gradients(x, [0, 1]),
    "train_step": lambda stage, x: network(stage).train_step(x, [0, 1], stage.optimizers.SGD(0.1)),
}


@pytest.mark.parametrize(("x", "kind", "sentence"), BAD_X.values(), ids=BAD_X)
def test_a_network_names_an_x_that_it_cannot_take(stage: Stage, x: Any, kind: type[Exception], sentence: str) -> None:
    for call in CALLS.values():
        assert_refused(stage, partial(call, x=x), kind, sentence)


@pytest.mark.parametrize(
    "x", [[(1.0, 0.0), (1.0, 1.0)], [[True, False], [1, 1]], np.array([[1, 0], [1, 1]]), [np.array([1.0, 0.0]), (1, 1)]]
)
def test_whatever_asarray_takes_is_an_x(stage: Stage, x: Any) -> None:
    floats = [[1.0, 0.0], [1.0, 1.0]]
    assert network(stage).loss(x, [0, 1]) == network(stage).loss(floats, [0, 1])
    for method in ("forward", "gradients"):
        arguments = ([0, 1],) if method == "gradients" else ()
        results = [getattr(network(stage), method)(given, *arguments) for given in (x, floats)]
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(stage.arrays.to_host(one), stage.arrays.to_host(other))


# ---- labels and targets

BAD_LABELS: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, "{}: labels must be whole numbers"),
    "floats": ([0.0, 1.0], TypeError, "{}: labels must be whole numbers"),
    "text": (["a", "b"], TypeError, "{}: labels must be whole numbers"),
    "truth values": ([True, False], TypeError, "{}: labels must be whole numbers"),
    "a dict": ({0: 1, 1: 0}, TypeError, "{}: labels must be whole numbers"),
    "an iterator": (iter([0, 1]), TypeError, "{}: labels must be whole numbers"),
    "a number": (0, ValueError, "{}: expected 2 labels, one a row"),
    "an array of no dimension": (np.array(0), ValueError, "{}: expected 2 labels, one a row"),
    "none at all": ([], ValueError, "{}: expected 2 labels, one a row"),
    "too many": ([0, 1, 1], ValueError, "{}: expected 2 labels, one a row"),
    "a column": ([[0], [1]], ValueError, "{}: expected 2 labels, one a row"),
    "targets": ([[1.0, 0.0], [0.0, 1.0]], ValueError, "{}: expected 2 labels, one a row"),
    "ragged rows": ([[0], [1, 2]], ValueError, "{}: expected 2 labels, one a row"),
    "a negative one": ([0, -1], ValueError, "{}: labels[1] is -1, expected 0 to 1 (2 classes)"),
    "one too large": (np.array([2, 0]), ValueError, "{}: labels[0] is 2, expected 0 to 1 (2 classes)"),
}
BAD_TARGETS: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, NUMBERS),
    "text": ([["a", "b"], ["c", "d"]], TypeError, NUMBERS),
    "a number": (0, ValueError, "asarray: expected 1, 2 or 4 dimensions, got 0"),
    "ragged rows": ([[1.0, 2.0], [3.0]], ValueError, "asarray: expected rows of equal length"),
    "labels": ([0, 1], ValueError, "{}: targets: expected 2 dimensions (rows, columns), got 1 with shape (2,)"),
    "a column": ([[0], [1]], ValueError, "{}: targets is (2, 1) but OUTPUTS is (2, 2); they must have the same shape"),
}
OF_Y: dict[str, Callable[[Stage, str, Any], Any]] = {
    "loss": lambda stage, loss, y: network(stage, loss).loss(X, y),
    "gradients": lambda stage, loss, y: network(stage, loss).gradients(X, y),
    "train_step": lambda stage, loss, y: network(stage, loss).train_step(X, y, stage.optimizers.SGD(0.1)),
}


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "hinge"])
@pytest.mark.parametrize(("y", "kind", "sentence"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_are_none_are_named(stage: Stage, loss: str, y: Any, kind: type[Exception], sentence: str) -> None:
    for call in OF_Y.values():
        assert_refused(stage, partial(call, loss=loss, y=y), kind, sentence.format(loss))
    outputs = stage.arrays.asarray(X)
    assert_refused(stage, lambda stage: getattr(stage.losses, loss)(outputs, y), kind, sentence.format(loss))


@pytest.mark.parametrize(("loss", "outputs"), [("mean_squared_error", "outputs"), ("sigmoid_cross_entropy", "logits")])
@pytest.mark.parametrize(("y", "kind", "sentence"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_targets_that_are_none_are_named(
    stage: Stage, loss: str, outputs: str, y: Any, kind: type[Exception], sentence: str
) -> None:
    for call in OF_Y.values():
        assert_refused(stage, partial(call, loss=loss, y=y), kind, sentence.format(loss).replace("OUTPUTS", outputs))


# ---- dropout masks

BAD_MASKS: dict[str, tuple[Any, type[Exception], str]] = {
    "a number": (5, TypeError, "dropout_masks: expected a list of arrays, got int"),
    "an iterator": (iter([]), TypeError, "dropout_masks: expected a list of arrays, got list_iterator"),
    "none at all": ([], ValueError, "dropout_masks: expected 1, one for each Dropout layer, got 0"),
    "too many": ([X, X], ValueError, "dropout_masks: expected 1, one for each Dropout layer, got 2"),
    "None": ([None], TypeError, NUMBERS),
    "text": (["ab"], TypeError, NUMBERS),
    "text in rows": ([[["a", "b", "c"]] * 2], TypeError, NUMBERS),
    "ragged rows": ([[[1.0] * 3, [1.0]]], ValueError, "asarray: expected rows of equal length"),
    "one dimension": ([[1.0] * 3], ValueError, "dropout_masks: mask 1 is (3,), expected (2, 3)"),
    "another shape": ([[[1.0] * 4] * 2], ValueError, "dropout_masks: mask 1 is (2, 4), expected (2, 3)"),
}
OF_MASKS: dict[str, Callable[[Stage, Any], Any]] = {
    "forward": lambda stage, masks: network(stage).forward(X, masks),
    "loss": lambda stage, masks: network(stage).loss(X, [0, 1], masks),
    "gradients": lambda stage, masks: network(stage).gradients(X, [0, 1], masks),
    "train_step": lambda stage, masks: network(stage).train_step(X, [0, 1], stage.optimizers.SGD(0.1), masks),
}


@pytest.mark.parametrize(("masks", "kind", "sentence"), BAD_MASKS.values(), ids=BAD_MASKS)
def test_dropout_masks_that_are_none_are_named(stage: Stage, masks: Any, kind: type[Exception], sentence: str) -> None:
    for call in OF_MASKS.values():
        assert_refused(stage, partial(call, masks=masks), kind, sentence)


def test_masks_may_be_one_array(stage: Stage) -> None:
    masks = np.array([[[0.0, 2.0, 2.0], [2.0, 0.0, 2.0]]])
    assert network(stage).loss(X, [0, 1], masks) == network(stage).loss(X, [0, 1], list(masks))
    gradients = [network(stage).gradients(X, [0, 1], given) for given in (masks, masks.tolist())]
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_array_equal(stage.arrays.to_host(one), stage.arrays.to_host(other))


# ---- parameters

BAD_PARAMETERS: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, TypeError, "parameters: expected a list [W1, b1, W2, b2, …], got NoneType"),
    "an odd number": ([WEIGHTS], ValueError, "parameters: expected [W1, b1, W2, b2, …], pairs, got 1 arrays"),
    "text": ("abcd", TypeError, NUMBERS),
    "None for weights": ([None, BIAS], TypeError, NUMBERS),
    "text for a bias": ([WEIGHTS, ["a", "b"]], TypeError, NUMBERS),
    "a number for a bias": ([WEIGHTS, 5.0], ValueError, "asarray: expected 1, 2 or 4 dimensions, got 0"),
    "ragged weights": ([[[1.0, 2.0], [3.0]], BIAS], ValueError, "asarray: expected rows of equal length"),
    "no bias": ([WEIGHTS, []], ValueError, "asarray: expected at least one value"),
    "weights of one dimension": (
        [BIAS, BIAS],
        ValueError,
        "parameters: layer 1, Dense: weights is (2,), expected (2, 2)",
    ),
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


BAD_LAYERS = {
    BAD_PARAMETERS["weights of one dimension"][2]: (
        "Dense: weights must be 2-D (in_features, out_features), got shape (2,)"
    ),
    BAD_PARAMETERS["a bias of two dimensions"][2]: (
        "Dense: bias is (1, 2) but weights are (3, 2); expected one bias for each output, (2,)"
    ),
}
"""What the layer alone says, where a network knows more."""


@pytest.mark.parametrize(("parameters", "kind", "sentence"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_parameters_that_are_none_are_named(
    stage: Stage, parameters: Any, kind: type[Exception], sentence: str
) -> None:
    assert_refused(stage, lambda stage: stage.network.Network.from_parameters(parameters), kind, sentence)
    if isinstance(parameters, list) and len(parameters) == 2:
        of_a_layer = BAD_LAYERS.get(sentence, sentence)
        assert_refused(stage, lambda stage: stage.dense.Dense(*parameters), kind, of_a_layer)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"activation": "relo"}, "unknown activation 'relo'; choose one of identity, relu, leaky_relu, "),
        ({"loss": None}, "unknown loss None; choose one of mean_squared_error, softmax_cross_entropy, "),
        ({"dtype": "float16"}, "Network: unknown dtype 'float16'; choose one of float32, float64"),
        ({"initializer": "she"}, "unknown initializer 'she'; choose one of he, he_normal, "),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"layer_sizes": [2]}, "layer_sizes: expected at least an input and an output size, got [2]"),
    ],
)
def test_names_and_sizes_that_no_floor_knows_are_refused(
    stage: Stage, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        stage.network.Network(**({"layer_sizes": [2, 3]} | arguments))


# ---- an optimizer


@pytest.mark.parametrize("optimizer", [None, "Adam", 0.1])
def test_a_training_step_needs_an_optimizer(stage: Stage, optimizer: Any) -> None:
    sentence = f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}"
    assert_refused(stage, lambda stage: network(stage).train_step(X, [0, 1], optimizer), TypeError, sentence)
