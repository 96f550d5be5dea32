"""One number of a map: the numbers that it was computed from, how, and where the gradient of a class's score goes.

convolution     the window, the filter, their products channel by channel, and the bias
max, average    the window of a pool, its winner; the gradient goes to the winner alone, or in equal shares to all
norm            mean, variance, gamma and beta: (x - mean) / sqrt(variance + epsilon) * gamma + beta
activation      the number before and after it
sum             of a residual block: what came through its layers, and what came past them
same            a layer that passes its numbers on
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.studio.convolution.field import geometry
from groundup.studio.convolution.passes import LayeredPasses, Passed
from shared.contract import load_part
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Layer, MaxPool, Residual, shortened

_LAYERS = Conv, MaxPool, AveragePool, BatchNorm, Activate, Residual
KINDS = dict(zip(_LAYERS, ("convolution", "max", "average", "norm", "activation", "sum"), strict=True))


@dataclass(frozen=True)
class Pixel:
    """A number of a map, and what it was computed from. Windows are (channels, rows, columns).

    kind: as above; layer: its description; value: the number; slope: d score / d number
    corner: (row, column) of the window's first number in the input, below 0 in the padding
    inputs: the window, with the zeros of the padding; weights: of a convolution the filter
    back: d score / d inputs by way of this number alone
    numbers: by name, whatever else belongs to it: a bias, a mean, the place of the winner in the window
    size: the sum of the sizes of all terms, by which rounding is measured
    """

    kind: str
    layer: Layer
    value: float
    slope: float
    corner: tuple[int, int]
    inputs: np.ndarray
    back: np.ndarray
    weights: np.ndarray | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    size: float = 1.0

    def as_json(self) -> dict[str, Any]:
        """What the page gets; "sums" are those of each input channel's products."""
        found: dict[str, Any] = {name: getattr(self, name) for name in ("kind", "value", "slope", "corner", "numbers")}
        found |= {name: getattr(self, name).tolist() for name in ("inputs", "back")}
        if self.weights is not None:
            sums = (self.inputs.astype(np.float64) * self.weights).sum(axis=(1, 2))
            found |= {"weights": self.weights.tolist(), "sums": sums.tolist()}
        return found


def pixel(network: LayeredPasses, passed: Passed, number: Any, channel: Any, row: Any, column: Any) -> Pixel:
    """The number at (channel, row, column) of the output of the layer with this number.

    Raises ValueError for a layer that there is not, or that has no maps, and for a place outside of them.
    """
    maps = [each for each, placed in network.placed.items() if len(placed.output_shape) == 3]
    if number not in maps:
        raise ValueError(f"layer: expected one that has maps, {', '.join(maps)}, got {shortened(number)}")
    placed, origin, layer = network.placed[number], network.origins[number], network.layer(number)
    axes = zip(("channel", "row", "column"), (channel, row, column), placed.output_shape, strict=True)
    c, r, s = (_within(*axis) for axis in axes)
    image = passed.outputs[origin.before] if origin.before else passed.x
    image = image if isinstance(placed.layer, Conv) else image[c : c + 1]
    window, stride, (down, right) = geometry(placed.layer)
    top, left = r * stride[0], s * stride[1]
    padded = np.pad(image, ((0, 0), (down, down), (right, right)))
    inputs = padded[:, top : top + window[0], left : left + window[1]].copy()
    value, slope = float(passed.outputs[number][c, r, s]), float(passed.slopes[number][c, r, s])
    kind, corner = KINDS.get(type(placed.layer), "same"), (top - down, left - right)
    share, weights, numbers, size = np.ones(inputs.shape), None, {}, abs(value)
    if kind == "convolution":
        share = weights = layer.weights[c]
        numbers = {"bias": float(layer.bias[c])}
        size = float(np.abs(inputs * weights).sum()) + abs(numbers["bias"])
    elif kind == "max":
        _, where = load_part("numpy", "pooling").max_pool2d(inputs[np.newaxis], window)
        numbers = {"winner": int(where.item())}
        share = (np.arange(inputs.size) == numbers["winner"]).reshape(inputs.shape)
    elif kind == "average":
        share = share / inputs.size
        size = float(np.abs(inputs).mean())
    elif kind == "norm":
        names = {"mean": "running_mean", "variance": "running_var", "gamma": "gamma", "beta": "beta"}
        numbers = {name: float(getattr(layer, own)[c]) for name, own in names.items()} | {"epsilon": layer.epsilon}
        share = share * numbers["gamma"] / np.sqrt(numbers["variance"] + numbers["epsilon"])
        size = float(np.abs(share * (abs(inputs) + abs(numbers["mean"]))).item()) + abs(numbers["beta"])
    elif isinstance(placed.layer, Activate):
        derivative = getattr(load_part("numpy", "activations"), f"{placed.layer.name}_backward")
        share = derivative(np.ones((1, 1), inputs.dtype), inputs[0], np.array([[value]], inputs.dtype))[np.newaxis]
    elif kind == "sum":
        past = passed.outputs[origin.past] if origin.past else passed.x
        numbers = {"through": float(inputs.item()), "past": float(past[c, r, s])}
    back = slope * share.astype(np.float64)
    return Pixel(kind, placed.layer, value, slope, corner, inputs, back, weights, numbers, size)


def _within(name: str, value: object, extent: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < extent:
        raise ValueError(f"{name}: expected a whole number from 0 to {extent - 1}, got {shortened(value)}")
    return value
