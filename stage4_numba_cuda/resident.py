"""A training run that stays on the device: the data goes over once, and the losses come back now and then.

    once             images as bytes, a quarter of what float32 would take; labels
    every epoch      the order in which the images are visited
    every interval   the optimizer's numbers for READ_EVERY steps; back: their losses
    every step       nothing

A step picks its batch by index, makes numbers of the pixels and draws its dropout masks on the device, from counters
that lie there too. So the host can order many steps without waiting for one, and with a GPU a step is one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count as count_up
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from . import graphs, launch
from .arrays import Array, empty, zeros
from .backend import cuda
from .buffers import READ_EVERY, Rows
from .dropout import threshold_and_scale
from .gather import over_matrix
from .kept import in_order
from .kernels import dropout as dropout_kernels
from .kernels import fused, gather
from .kernels import resident as kernels
from .steps import LABEL_LOSSES, OPTIMIZERS, TILE, Move, has_few_kernels, launch_few, launch_fused

if TYPE_CHECKING:
    from .network import Network

_serials = count_up()
"""A run's number tells its captured graphs from those of every other, of which the memory may be gone."""


class Resident:
    """A data set on the device, and the steps over it.

    x (n, features), labels (n,): float32 or float64, and whole numbers; images that are bytes over 255 travel as bytes
    optimizer: takes the steps; its learning_rate is set for each
    dropout, seed: the rate, and what decides the masks, as in shared.dropout
    """

    interval = READ_EVERY if graphs.available() else 1
    """The most steps that `take` takes at once. On the CPU nothing is gained by waiting, and Ctrl-C is heard sooner."""

    def __init__(
        self, network: Network, x: Any, labels: Any, optimizer: Any, batch_size: int, dropout: float, seed: int
    ) -> None:
        self.network, self.optimizer, self.count, self.batch_size = network, optimizer, len(x), batch_size
        self.dropout, self.seed = dropout, seed
        self._serial = next(_serials)
        as_bytes = bytes_of(np.asarray(x))
        self.is_bytes = as_bytes is not None
        self.values = cuda.to_device(np.ascontiguousarray(x) if as_bytes is None else as_bytes)
        self.labels = cuda.to_device(np.ascontiguousarray(labels, np.int32))
        self.schedule = zeros((READ_EVERY, 8), network.dtype)
        self.numbers = zeros((8,), network.dtype)
        # Two, and on a GPU a stream of their own and memory that the system may not move: so the next epoch's order
        # travels while this one's last steps still compute.
        self._orders = [empty((self.count,), np.int32) for _ in range(2)]
        self._current = 0
        self._ahead: np.ndarray | None = None
        self._pinned = cuda.pinned_array((self.count,), np.int32)
        self._copies: Any = cuda.stream() if graphs.available() else 0

    def begin_epoch(self, order: np.ndarray) -> None:
        """The order (n,) in which the coming steps visit the data."""
        if self._ahead is None or not np.array_equal(self._ahead, order):
            self.prefetch(order)
        if self._copies:
            self._copies.synchronize()
        self._current, self._ahead = 1 - self._current, None

    def prefetch(self, order: np.ndarray) -> None:
        """Send the order of the next epoch ahead of its `begin_epoch`."""
        self._pinned[...] = order
        self._ahead = self._pinned
        self._orders[1 - self._current].copy_to_device(self._pinned, stream=self._copies)

    def take(
        self, first: int, rates: Sequence[float], steps_before: int, meanwhile: Callable[[], None] | None = None
    ) -> list[float]:
        """Take a step for each learning rate, beginning with step `first` (from 0) of the epoch; their losses.

        steps_before: of the whole training, which the dropout masks depend on
        meanwhile: called while the device computes
        Raises ValueError for more than READ_EVERY steps.
        """
        if len(rates) > READ_EVERY:
            raise ValueError(f"take: {len(rates)} steps at once; the losses of at most {READ_EVERY} can be kept")
        network = self.network
        starts = [(first + i) * self.batch_size for i in range(len(rates))]
        counts = [min(self.batch_size, self.count - start) for start in starts]
        buffers = network.buffers(self.batch_size)
        buffers.counters.copy_to_device(np.array([starts[0], steps_before, 0], np.int64))
        if has_few_kernels(network) and type(self.optimizer) in OPTIMIZERS:
            self._send_schedule(rates)
            for count, alike in groupby(counts):  # all of one size, but for the last batch of an epoch
                self._few(buffers.rows(count), count, len(list(alike)))
        else:
            for slot, (count, rate) in enumerate(zip(counts, rates, strict=True)):
                self.optimizer.learning_rate = rate
                self._fused(buffers.rows(count), count, buffers.row_losses[slot][:count])
        if meanwhile is not None:
            meanwhile()
        rows = buffers.row_losses[: len(counts)].copy_to_host()
        return [float(np.sum(rows[slot, :count], dtype=np.float64)) for slot, count in enumerate(counts)]

    def _send_schedule(self, rates: Sequence[float]) -> None:
        table = np.zeros((READ_EVERY, 8), self.network.dtype)
        for i, rate in enumerate(rates):
            self.optimizer.learning_rate = rate
            table[i] = in_order(self.optimizer.numbers(i), table.dtype)
        self.schedule.copy_to_device(table)

    def _few(self, rows: Rows, count: int, steps: int) -> None:
        """Steps of the three kernels, each from the same graph where there are graphs."""
        network, order = self.network, self._orders[self._current]
        buffers = network.buffers(count)
        move = Move(network, buffers, self.optimizer, self.numbers)
        label_loss = network.loss_name in LABEL_LOSSES
        masks = rows.masks if self.dropout else []

        def launches(stream: Any) -> None:
            self._draw_masks(masks, buffers.counters, stream)
            first = None
            if self.is_bytes and label_loss:
                grid = (*launch.tiles(count, network.layers[0].out_features, TILE, TILE), rows.parts[0].shape[0])

                def first() -> None:
                    fused.FORWARD_BYTES[TILE][grid, (TILE, TILE), stream](
                        self.values, self.labels, order, buffers.counters, self.schedule, self.numbers,
                        network.layers[0].weights, rows.x, rows.labels, rows.parts[0],
                    )  # fmt: skip

            else:
                kernels.begin_step[1, launch.WARP, stream](self.schedule, buffers.counters, self.numbers)
                self._gather(rows, count, buffers.counters, stream)
            y = rows.labels if label_loss else rows.targets
            launch_few(network, buffers, rows, rows.x, y, masks, move, stream=stream, advance=count, first=first)

        if graphs.available():
            key = ("resident", self._serial, count, self._current, bool(masks), move.key())
            buffers.graphs.launch(key, launches, times=steps)
        else:
            for _ in range(steps):
                launches(0)
        move.done(steps)

    def _fused(self, rows: Rows, count: int, row_losses: Array) -> None:
        """One step of the `fused` rung, for what the three kernels cannot do."""
        network = self.network
        buffers = network.buffers(count)
        masks = rows.masks if self.dropout else []
        self._draw_masks(masks, buffers.counters, 0)
        self._gather(rows, count, buffers.counters, 0)
        y = rows.labels if network.loss_name in LABEL_LOSSES else rows.targets
        launch_fused(network, rows, rows.x, y, masks, row_losses)
        self.optimizer.step(network.parameters, network.layer_gradients)
        kernels.end_step[1, launch.WARP](buffers.counters, count)

    def _gather(self, rows: Rows, count: int, counters: Array, stream: Any) -> None:
        """The batch's x, and y as the loss takes it."""
        order, position = self._orders[self._current], counters[:1]
        pick = gather.gather_bytes if self.is_bytes else gather.gather_rows
        pick[*over_matrix(rows.x), stream](self.values, order, position, rows.x)
        if self.network.loss_name in LABEL_LOSSES:
            gather.gather_labels[*launch.elementwise(count), stream](self.labels, order, position, rows.labels)
        else:
            gather.gather_targets[*over_matrix(rows.targets), stream](self.labels, order, position, rows.targets)

    def _draw_masks(self, masks: Sequence[Array], counters: Array, stream: Any) -> None:
        """A mask for each hidden layer, from the seed and the step that the counters stand at."""
        for layer, mask in enumerate(masks):
            threshold, scale = threshold_and_scale(self.dropout, self.network.dtype)
            dropout_kernels.dropout_mask[*over_matrix(mask), stream](
                np.uint64(self.seed), counters[1:2], np.uint64(layer), threshold, scale, mask
            )


def bytes_of(x: np.ndarray) -> np.ndarray | None:
    """The images as uint8 where all are bytes over 255 in float32, as shared.datasets makes them; else None."""
    if x.dtype != np.float32:
        return None
    scaled = np.rint(x * np.float32(255))
    if not np.all((scaled >= 0) & (scaled <= 255)):
        return None
    found = scaled.astype(np.uint8)
    return found if np.array_equal(found.astype(np.float32) / np.float32(255), x) else None
