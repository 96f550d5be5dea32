"""When each operation of a training step ended, although the step is a single call into C.

The step reads the clock at its beginning and after every operation (`pool_note` in csrc/pool.c) while `groundup
profile` runs; otherwise `pool_note` is only a comparison. `operations` names the operations between two readings, in
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import library
from .layered import LayeredNetwork
from .layered_plan import Plan

IN_TILE = ("identity", "relu", "leaky_relu")
"""Activations that are applied while the numbers are still in registers; any other is a pass over memory of its own."""


@dataclass(frozen=True)
class Operation:
    """What a step does between two notes.

    direction: forward, loss, backward or update
    kind: one of layered_plan.KINDS, "loss" or "update"
    layers: the numbers of the architecture's layers that it belongs to, such as ("1", "2")
    activation: what it is fused with; "identity" for none
    in_pass: whether the activation costs no pass over memory of its own
    """

    direction: str
    kind: str
    layers: tuple[str, ...] = ()
    activation: str = "identity"
    in_pass: bool = True


def operations(network: Any, rows: int) -> list[Operation | None]:
    """What a training step on a batch of so many rows does, an entry for each note after the first; None where an
    operation of the plan has nothing to do in this direction."""
    if isinstance(network, LayeredNetwork):
        return _of_plan(network._planned(rows, training=True))
    last = len(network.layers) - 1
    layers = [(str(2 * i + 1), *([str(2 * i + 2)] if i < last else [])) for i in range(last + 1)]
    names = [network.activation if i < last else "identity" for i in range(last + 1)]
    in_tile = [name in IN_TILE for name in names]
    found = [Operation("forward", "connect", *each) for each in zip(layers, names, in_tile, strict=True)]
    # The slope of a layer's activation is worked out right before the layer's own way back.
    back = [Operation("backward", "connect", layers[i], names[i], names[i] == "identity") for i in range(last + 1)]
    update = [Operation("update", "update", each[:1]) for each in layers]
    return [*found, Operation("loss", "loss"), *reversed(back), *update]


def _of_plan(plan: Plan) -> list[Operation | None]:
    forward: list[Operation | None] = []
    backward: list[Operation | None] = []
    update: list[Operation | None] = []
    for made, c in zip(plan.chosen, plan.operations, strict=True):
        layers, name = tuple(made.layers), made.activation
        alone = made.kind in ("activate", "flatten", "drop", "fork")
        in_tile = name in IN_TILE and made.kind != "join"
        forward.append(None if made.kind == "fork" else Operation("forward", made.kind, layers, name, alone or in_tile))
        idle = not c.grad_output or (made.kind == "join" and not c.grad_z)
        own_slope = bool(c.grad_z) and not (made.kind == "normalise" and in_tile)
        backward.append(None if idle else Operation("backward", made.kind, layers, name, not own_slope))
        if c.grad_w:
            update.append(Operation("update", "update", layers[:1]))
    return [*forward, Operation("loss", "loss"), *reversed(backward), *update]


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
