"""The operations of a training step in their order: which layer, which direction, which shapes, and how much work.

plain        every operation of a network alone, as stages 1 and 2 take the step
combined     one operation that does several layers at once, as stage 3 fuses them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

from shared.architectures import Architecture
from shared.bench.kinds.operation_table import Work
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Placed, Residual
from shared.profile import work
from shared.windows import pair

FORWARD, BACKWARD, BOTH, UPDATE = "forward", "backward", "both", "update"
LOSS = "softmax_cross_entropy"
LOSS_NAME = "softmax cross-entropy"
OPTIMIZER = "SGD"


@dataclass(frozen=True)
class Operation:
    """One operation of a step.

    name: 'conv 5x5 + bias + relu'; on the way back with the gradients that it makes: 'conv 5x5: dW, db, dx'
    layer: the numbers of the architecture's layers, '1' or '1, 2'; "" for what belongs to none
    direction: FORWARD, BACKWARD, UPDATE, or BOTH for a loss that is worked out with its gradient
    input_shape, output_shape: of the forward pass, the batch first; of an update (parameters,)
    calls: how often it is called in a step; flops, bytes: of all its calls (work.py)
    kind: what a chart colours it by: conv, dense, pool, norm, activation, loss, update or other
    """

    name: str
    layer: str
    direction: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    flops: int
    bytes: int
    calls: int = 1
    kind: str = "other"

    @property
    def key(self) -> tuple[str, str]:
        """(layer, direction): no two operations of a step have the same."""
        return self.layer, self.direction


KINDS: dict[type[Any], str] = {
    Conv: "conv",
    Dense: "dense",
    MaxPool: "pool",
    AveragePool: "pool",
    BatchNorm: "norm",
    Activate: "activation",
}


def plain(architecture: Architecture, batch: int, itemsize: int, *, copies: bool) -> list[Operation]:
    """The operations of a step that does each of them alone, in the order in which they end.

    copies: whether a Flatten moves its numbers
    """
    placed = architecture.placed()
    first = placed[0].number if isinstance(placed[0].layer, Conv | Dense) else None
    found = []
    for each in placed:
        found.append(one(each, FORWARD, batch, work.forward(each, batch, itemsize, moves=copies)))
    classes = architecture.output_shape[0]
    alone, gradient, _ = work.loss(LOSS, batch, classes, itemsize)
    found.append(of_loss(FORWARD, batch, classes, alone))
    found.append(of_loss(BACKWARD, batch, classes, gradient))
    for each in _back(placed):
        needed = each.number != first
        done = work.backward(each, batch, itemsize, needs_grad_input=needed, moves=copies)
        found.append(one(each, BACKWARD, batch, done, needs_grad_input=needed))
    return [*found, of_update("", architecture.parameter_count, itemsize)]


def combined(
    members: Sequence[Placed], main: Placed, direction: str, batch: int, done: Work, needed: bool
) -> Operation:
    """The operation that does these layers at once. main: that which gives it its name; needed: as needs_grad_input"""
    found = one(main, direction, batch, done, needs_grad_input=needed)
    others = [title(each) for each in members if each is not main]
    if direction == BACKWARD:
        name = " + ".join([*others[::-1], found.name])
    else:
        name = " + ".join([found.name, *others])
    shapes = (batch, *members[0].input_shape), (batch, *members[-1].output_shape)
    layer = ", ".join(each.number for each in members)
    return replace(found, name=name, layer=layer, input_shape=shapes[0], output_shape=shapes[1])


def one(placed: Placed, direction: str, batch: int, done: Work, needs_grad_input: bool = True) -> Operation:
    """The operation of one layer."""
    name = title(placed)
    if isinstance(placed.layer, Conv | Dense):
        gradients = ": dW, db, dx" if needs_grad_input else ": dW, db"
        name += " + bias" if direction == FORWARD else gradients
    shapes = (batch, *placed.input_shape), (batch, *placed.output_shape)
    kind = KINDS.get(type(placed.layer), "other")
    return Operation(name, placed.number, direction, *shapes, *done, kind=kind)


def of_loss(direction: str, batch: int, classes: int, done: Work) -> Operation:
    """The operation of the loss, of its gradient, or of both."""
    name = {FORWARD: LOSS_NAME, BACKWARD: f"{LOSS_NAME}: gradient", BOTH: f"{LOSS_NAME} + gradient"}[direction]
    return Operation(name, "", direction, (batch, classes), (), *done, kind="loss")


def of_update(layer: str, parameters: int, itemsize: int, calls: int = 1) -> Operation:
    """The optimizer's step on the parameters of a layer, or of all of them."""
    done = work.update(OPTIMIZER, parameters, itemsize)
    return Operation(OPTIMIZER, layer, UPDATE, (parameters,), (parameters,), *done, calls=calls, kind="update")


def title(placed: Placed) -> str:
    """A layer in few words: 'conv 5x5', 'max pool 2x2', 'relu', 'add'."""
    layer = placed.layer
    if isinstance(layer, Conv):
        return f"conv {_size(layer.size)}"
    if isinstance(layer, MaxPool | AveragePool):
        return f"{'max' if isinstance(layer, MaxPool) else 'average'} pool {_size(layer.size)}"
    if isinstance(layer, Activate):
        return layer.name
    names: dict[type[Any], str] = {BatchNorm: "batch norm", Flatten: "flatten", Dense: "dense", Dropout: "dropout"}
    return names.get(type(layer), "add")


def _size(size: object) -> str:
    return "x".join(map(str, pair("size", size, 1)))


def _back(placed: Sequence[Placed]) -> Iterator[Placed]:
    """The layers in the order in which they end on the way back: a residual block's addition after its own layers."""
    rest = list(reversed(placed))
    while rest:
        each = rest.pop(0)
        if isinstance(each.layer, Residual):
            block = f"{each.number}."
            inside = list(takewhile(partial(_is_in, block), rest))
            del rest[: len(inside)]
            yield from _back(inside[::-1])
        yield each


def _is_in(block: str, each: Placed) -> bool:
    return each.number.startswith(block)
