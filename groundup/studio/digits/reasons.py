"""What led to the answer: the layers' outputs, the winner's weights, and the pixels that mattered.

All of it is computed by groundup.inside and groundup.inside_layers, on stage 2's arithmetic. The winner is the class
with the highest score, and its rival the class with the second highest. The pixels that mattered are

    pull = d (score[winner] - score[rival]) / dx

where more ink on a pixel with a positive pull speaks for the winner and against the rival.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from groundup import inside
from groundup.studio.digits.networks import Trained
from groundup.studio.digits.pixels import as_input
from shared.layers import Dense
from shared.numbers import plural

CHANNELS = 16
"""The most channels of a layer of images that are shown."""


def reasons(trained: Trained, pixels: np.ndarray) -> dict[str, Any]:
    """What led to the network's answer to a drawing, uint8 (height * width,).

    Returns {"winner", "rival", "layers", "pull": of each pixel, (height * width,), "evidence", "last"}; layers is a
    list of {"words", "values"}, the first layer first, without the scores; evidence is where the last maps speak for
    the winner (Grad-CAM), (rows, columns) of these maps, None without a convolution; last is {"inputs", "weights",
    "bias"} of the winner: its score is the sum of inputs times weights, plus the bias; None where the last layer is not
    dense. Arrays are as `packed` makes them.
    """
    x = trained.learned(as_input(pixels, trained.form.shape[0]))
    if trained.checkpoint.architecture.as_mlp() is not None:
        return _of_dense(trained, x)
    return _of_layers(trained, x)


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array for the page: {"shape", "base64": its numbers as little-endian float32, last dimension fastest}."""
    return {"shape": list(array.shape), "base64": base64.b64encode(array.astype("<f4").tobytes()).decode()}


def _of_dense(trained: Trained, x: np.ndarray) -> dict[str, Any]:
    parameters, activation = trained.checkpoint.parameters, trained.checkpoint.activation
    hidden = inside.hidden_activations(parameters, activation, x)
    winner, rival = _first_two(inside.scores(parameters, activation, x))
    pull = inside.saliency(parameters, activation, x, np.array([winner]))
    pull = pull - inside.saliency(parameters, activation, x, np.array([rival]))
    words = [f"hidden layer {i}: {plural(each.shape[1], 'neuron')}, {activation}" for i, each in enumerate(hidden, 1)]
    return {
        "winner": winner,
        "rival": rival,
        "layers": [{"words": text, "values": packed(each[0])} for text, each in zip(words, hidden, strict=True)],
        "pull": packed(_of_pixels(pull, trained)),
        "evidence": None,
        "last": _last((hidden[-1] if hidden else x)[0], parameters, winner),
    }


def _of_layers(trained: Trained, x: np.ndarray) -> dict[str, Any]:
    from groundup.inside_layers import Layered, layer_maps  # whose rows are matplotlib's

    architecture = trained.checkpoint.architecture
    network = Layered(trained.checkpoint, architecture)
    outputs = network.outputs(x)
    winner, rival = _first_two(outputs[-1])
    maps = layer_maps(network, x[0], x.reshape(trained.form.shape))[1:-1]  # not the image, and not the scores
    evidence = network.evidence(x, np.array([winner]))
    ends_dense = len(architecture.layers) > 1 and isinstance(architecture.layers[-1], Dense)
    return {
        "winner": winner,
        "rival": rival,
        "layers": [{"words": each.words, "values": packed(_shown(each.output))} for each in maps],
        "pull": packed(_of_pixels(network.saliency(x, np.array([winner]), np.array([rival])), trained)),
        "evidence": None if evidence is None else packed(evidence[0]),
        "last": _last(outputs[-2].ravel(), trained.checkpoint.parameters, winner) if ends_dense else None,
    }


def _of_pixels(pull: np.ndarray, trained: Trained) -> np.ndarray:
    """What a little more ink in each pixel would do, (height * width,): ink is in every channel."""
    return np.asarray(pull.reshape(trained.form.shape[0], -1).sum(axis=0))


def _shown(output: np.ndarray) -> np.ndarray:
    return output[:CHANNELS] if output.ndim == 3 else output


def _first_two(scores: np.ndarray) -> tuple[int, int]:
    """The classes with the highest and the second highest score; the first of equals."""
    order = np.argsort(-scores[0], kind="stable")
    return int(order[0]), int(order[1])


def _last(inputs: np.ndarray, parameters: list[np.ndarray], winner: int) -> dict[str, Any]:
    weights, bias = parameters[-2], parameters[-1]
    return {"inputs": packed(inputs), "weights": packed(weights[:, winner]), "bias": float(bias[winner])}
