"""Architectures as nobody would draw them: every layer in every place where it fits, with any setting.

random_architecture(7)    the same architecture every time
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.layers import (
    Activate,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool,
    Residual,
    Shape,
    place,
)
from shared.names import ACTIVATIONS

MOST_LAYERS, DEEPEST = 7, 2


def random_architecture(seed: int) -> Architecture:
    """Images of 1 to 3 channels and up to 14 by 14 pixels, or rows; up to eleven layers, and blocks in blocks."""
    rng = np.random.default_rng(seed)
    shape: Shape = (
        (_up_to(rng, 3), 4 + _up_to(rng, 10), 4 + _up_to(rng, 10)) if rng.random() < 0.75 else (_up_to(rng, 30),)
    )
    layers = _chain(rng, shape, 1 + _up_to(rng, MOST_LAYERS), 0)
    after = _after(layers, shape)
    if len(after) == 3:
        layers.append(Flatten())
        layers += _chain(rng, _after(layers, shape), _up_to(rng, 2), 0)
    return Architecture(shape, tuple(layers))


def _chain(rng: np.random.Generator, shape: Shape, count: int, depth: int) -> list[Layer]:
    """So many layers, one behind the other."""
    layers: list[Layer] = []
    while len(layers) < count:
        layer = _layer(rng, _after(layers, shape), depth)
        if _fits([*layers, layer], shape):  # else another one is drawn
            layers.append(layer)
    return layers


def _layer(rng: np.random.Generator, shape: Shape, depth: int) -> Layer:
    image = len(shape) == 3
    kinds: list[Any] = [BatchNorm, Activate, Activate, Dropout, Flatten]
    kinds += [Conv, Conv, Conv, MaxPool, AveragePool] if image else [Dense, Dense]
    kinds += [Residual] if depth < DEEPEST else []
    kind = kinds[rng.integers(len(kinds))]
    if kind is Conv:
        return Conv(_up_to(rng, 5), _window(rng, 1, 5), _window(rng, 1, 3), _window(rng, 0, 3))
    if kind in (MaxPool, AveragePool):
        return kind(_window(rng, 1, 4), None if rng.random() < 0.4 else _window(rng, 1, 4))  # type: ignore[no-any-return]
    if kind is Dense:
        return Dense(_up_to(rng, 12))
    if kind is Activate:
        names = ACTIVATIONS if not image else [name for name in ACTIVATIONS if name != "softmax"]
        return Activate(names[rng.integers(len(names))])
    if kind is Dropout:
        return Dropout(0.3)
    return _block(rng, shape, depth) if kind is Residual else kind()  # type: ignore[no-any-return]


def _block(rng: np.random.Generator, shape: Shape, depth: int) -> Residual:
    """Layers that keep the shape: those that do, or one behind the others that brings it back."""
    layers = [each for each in _chain(rng, shape, _up_to(rng, 4), depth + 1) if not isinstance(each, Flatten)]
    kept: list[Layer] = []
    for each in layers:
        if _fits([*kept, each], shape) and _after([*kept, each], shape)[1:] == shape[1:]:
            kept.append(each)
    if not kept or _after(kept, shape) != shape:
        kept.append(Conv(shape[0], 3, padding=1) if len(shape) == 3 else Dense(shape[0]))
    return Residual(tuple(kept))


def _fits(layers: list[Layer], shape: Shape) -> bool:
    try:
        _after(layers, shape)
    except ValueError:
        return False
    return True


def _after(layers: list[Layer], shape: Shape) -> Shape:
    """The shape behind the layers."""
    top = [each for each in place(layers, shape, "") if "." not in each.number]
    return top[-1].output_shape if top else shape


def _window(rng: np.random.Generator, least: int, most: int) -> Any:
    """One number, or a pair."""
    pair = tuple(int(each) for each in rng.integers(least, most + 1, 2))
    return pair if rng.random() < 0.5 else pair[0]


def _up_to(rng: np.random.Generator, most: int) -> int:
    return int(rng.integers(1, most + 1))
