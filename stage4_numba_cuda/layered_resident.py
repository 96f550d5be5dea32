"""A training run of a network of any architecture whose data stays on the device.

    once             images as bytes, with a table of the numbers that they stand for; labels
    every epoch      the order in which the images are visited
    every interval   the optimizer's numbers for READ_EVERY steps; back: their losses
    every step       nothing

The same as resident.py for stacks of dense layers. A step picks its batch and draws its dropout masks on the device,
into the memory of the network's plan; then come the launches of the plan and the optimizer's. With a GPU all of that is
one CUDA graph. If images are augmented, the host sends in every epoch how far each of them is rotated and shifted, and
the kernel that picks the batch rotates and shifts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count as count_up
from typing import Any

import numpy as np

from shared.contract import LABEL_LOSSES, ImageChanges

from . import graphs, launch
from .arrays import Array, address, empty, zeros
from .backend import cuda
from .buffers import READ_EVERY
from .dropout import threshold_and_scale
from .kernels import dropout as dropout_kernels
from .kernels import fused, gather, images
from .kernels import resident as kernels
from .layered_graph import Move
from .layered_launches import Order, launch_steps
from .layered_plan import Plan
from .resident_order import Orders, batches, labels_of, losses_of, schedule_of

MASK64 = (1 << 64) - 1
LEVELS = 256
ROWS = 1000
FLOATS = (np.dtype("float32"), np.dtype("float64"))

_serials = count_up()
"""A run's number tells its captured graphs from those of every other, of which the memory may be gone."""


