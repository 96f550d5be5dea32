"""The host's part of a replayed step: checks that are done only once, and copies that do not make the host wait.

A step from a graph takes the device some tens of microseconds, and Python several times as long if it prepares each
step as if it were the first. So the objects that a step needs (optimizer, its memory, parameters, gradients) are looked
up once and kept as a `ReadyStep`; later steps only compare identities. x and y are new in every step, so every step
checks them.

    x, y, masks    into pinned memory, which the system may not move; what is on the device already, into the step's own
                   arrays there, on the step's stream
    the graph      on the same stream: copies from the pinned memory, the kernels, the losses back into pinned memory.
                   A copy outside the graph takes Python time in every step; one in the graph takes none
    the losses     after the step's only wait, which is for this stream
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import inf
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .arrays import Array, on_device
from .graphs import Graphs
from .kernels.ptx import PATIENCE

MOST = 16
"""Steps that are kept ready: one for each batch size and optimizer in use."""

SLOW = PATIENCE / 2e9
"""Seconds, half of what a block of the persistent kernel waits for others before it gives up. To ask the device after
every step whether one has would be a copy and a wait more."""


class Steppable(Protocol):
    """What a step is looked up by: of a dense network and of one of any architecture."""

    activation: str
    loss_name: str

    @property
    def parameters(self) -> list[Array]: ...

    @property
    def layer_gradients(self) -> list[Array]: ...

    @property
    def running_statistics(self) -> list[Array]: ...


class WithGraphs(Protocol):
    """Memory of steps, and the graphs that were captured in it."""

    graphs: Graphs


class WithLosses(Protocol):
    """Where a step leaves what each row adds to its loss."""

    @property
    def losses(self) -> Array: ...


class Meeting(Protocol):
    """Launches of a kernel whose blocks wait for each other, and give up where that takes too long (persistent.py)."""

    unsettled: bool

    def check(self) -> None: ...


class ReadyStep:
    """One step that can be replayed: for a number of rows, an optimizer, with masks or without.

    own: the device arrays in which the graph looks for x, y and the masks
    key: of the graph; move: what the optimizer's step is to the kernels; launches(network, stream): all of a step's
    plan: of a step whose blocks wait for each other; one that took more than SLOW is checked

    It holds on to memory and to its optimizer, but not to the network: the network holds on to it, and a circle would
    keep the device's memory until Python happens to look for circles.
    """

    def __init__(
        self,
        network: Steppable,
        buffers: WithGraphs,
        rows: WithLosses,
        own: Sequence[Array],
        move: Any,
        key: Any,
        launches: Callable[[Any, Any], None],
        plan: Meeting | None = None,
    ) -> None:
        self.buffers, self.rows, self.own, self.move, self.key, self.launches = buffers, rows, own, move, key, launches
        self.plan = plan
        self.stream: Any = buffers.graphs.stream
        self._depends = self._looked_up(network, move.optimizer)
        self._busy = False

    def still_fits(self, network: Steppable, buffers: WithGraphs, optimizer: Any) -> bool:
        """Whether everything that the graph's arguments were made from is the very same object as then."""
        now = self._looked_up(network, optimizer)
        return (
            buffers is self.buffers
            and len(now) == len(self._depends)
            and all(a is b or (isinstance(a, str | int) and a == b) for a, b in zip(now, self._depends, strict=True))
        )

    def take(self, network: Steppable, given: Sequence[Array]) -> float:
        """One step on x, y and the masks, all of which were checked; the loss before it."""
        if self._busy:  # an interruption came between sending and waiting: what was sent may still be read
            self._wait(begun=-inf)
        if self.plan is not None:
            self.plan.unsettled = True
        begun, self._busy = perf_counter(), True
        self.move.refresh(self.stream)
        # Asked for in every step: two steps may have one key and one graph, and its memory may have been given up.
        pinned = self.buffers.graphs.pinned(self.key, [*self.own, self.rows.losses])
        staged = []  # which of them come from the host
        for i, array in enumerate(given):
            if not on_device(array):
                pinned[i][...] = array
                staged.append(i)
            elif array is not self.own[i]:
                self.own[i].copy_to_device(array, stream=self.stream)
        self.buffers.graphs.launch((self.key, *staged), lambda stream: self._order(network, pinned, staged, stream))
        self.move.done()
        self._wait(begun)
        return float(np.add.reduce(pinned[-1], dtype=np.float64))  # np.sum takes twice as long

    def _order(self, network: Steppable, pinned: Sequence[Any], staged: Sequence[int], stream: Any) -> None:
        """What the graph repeats: arrays `staged` of `own` from pinned memory, the step, the losses to it."""
        for i in staged:
            self.own[i].copy_to_device(pinned[i], stream=stream)
        self.launches(network, stream)
        self.rows.losses.copy_to_host(pinned[-1], stream=stream)

    def _wait(self, begun: float) -> None:
        """For the step that began then, by perf_counter."""
        if self.stream:  # 0 is the stream of a backend without graphs, whose calls end before they return
            self.stream.synchronize()
        self._busy = False
        if self.plan is not None:
            if perf_counter() - begun > SLOW:
                self.plan.check()
            self.plan.unsettled = False

    @staticmethod
    def _looked_up(network: Steppable, optimizer: Any) -> list[Any]:
        state = getattr(optimizer, "_state", None)
        memory = [] if state is None else [array for arrays in state.buffers.values() for array in arrays]
        kind = getattr(optimizer, "kind", -1)
        return [
            *(network.activation, network.loss_name, optimizer, kind),
            *network.parameters,
            *network.layer_gradients,
            *network.running_statistics,
            *memory,
        ]


class ReadySteps:
    """The steps of one network that are ready."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Hashable, int], ReadyStep] = {}

    def step(
        self,
        network: Steppable,
        buffers: WithGraphs,
        optimizer: Any,
        kind: Hashable,
        make: Callable[[], ReadyStep],
    ) -> ReadyStep:
        """The ready step of this kind, made by `make` where there is none that still fits.

        kind: what tells a network's steps apart, besides the optimizer: rows, masks, the rung of its ladder
        """
        key = (kind, id(optimizer))  # a ready step holds on to its optimizer, so that its id stays its own
        ready = self._kept.get(key)
        if ready is None or not ready.still_fits(network, buffers, optimizer):
            # Steps in other memory, which a larger batch or other layers have replaced, would keep it from being freed.
            self._kept = {each: kept for each, kept in self._kept.items() if each != key and kept.buffers is buffers}
            if len(self._kept) >= MOST:
                self._kept.pop(next(iter(self._kept)))
            ready = self._kept[key] = make()
        return ready
