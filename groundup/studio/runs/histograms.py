"""How the weights of a checkpoint and their gradients are spread: a histogram a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.contract import load_stage
from shared.training.checkpoints import Checkpoint, build_network
from shared.training.recorder import layer_names

BARS = 41
"""An odd number, so that one bar stands for the weights around zero."""


def gradients(checkpoint: Checkpoint, x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """dL/dW and dL/db of every layer for a batch, by stage 2, as a training step has them, but without dropout."""
    network = build_network(load_stage("numpy"), checkpoint)
    return [np.array(each) for each in network.gradients(x.astype(checkpoint.dtype), labels)]


def histograms(checkpoint: Checkpoint, arrays: list[np.ndarray] | None = None) -> list[dict[str, Any]]:
    """Of each layer with weights: name, end of the axis, bars, mean, deviation, how many are not finite.

    arrays: what is counted in place of the parameters, such as their gradients
    """
    pairs = zip((arrays or checkpoint.parameters)[::2], checkpoint.architecture.parameters()[::2], strict=True)
    weights = [array for array, parameter in pairs if parameter.fan_in]  # as in steps.jsonl: no batch normalisation
    found = []
    for name, array in zip(layer_names(checkpoint.architecture), weights, strict=True):
        finite = array[np.isfinite(array)].astype(np.float64)
        end = float(np.abs(finite).max(initial=0.0)) or 1.0
        counts, _ = np.histogram(finite, BARS, (-end, end))
        mean, deviation = (float(finite.mean()), float(finite.std())) if finite.size else (None, None)
        found.append(
            {
                "name": name,
                "end": end,
                "counts": counts.tolist(),
                "mean": mean,
                "deviation": deviation,
                "broken": array.size - finite.size,
            }
        )
    return found
