"""A training run that stays on the device: the host sends the data once, and reads the losses after many steps.

    once             images as bytes, a quarter of what float32 would take; labels
    every epoch      the order in which the images are visited
    every interval   the optimizer's numbers for 64 to 1,024 steps; back: their losses
    every step       nothing

A step picks its batch by index, makes numbers of the pixels and draws its dropout masks on the device, from counters
that lie there too. So the host can order many steps without waiting for one, and with a GPU a step is one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count as count_up
from typing import Any

import numpy as np

from . import graphs, launch, persistent
from .arrays import Array, zeros
from .backend import cuda
from .buffers import Buffers, Rows, Trainable
from .dropout import threshold_and_scale
from .kernels import dropout as dropout_kernels
from .kernels import fused, gather
from .kernels import resident as kernels
from .resident_order import Orders, batches, labels_of, losses_of, schedule_of, steps_between_readings
from .steps import LABEL_LOSSES, OPTIMIZERS, InRun, Move, has_few_kernels, launch_few, launch_fused, product_kernel

MASK64 = (1 << 64) - 1
FLOATS = (np.dtype("float32"), np.dtype("float64"))

AT_ONCE = 256
"""Images that `bytes_of` looks at together."""

_serials = count_up()
"""A run's number tells its captured graphs from those of every other, of which the memory may be gone."""