class LayeredResident:
    """A data set on the device, and the steps over it.

    network: a LayeredNetwork (layered.py)
    x (n, numbers of one input), labels (n,): float32 or float64, and whole numbers
    optimizer: takes the steps; its learning_rate is set for each
    seed: with the Dropout layers' rates it decides about the masks, as in shared.dropout

    is_bytes: whether the samples lie on the device as bytes
    """

    interval = READ_EVERY if graphs.available() else 1
    """The most steps that `take` takes at once. On the CPU nothing is gained by waiting, and Ctrl-C is heard sooner."""

    def __init__(self, network: Any, x: Any, labels: Any, optimizer: Any, batch_size: int, seed: int) -> None:
        x = np.asarray(x)
        features = network.layer_sizes[0]
        if x.ndim != 2 or not len(x) or x.shape[1] != features:
            raise ValueError(f"resident: x is {x.shape}, expected (samples, {features}), at least one sample")
        if batch_size < 1:
            raise ValueError(f"resident: batch_size: expected at least 1, got {batch_size}")
        self.network, self.optimizer, self.count, self.seed = network, optimizer, len(x), seed
        self.batch_size = min(batch_size, self.count)
        self.steps = launch.divided(self.count, self.batch_size)
        self._serial = next(_serials)
        self._places = network.architecture.dropouts()
        self._masked = any(rate for _, rate in self._places)
        found = bytes_and_table(x) if x.dtype in FLOATS else None
        self.is_bytes = found is not None
        if found is None:
            x = np.ascontiguousarray(x, x.dtype if x.dtype in FLOATS else network.dtype)
        self.values = cuda.to_device(x if found is None else found[0])
        self.table = zeros((1,), network.dtype) if found is None else cuda.to_device(found[1].astype(network.dtype))
        self.labels = cuda.to_device(labels_of(network, labels, self.count))
        self.schedule = zeros((READ_EVERY, 8), network.dtype)
        self.numbers = zeros((8,), network.dtype)
        self.counters = zeros((3,), np.int64)
        # not `empty`: a short last batch leaves holes, which `take` copies to the host with the losses
        self.row_losses = zeros((READ_EVERY, self.batch_size), network.dtype)
        self._orders = Orders(self.count)
        self._dtype = x.dtype
        self._augmentation: ImageChanges | None = None

    def augment(self, augmentation: ImageChanges) -> bool:
        """Change the images of the coming steps as `augmentation.augmented` does, on the device.

        Returns whether it can: it takes images of bytes, in the dtype of the network, because the host interpolates in
        the dtype of the images; and a shift that leaves something of them.
        """
        shape = self.network.architecture.input_shape
        if not self.is_bytes or self._dtype != self.network.dtype or len(shape) != 3:
            return False
        if augmentation.shift >= min(shape[1:]):
            return False
        self._augmentation = augmentation
        self.changes = empty((self.count, 4), np.float64)
        self._changed_for = -1
        return True

    def begin_epoch(self, order: np.ndarray) -> None:
        """The order in which the coming steps visit the data: each index once, (n,).

        Raises ValueError for anything else.
        """
        self._orders.begin(order)

    def prefetch(self, order: np.ndarray) -> None:
        """Send the order of the next epoch ahead of its `begin_epoch`."""
        self._orders.prefetch(order)

    def take(
        self, first: int, rates: Sequence[float], steps_before: int, meanwhile: Callable[[], None] | None = None
    ) -> list[float]:
        """Take a step for each learning rate, beginning with step `first` (from 0) of the epoch; their losses.

        steps_before: of the whole training; dropout masks depend on them, and changes of images on their whole epochs
        meanwhile: called while the device computes
        Raises ValueError before `begin_epoch`, for more than READ_EVERY steps, past the epoch's end, and where batch
        normalisation would get one number a channel.
        """
        self._orders.check_steps(first, len(rates), self.steps, READ_EVERY)
        if not rates:
            return []
        sizes = batches(self.count, self.batch_size, first, len(rates))
        self.counters.copy_to_device(np.array([first * self.batch_size, steps_before, 0], np.int64))
        if self._augmentation is not None:
            self._send_changes(self._augmentation, steps_before // self.steps)
        ours = Move(self.network, self.optimizer, self.numbers).ours
        if ours:
            self.schedule.copy_to_device(schedule_of(self.optimizer, rates, self.network.dtype, READ_EVERY))
        done = 0
        for count, many in sizes:
            for i in range(1 if ours else many):  # an optimizer of somebody else's takes its steps on the host
                if not ours:
                    self.optimizer.learning_rate = rates[done + i]
                self._launch(count, many if ours else 1)
            done += many
        if meanwhile is not None:
            meanwhile()
        return losses_of(self.row_losses[: len(rates)].copy_to_host(), sizes)

    def _launch(self, count: int, steps: int) -> None:
        """Steps of so many rows, each from the same graph where there are graphs."""
        network = self.network
        network.check_as_made(count, training=True)
        plan = network.plan(count, True, self._masked)
        move = Move(network, self.optimizer, self.numbers)
        order = self._orders.now

        def launches(stream: Any) -> None:
            kernels.begin_step[1, launch.WARP, stream](self.schedule, self.counters, self.numbers)
            self._gather(plan, order, stream)
            self._draw_masks(plan, stream)
            steps = Order(True, True, network.loss_name, stream)
            launch_steps(plan.made.forward, steps)
            launch_steps(plan.made.backward, steps)
            move.launch(stream)
            kernels.end_kept_step[1, launch.THREADS, stream](plan.losses, self.row_losses, self.counters)

        if graphs.available() and plan.may_be_captured:
            arrays = (*network.parameters, *network.layer_gradients, *network.running_statistics)
            key = ("resident", self._serial, plan.serial, self._orders.current, move.key(), *map(address, arrays))
            plan.graphs.launch(key, launches, times=steps)
            for _ in range(steps):
                move.done()
        else:
            for _ in range(steps):
                launches(0)
                move.done()

    def _gather(self, plan: Plan, order: Array, stream: Any) -> None:
        """The batch's x, and y as the loss takes it, to where the plan looks for them."""
        position = self.counters[fused.POSITION : fused.POSITION + 1]
        x, y = plan.given["x"], plan.given["y"]
        x = x.reshape(x.shape[0], math.prod(x.shape[1:]))
        grid = launch.over_matrix(*x.shape)
        if self._augmentation is not None:
            self._gather_moved(self._augmentation, x, order, position, stream)
        elif self.is_bytes:
            images.gather_table[*grid, stream](self.values, self.table, order, position, x)
        else:
            gather.gather_rows[*grid, stream](self.values, order, position, x)
        if self.network.loss_name in LABEL_LOSSES:
            gather.gather_labels[*launch.elementwise(y.size), stream](self.labels, order, position, y)
        else:
            gather.gather_targets[*launch.over_matrix(*y.shape), stream](self.labels, order, position, y)

    def _gather_moved(self, chosen: ImageChanges, x: Array, order: Array, position: Array, stream: Any) -> None:
        """The batch's x, of images that are changed in every epoch."""
        _, height, width = self.network.architecture.input_shape
        images.gather_moved[*launch.over_matrix(*x.shape), stream](
            self.values, self.table, self.table.dtype.type(chosen.background), order, position, self.changes,
            np.int32(height), np.int32(width), x,
        )  # fmt: skip

    def _send_changes(self, chosen: ImageChanges, epoch: int) -> None:
        """How each image is changed in this epoch, unless that lies there already."""
        if epoch != self._changed_for:
            angles, down, right = chosen.changes(np.arange(self.count), self.seed, epoch)
            self.changes.copy_to_device(np.stack([np.cos(angles), np.sin(angles), down, right], axis=1))
            self._changed_for = epoch

    def _draw_masks(self, plan: Plan, stream: Any) -> None:
        """A mask for each Dropout layer, from the seed and the step that the counters stand at."""
        taken = self.counters[fused.STEP : fused.STEP + 1]
        for layer, (size, rate) in enumerate(self._places):
            mask = plan.given.get(f"mask {layer}")
            if mask is not None:
                mask = mask.reshape(mask.size // size, size)
                threshold, scale = threshold_and_scale(rate, self.network.dtype)
                dropout_kernels.dropout_mask[*launch.over_matrix(*mask.shape), stream](
                    np.uint64(self.seed & MASK64), taken, np.uint64(layer), threshold, scale, mask
                )


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
    for first in range(0, len(x), ROWS):  # so that no second copy of the data set is made
        numbers, into = x[first : first + ROWS], places[first : first + ROWS]
        into[...] = np.rint((numbers - low) * scale)
        new = table[into] != numbers
        if new.any():
            if not np.isnan(table[into[new]]).all():
                return None
            table[into[new]] = numbers[new]
            if not np.array_equal(table[into], numbers):
                return None
    return places, np.nan_to_num(table, nan=0.0)
