"""The steps of a network in eight bits: what happens from one rounding to the next.

A step takes whole numbers and gives whole numbers, with one scale for each array:

    q -> its source: sums in 32 bits, times their scale -> activations -> divided by the new scale, rounded -> q

The source of a step is one of five:

    Sums        a convolution or dense layer; a batch normalisation behind it disappears in its weights and its bias
    Average     an average pool: the sum of each window's numbers
    Addition    a residual block: two branches with scales of their own, added as floats, then brought to one scale
    Affine      a batch normalisation that has no sums before it, in floats
    Through     nothing: the input, where activations or pools come first

What only picks numbers (max pool, ReLU, flatten) comes after the rounding, on whole numbers: the largest number is the
largest before and after it. Other activations come before the rounding, on floats. The logits are not rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as pairs
from typing import Any

import numpy as np

from shared import layers
from shared.layers import Placed
from shared.windows import as_pair, pool_windows, within

from . import activations
from .arrays import Array
from .columns import Geometry, columns_by_piece
from .convolution import conv2d
from .eight_bits import LARGEST, LONGEST_SUM, SMALLEST, dequantise, quantise
from .pooling import average_pool2d, shifted

Product = Callable[[Array, Array], Array]
"""int8 (M, K) times int8 (K, N) -> int32 (M, N), exact: `integer_matmul`, or a faster one of another floor."""

EPSILON = 1e-5
"""Of every batch normalisation, as in batch_norm.py."""


@dataclass(frozen=True)
class Pass:
    """One pass through the steps. observe: is given what each step gives, as floats."""

    product: Product
    observe: Callable[[Step, Array], None] | None = None


# ---- the sources: `real` in floats, for the calibration; `whole` from whole numbers and their scale to floats


class Sums:
    """A convolution, kernels (O, C kh kw) @ columns (C kh kw, N H' W'), or a dense layer, x (N, in) @ (in, out).

    weights, bias: float32, with the batch normalisations behind them folded in; the bias has the axes of the sums
    numbers, bias_numbers: both as whole numbers; weight_scale: of the weights, one for all or one for each output
    scale: of the sums, which is that of the input times that of the weights
    """

    numbers: Array
    bias_numbers: Array
    weight_scale: Array
    scale: Array

    def __init__(self, placed: Placed, weights: Array, bias: Array) -> None:
        self.placed, self.kernel_shape = placed, weights.shape
        self.is_convolution, self.folded = isinstance(placed.layer, layers.Conv), 0
        self.weights = weights.reshape(len(weights), -1)
        self.bias = self._by_output(bias)

    def _by_output(self, values: Array) -> Array:
        """One number for each output, along the axis that outputs have in the weights and in the sums."""
        return values.reshape((-1, 1) if self.is_convolution else (1, -1))

    def fold(self, gamma: Array, beta: Array, mean: Array, variance: Array) -> None:
        """gamma (xW + b - mean) / deviation + beta = x (W gamma / deviation) + (b - mean) gamma / deviation + beta."""
        factor = self._by_output(gamma / np.sqrt(variance + np.float32(EPSILON)))
        self.weights = self.weights * factor
        self.bias = (self.bias - self._by_output(mean)) * factor + self._by_output(beta)
        self.folded += 1

    def calibrate(self, input_scale: Array, per_channel: bool) -> None:
        """Weights of eight bits, and a bias of 32, for an input with this scale.

        The bias is added to the sums, so it has their scale. Where it would be too large for 32 bits, as behind a
        filter of tiny weights, these get a larger scale.
        """
        inputs = 1 if self.is_convolution else 0
        terms = self.weights.shape[inputs]
        if terms >= LONGEST_SUM:
            raise ValueError(
                f"layer {self.placed.number}: {terms:,} terms and a bias; a sum of 32 bits has room for {LONGEST_SUM:,}"
            )
        room = (LONGEST_SUM - terms) * SMALLEST**2
        of_weights = np.abs(self.weights).max(axis=inputs, keepdims=True) / LARGEST
        needed = np.maximum(of_weights, np.abs(self.bias) / (input_scale * room))
        needed = needed if per_channel else needed.max(keepdims=True)
        self.weight_scale = np.where(needed > 0, needed, 1).astype(np.float32)
        self.numbers = quantise(self.weights, self.weight_scale)
        self.scale = input_scale * self.weight_scale
        self.bias_numbers = np.clip(np.rint(self.bias / self.scale.astype(float)), -room, room).astype(np.int32)

    def real(self, x: Array, this: Pass) -> Array:
        if not self.is_convolution:
            return x @ self.weights + self.bias
        g = self._geometry()
        return conv2d(x, self.weights.reshape(self.kernel_shape), self.bias.ravel(), g.stride, g.padding)

    def whole(self, x: Array, scale: Array, this: Pass) -> Array:
        if not self.is_convolution:
            return self._rescaled(this.product(x, self.numbers))
        g = self._geometry()
        out = np.empty((len(x), len(self.numbers), *g.output), np.float32)
        for piece, columns in columns_by_piece(x, g, None):
            sums = self._rescaled(this.product(self.numbers, columns))
            out[piece] = sums.reshape(len(sums), -1, *g.output).swapaxes(0, 1)
        return out

    def _rescaled(self, sums: Array) -> Array:
        sums += self.bias_numbers
        return dequantise(sums, self.scale)

    def _geometry(self) -> Geometry:
        layer: Any = self.placed.layer
        (_, *image), (_, *output) = self.placed.input_shape, self.placed.output_shape
        padding = as_pair(layer.padding)
        stride = within(image, as_pair(layer.stride), padding)
        return Geometry((image[0], image[1]), as_pair(layer.size), stride, padding, (output[0], output[1]))


class Average:
    """The mean of each window: the sum of its whole numbers, times their scale over the window's size."""

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.layer: Any = placed.layer

    def real(self, x: Array, this: Pass) -> Array:
        return average_pool2d(x, self.layer.size, self.layer.stride)

    def whole(self, x: Array, scale: Array, this: Pass) -> Array:
        window, step, places = pool_windows("average_pool2d", x.shape, self.layer.size, self.layer.stride)
        sums = np.zeros((*x.shape[:2], *places), np.int32)
        for i, j in pairs(*map(range, window)):
            sums += shifted(x, i, j, step, places)
        return dequantise(sums, scale / np.float32(window[0] * window[1]))


