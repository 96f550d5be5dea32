"""Looking inside a trained network: what it confuses, what its units look for, and which of them do nothing.

Everything here works on NumPy arrays, so it takes a network from any floor: `host_parameters` brings one over. x is
(batch, features), parameters are [W1, b1, W2, b2, …] with weights (in_features, out_features), and activation is the
name of the function after every layer but the last, such as "relu".

    confusion_matrix     which class is taken for which
    most_wrong           the mistakes it is surest of
    first_layer_images   the weights of each first-layer unit, seen as an image
    hidden_activations   what every hidden unit says to every sample
    active_shares        how often each of them says anything
    dead_units           the share of those that never do
    scores               what the last layer says
    probabilities        the same as shares of belief
    saliency             which pixels a score hangs on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shared.contract import ACTIVATIONS, NetworkLike, Stage, load_stage


def host_parameters(stage: Stage, network: NetworkLike) -> list[np.ndarray]:
    """[W1, b1, W2, b2, …] of a network of any stage as NumPy arrays: copies, in the dtype the stage computes in."""
    return [np.array(stage.arrays.to_host(array)) for array in network.parameters]


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """How often each class was taken for each: int64 (classes, classes), row = the true label, column = the prediction.

    labels, predictions: integers (n,) from 0 to classes - 1. The diagonal holds what was right, and row i adds up to
    the number of samples with label i. Same as sklearn.metrics.confusion_matrix.
    Raises ValueError where the two differ in length or hold anything else.
    """
    _check_classes("confusion_matrix: labels", labels, classes)
    _check_classes("confusion_matrix: predictions", predictions, classes)
    if len(labels) != len(predictions):
        raise ValueError(
            f"confusion_matrix: {len(labels)} labels but {len(predictions)} predictions; expected one each"
        )
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, predictions), 1)  # counts[labels, predictions] += 1 would count each pair only once
    return counts


def most_wrong(probabilities: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Indices of the samples that are most confidently wrong, the surest first: int64, `count` of them or fewer.

    probabilities: (n, classes), rows that add up to 1; the prediction is the largest of a row, its confidence that
    value. labels: integers (n,). Samples of equal confidence stay in their order.
    Raises ValueError for shapes that do not fit together and for a count below 0.
    """
    _check_matrix("most_wrong: probabilities", probabilities)
    _check_labels("most_wrong", labels, len(probabilities), probabilities.shape[1])
    if count < 0:
        raise ValueError(f"most_wrong: count: expected at least 0, got {count}")
    predictions = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(predictions != labels)
    confidence = probabilities[wrong, predictions[wrong]]
    return wrong[np.argsort(-confidence, kind="stable")[:count]]


