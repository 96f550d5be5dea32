"""A training run that stays on the device: the host sends the data once, and reads the losses after many steps.

    once             images as bytes, labels (resident_data.py)
    every epoch      the order in which the images are visited; how each of them is rotated and shifted, if they are
    every interval   the optimizer's numbers for 64 to 1,024 steps; back: their losses
    every step       nothing

A step picks its batch by index, makes numbers of the pixels and draws its dropout masks on the device, from counters
that lie there too. So the host can order many steps without waiting for one, and with a GPU a step is one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from typing import Any

import numpy as np

from shared.contract import ImageChanges
from shared.names import LABEL_LOSSES

from .. import launch
from ..arrays import zeros
from ..dropout import threshold_and_scale, write_mask
from ..kernels import fused
from ..kernels import resident as kernels
from . import cuda_graphs, persistent
from .mlp_launches import InRun, MlpPlan, has_few_kernels, product_kernel
from .mlp_memory import MlpMemory
from .optimizer_update import OPTIMIZERS, Update
from .resident_data import ResidentData
from .resident_host import (
    READ_EVERY,
    Orders,
    batches,
    losses_of,
    schedule_of,
    steps_between_readings,
)

_serials = count_up()
"""A run's number tells its captured graphs from those of every other, of which the memory may be gone."""


@dataclass(frozen=True)
class Place:
    """Where steps stand: `first` and `steps_before` as of the call of `take`, and the steps that it has taken."""

    first: int
    steps_before: int
    taken: int