class Affine:
    """A batch normalisation by itself: factor x + shift."""

    def __init__(self, placed: Placed, *numbers: Array) -> None:
        self.placed, self.numbers = placed, numbers
        gamma, beta, mean, variance = (values.reshape(-1, *[1] * (len(placed.input_shape) - 1)) for values in numbers)
        self.factor = gamma / np.sqrt(variance + np.float32(EPSILON))
        self.shift = beta - mean * self.factor

    def real(self, x: Array, this: Pass) -> Array:
        return x * self.factor + self.shift

    def whole(self, x: Array, scale: Array, this: Pass) -> Array:
        return self.real(dequantise(x, scale), this)


class Addition:
    """layers(x) + x. The whole numbers of the two have different scales, so what they stand for is added."""

    def __init__(self, placed: Placed, steps: list[Step]) -> None:
        self.placed, self.steps = placed, steps

    def real(self, x: Array, this: Pass) -> Array:
        return through(self.steps, x, this) + x

    def whole(self, x: Array, scale: Array, this: Pass) -> Array:
        branch, branch_scale = through_whole(self.steps, x, scale, this)
        return dequantise(branch, branch_scale) + dequantise(x, scale)


class Through:
    """The numbers as they are."""

    placed = None

    def real(self, x: Array, this: Pass) -> Array:
        return x

    def whole(self, x: Array, scale: Array | None, this: Pass) -> Array:
        return x if scale is None else dequantise(x, scale)


# ---- the steps


class Step:
    """A source, and the layers up to the next one: first those that compute, then those that only pick.

    largest: the largest number that it gave in the calibration
    scale: of what it gives; None where nothing is rounded: the input's scale goes on, or the numbers stay floats
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.computing: list[Placed] = []
        self.picking: list[Placed] = []
        self.rounds = True
        self.largest = np.float32(0)
        self.scale: Array | None = None

    def follow(self, placed: Placed) -> None:
        """A layer without weights goes behind the source."""
        if isinstance(placed.layer, layers.Activate) and placed.layer.name != "relu":
            self.computing += [*self.picking, placed]
            self.picking = []
        else:
            self.picking.append(placed)

    @property
    def placed(self) -> list[Placed]:
        """The layers of the step, in order, but for folded ones."""
        own = [] if self.source.placed is None else [self.source.placed]
        return [*own, *self.computing, *self.picking]

    @property
    def title(self) -> str:
        """'3 Conv, BatchNorm, relu'; the number is that of the first layer."""
        names = [
            each.layer.name if isinstance(each.layer, layers.Activate) else type(each.layer).__name__
            for each in self.placed
        ]
        names[1:1] = ["BatchNorm"] * getattr(self.source, "folded", 0)
        return f"{self.placed[0].number} {', '.join(names)}" if self.source.placed else ", ".join(["input", *names])

    def real(self, x: Array, this: Pass) -> Array:
        return _followed(self.source.real(x, this), [*self.computing, *self.picking])

    def whole(self, x: Array, scale: Any, this: Pass) -> tuple[Array, Any]:
        """(whole numbers, their scale), or (floats, None) of the last step."""
        if isinstance(self.source, Through) and not self.rounds and not self.computing:
            return _followed(x, self.picking), scale
        values = _followed(self.source.whole(x, scale, this), self.computing)
        values = values if self.scale is None else quantise(values, self.scale)
        return _followed(values, self.picking), self.scale


def through(steps: Sequence[Step], x: Array, this: Pass) -> Array:
    """x through the steps in floats."""
    for step in steps:
        x = step.real(x, this)
        if this.observe is not None:
            this.observe(step, x)
    return x


def through_whole(steps: Sequence[Step], x: Array, scale: Any, this: Pass) -> tuple[Array, Any]:
    """Whole numbers and their scale through the steps. The first x of a network are floats, their scale None."""
    for step in steps:
        x, scale = step.whole(x, scale, this)
        if this.observe is not None:
            this.observe(step, x if scale is None else dequantise(x, scale))
    return x, scale


def _followed(values: Array, placed: Sequence[Placed]) -> Array:
    """Floats or whole numbers through layers without weights."""
    for each in placed:
        match each.layer:
            case layers.Flatten():
                values = values.reshape(len(values), -1)
            case layers.Activate("relu"):
                values = np.maximum(values, values.dtype.type(0))
            case layers.Activate(name):
                values = getattr(activations, name)(values.reshape(len(values), -1)).reshape(values.shape)
            case layers.MaxPool(size, stride):
                window, step, places = pool_windows("max_pool2d", values.shape, size, stride)
                largest = shifted(values, 0, 0, step, places).copy()
                for i, j in pairs(*map(range, window)):
                    np.maximum(largest, shifted(values, i, j, step, places), out=largest)
                values = largest
    return values
