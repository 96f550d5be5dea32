"""The memory of an mlp's step: the arrays that the kernels of a step write for each other, allocated once and kept.

    output, dropped, grad    for each layer (rows, out_features): the activation's output, the same after dropout, and
                             the slope of the loss at xW + b
    row_losses               (1, rows): for each row of the batch one number; they add up to the step's loss. A training
                             run on the device has a line for each step since the last reading
    parts                    for each hidden layer (splits, rows, out_features): xW in parts

A batch of fewer rows uses the first rows of the same memory. Views of device arrays cost more to make than a kernel
costs to launch, so the views for each number of rows are kept, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import launch
from ..arrays import Array, empty, zeros
from ..dense import Dense
from ..kernels import fused
from ..tile_choice import blocked_side, multiprocessors
from .cuda_graphs import Graphs

MOST_FLAT = 16
"""Vectors that are kept for each layer: of its parameters, and of what two or three optimizers keep for them."""


@dataclass(frozen=True)
class Rows:
    """A step's memory for one number of rows, for each layer one array. losses: row_losses as a vector."""

    x: Array
    labels: Array
    targets: Array
    output: list[Array]
    dropped: list[Array]
    masks: list[Array]
    grad: list[Array]
    parts: list[Array]
    losses: Array


class MlpMemory:
    """What a step of up to `capacity` rows needs, in a network of these layers and this dtype."""

    def __init__(self, layers: Sequence[Dense], dtype: str, capacity: int) -> None:
        self.capacity, self.dtype = capacity, np.dtype(dtype)
        self._shapes = [(layer.in_features, layer.out_features) for layer in layers[:-1]]
        sizes = [layer.out_features for layer in layers]
        self.x = self._empty(layers[0].in_features)
        self.labels = zeros((capacity,), np.int32)
        self.targets = self._empty(sizes[-1])
        self.output = [self._empty(size) for size in sizes]
        self.dropped = [self._empty(size) for size in sizes[:-1]]
        self.masks = [self._empty(size) for size in sizes[:-1]]
        self.grad = [self._empty(size) for size in sizes]
        self.row_losses = empty((1, capacity), self.dtype)
        self.no_counters = zeros((3,), np.int64)
        self.no_buffer = zeros((1,), self.dtype)
        """What a kernel gets in the place of an array that it will not touch."""
        self.graphs = Graphs()
        self.persistent: dict[str, Any] = {}
        """Plans of the persistent kernel (persistent.py), by the dtype of the samples."""
        self._parts = [self._part_memory(*shape) for shape in self._shapes]
        self._rows: dict[int, Rows] = {}
        self._flat: dict[int, tuple[Array, Array]] = {}

    def settle(self) -> None:
        """Check the launches of the persistent kernel that an interruption kept from being checked."""
        for plan in self.persistent.values():
            if plan.unsettled:
                plan.check()

    def rows(self, count: int) -> Rows:
        """The memory of a batch of `count` rows."""
        if count not in self._rows:
            matrices = (self.output, self.dropped, self.masks, self.grad)
            output, dropped, masks, grad = ([array[:count] for array in arrays] for arrays in matrices)
            parts = [self._part(i, count) for i in range(len(self.output) - 1)]
            self._rows[count] = Rows(
                x=self.x[:count],
                labels=self.labels[:count],
                targets=self.targets[:count],
                output=output,
                dropped=dropped,
                masks=masks,
                grad=grad,
                parts=parts,
                losses=self.row_losses[0][:count],
            )
        return self._rows[count]

    def flat(self, array: Array) -> Array:
        """The array as a vector, without a copy."""
        kept = self._flat.get(id(array))
        if kept is None:
            if len(self._flat) > MOST_FLAT * len(self.output):  # arrays of optimizers that are gone, most likely
                self._flat.clear()
            kept = self._flat[id(array)] = (array, array.reshape(array.size))
        return kept[1]

    def _part_memory(self, inputs: int, columns: int) -> Array:
        """Room for the parts of a product of any number of rows, a vector: fewer rows are cut into more parts."""
        tile = fused.TILE_GPU
        counts = [min(count, self.capacity) for count in range(tile, self.capacity + tile, tile)]
        most = max(count * splits(count, inputs, columns) for count in counts)
        return empty((most * columns,), self.dtype)

    def _part(self, layer: int, count: int) -> Array:
        inputs, columns = self._shapes[layer]
        parts = splits(count, inputs, columns)
        return self._parts[layer][: parts * count * columns].reshape(parts, count, columns)

    def _empty(self, columns: int) -> Array:
        return empty((self.capacity, columns), self.dtype)


def splits(rows: int, inputs: int, columns: int) -> int:
    """Into how many parts a product's sum over `inputs` is cut, so that its blocks can fill the device.

    On the CPU one: a core has one block at a time anyhow.
    """
    side = blocked_side(rows, columns, inputs) or fused.TILE_GPU
    blocks = launch.divided(rows, side) * launch.divided(columns, side)
    wanted = launch.divided(2 * multiprocessors(), blocks)
    return max(1, min(wanted, inputs // (2 * side)))
