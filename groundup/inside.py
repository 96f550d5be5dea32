"""Measures of a trained network: the classes it confuses, the images its units respond to, and units that are dead.

All functions work on NumPy arrays; `host_parameters` copies those of a network of any floor. x is (batch, features),
parameters are [W1, b1, W2, b2, …] with weights (in_features, out_features), and activation is the name of the function
after every layer but the last, such as "relu".

    confusion_matrix     how often each class is predicted for each
    most_wrong           the wrong predictions with the highest confidence
    first_layer_images   the weights of each first-layer unit as an image
    hidden_activations   the output of every hidden unit for every sample
    active_shares        the share of samples for which each unit is not 0
    dead_units           the share of units that are 0 for every sample
    scores               the raw output of the last layer
    probabilities        softmax of the scores
    saliency             the gradient of a score with respect to the pixels
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from shared.contract import ACTIVATIONS, NetworkLike, Stage, load_stage


def host_parameters(stage: Stage, network: NetworkLike) -> list[np.ndarray]:
    """Copies of the parameters [W1, b1, W2, b2, …] of any stage's network as NumPy arrays in the stage's dtype."""
    return [np.array(stage.arrays.to_host(array)) for array in network.parameters]


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """How often each class was predicted for each: int64 (classes, classes), a row a label, a column a prediction.

    labels, predictions: integers (n,) from 0 to classes - 1. The diagonal counts right predictions, and the sum of
    row i is the number of samples with label i. Same as sklearn.metrics.confusion_matrix.
    Raises ValueError if the two differ in length or hold other values.
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
    """Indices of the wrong predictions with the highest confidence, highest first: int64, at most `count`.

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


def first_layer_images(weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Each first-layer unit's weights as an image: (units, height, width), values from -1 to 1.

    weights: (pixels, units): a column is a unit. shape: (height, width), or (channels, height, width): then an image is
    the mean over the channels. Each image is divided by its own largest |weight|, so 0 stays 0 and the sign stays the
    same: ink on a positive pixel raises the unit's z, ink on a negative one lowers it. A unit whose weights are all 0
    gives an image of 0.
    Raises ValueError if the number of weights is not that of the shape.
    """
    _check_matrix("first_layer_images: weights", weights)
    *channels, height, width = shape
    pixels = math.prod(shape)
    if len(weights) != pixels:
        raise ValueError(
            f"first_layer_images: weights is {weights.shape}, expected {pixels} rows for images of {height} by {width}"
        )
    images = weights.T.reshape(-1, *shape)  # the transpose first: reshape alone would mix the units
    images = images.mean(axis=1) if channels else images
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

    NaN and infinities are not 0.

    Raises ValueError if there is no sample or no unit.
    """
    _check_matrix("active_shares: activations", activations)
    return np.mean(activations != 0, axis=0)


def dead_units(activations: np.ndarray) -> float:
    """The share of units that are 0 for every sample, from 0 to 1. activations: (batch, units), after the activation.

    With ReLU no gradient reaches such a unit, so training on these samples does not change it. The share means nothing
    for other activations: only ReLU gives exactly 0 for inputs other than 0.
    Raises ValueError if there is no sample or no unit.
    """
    return float(np.mean(active_shares(activations) == 0))


def scores(parameters: Sequence[np.ndarray], activation: str, x: np.ndarray) -> np.ndarray:
    """The last layer's raw output, (batch, classes): what `Network.forward` returns.

    Raises ValueError for an unknown activation and for shapes that do not fit together.
    """
    outputs = hidden_activations(parameters, activation, x)
    return (outputs[-1] if outputs else x) @ parameters[-2] + parameters[-1]


def probabilities(scores: np.ndarray) -> np.ndarray:
    """softmax(scores), row by row, (batch, classes).

    These are the probabilities that a network trained with softmax_cross_entropy gives the classes. For a network
    trained with another loss they only rank the classes.
    """
    result: np.ndarray = _numpy_stage().activations.softmax(scores)
    return result


def saliency(parameters: Sequence[np.ndarray], activation: str, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The gradient of one class's score with respect to the input: d score[label] / dx, (batch, features).

    labels: integers (batch,), the class of the score for each row of x. More ink on a pixel with a positive value
    raises the score. This is backpropagation that starts at the score instead of a loss:

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
    """The functions (f, f_backward) of an activation on NumPy arrays, stage 2's. ValueError for an unknown name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; choose one of {', '.join(ACTIVATIONS)}")
    room = _numpy_stage().activations
    return getattr(room, name), getattr(room, f"{name}_backward")


@cache
def _numpy_stage() -> Stage:
    """Stage 2, looked for once: a live picture asks for it several times in every frame."""
    return load_stage("numpy")


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
