"""When each operation of a training step ended, although the step is a single call into C.

The step reads the clock at its beginning and after every operation (`pool_note` in csrc/pool.c) while `groundup
profile` runs; otherwise `pool_note` is only a comparison. `operations` names the operations between two readings, in
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from . import library
from .network import Network

IN_TILE = ("identity", "relu", "leaky_relu")
"""Activations that are applied while the numbers are still in registers; any other is a pass over memory of its own."""


@dataclass(frozen=True)
class NotedOperation:
    """What a step does between two notes.

    direction: forward, loss, backward or update
    kind: one of operations.KINDS, "loss" or "update"
    layers: the numbers of the architecture's layers that it belongs to, such as ("1", "2")
    activation: what it is fused with; "identity" for none
    in_pass: whether the activation costs no pass over memory of its own
    """

    direction: str
    kind: str
    layers: tuple[str, ...] = ()
    activation: str = "identity"
    in_pass: bool = True


def operations(network: Network, rows: int) -> list[NotedOperation | None]:
    """What a training step on a batch of so many rows does, an entry for each note after the first; None where an
    operation of the plan has nothing to do in this direction."""
    plan = network.plan_for(rows, training=True)
    forward: list[NotedOperation | None] = []
    backward: list[NotedOperation | None] = []
    update: list[NotedOperation | None] = []
    for operation, c in zip(plan.operations, plan.c_operations, strict=True):
        kind, layers, activation = operation.kind, tuple(operation.layers), operation.activation
        in_tile = activation in IN_TILE and kind != "join"
        in_pass = in_tile or kind in ("activate", "flatten", "drop")
        forward.append(None if kind == "fork" else NotedOperation("forward", kind, layers, activation, in_pass))
        idle = not c.grad_output or (kind == "join" and not c.grad_z)
        own_pass = bool(c.grad_z) and not (kind == "normalise" and in_tile)
        backward.append(None if idle else NotedOperation("backward", kind, layers, activation, not own_pass))
        if c.grad_w:
            update.append(NotedOperation("update", "update", layers[:1]))
    return [*forward, NotedOperation("loss", "loss"), *reversed(backward), *update]


@contextmanager
def listening(room: int) -> Iterator[np.ndarray]:
    """Within this block the steps of this process note the clock: nanoseconds since 1970, int64 (room,), 0 where
    nothing was noted. Only one step may run at a time."""
    notes = np.zeros(room, np.int64)
    listen = library.plain_function("pool_listen")
    listen(library.pool(), notes, room)
    try:
        yield notes
    finally:
        listen(library.pool(), None, 0)


def cost_of_a_note(count: int = 10_000) -> float:
    """Seconds that a note takes while somebody listens."""
    with listening(count) as notes:
        library.plain_function("pool_notes")(library.pool(), count)
    return float(notes[-1] - notes[0]) / (count - 1) / 1e9
