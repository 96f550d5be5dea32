"""A network of any architecture as a list of operations, each of which is one kernel or a few.

    convolve      convolution, bias                    connect     xW + b of a dense layer
    max_pool      the largest number of each window    average_pool
    normalise     batch normalisation                  activate    an activation that joined no other operation
    join          a residual block's sum               drop        a dropout mask

An activation becomes part of the operation before it: that kernel has the number in a register. A residual block's sum
becomes part of a batch normalisation that ends the block. A ReLU before a maximum moves behind it, where four times
fewer numbers are left; the result is the same, because ReLU never changes which number is the largest of those above 0.
Flatten is no operation: it is the same memory with another shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared import layers
from shared.names import ACTIVATIONS
from shared.windows import Pair, output_size, pair, within

from ..geometry import Geometry

Shape = tuple[int, ...]
IDENTITY, RELU, SOFTMAX = (ACTIVATIONS.index(name) for name in ("identity", "relu", "softmax"))

NONE = -1
"""In the place of a value that there is not."""

TAKE_ACTIVATION = ("convolve", "connect", "max_pool", "normalise", "join")


@dataclass
class Operation:
    """One operation: it reads the value `source` and writes the value `result`; value 0 is x.

    before, after: the shapes of the two, for one sample; part: the layer with the parameters
    activation: the number of the one that it ends in
    added: the value that is added before that, of join and of normalise, or NONE
    mask: which dropout mask, of drop; geometry: where the windows lie, of convolve
    precision: what convolve and connect round their factors to; None: nothing is rounded
    """

    kind: str
    source: int
    result: int
    before: Shape
    after: Shape
    part: Any = None
    window: Pair = (1, 1)
    step: Pair = (1, 1)
    activation: int = IDENTITY
    added: int = NONE
    mask: int = 0
    geometry: Any = None
    precision: str | None = None


@dataclass
class Operations:
    """All of a network.

    precision: of all its operations; outputs: the value of the last layer; shared: values that a residual block reads
    twice
    """

    precision: str | None = None
    found: list[Operation] = field(default_factory=list)
    outputs: int = 0
    shared: set[int] = field(default_factory=set)
    _values: int = 1
    _masks: int = 0

    def needing_gradient(self) -> set[int]:
        """The values that parameters have a part in: x is none of them."""
        found: set[int] = set()
        for each in self.found:
            if each.part is not None or each.source in found or each.added in found:
                found.add(each.result)
        return found

    def add(self, kind: str, before: Shape, after: Shape, **more: Any) -> None:
        """Append an operation on the latest value."""
        more["precision"] = self.precision
        self.found.append(Operation(kind, self.outputs, self._values, before, after, **more))
        self.outputs = self._values
        self._values += 1

    def walk(self, chosen: Sequence[layers.Layer], parts: Sequence[Any], shape: Shape, masked: bool) -> Shape:
        """Append the operations of these layers. Returns the shape that comes out."""
        for layer, part in zip(chosen, parts, strict=True):
            shape = self._walk_one(layer, part, shape, masked)
        return shape

    def _walk_one(self, layer: layers.Layer, part: Any, shape: Shape, masked: bool) -> Shape:
        if isinstance(layer, layers.Conv):
            after = part.output_shape((1, *shape))[1:]
            window = part.weights.shape[2], part.weights.shape[3]
            step = within(shape, part.stride, part.padding)
            geometry = Geometry(shape[0], (shape[1], shape[2]), after[0], window, step, part.padding, after[1:])
            self.add("convolve", shape, after, part=part, geometry=geometry)
            return after
        if isinstance(layer, layers.MaxPool | layers.AveragePool):
            window = pair("size", layer.size, 1)
            step = window if layer.stride is None else pair("stride", layer.stride, 1)
            after = (shape[0], *output_size("Network", shape, window, step))
            kind = "max_pool" if isinstance(layer, layers.MaxPool) else "average_pool"
            last = self._changeable()
            self.add(kind, shape, after, window=window, step=within(shape, step))
            if kind == "max_pool" and last is not None and last.activation == RELU:
                last.activation, self.found[-1].activation = IDENTITY, RELU
            return after
        if isinstance(layer, layers.BatchNorm):
            self.add("normalise", shape, shape, part=part)
        elif isinstance(layer, layers.Activate):
            last, number = self._changeable(), ACTIVATIONS.index(layer.name)
            if last is not None and last.activation == IDENTITY and number != SOFTMAX:
                last.activation = number
            else:
                self.add("activate", shape, shape, activation=number)
        elif isinstance(layer, layers.Flatten):
            return (math.prod(shape),)
        elif isinstance(layer, layers.Dense):
            self.add("connect", shape, (layer.out_features,), part=part)
            return (layer.out_features,)
        elif isinstance(layer, layers.Dropout):
            if masked:
                self.add("drop", shape, shape, mask=self._masks)
            self._masks += 1
        else:
            entered = self.outputs
            self.shared.add(entered)
            self.walk(layer.layers, part.layers, shape, masked)
            last = self._changeable()
            if last is not None and (last.kind, last.activation, last.added) == ("normalise", IDENTITY, NONE):
                last.added = entered
            else:
                self.add("join", shape, shape, added=entered)
        return shape

    def _changeable(self) -> Operation | None:
        """The latest operation, if the next one can become part of it: its result is read by that one alone."""
        last = self.found[-1] if self.found else None
        if last is None or last.result in self.shared or last.kind not in TAKE_ACTIVATION:
            return None
        return last


def planned(
    chosen: Sequence[layers.Layer], parts: Sequence[Any], shape: Shape, masked: bool, precision: str | None = None
) -> Operations:
    """The operations of a network.

    parts: the network's layers, one for each of these; masked: whether the Dropout layers drop anything
    precision: what convolutions and dense layers round their factors to; None: nothing is rounded
    """
    operations = Operations(precision)
    operations.walk(chosen, parts, shape, masked)
    return operations