class Resident:
    """A data set on the device, and the steps over it.

    x (n, features), labels (n,): float32 or float64, and whole numbers; images that are bytes over 255 travel as bytes
    optimizer: takes the steps; its learning_rate is set for each
    dropout, seed: the rate, and what decides the masks, as in shared.dropout

    rung: how the steps are taken: "persistent", "graph" (on the CPU "few_kernels") or "fused", as in steps.py
    reason: why it is not "persistent", as the end of a sentence; None where it is
    """

    def __init__(
        self, network: Trainable, x: Any, labels: Any, optimizer: Any, batch_size: int, dropout: float, seed: int
    ) -> None:
        x = np.asarray(x)
        if x.ndim != 2 or not len(x) or x.shape[1] != network.layer_sizes[0]:
            raise ValueError(
                f"resident: x is {x.shape}, expected (samples, {network.layer_sizes[0]}), at least one sample"
            )
        if batch_size < 1:
            raise ValueError(f"resident: batch_size: expected at least 1, got {batch_size}")
        self.network, self.optimizer, self.count = network, optimizer, len(x)
        self.batch_size = min(batch_size, self.count)
        self.steps = launch.divided(self.count, self.batch_size)
        self.dropout, self.seed = dropout, seed
        self._serial = next(_serials)
        as_bytes = bytes_of(x)
        self.is_bytes = as_bytes is not None
        if as_bytes is None:
            x = np.ascontiguousarray(x, x.dtype if x.dtype in FLOATS else network.dtype)
        self.values = cuda.to_device(x if as_bytes is None else as_bytes)
        self.labels = cuda.to_device(labels_of(network, labels, self.count))
        self.most = steps_between_readings(self.batch_size)
        # not `empty`: a short last batch leaves holes, which `take` copies to the host with the losses
        self.row_losses = zeros((self.most, self.batch_size), network.dtype)
        self.schedule = zeros((self.most, 8), network.dtype)
        self.numbers = zeros((8,), network.dtype)
        self.counters = zeros((3,), np.int64)
        self._orders = Orders(self.count)
        self.rung, self.reason = self._choose()

    def _choose(self) -> tuple[str, str | None]:
        """The rung that the steps are taken by, and why it is not the last."""
        network = self.network
        if type(self.optimizer) not in OPTIMIZERS:
            return "fused", f"{type(self.optimizer).__name__} is no optimizer of this floor"
        plain = "graph" if graphs.available() else "few_kernels"
        reason = persistent.misfit(network, self.batch_size, str(self.values.dtype)) if persistent.wanted() else ""
        if reason is None:
            return "persistent", None
        if reason == "" and graphs.available():
            reason = f"{persistent.VARIABLE}=0 asks for another"
        elif reason == "":
            reason = f"it is for GPUs ({persistent.VARIABLE}=1 takes it on the CPU, too)"
        return plain if has_few_kernels(network) else "fused", reason

    @property
    def interval(self) -> int:
        """The steps to take at once: `most` on a GPU, one on the CPU, where a launch has ended when it returns. So
        Ctrl-C ends a run there after one step."""
        return self.most if graphs.available() else 1

    @property
    def told(self) -> str:
        """`rung` and `reason` as a line to print; "" where the persistent kernel is not wanted."""
        if not persistent.wanted():
            return ""
        return "steps by the persistent kernel" if self.reason is None else f"steps by {self.rung}: {self.reason}"

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

        steps_before: of the whole training, which the dropout masks depend on
        meanwhile: called while the device computes
        Raises ValueError before `begin_epoch`, for more than `most` steps, and past the epoch's end.
        """
        self._orders.check_steps(first, len(rates), self.steps, self.most)
        if not rates:
            return []
        sizes = batches(self.count, self.batch_size, first, len(rates))
        buffers = self.network.buffers(self.batch_size)
        if self.rung != "persistent":  # which gets them as arguments
            self.counters.copy_to_device(np.array([first * self.batch_size, steps_before, 0], np.int64))
        plan = None
        if self.rung == "persistent":
            self._send_schedule(rates)
            plan = self._persistent(buffers, first, sizes, steps_before)
        elif self.rung != "fused":
            self._send_schedule(rates)
            for count, steps in sizes:
                self._few(buffers.rows(count), count, steps)
        else:
            counts = [count for count, steps in sizes for _ in range(steps)]
            for slot, (count, rate) in enumerate(zip(counts, rates, strict=True)):
                self.optimizer.learning_rate = rate
                self._fused(buffers.rows(count), count, self.row_losses[slot][:count])
        if meanwhile is not None:
            meanwhile()
        rows = self.row_losses[: len(rates)].copy_to_host()
        if plan is not None:
            plan.check()
        return losses_of(rows, sizes)

    def _send_schedule(self, rates: Sequence[float]) -> None:
        self.schedule.copy_to_device(schedule_of(self.optimizer, rates, self.network.dtype, self.most))

    def _persistent(
        self, buffers: Buffers, first: int, sizes: Sequence[tuple[int, int]], steps_before: int
    ) -> persistent.Plan:
        """The steps in one launch; in two where the last batch of the epoch is smaller."""
        network, order = self.network, self._orders.now
        plan = persistent.plan_of(network, buffers, str(self.values.dtype))
        move = Move(network, buffers, self.optimizer, self.numbers)
        threshold_scale = threshold_and_scale(self.dropout, network.dtype)
        done = 0
        for count, steps in sizes:
            rows = buffers.rows(count)
            plan.launch(
                self.values,
                self.labels,
                rows.targets,
                order,
                (first + done) * self.batch_size,
                steps,
                rows,
                move,
                self.schedule[done:],
                own_targets=network.loss_name not in LABEL_LOSSES,
                dropout=persistent.Dropout(self.seed, steps_before + done, *threshold_scale) if self.dropout else None,
                row_losses=self.row_losses[done:],
            )
            move.done(steps)
            done += steps
        return plan

    def _few(self, rows: Rows, count: int, steps: int) -> None:
        """Steps of the three kernels, each from the same graph where there are graphs."""
        network, order = self.network, self._orders.now
        buffers = network.buffers(count)
        move = Move(network, buffers, self.optimizer, self.numbers)
        label_loss = network.loss_name in LABEL_LOSSES
        masks = rows.masks if self.dropout else []

        def launches(stream: Any) -> None:
            self._draw_masks(masks, stream)
            first = None
            if self.is_bytes and label_loss:

                def first() -> None:
                    product_kernel("FORWARD_BYTES", rows.parts[0], network.layer_sizes[0], stream)(
                        self.values, self.labels, order, self.counters, self.schedule, self.numbers,
                        network.layers[0].weights, rows.x, rows.labels, rows.parts[0],
                    )  # fmt: skip

            else:
                kernels.begin_step[1, launch.WARP, stream](self.schedule, self.counters, self.numbers)
                self._gather(rows, count, stream)
            y = rows.labels if label_loss else rows.targets
            launch_few(
                network,
                buffers,
                rows,
                rows.x,
                y,
                masks,
                move,
                stream=stream,
                run=InRun(self.counters, self.row_losses, count, first),
            )

        if graphs.available():
            key = ("resident", self._serial, count, self._orders.current, self.dropout, self.seed, move.key())
            buffers.graphs.launch(key, launches, times=steps)
        else:
            for _ in range(steps):
                launches(0)
        move.done(steps)

    def _fused(self, rows: Rows, count: int, row_losses: Array) -> None:
        """One step of the `fused` rung, for what the three kernels cannot do."""
        network = self.network
        masks = rows.masks if self.dropout else []
        self._draw_masks(masks, 0)
        self._gather(rows, count, 0)
        y = rows.labels if network.loss_name in LABEL_LOSSES else rows.targets
        launch_fused(network, rows, rows.x, y, masks, row_losses)
        self.optimizer.step(network.parameters, network.layer_gradients)
        kernels.end_step[1, launch.WARP](self.counters, count)

    def _gather(self, rows: Rows, count: int, stream: Any) -> None:
        """The batch's x, and y as the loss takes it."""
        order, position = self._orders.now, self.counters[fused.POSITION : fused.POSITION + 1]
        pick = gather.gather_bytes if self.is_bytes else gather.gather_rows
        pick[*launch.over_matrix(*rows.x.shape), stream](self.values, order, position, rows.x)
        if self.network.loss_name in LABEL_LOSSES:
            gather.gather_labels[*launch.elementwise(count), stream](self.labels, order, position, rows.labels)
        else:
            gather.gather_targets[*launch.over_matrix(*rows.targets.shape), stream](
                self.labels, order, position, rows.targets
            )

    def _draw_masks(self, masks: Sequence[Array], stream: Any) -> None:
        """A mask for each hidden layer, from the seed and the step that the counters stand at."""
        steps = self.counters[fused.STEP : fused.STEP + 1]
        for layer, mask in enumerate(masks):
            threshold, scale = threshold_and_scale(self.dropout, self.network.dtype)
            dropout_kernels.dropout_mask[*launch.over_matrix(*mask.shape), stream](
                np.uint64(self.seed & MASK64),
                steps,
                np.uint64(layer),
                threshold,
                scale,
                mask,
            )


def bytes_of(x: np.ndarray) -> np.ndarray | None:
    """The images as uint8 where all are bytes over 255 in float32, as shared.data.datasets makes them; else None."""
    if x.dtype != np.float32:
        return None
    found = np.empty(x.shape, np.uint8)
    for first in range(0, len(x), AT_ONCE):  # what is computed for these rows stays in the processor's cache
        rows = x[first : first + AT_ONCE]
        scaled = np.rint(rows * np.float32(255))
        if not np.all((scaled >= 0) & (scaled <= 255)):
            return None
        found[first : first + AT_ONCE] = scaled
        if not np.array_equal(found[first : first + AT_ONCE].astype(np.float32) / np.float32(255), rows):
            return None
    return found