class ResidentRun:
    """A data set on the device, and the steps over it, by the plan of operations; MlpRun has an mlp's own plans.

    x (n, numbers of one input), labels (n,): float32 or float64, and whole numbers
    optimizer: takes the steps; its learning_rate is set for each
    seed: with the Dropout layers' rates it decides about the masks, as in shared.dropout

    is_bytes: whether the samples lie on the device as bytes; most: the steps whose losses are kept
    rung: how the steps are taken, by the names of choice.py; told: that as a line to print, "" where there is no choice
    """

    of_an_mlp = False
    told = ""

    def __init__(self, network: Any, x: Any, labels: Any, optimizer: Any, batch_size: int, seed: int) -> None:
        x, features = np.asarray(x), network.layer_sizes[0]
        if x.ndim != 2 or not len(x) or x.shape[1] != features:
            raise ValueError(f"resident: x is {x.shape}, expected (samples, {features}), at least one sample")
        if batch_size < 1:
            raise ValueError(f"resident: batch_size: expected at least 1, got {batch_size}")
        self.network, self.optimizer, self.count, self.seed = network, optimizer, len(x), seed
        self.batch_size = min(batch_size, self.count)
        self.steps = launch.divided(self.count, self.batch_size)
        self._serial = next(_serials)
        self._dropouts = network.architecture.dropouts()
        self._masked = any(rate for _, rate in self._dropouts)
        self.data = ResidentData(network, x, labels, over_255=self.of_an_mlp)
        self.is_bytes = self.data.is_bytes
        self.most = steps_between_readings(self.batch_size) if self.of_an_mlp else READ_EVERY
        self.schedule = zeros((self.most, 8), network.dtype)
        self.numbers = zeros((8,), network.dtype)
        self.counters = zeros((3,), np.int64)
        # not `empty`: a short last batch leaves holes, which `take` copies to the host with the losses
        self.row_losses = zeros((self.most, self.batch_size), network.dtype)
        self._orders = Orders(self.count)
        self.rung = "graph" if cuda_graphs.available() else "fused"

    @property
    def interval(self) -> int:
        """The steps to take at once: `most` on a GPU, one on the CPU, where a launch has ended when it returns. So
        Ctrl-C ends a run there after one step."""
        return self.most if cuda_graphs.available() else 1

    def augment(self, augmentation: ImageChanges) -> bool:
        """Change the images of the coming steps on the device. Returns whether it can: see ResidentData.augment."""
        return self.data.augment(augmentation)

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
        Raises ValueError before `begin_epoch`, for more than `most` steps, past the epoch's end, and where batch
        normalisation would get one number a channel.
        """
        self._orders.check_steps(first, len(rates), self.steps, self.most)
        if not rates:
            return []
        sizes = batches(self.count, self.batch_size, first, len(rates))
        # Before anything is launched: after an error no step of the call has been taken.
        for count, _ in sizes:
            self.network.check_unchanged(count, training=True)
        if self.rung != "persistent":  # which gets them as arguments
            self.counters.copy_to_device(np.array([first * self.batch_size, steps_before, 0], np.int64))
        self.data.begin_steps(self.seed, steps_before // self.steps)
        in_kernels = self._update().ours
        if in_kernels:
            self.schedule.copy_to_device(schedule_of(self.optimizer, rates, self.network.dtype, self.most))
        done = 0
        for count, steps in sizes:
            for i in range(1 if in_kernels else steps):  # an optimizer of somebody else's takes its steps on the host
                if not in_kernels:
                    self.optimizer.learning_rate = rates[done + i]
                self._launch(count, steps if in_kernels else 1, Place(first, steps_before, done + i))
            done += steps
        if meanwhile is not None:
            meanwhile()
        # This copy waits for the device; what the host does meanwhile had to come before.
        losses = losses_of(self.row_losses[: len(rates)].copy_to_host(), sizes)
        self._check_launched()
        return losses

    def _update(self) -> Update:
        return Update(self.network, self.optimizer, self.numbers)

    def _check_launched(self) -> None:
        """Nothing to ask: no block of these kernels waits for another."""

    def _launch(self, count: int, steps: int, at: Place) -> None:
        """Steps of so many rows, each from the same graph where there are graphs."""
        plan, update = self.network.plans.operations(self.network, count, True, self._masked), self._update()

        def launches(stream: Any) -> None:
            kernels.begin_step[1, launch.WARP, stream](self.schedule, self.counters, self.numbers)
            self._gather(plan, stream)
            self._draw_masks(plan, stream)
            plan.launch(self.network, plan.own, update, stream)
            kernels.end_kept_step[1, launch.THREADS, stream](plan.losses, self.row_losses, self.counters)

        self._repeat(plan, update, steps, launches)

    def _repeat(self, plan: Any, update: Update, steps: int, launches: Callable[[Any], None]) -> None:
        # A graph has addresses inside: those of this run's arrays, and of the one of two orders that is in use.
        key = ("resident", self._serial, self._orders.current, plan.key(self.network, update))
        if cuda_graphs.available() and plan.may_be_captured:
            plan.graphs.launch(key, launches, times=steps)
        else:
            for _ in range(steps):
                launches(0)
        update.done(steps)

    def _gather(self, plan: Any, stream: Any) -> None:
        """The batch's x and y, to where the plan looks for them."""
        position = self.counters[fused.POSITION : fused.POSITION + 1]
        x, y, *_ = plan.own
        self.data.gather(x, y, self._orders.now, position, stream)

    def _draw_masks(self, plan: Any, stream: Any) -> None:
        """A mask for each Dropout layer, from the seed and the step that the counters stand at."""
        taken = self.counters[fused.STEP : fused.STEP + 1]
        for layer, (mask, (size, rate)) in enumerate(zip(plan.own[2:], self._dropouts, strict=False)):
            mask = mask.reshape(mask.size // size, size)
            write_mask(self.seed, taken, layer, rate, mask, stream)


class MlpRun(ResidentRun):
    """The same of an mlp. Images that are bytes over 255 travel as bytes.

    rung: "persistent", "graph" (on the CPU "few_kernels") or "fused"
    reason: why it is not "persistent", as the end of a sentence; None where it is
    """

    of_an_mlp = True

    def __init__(self, network: Any, *arguments: Any) -> None:
        super().__init__(network, *arguments)
        self.rung, self.reason = self._choose()

    def _choose(self) -> tuple[str, str | None]:
        """The rung that the steps are taken by, and why it is not the last."""
        reason = self._reason_against_persistent()
        if reason is None:
            return "persistent", None
        if type(self.optimizer) not in OPTIMIZERS or not has_few_kernels(self.network):
            return "fused", reason
        return "graph" if cuda_graphs.available() else "few_kernels", reason

    def _reason_against_persistent(self) -> str | None:
        """Why the steps are not taken by the persistent kernel, as the end of a sentence; None where they are."""
        if type(self.optimizer) not in OPTIMIZERS:
            return f"{type(self.optimizer).__name__} is no optimizer of this stage"
        if persistent.wanted():
            values = str(self.data.values.dtype)
            slower = persistent.slower_with(self.batch_size)
            return slower or persistent.misfit(self.network, self.batch_size, values)
        if cuda_graphs.available():
            return f"{persistent.VARIABLE}=0 asks for another"
        return f"it is for GPUs ({persistent.VARIABLE}=1 takes it on the CPU, too)"

    @property
    def told(self) -> str:  # type: ignore[override]
        """`rung` and `reason` as a line to print; "" where the persistent kernel is not wanted."""
        if not persistent.wanted():
            return ""
        return "steps by the persistent kernel" if self.reason is None else f"steps by {self.rung}: {self.reason}"

    def _update(self) -> Update:
        return Update(self.network, self.optimizer, self.numbers, in_kernels=self.rung != "fused")

    def _check_launched(self) -> None:
        self.network.plans.settle()

    def _launch(self, count: int, steps: int, at: Place) -> None:
        memory = self.network.plans.mlp_memory(self.network, self.batch_size)
        if self.rung == "persistent":
            self._launch_persistent(memory, count, steps, at)
            return
        rung = "fused" if self.rung == "fused" else "few_kernels"
        plan = self.network.plans.step(rung, self.network, count, self._masked)
        if rung == "fused":
            self._launch_fused(plan, count, at)
        else:
            self._launch_few(plan, count, steps)

    def _launch_persistent(self, memory: MlpMemory, count: int, steps: int, at: Place) -> None:
        """All steps in one launch; only the last batch of an epoch, which is smaller, has one of its own."""
        network, data, rows, update = self.network, self.data, memory.rows(count), self._update()
        dropout = None
        if self._masked:
            drawn = threshold_and_scale(self._dropouts[0][1], network.dtype)
            dropout = persistent.Dropout(self.seed, at.steps_before + at.taken, *drawn)
        persistent.plan_of(network, memory, str(data.values.dtype)).launch(
            data.values,
            data.labels,
            rows.targets,
            self._orders.now,
            (at.first + at.taken) * self.batch_size,
            steps,
            rows,
            update,
            self.schedule[at.taken :],
            own_targets=network.loss_name not in LABEL_LOSSES,
            dropout=dropout,
            row_losses=self.row_losses[at.taken :],
        )
        update.done(steps)

    def _launch_few(self, plan: MlpPlan, count: int, steps: int) -> None:
        """Steps of the few kernels, each from the same graph where there are graphs."""
        network, data, update = self.network, self.data, self._update()

        def launches(stream: Any) -> None:
            self._draw_masks(plan, stream)
            first = None
            if self.is_bytes and network.loss_name in LABEL_LOSSES:

                def first() -> None:
                    parts = plan.rows.parts[0]
                    product_kernel("FORWARD_BYTES", parts, network.layer_sizes[0], stream)(
                        data.values, data.labels, self._orders.now, self.counters, self.schedule, self.numbers,
                        network.dense_layers[0].weights, *plan.own[:2], parts,
                    )  # fmt: skip

            else:
                kernels.begin_step[1, launch.WARP, stream](self.schedule, self.counters, self.numbers)
                self._gather(plan, stream)
            plan.launch_few(network, plan.own, update, stream, InRun(self.counters, self.row_losses, count, first))

        self._repeat(plan, update, steps, launches)

    def _launch_fused(self, plan: MlpPlan, count: int, at: Place) -> None:
        """One step of the `fused` rung, for what the few kernels cannot do."""
        self._draw_masks(plan, 0)
        self._gather(plan, 0)
        plan.launch_fused(self.network, plan.own, self.row_losses[at.taken][:count])
        self._update().done()
        kernels.end_step[1, launch.WARP](self.counters, count)
