"""What the page draws after a step: a dictionary of plain numbers and of grids as base64 text.

The forward passes for the picture are NumPy's, from copies of the parameters, whatever floor trains: see
groundup.inside. Grids lie in the square from -EDGE to EDGE, row after row, the highest x2 first, as a picture is drawn.

    surface   one byte a cell: class * LEVELS + round((LEVELS - 1) * lead), where lead is how far the best answer is
              ahead of the second: 0 at the boundary, 1 far from it
    tiles     for each drawn neuron of each layer TILE * TILE signed bytes: its output beside its own largest, 127
    largest   those largest outputs, the greatest |output| of each drawn neuron
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import numpy as np

from groundup.inside import active_shares, confusion_matrix, first_layer_images, hidden_activations, probabilities
from groundup.studio.playground.model import Playground
from groundup.studio.playground.settings import Settings
from shared.contract import Stage, load_stage
from shared.data.batches import as_targets
from shared.data.datasets import SIDE, Split

EDGE = 1.2
GRID, TILE = 50, 25
"""Cells along a side of the surface and of a neuron's tile, which takes every second cell."""

LEVELS = 51
DRAWN = 16
"""Neurons of a layer that are drawn, the first ones."""

MEASURED, MEASURED_IMAGES = 1000, 100
"""Samples of each part on which loss and accuracy are measured, the first ones: all points of the plane."""


def picture(playground: Playground) -> dict[str, Any]:
    """The picture of a training at this moment, without anything that stays the same: see `scene`.

    Numbers that are not finite are NaN or infinite here; the page receives null.
    """
    settings, data, position = playground.settings, playground.data, playground.position
    plane = data.train.x.shape[1] == 2
    seen = MEASURED if plane else MEASURED_IMAGES
    parts = [data.train.first(seen), data.test.first(seen)]
    with np.errstate(all="ignore"):  # a training that has diverged is drawn, too
        parameters = playground.parameters()
        # One forward pass for everything that is drawn: the training samples, the test samples, the surface's cells.
        x = np.concatenate([*(part.x for part in parts), *([grid()] if plane else [])]).astype(settings.dtype)
        hidden = hidden_activations(parameters, settings.activation, x)
        outputs = (hidden[-1] if hidden else x) @ parameters[-2] + parameters[-1]
        of_train, of_test = slice(len(parts[0])), slice(len(parts[0]), len(parts[0]) + len(parts[1]))
        train = _measured(outputs[of_train], parts[0], settings)
        test = _measured(outputs[of_test], parts[1], settings)
        shares = [active_shares(layer[of_train]) for layer in hidden]
        norms = [float(np.linalg.norm(gradient)) for gradient in playground.gradients()[::2]]
        if plane:
            cells = slice(of_test.stop, None)
            drawn = _plane([layer[cells] for layer in hidden], outputs[cells], settings)
        else:
            drawn = _images(parameters, outputs[of_test], parts[1])
        return {
            "step": position.steps,
            "epoch": position.epoch + position.used / len(data.train),
            "stage": playground.stage.title,
            "seconds": playground.step_seconds,
            "batch_loss": playground.batch_loss,
            "loss": [train[0], test[0]],
            "accuracy": [train[1], test[1]],
            "gradients": norms if position.steps else [],
            "finite": all(bool(np.isfinite(array).all()) for array in parameters),
            "weights": [_rounded(weights[: _most(weights, i), :DRAWN]) for i, weights in enumerate(parameters[::2])],
            "biases": [_rounded(bias[:DRAWN]) for bias in parameters[1::2]],
            "active": [_rounded(row[:DRAWN]) for row in shares],
            "dead": [np.flatnonzero(row == 0).tolist() for row in shares] if settings.activation == "relu" else None,
            **drawn,
        }


def scene(playground: Playground) -> dict[str, Any]:
    """What stays the same from step to step: the settings, the sizes of the layers and the points."""
    data = playground.data
    plane = data.train.x.shape[1] == 2
    parts = {"train": data.train, "test": data.test}
    return {
        "settings": playground.settings.to_json(),
        "sizes": list(playground.network.layer_sizes),
        "classes": data.classes,
        "samples": [len(data.train), len(data.test)],
        "points": {name: _pairs(part) for name, part in parts.items()} if plane else None,
        "image": None if plane else _text(np.round(127 * data.test.x[0]).astype(np.int8)),
        "edge": EDGE,
    }


