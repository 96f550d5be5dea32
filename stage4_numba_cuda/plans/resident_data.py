"""The data set of a run on the device: images as bytes, a quarter of what float32 would take, and labels.

What the bytes stand for: a byte over 255, as the kernels of an mlp read it, or a table's number for each byte. Numbers
that have no such form travel as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shared.contract import ImageChanges
from shared.names import LABEL_LOSSES

from .. import launch
from ..arrays import Array, empty
from ..backend import cuda
from ..kernels import gather, images
from .resident_host import labels_of

LEVELS = 256
AT_ONCE = 256
"""Images that are looked at together: what is computed for them stays in the processor's cache."""

FLOATS = (np.dtype("float32"), np.dtype("float64"))


class ResidentData:
    """Samples and labels on the device, from which a step picks its batch.

    x (n, numbers of one input), labels (n,): float32 or float64, and whole numbers
    over_255: whether bytes are only recognised if they were divided by 255; else a table is made for others, too

    values: (n, numbers of one input), bytes if `is_bytes`; table: the number for each byte
    """

    def __init__(self, network: Any, x: np.ndarray, labels: Any, over_255: bool) -> None:
        self._network, self._dtype = network, x.dtype
        found: tuple[np.ndarray, np.ndarray] | None = None
        if over_255:
            found = None if (pixels := bytes_of(x)) is None else (pixels, np.zeros(1))
        elif x.dtype in FLOATS:
            found = bytes_and_table(x)
        self.is_bytes = found is not None
        if found is None:
            x = np.ascontiguousarray(x, x.dtype if x.dtype in FLOATS else network.dtype)
        self.values = cuda.to_device(x if found is None else found[0])
        self.table: Array = None
        if found is not None and not over_255:
            self.table = cuda.to_device(found[1].astype(network.dtype))
        self.labels = cuda.to_device(labels_of(network, labels, len(x)))
        self._changes: ImageChanges | None = None

    def augment(self, augmentation: ImageChanges) -> bool:
        """Change the images of the coming steps as `augmentation.augmented` does, on the device.

        Returns whether it can: it takes images of bytes, in the dtype of the network, because the host interpolates in
        the dtype of the images; and a shift that leaves something of them.
        """
        shape = self._network.architecture.input_shape
        if not self.is_bytes or self._dtype != self._network.dtype or len(shape) != 3:
            return False
        if augmentation.shift >= min(shape[1:]):
            return False
        self._changes, self._changed_for = augmentation, -1
        self._angles_and_shifts = empty((len(self.values), 4), np.float64)
        return True

    def begin_steps(self, seed: int, epoch: int) -> None:
        """Send how each image is changed in this epoch, unless that lies there already."""
        if self._changes is not None and epoch != self._changed_for:
            angles, down, right = self._changes.changes(np.arange(len(self.values)), seed, epoch)
            self._angles_and_shifts.copy_to_device(np.stack([np.cos(angles), np.sin(angles), down, right], axis=1))
            self._changed_for = epoch

    def gather(self, x: Array, y: Array, order: Array, position: Array, stream: Any) -> None:
        """The batch's x, and y as the loss takes it: samples order[position], order[position + 1], …"""
        x = x.reshape(x.shape[0], x.size // x.shape[0])
        grid = launch.over_matrix(*x.shape)
        if self._changes is not None:
            _, height, width = self._network.architecture.input_shape
            images.gather_moved[*grid, stream](
                self.values, self.table, self.table.dtype.type(self._changes.background), order, position,
                self._angles_and_shifts, np.int32(height), np.int32(width), x,
            )  # fmt: skip
        elif self.table is not None:
            images.gather_table[*grid, stream](self.values, self.table, order, position, x)
        else:
            pick = gather.gather_bytes if self.is_bytes else gather.gather_rows
            pick[*grid, stream](self.values, order, position, x)
        if self._network.loss_name in LABEL_LOSSES:
            gather.gather_labels[*launch.elementwise(y.size), stream](self.labels, order, position, y)
        else:
            gather.gather_targets[*launch.over_matrix(*y.shape), stream](self.labels, order, position, y)


def bytes_of(x: np.ndarray) -> np.ndarray | None:
    """The images as uint8 where all are bytes over 255 in float32, as shared.data.datasets makes them; else None."""
    if x.dtype != np.float32:
        return None
    found = np.empty(x.shape, np.uint8)
    for first in range(0, len(x), AT_ONCE):
        rows = x[first : first + AT_ONCE]
        scaled = np.rint(rows * np.float32(255))
        if not np.all((scaled >= 0) & (scaled <= 255)):
            return None
        found[first : first + AT_ONCE] = scaled
        if not np.array_equal(found[first : first + AT_ONCE].astype(np.float32) / np.float32(255), rows):
            return None
    return found


def bytes_and_table(x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(bytes, table) with table[bytes] equal to x; None where x has no such form.

    There is one for images that were bytes, also after they were shifted and scaled: their numbers lie at equal
    distances, so that a number's place between the smallest and the largest is its byte.
    """
    low, high = float(x.min()), float(x.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    scale = (LEVELS - 1) / (high - low) if high > low else 0.0
    places = np.empty(x.shape, np.uint8)
    table = np.full(LEVELS, np.nan, x.dtype)  # not equal to any number
    for first in range(0, len(x), AT_ONCE):  # so that no second copy of the data set is made
        numbers, into = x[first : first + AT_ONCE], places[first : first + AT_ONCE]
        into[...] = np.rint((numbers - low) * scale)
        new = table[into] != numbers
        if new.any():
            if not np.isnan(table[into[new]]).all():
                return None
            table[into[new]] = numbers[new]
            if not np.array_equal(table[into], numbers):
                return None
    return places, np.nan_to_num(table, nan=0.0)
