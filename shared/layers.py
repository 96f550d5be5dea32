"""The layers that a network can be made of, as data: their settings, and what each does to the shape of its input.

    place((Conv(6, 5), MaxPool(2), Flatten(), Dense(10)), (1, 28, 28))    each layer with its number and shapes

`shared.architectures` puts them together to networks. Shapes are those of one sample: an image is (channels, height,
width), a row of features is (features,). This module uses only the standard library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from numbers import Real
from operator import index
from typing import Any

from shared.names import ACTIVATIONS, check_name
from shared.windows import Pair, output_size, pair

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Conv:
    """Convolution, as torch.nn.Conv2d: (C, H, W) -> (out_channels, H', W'), H' = (H + 2 padding - size) // stride + 1.

    size, stride, padding: a number, or a pair (rows, columns)
    """

    out_channels: int
    size: int | Pair
    stride: int | Pair = 1
    padding: int | Pair = 0


@dataclass(frozen=True)
class MaxPool:
    """The largest number of each window, as torch.nn.MaxPool2d. stride: None for windows side by side."""

    size: int | Pair
    stride: int | Pair | None = None


@dataclass(frozen=True)
class AveragePool:
    """The mean of each window, as torch.nn.AvgPool2d. stride: None for windows side by side."""

    size: int | Pair
    stride: int | Pair | None = None


@dataclass(frozen=True)
class BatchNorm:
    """Batch normalisation of each channel, or of each feature, as torch.nn.BatchNorm2d and BatchNorm1d."""


@dataclass(frozen=True)
class Activate:
    """An activation function, element by element (softmax: over the features). name: one of ACTIVATIONS."""

    name: str


@dataclass(frozen=True)
class Flatten:
    """(C, H, W) -> (C * H * W,), row by row, as torch.nn.Flatten."""


@dataclass(frozen=True)
class Dense:
    """xW + b: (in_features,) -> (out_features,)."""

    out_features: int


@dataclass(frozen=True)
class Dropout:
    """Sets each number to 0 with probability `rate` while training, as torch.nn.Dropout. 0 <= rate < 1."""

    rate: float


@dataclass(frozen=True)
class Residual:
    """layers(x) + x: the layers must keep the shape of their input (He et al. 2015)."""

    layers: tuple[Layer, ...]


Layer = Conv | MaxPool | AveragePool | BatchNorm | Activate | Flatten | Dense | Dropout | Residual
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Conv, MaxPool, AveragePool, BatchNorm, Activate, Flatten, Dense, Dropout, Residual)
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a network. fan_in, fan_out: inputs and outputs of one number, 0 for a bias, gamma or beta."""

    name: str
    shape: Shape
    fan_in: int = 0
    fan_out: int = 0


@dataclass(frozen=True)
class Placed:
    """A layer at its place. number: '3', or '3.2' for the second layer in the residual block that is layer 3."""

    number: str
    layer: Layer
    input_shape: Shape
    output_shape: Shape


def describe(layer: Layer) -> str:
    """A layer as it is written: 'Conv(6, 5, padding=2)'. Settings that have their default are left out."""
    if isinstance(layer, Residual):
        return f"Residual(({', '.join(map(describe, layer.layers))}))"
    parts = []
    for field in fields(layer):
        value = getattr(layer, field.name)
        if field.default is MISSING:
            parts.append(repr(value))
        elif value != field.default:
            parts.append(f"{field.name}={value!r}")
    return f"{type(layer).__name__}({', '.join(parts)})"


# ---- what a layer does to a shape


def place(layers: Sequence[Layer], shape: Shape, block: str) -> Iterator[Placed]:
    for i, layer in enumerate(layers, start=1):
        number, before = f"{block}{i}", shape
        where = f"layer {number}, {describe(layer)}"
        if isinstance(layer, Residual):
            inside = list(place(layer.layers, shape, f"{number}."))
            yield from inside
            own = [each for each in inside if each.number.count(".") == number.count(".") + 1]
            after = own[-1].output_shape
            if after != before:
                raise ValueError(
                    f"layer {number}, Residual: its layers turn {times(before)} into {times(after)}; "
                    "they must keep the shape of their input"
                )
        else:
            shape = _after(layer, shape, where)
        yield Placed(number, layer, before, shape)


def _after(layer: Layer, shape: Shape, where: str) -> Shape:
    """The shape of the layer's output. Raises ValueError if the layer does not fit."""
    if isinstance(layer, Dense):
        if len(shape) != 1:
            raise ValueError(f"{where}: input is an image of {times(shape)}; a Flatten() must come before it")
        return (layer.out_features,)
    if isinstance(layer, Flatten):
        return (math.prod(shape),)
    if isinstance(layer, Activate) and layer.name == "softmax" and len(shape) != 1:
        raise ValueError(f"{where}: input is an image of {times(shape)}; softmax is over features, after Flatten()")
    if not isinstance(layer, Conv | MaxPool | AveragePool):
        return shape
    if len(shape) != 3:
        raise ValueError(f"{where}: input is {times(shape)} features; expected an image (channels, height, width)")
    channels, height, width = shape
    size, stride = layer.size, layer.size if layer.stride is None else layer.stride
    padding = layer.padding if isinstance(layer, Conv) else 0
    (rows, columns), (p, q) = pair("size", size, 1), pair("padding", padding, 0)
    if height + 2 * p < rows or width + 2 * q < columns:
        padded = f" with its padding {height + 2 * p} x {width + 2 * q}," if p or q else ""
        raise ValueError(f"{where}: input is {height} x {width},{padded} smaller than the {rows} x {columns} window")
    new = output_size(where, shape, (rows, columns), pair("stride", stride, 1), (p, q))
    return (layer.out_channels if isinstance(layer, Conv) else channels, *new)