def _measured(outputs: np.ndarray, part: Split, settings: Settings) -> tuple[float, float]:
    """(loss, accuracy) of the network's outputs for a part."""
    targets = as_targets(part.y, settings.loss, outputs.shape[1], settings.dtype)
    loss = float(getattr(_numpy_stage().losses, settings.loss)(outputs, targets))
    return loss, float(np.mean(outputs.argmax(axis=1) == part.y))


@cache
def _numpy_stage() -> Stage:
    return load_stage("numpy")


def answers(outputs: np.ndarray, loss: str) -> np.ndarray:
    """The outputs on the scale on which the loss judges them: (n, classes), where a lead of 1 is the clearest answer.

    softmax_cross_entropy: probabilities; sigmoid_cross_entropy: one for each class; the other losses: the outputs.
    """
    if loss == "softmax_cross_entropy":
        return probabilities(outputs)
    if loss == "sigmoid_cross_entropy":
        result: np.ndarray = _numpy_stage().activations.sigmoid(outputs)
        return result
    return outputs


@cache
def grid() -> np.ndarray:
    """The cells' centres as a batch, (GRID * GRID, 2): row after row, the highest x2 first."""
    line = (np.arange(GRID) + 0.5) / GRID * 2 * EDGE - EDGE
    x1, x2 = np.meshgrid(line, -line)
    return np.column_stack([x1.ravel(), x2.ravel()])


def surface(outputs: np.ndarray, loss: str) -> np.ndarray:
    """uint8 (n,): class * LEVELS + round((LEVELS - 1) * lead). Outputs that are not finite count as 0."""
    each = np.nan_to_num(answers(outputs, loss), nan=0.0, posinf=0.0, neginf=0.0)
    best = each.argmax(axis=1)
    second, first = np.partition(each, -2, axis=1)[:, -2:].T
    lead = np.clip(first - second, 0.0, 1.0)
    return (best * LEVELS + np.round(lead * (LEVELS - 1))).astype(np.uint8)


def _plane(hidden: list[np.ndarray], outputs: np.ndarray, settings: Settings) -> dict[str, Any]:
    """The grids of data in the plane, from every layer's outputs for the cells."""
    layers = [_coarse(each) for each in (*hidden, outputs)]
    return {
        "surface": _text(surface(outputs, settings.loss)),
        "tiles": [_text(_tile(each)) for each in layers],
        "largest": [_rounded(np.abs(each).max(axis=(1, 2))) for each in layers],
    }


def _coarse(outputs: np.ndarray) -> np.ndarray:
    """(drawn neurons, TILE, TILE): every second cell of the drawn neurons; 0 for numbers that are not finite."""
    cells = outputs[:, :DRAWN].reshape(GRID, GRID, -1)[1::2, ::2]
    return np.moveaxis(np.nan_to_num(cells, nan=0.0, posinf=0.0, neginf=0.0), -1, 0)


def _tile(outputs: np.ndarray) -> np.ndarray:
    """int8, from -127 to 127: each neuron's outputs beside its own largest; a neuron that is 0 everywhere stays 0."""
    largest = np.abs(outputs).max(axis=(1, 2), keepdims=True)
    return np.round(127 * outputs / np.where(largest > 0, largest, 1)).astype(np.int8)


def _images(parameters: list[np.ndarray], outputs: np.ndarray, test: Split) -> dict[str, Any]:
    """For images: the weights of the first layer's neurons as images, and how often each class is taken for each."""
    weights = np.nan_to_num(parameters[0][:, :DRAWN], nan=0.0, posinf=0.0, neginf=0.0)
    images = first_layer_images(weights, (SIDE, SIDE))
    counts = confusion_matrix(test.y, outputs.argmax(axis=1), outputs.shape[1])
    return {"images": _text(np.round(127 * images).astype(np.int8)), "confusion": counts.tolist()}


def _most(weights: np.ndarray, layer: int) -> int:
    """The inputs of a layer whose weights are drawn as lines: none from an image's pixels."""
    return 0 if layer == 0 and len(weights) > DRAWN else DRAWN


def _pairs(part: Split) -> list[list[float]]:
    """[x1, x2, class] of every point."""
    return [[round(float(a), 4), round(float(b), 4), int(label)] for (a, b), label in zip(part.x, part.y, strict=True)]


def _rounded(values: np.ndarray) -> list[Any]:
    rounded: list[Any] = np.round(values.astype(np.float64), 4).tolist()
    return rounded


def _text(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
