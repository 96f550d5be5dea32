"""A schedule in memory that is planned once.

`placed` gives every array of a schedule (operation_schedule.py) a place in one piece of memory, so that two arrays that
are alive at the same time do not overlap. So a layer's output is overwritten as soon as no later step reads it: most
arrays of an evaluation, and the gradients of the outputs in a training step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, address, empty
from ..convolution_passes import counts_in_32_bits
from ..launch import divided
from ..packed_parameters import ALIGNED
from . import cuda_graphs
from .operation_launches import Order, launch_steps
from .operation_schedule import Schedule, View
from .optimizer_update import Update


def placed(sizes: Sequence[int], lifetimes: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Where each array begins, and how long the memory is: the largest first, each at the first place that is free
    while it is alive."""
    places = [0] * len(sizes)
    done: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        begin, end = lifetimes[i]
        taken = sorted(
            (places[j], places[j] + sizes[j]) for j in done if lifetimes[j][0] <= end and begin <= lifetimes[j][1]
        )
        place = 0
        for first, last in taken:
            if place + sizes[i] <= first:
                break
            place = max(place, divided(last, ALIGNED) * ALIGNED)
        places[i] = place
        done.append(i)
    return places, max((place + size for place, size in zip(places, sizes, strict=True)), default=0)


class OperationPlan:
    """A schedule with its memory: every view is a device array, made once.

    serial: a number that no other plan of the network has; graphs: where its captured steps are kept
    memory: the pieces in which its arrays lie, one of the dtype and one of int32; lengths: how long they must be
    own: the arrays where the kernels look for x, y and the masks; losses: what each row adds to the loss of a step
    may_be_captured: whether all that it launches goes to the stream that it is given: a convolution of very many
        numbers takes a rung of the ladder that knows no streams
    """

    updates_in_kernels = True
    blocks_wait = None

    def __init__(self, made: Schedule, serial: int, graphs: cuda_graphs.Graphs) -> None:
        self.made, self.serial, self.graphs = made, serial, graphs
        lifetimes = made.lifetimes()
        numbers = [i for i in range(len(made.sizes)) if i not in made.whole]
        self._places: dict[int, int] = {}
        self.lengths = []
        for chosen in (numbers, sorted(made.whole)):
            places, length = placed([made.sizes[i] for i in chosen], [lifetimes[i] for i in chosen])
            self._places |= dict(zip(chosen, places, strict=True))
            self.lengths.append(length)
        geometries = [step.operation.geometry for step in made.forward if step.operation is not None]
        self.may_be_captured = all(g is None or counts_in_32_bits(g, made.rows) for g in geometries)

    def lay_out(self, memory: list[Array]) -> None:
        """Make the arrays, in this memory."""
        self.memory = memory
        seen: dict[View, Array] = {}

        def array(view: View) -> Array:
            if view not in seen:
                place, size = self._places[view.number], math.prod(view.shape)
                piece = memory[view.number in self.made.whole][place : place + size]
                seen[view] = piece.reshape(*view.shape)
            return seen[view]

        for step in (*self.made.forward, *self.made.backward):
            step.arrays = {name: array(view) for name, view in step.views.items()}
        given = {name: array(view) for name, view in self.made.given.items()}
        kept = {name: array(view) for name, view in self.made.kept.items()}
        self.own = [given.pop("x"), given.pop("y", None), *given.values()]
        self.last_outputs: Array = kept["outputs"]
        self.losses: Array = kept.get("losses")

    def place(self, arrays: Sequence[Array]) -> list[Array]:
        """Copy x, y and the masks to `own`; y may be None where only the outputs are wanted."""
        x, y, *masks = zip(arrays, self.own, strict=True)
        for array, own in (x, *masks, y):
            if array is not None:
                own.copy_to_device(array.reshape(own.shape))
        return self.own

    def outputs(self, network: Any, x: Array, masks: Sequence[Array], training: bool, tracking: bool) -> Array:
        """The last layer's outputs for x and the masks. training, tracking: as Order has them"""
        self.place([x, None, *masks])

        def launches(stream: Any) -> None:
            launch_steps(self.made.forward, Order(training, tracking, network.loss_name, stream))

        if cuda_graphs.available() and self.may_be_captured:
            # The default stream, on which x was sent and the outputs will be read, waits for the graphs' stream.
            self.graphs.launch(("forward", self.serial, tracking, *network.addresses()), launches)
        else:
            launches(0)
        return self.last_outputs

    def key(self, network: Any, update: Update) -> tuple[Any, ...]:
        """Changes when a captured step no longer fits: another optimizer, or arrays put in the place of others."""
        arrays = [update.numbers, *(array for row in update.vectors for array in row)] if update.ours else []
        tracking = update.optimizer is not None
        return ("operations", self.serial, tracking, update.kind, *map(address, arrays), *network.addresses())

    def launch(self, network: Any, arrays: Sequence[Array], update: Update, stream: Any) -> None:
        """All kernels of a step on what lies in `own`; without an optimizer the running statistics stay."""
        order = Order(True, update.optimizer is not None, network.loss_name, stream)
        launch_steps(self.made.forward, order)
        launch_steps(self.made.backward, order)
        update.launch(stream)


class OperationMemory:
    """The plans of a network, by rows and so on, in one piece of memory that grows with the largest."""

    MOST = 8
    """Plans that are kept ready."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self._plans: dict[Any, OperationPlan] = {}
        self._lengths = [0, 0]
        self._made = 0
        self._graphs = cuda_graphs.Graphs()

    def plan(self, key: Any, make: Callable[[], Schedule]) -> OperationPlan:
        """The plan of this key; make() gives its schedule where it is new."""
        plan = self._plans.get(key)
        if plan is None:
            self._made += 1
            plan = OperationPlan(make(), self._made, self._graphs)
            if any(wanted > length for wanted, length in zip(plan.lengths, self._lengths, strict=True)):
                self._plans.clear()  # they lie in the memory that is given up
                self._lengths = [max(pair) for pair in zip(plan.lengths, self._lengths, strict=True)]
                self._memory = [
                    empty((max(1, length),), dtype)
                    for length, dtype in zip(self._lengths, (self.dtype, np.int32), strict=True)
                ]
            if len(self._plans) >= self.MOST:
                self._plans.pop(next(iter(self._plans)))
            plan.lay_out(self._memory)
            self._plans[key] = plan
        return plan
