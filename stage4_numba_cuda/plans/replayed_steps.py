"""The host's part of a replayed step: checks that are done only once, and copies that do not make the host wait.

A step from a graph takes the device some tens of microseconds, and Python several times as long if it prepares each
step as if it were the first. So the objects that a step needs (optimizer, its memory, parameters, gradients) are looked
up once and kept as a `ReplayedStep`; later steps only compare identities. x and y are new in every step, so every step
checks them.

    x, y, masks    into pinned memory, which the system may not move; what is on the device already, into the step's own
                   arrays there, on the step's stream
    the graph      on the same stream: copies from the pinned memory, the kernels, the losses back into pinned memory.
                   A copy outside the graph takes Python time in every step; one in the graph takes none
    the losses     after the step's only wait, which is for this stream
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from ..arrays import Array, on_device
from ..kernels.ptx import PATIENCE
from . import cuda_graphs
from .mlp_launches import MlpPlan
from .operation_plan import OperationPlan
from .optimizer_update import Update

MOST = 16
"""Steps that are kept: one for each batch size and optimizer in use."""

SLOW = PATIENCE / 2e9
"""Seconds, half of what a block of the persistent kernel waits for others before it gives up. To ask the device after
every step whether one has would be a copy and a wait more."""


class ReplayedStep:
    """One step that can be replayed: a plan's, with one optimizer. If its blocks wait for each other, and it took more
    than SLOW, it is asked whether they gave up.

    It holds on to memory and to its optimizer, but not to the network: the network holds on to it, and a circle would
    keep the device's memory until Python happens to look for circles.
    """

    def __init__(self, network: Any, plan: MlpPlan | OperationPlan, update: Update) -> None:
        self.plan, self.update, self.key = plan, update, plan.key(network, update)
        self.stream: Any = plan.graphs.stream
        self._addresses, self._optimizer = network.addresses(), _looked_up(update.optimizer)
        self._busy = False

    def still_fits(self, network: Any) -> bool:
        """Whether the arrays of the network, which was just checked, and of the optimizer are the same ones as then."""
        same_arrays = network.addresses() is self._addresses
        return same_arrays and _looked_up(self.update.optimizer)[:-1] == self._optimizer[:-1]

    def take(self, network: Any, arrays: Sequence[Array]) -> float:
        """One step on x, y and the masks, all of which were checked; the loss before it."""
        plan, graphs = self.plan, self.plan.graphs
        if self._busy:  # an interruption came between sending and waiting: what was sent may still be read
            self._wait(begun=-inf)
        if plan.blocks_wait is not None:
            plan.blocks_wait.unsettled = True
        begun, self._busy = perf_counter(), True
        self.update.refresh(self.stream)
        # Asked for in every step: two steps may have one key and one graph, and its memory may have been given up.
        pinned = graphs.pinned(self.key, [*plan.own, plan.losses])
        staged = []  # which of them come from the host
        for i, (array, own) in enumerate(zip(arrays, plan.own, strict=True)):
            if array.shape != own.shape:
                array = array.reshape(own.shape)
            if not on_device(array):
                pinned[i][...] = array
                staged.append(i)
            elif array is not own:
                cuda_graphs.copy_on_device(array, own, self.stream)
        graphs.launch((self.key, *staged), lambda stream: self._order(network, pinned, staged, stream))
        self.update.done()
        self._wait(begun)
        return float(np.add.reduce(pinned[-1], dtype=np.float64))  # np.sum takes twice as long

    def _order(self, network: Any, pinned: Sequence[Any], staged: Sequence[int], stream: Any) -> None:
        """What the graph repeats: arrays `staged` of `own` from pinned memory, the step, the losses to it."""
        own = self.plan.own
        for i in staged:
            own[i].copy_to_device(pinned[i], stream=stream)
        self.plan.launch(network, own, self.update, stream)
        self.plan.losses.copy_to_host(pinned[-1], stream=stream)

    def _wait(self, begun: float) -> None:
        """For the step that began then, by perf_counter."""
        if self.stream:  # 0 is the stream of a backend without graphs, whose calls end before they return
            self.stream.synchronize()
        self._busy = False
        if self.plan.blocks_wait is not None:
            if perf_counter() - begun > SLOW:
                self.plan.blocks_wait.check()
            self.plan.blocks_wait.unsettled = False


def _looked_up(optimizer: Any) -> tuple[int, list[int], list[Array]]:
    """An optimizer's formula, and its arrays: their ids, and themselves, so that an id stays its own."""
    state = getattr(optimizer, "_state", None)
    arrays = [] if state is None else [array for arrays in state.buffers.values() for array in arrays]
    return getattr(optimizer, "kind", -1), list(map(id, arrays)), arrays


class ReplayedSteps:
    """The steps of one network that can be replayed."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], ReplayedStep] = {}

    def step(
        self, network: Any, plan: MlpPlan | OperationPlan, optimizer: Any, make: Callable[[], ReplayedStep]
    ) -> ReplayedStep:
        """The step of this plan with this optimizer, made by `make` where there is none that still fits."""
        key = id(plan), id(optimizer)  # a step holds on to both, so that their ids stay their own
        step = self._kept.get(key)
        if step is None or not step.still_fits(network):
            # Steps in other memory, which a larger batch has replaced, would keep it from being freed.
            self._kept = {k: kept for k, kept in self._kept.items() if k != key and kept.plan.memory is plan.memory}
            if len(self._kept) >= MOST:
                self._kept.pop(next(iter(self._kept)))
            step = self._kept[key] = make()
        return step