def parameters_of(placed: Placed) -> Iterator[Parameter]:
    layer, where = placed.layer, f"layer {placed.number}, {type(placed.layer).__name__}"
    if isinstance(layer, Conv):
        rows, columns = pair("size", layer.size, 1)
        inputs, outputs = placed.input_shape[0], layer.out_channels
        area = rows * columns
        yield Parameter(f"{where}: weights", (outputs, inputs, rows, columns), inputs * area, outputs * area)
        yield Parameter(f"{where}: bias", (outputs,))
    elif isinstance(layer, Dense):
        inputs, outputs = placed.input_shape[0], layer.out_features
        yield Parameter(f"{where}: weights", (inputs, outputs), inputs, outputs)
        yield Parameter(f"{where}: bias", (outputs,))
    elif isinstance(layer, BatchNorm):
        yield Parameter(f"{where}: gamma", (placed.input_shape[0],))
        yield Parameter(f"{where}: beta", (placed.input_shape[0],))


def multiply_adds_of(placed: Placed) -> int:
    if isinstance(placed.layer, Conv):
        rows, columns = pair("size", placed.layer.size, 1)
        return math.prod(placed.output_shape) * placed.input_shape[0] * rows * columns
    return placed.input_shape[0] * placed.output_shape[0] if isinstance(placed.layer, Dense) else 0


# ---- checking what came


def checked_input_shape(shape: object) -> Shape:
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise TypeError(f"input_shape: expected (features,) or (channels, height, width), got {shortened(shape)}")
    extents = tuple(shape)
    if len(extents) not in (1, 3):
        raise ValueError(f"input_shape: expected (features,) or (channels, height, width), got {shortened(extents)}")
    return tuple(_whole(each, "input_shape", 1) for each in extents)


def as_layers(layers: object, block: str) -> tuple[Layer, ...]:
    """The layers, each checked. block: "" or the number of the residual block that they are in, as in "3."."""
    where = f"layer {block.removesuffix('.')}, Residual" if block else "layers"
    if isinstance(layers, str) or not hasattr(layers, "__iter__"):
        raise TypeError(f"{where}: expected layers one after the other, got {shortened(layers)}")
    made = tuple(layers)
    if not made:
        raise ValueError(f"{where}: expected at least one layer, got none")
    return tuple(_checked(layer, f"{block}{i}") for i, layer in enumerate(made, start=1))


def _checked(layer: Any, number: str) -> Layer:
    """The layer with whole numbers and pairs as Python's own. Raises ValueError for an impossible setting."""
    if not isinstance(layer, Layer):
        raise TypeError(f"layer {number}: expected one of {', '.join(KINDS)}, got {shortened(layer)}")
    where = f"layer {number}, {type(layer).__name__}"
    if isinstance(layer, Conv):
        channels = _whole(layer.out_channels, f"{where}: out_channels", 1)
        size, stride = _window(layer.size, f"{where}: size", 1), _window(layer.stride, f"{where}: stride", 1)
        return Conv(channels, size, stride, _window(layer.padding, f"{where}: padding", 0))
    if isinstance(layer, MaxPool | AveragePool):
        stride_or_none = None if layer.stride is None else _window(layer.stride, f"{where}: stride", 1)
        return type(layer)(_window(layer.size, f"{where}: size", 1), stride_or_none)
    if isinstance(layer, Dense):
        return Dense(_whole(layer.out_features, f"{where}: out_features", 1))
    if isinstance(layer, Activate):
        check_name(f"{where}: unknown activation", layer.name, ACTIVATIONS)
    if isinstance(layer, Dropout):
        rate = layer.rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate < 1.0:
            raise ValueError(f"{where}: expected a rate of at least 0 and below 1, got {rate!r}")
        return Dropout(float(rate))
    return Residual(as_layers(layer.layers, f"{number}.")) if isinstance(layer, Residual) else layer


def normalisation_numbers(momentum: Any, epsilon: Any, function: str = "batch_norm") -> tuple[float, float]:
    """Momentum and epsilon of a batch normalisation as floats. Raises TypeError or ValueError for impossible ones."""
    for name, value in (("momentum", momentum), ("epsilon", epsilon)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{function}: {name}: expected a number, got {value!r}")
    if not 0 <= momentum <= 1:
        raise ValueError(f"{function}: momentum: expected a number from 0 to 1, got {momentum}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{function}: epsilon: expected a finite number above 0, got {epsilon}")
    return float(momentum), float(epsilon)


def _whole(value: object, where: str, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < least:
        raise ValueError(f"{where}: expected a whole number of at least {least}, got {shortened(value)}")
    return index(value)


def _window(value: object, where: str, least: int) -> int | Pair:
    both = pair(where, value, least)
    return both[0] if hasattr(value, "__index__") else both


def times(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