def first_layer_images(weights: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Each first-layer unit's weights as an image: (units, height, width), values from -1 to 1.

    weights: (height * width, units): a column is a unit. Each image is divided by its own largest |weight|, so that 0
    stays 0 and the sign can be seen: where ink speaks for the unit, and where against it. A unit whose weights are all
    0 gives an image of 0.
    Raises ValueError where the weights do not fill such images.
    """
    _check_matrix("first_layer_images: weights", weights)
    height, width = shape
    if len(weights) != height * width:
        raise ValueError(
            f"first_layer_images: weights is {weights.shape}, expected {height * width} rows for images of "
            f"{height} by {width}"
        )
    images = weights.T.reshape(-1, height, width)  # the transpose first: reshape alone would mix the units
    largest = np.abs(images).max(axis=(1, 2), keepdims=True)
    return images / np.where(largest == 0, 1, largest)


def hidden_activations(parameters: Sequence[np.ndarray], activation: str, x: np.ndarray) -> list[np.ndarray]:
    """The output of every hidden layer, after the activation: one (batch, units) for each, the first layer first.

    outputₖ = f(outputₖ₋₁ Wₖ + bₖ), where output₀ is x. A network without a hidden layer gives an empty list.
    Raises ValueError for an unknown activation and for shapes that do not fit together.
    """
    _check_network("hidden_activations", parameters, x)
    activate, _ = activation_pair(activation)
    outputs, signal = [], x
    for weights, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        signal = activate(signal @ weights + bias)
        outputs.append(signal)
    return outputs


def active_shares(activations: np.ndarray) -> np.ndarray:
    """The share of samples for which each unit is not 0: (units,), from 0 to 1. activations: (batch, units).

    Raises ValueError where there is no sample or no unit.
    """
    _check_matrix("active_shares: activations", activations)
    return np.mean(activations != 0, axis=0)


def dead_units(activations: np.ndarray) -> float:
    """The share of units that are 0 for every sample, from 0 to 1. activations: (batch, units), after the activation.

    Behind a ReLU no gradient reaches such a unit, so that training on these samples leaves it as it is. Only ReLU can
    make an exact 0 of anything but 0: of tanh, sigmoid, leaky ReLU and softmax the share says nothing.
    Raises ValueError where there is no sample or no unit.
    """
    return float(np.mean(active_shares(activations) == 0))


def scores(parameters: Sequence[np.ndarray], activation: str, x: np.ndarray) -> np.ndarray:
    """The last layer's raw output, (batch, classes): what `Network.forward` returns.

    Raises ValueError for an unknown activation and for shapes that do not fit together.
    """
    outputs = hidden_activations(parameters, activation, x)
    return (outputs[-1] if outputs else x) @ parameters[-2] + parameters[-1]


def probabilities(scores: np.ndarray) -> np.ndarray:
    """softmax(scores), row by row, (batch, classes): what a network trained with softmax_cross_entropy believes.

    For a network trained with another loss it is a way to rank its answers, and no more.
    """
    believed: np.ndarray = load_stage("numpy").activations.softmax(scores)
    return believed


def saliency(parameters: Sequence[np.ndarray], activation: str, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The gradient of one class's score with respect to the input: d score[label] / dx, (batch, features).

    labels: integers (batch,), the class whose score is asked about, one for each row of x. Where the value is positive,
    more ink raises that score. Backpropagation with another start: not from a loss, but from the score itself,

        d score / d outputₗₐₛₜ = column `label` of the last W
        d score / d outputₖ₋₁ = (d score / d outputₖ · f'(zₖ)) Wₖᵀ, down to output₀ = x

    Raises ValueError for an unknown activation, shapes that do not fit together and labels out of range.
    """
    _check_network("saliency", parameters, x)
    _check_labels("saliency", labels, len(x), parameters[-2].shape[1])
    activate, activate_backward = activation_pair(activation)
    trace, signal = [], x
    for weights, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        z = signal @ weights + bias
        signal = activate(z)
        trace.append((z, signal, weights))
    gradient = parameters[-2].T[labels]  # (batch, units of the last hidden layer)
    for z, output, weights in reversed(trace):
        gradient = activate_backward(gradient, z, output) @ weights.T
    return gradient


def activation_pair(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(f, f_backward) of an activation on NumPy arrays: stage 2's. ValueError for an unknown name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; choose one of {', '.join(ACTIVATIONS)}")
    room = load_stage("numpy").activations
    return getattr(room, name), getattr(room, f"{name}_backward")


def _check_matrix(name: str, array: np.ndarray) -> None:
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name}: expected a matrix with at least one row and one column, got shape {array.shape}")


def _check_classes(name: str, array: np.ndarray, classes: int) -> None:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers (n,), got {array.dtype} of shape {array.shape}")
    if len(array) and not 0 <= array.min() <= array.max() < classes:
        raise ValueError(f"{name}: expected classes from 0 to {classes - 1}, got {array.min()} to {array.max()}")


def _check_labels(function: str, labels: np.ndarray, count: int, classes: int) -> None:
    _check_classes(f"{function}: labels", labels, classes)
    if len(labels) != count:
        raise ValueError(f"{function}: {len(labels)} labels for {count} samples; expected one each")


def _check_network(function: str, parameters: Sequence[np.ndarray], x: np.ndarray) -> None:
    if len(parameters) < 2 or len(parameters) % 2:
        raise ValueError(f"{function}: parameters: expected [W1, b1, W2, b2, …], pairs, got {len(parameters)} arrays")
    _check_matrix(f"{function}: x", x)
    for i, (weights, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True), start=1):
        if weights.ndim != 2 or bias.shape != weights.shape[1:]:
            raise ValueError(f"{function}: W{i} is {weights.shape} and b{i} is {bias.shape}; expected (m, n) and (n,)")
    for i, (weights, after) in enumerate(pairwise(parameters[::2]), start=1):
        if weights.shape[1] != after.shape[0]:
            raise ValueError(f"{function}: W{i} is {weights.shape} but W{i + 1} is {after.shape}; they cannot follow")
    if x.shape[1] != len(parameters[0]):
        raise ValueError(
            f"{function}: x is {x.shape} but W1 is {parameters[0].shape}; x's columns must equal W1's rows"
        )
