"""The receptive field: which pixels of the drawing a number of a map depends on.

It is found on the way down: the places that a layer's output depends on in its input are all those under its windows.
A residual block adds its own input, so that its field is that of its layers together with the place itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shared.architectures import Architecture
from shared.layers import AveragePool, Conv, Layer, MaxPool, Placed, Residual
from shared.windows import Pair, as_pair


class Sources(NamedTuple):
    """Where a layer's input comes from: the number of the layer before it, "" for the drawing.

    past: of a residual block the layer before the block, whose output is added; "" for any other layer
    """

    before: str
    past: str = ""


def sources(layers: Sequence[Layer], block: str = "", before: str = "") -> Iterator[tuple[str, Sources]]:
    """(number, its sources) of every layer, a residual block's own layers before the block itself."""
    for i, layer in enumerate(layers, start=1):
        number, past = f"{block}{i}", before
        if isinstance(layer, Residual):
            yield from sources(layer.layers, f"{number}.", past)
            yield number, Sources(f"{number}.{len(layer.layers)}", past)
        else:
            yield number, Sources(before)
        before = number


def receptive_field(architecture: Architecture, number: str, row: int, column: int) -> np.ndarray:
    """Of each pixel of the drawing (height, width) whether the number at (row, column) of this layer depends on it."""
    placed = {each.number: each for each in architecture.placed()}
    seen = np.zeros(placed[number].output_shape[1:], bool)
    seen[row, column] = True
    return _down(placed, dict(sources(architecture.layers)), number, seen, "")


def _down(
    placed: Mapping[str, Placed], origins: Mapping[str, Sources], number: str, seen: np.ndarray, end: str
) -> np.ndarray:
    """From the places of a layer's output that are asked about to those of the output of layer `end`."""
    while number != end:
        each, origin = placed[number], origins[number]
        if isinstance(each.layer, Residual):
            seen = seen | _down(placed, origins, origin.before, seen, origin.past)
            number = origin.past
        else:
            seen = _under_windows(each, seen)
            number = origin.before
    return seen


def _under_windows(placed: Placed, seen: np.ndarray) -> np.ndarray:
    """The places of a layer's input under the windows at the places `seen` of its output."""
    window, stride, padding = geometry(placed.layer)
    height, width = placed.input_shape[1:]
    under = np.zeros((height + 2 * padding[0], width + 2 * padding[1]), bool)
    reach = [step * (count - 1) + 1 for step, count in zip(stride, seen.shape, strict=True)]
    for i, j in np.ndindex(*window):
        under[i : i + reach[0] : stride[0], j : j + reach[1] : stride[1]] |= seen
    return under[padding[0] : padding[0] + height, padding[1] : padding[1] + width]


def geometry(layer: Layer) -> tuple[Pair, Pair, Pair]:
    """(window, stride, padding) of a layer, each (rows, columns); a layer without windows sees the place itself."""
    if isinstance(layer, Conv):
        return as_pair(layer.size), as_pair(layer.stride), as_pair(layer.padding)
    if isinstance(layer, MaxPool | AveragePool):
        return as_pair(layer.size), as_pair(layer.size if layer.stride is None else layer.stride), (0, 0)
    return (1, 1), (1, 1), (0, 0)
