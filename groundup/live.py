"""Measures of a running training: its numbers as one line of blocks, and each layer's gradient and dead units.

    sparkline         a series of numbers as one line of blocks
    gradient_ratios   how large each layer's gradient is beside its weights
    dead_shares       the share of units, or channels of an image, that are 0 for every sample, layer by layer

The live view of `groundup train --live`, groundup/live_view.py, shows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from groundup.inside import dead_units
from shared.architectures import Architecture
from shared.layers import Activate, Conv, Dense

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
"""The character of a group without a finite number."""


def sparkline(values: Sequence[float], width: int) -> str:
    """The values from left to right as block characters, the smallest as ▁ and the largest as █.

    width: the most characters. More values than that are averaged in `width` neighbouring groups, of which no two
    differ by more than one value; fewer give one character each. With low and high the least and the largest of what
    is shown, a value v is block number round(7 (v - low) / (high - low)), as Python rounds: 0.5 to 0 and 1.5 to 2.
    NaN and infinite values are left out of the averages; where that leaves nothing, there is a space. A series that is
    constant is a line of ▁. Raises ValueError for a width below 1.
    """
    if width < 1:
        raise ValueError(f"sparkline: width: expected at least 1, got {width}")
    if not len(values):
        return ""
    groups = np.array_split(np.asarray(values, np.float64), min(width, len(values)))
    finite = [group[np.isfinite(group)] for group in groups]
    means = [float(np.mean(group)) if len(group) else math.nan for group in finite]
    known = [mean for mean in means if math.isfinite(mean)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    heights = [(mean - low) / (high - low) if high > low else 0.0 for mean in means]
    pairs = zip(means, heights, strict=True)
    return "".join(BLOCKS[round(7 * height)] if math.isfinite(mean) else GAP for mean, height in pairs)


def gradient_ratios(parameters: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> list[float]:
    """How large each layer's gradient is beside its weights: ‖dL/dW‖ / ‖W‖, one number a layer, the first layer first.

    parameters, gradients: [W1, b1, W2, b2, …] and the gradients in the same order; the biases, which may well be 0,
    are left out. ‖·‖ is the square root of the sum of all squares. Times the learning rate it is the share by which a
    step of plain SGD changes the weights. inf where the weights are all 0 and the gradient is not, 0 where both are,
    NaN where either has a NaN.
    Raises ValueError where the two lists differ in length or shapes.
    """
    if [np.shape(p) for p in parameters] != [np.shape(g) for g in gradients]:
        raise ValueError(
            f"gradient_ratios: expected a gradient shaped like each parameter, got {[np.shape(g) for g in gradients]} "
            f"for {[np.shape(p) for p in parameters]}"
        )
    ratios = []
    for weights, gradient in zip(parameters[::2], gradients[::2], strict=True):
        size, beside = float(np.linalg.norm(gradient)), float(np.linalg.norm(weights))
        ratios.append(size / beside if beside else math.inf if size else 0.0)
    return ratios


def dead_shares(architecture: Architecture, outputs: Sequence[np.ndarray]) -> dict[str, float]:
    """The share of dead units after each convolution and dense layer that a ReLU follows, by the layer's number.

    outputs: the output of every layer of the architecture, a residual block being one layer: (batch, features) or
        (batch, channels, height, width). A channel is dead if it is 0 for every sample at every place.
    What layers within a residual block do is not among the outputs, so those have no share.
    """
    shares: dict[str, float] = {}
    before = ""  # the number of the last layer with weights that no ReLU has followed yet
    for i, (layer, output) in enumerate(zip(architecture.layers, outputs, strict=True), start=1):
        if isinstance(layer, Conv | Dense):
            before = str(i)
        elif isinstance(layer, Activate):
            if layer.name == "relu" and before:  # no other activation gives exactly 0 for other inputs than 0
                shares[before] = dead_units(np.moveaxis(output, 1, -1).reshape(-1, output.shape[1]))
            before = ""
    return shares
