"""The work of what stage 4 launches: which layers an operation or a kernel belongs to, and what it computes there.

forward_partial        a dense layer's product, in parts along the sum
combine                their sum, bias and activation, for all hidden layers but the last
head                   the same for the last hidden layer; the last layer, the loss, its gradient and the gradient
                       at the last hidden layer
backward_fused         the gradient of a hidden layer's input, with the slope of the activation below
combine_back           where that is cut into parts: their sum and the slope
update                 dW, db and the optimizer's step of up to two layers
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.bench.kinds.operation_table import Work
from shared.contract import ACTIVATIONS, NetworkLike
from shared.layers import (
    Activate,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    MaxPool,
    Placed,
    Residual,
    parameters_of,
)
from shared.profile import work
from shared.profile.operations import (
    BACKWARD,
    BOTH,
    FORWARD,
    LOSS,
    OPTIMIZER,
    UPDATE,
    Operation,
    combined,
    of_loss,
    of_update,
)

LAYERS: dict[str, type[Any]] = {
    "convolve": Conv,
    "connect": Dense,
    "max_pool": MaxPool,
    "average_pool": AveragePool,
    "normalise": BatchNorm,
    "drop": Dropout,
    "join": Residual,
}
BACK = "_back"
COMBINE_BACK = "combine_back"
IDENTITY = 0
"""The number of the activation that is none, in stage 4."""


@dataclass(frozen=True)
class Launched:
    """One launch or copy of a step.

    kind: 'launch', 'copy', 'operation' or 'update'; step: of an operation, a Step of stage 4's
        plans/operation_schedule.py
    shapes: of the arrays; bytes: that a copy moves
    """

    kind: str
    name: str
    step: Any = None
    shapes: tuple[tuple[int, ...], ...] = ()
    bytes: int = 0


class Kernels:
    """The operations of a network's launches, for a batch."""

    def __init__(self, network: NetworkLike, batch: int, itemsize: int) -> None:
        self._network, self._batch, self._itemsize = network, batch, itemsize
        self._architecture = network.architecture
        self._placed: list[Placed] = self._architecture.placed()
        self._dense = [each for each in self._placed if isinstance(each.layer, Dense)]

    def operations(self, entries: Sequence[Launched]) -> list[Operation]:
        """The operations, one for each entry."""
        steps = [each.step.operation for each in entries if each.kind == "operation" and BACK not in each.name]
        members = _members(self._placed, [each for each in steps if each is not None])
        whole = [each for each in entries if each.kind == "launch" and COMBINE_BACK not in each.name]
        launches = self._of_dense(len(whole))
        found = []
        for each in entries:
            if each.kind == "copy":
                shape = each.shapes[0]
                found.append(Operation(each.name, "", FORWARD, shape, shape, 0, each.bytes))
            elif each.kind == "update":
                found.append(of_update("", self._architecture.parameter_count, self._itemsize))
            elif each.kind == "operation":
                found.append(self._of_step(each, members))
            else:
                own = next(launches, None) if each in whole else None
                kernel = Operation(each.name, "", FORWARD, each.shapes[0] if each.shapes else (), (), 0, 0)
                found.append(kernel if own is None else replace(own, name=f"{each.name}: {own.name}"))
        return found

    def _of_step(self, launched: Launched, members: dict[int, list[Placed]]) -> Operation:
        batch, itemsize, step = self._batch, self._itemsize, launched.step
        classes = self._architecture.output_shape[0]
        if launched.name == "loss":
            return of_loss(BOTH, batch, classes, work.loss(LOSS, batch, classes, itemsize)[2])
        layers = members.get(id(step.operation), [])
        if not layers:
            grad = tuple(step.views["x"].shape) if "x" in step.views else ()
            numbers = math.prod(grad)
            return Operation("add gradients", "", BACKWARD, grad, grad, numbers, 3 * itemsize * numbers)
        acts = [other for other in layers if isinstance(other.layer, Activate)]
        main = next((other for other in layers if not isinstance(other.layer, Activate | Residual)), layers[0])
        if launched.name == "slope_back":
            return combined(acts, acts[0], BACKWARD, batch, self._activation(acts[0])[1], True)
        if not launched.name.endswith(BACK):
            done = work.forward(main, batch, itemsize, index_bytes=itemsize)
            for other in layers:
                if other is not main:
                    done = work.fused(done, work.forward(other, batch, itemsize), in_pass=True)
                if isinstance(other.layer, Residual) and main is not other:  # what is added has to be read
                    done = Work(done.flops, done.bytes + itemsize * batch * math.prod(other.input_shape))
            return combined(layers, main, FORWARD, batch, done, True)
        needed = "grad_input" in step.views
        done = work.backward(main, batch, itemsize, needs_grad_input=needed, index_bytes=itemsize)
        own = acts if isinstance(main.layer, MaxPool | BatchNorm) else []
        for other in own:
            done = work.fused(done, self._activation(other)[1], in_pass=True)
        merged = combined([*own, main] if own and own[0].number < main.number else [main, *own], main, BACKWARD, batch,
                         done, needed)  # fmt: skip
        if step.below == IDENTITY:
            return merged
        slope = work.activation(ACTIVATIONS[step.below], batch * math.prod(main.input_shape), itemsize)[1]
        return replace(merged, name=f"{merged.name} + slope below", flops=merged.flops + slope.flops)

    def _activation(self, each: Placed) -> tuple[Work, Work]:
        assert isinstance(each.layer, Activate)
        return work.activation(each.layer.name, self._batch * math.prod(each.input_shape), self._itemsize)

    def _of_dense(self, launches: int) -> Iterator[Operation]:
        """The launches of an mlp by `few_kernels`; none where there are others."""
        dense = self._dense
        pairs = -(-len(dense) // 2)
        expected = (len(dense) - 1) + max(0, len(dense) - 2) * 2 + 1 + pairs
        if not self._network.activation or launches != expected:
            return
        last = len(dense) - 1
        for i in range(last):
            yield self._product(dense[i])
            if i < last - 1:
                yield self._ending(dense[i], f"bias + {self._network.activation}")
        yield self._head(dense[last - 1], dense[last])
        for i in reversed(range(1, last)):
            yield self._input_gradient(dense[i])
        for i in range(-(len(dense) % 2), len(dense), 2):
            yield self._update(dense[max(i, 0) : i + 2])

    def _sizes(self, each: Placed) -> tuple[int, int, int]:
        return self._batch, each.input_shape[0], each.output_shape[0]

    def _entry(self, name: str, layers: Sequence[Placed], direction: str, flops: int, numbers: int) -> Operation:
        shapes = (self._batch, *layers[0].input_shape), (self._batch, *layers[-1].output_shape)
        number = ", ".join(each.number for each in layers)
        kind = "update" if direction == UPDATE else "dense"
        return Operation(name, number, direction, *shapes, flops, numbers * self._itemsize, kind=kind)

    def _product(self, each: Placed) -> Operation:
        n, i, o = self._sizes(each)
        return self._entry("dense", [each], FORWARD, 2 * n * i * o, n * i + i * o + n * o)

    def _ending(self, each: Placed, name: str) -> Operation:
        n, _, o = self._sizes(each)
        slope = work.activation(self._network.activation, n * o, self._itemsize)[0]
        return self._entry(name, [each], FORWARD, n * o + slope.flops, 2 * n * o + o)

    def _head(self, below: Placed, top: Placed) -> Operation:
        n, i, o = self._sizes(top)
        there, back = work.activation(self._network.activation, n * i, self._itemsize)
        loss = work.loss(LOSS, n, o, self._itemsize)[2]
        flops = n * i + there.flops + 2 * n * i * o + n * o + loss.flops + 2 * n * i * o + back.flops
        numbers = 3 * n * i + i + i * o + o + n * o  # in and out of the hidden layer, its slope; W, b; the slope on top
        name = f"bias + {self._network.activation}, dense, loss, gradient, dx"
        return self._entry(name, [below, top], BOTH, flops, numbers)

    def _input_gradient(self, each: Placed) -> Operation:
        n, i, o = self._sizes(each)
        back = work.activation(self._network.activation, n * i, self._itemsize)[1]
        return self._entry(
            "dense: dx + slope below", [each], BACKWARD, 2 * n * i * o + back.flops, n * o + i * o + 2 * n * i
        )

    def _update(self, layers: Sequence[Placed]) -> Operation:
        flops = numbers = 0
        for each in layers:
            n, i, o = self._sizes(each)
            parameters = sum(math.prod(p.shape) for p in parameters_of(each))
            flops += 2 * n * i * o + n * o + work.update(OPTIMIZER, parameters, 1).flops
            numbers += n * i + n * o + 2 * parameters  # x and the slope; the parameters before and after
        return self._entry(f"dW, db, {OPTIMIZER}", layers, UPDATE, flops, numbers)


def _members(placed: Sequence[Placed], operations: Sequence[Any]) -> dict[int, list[Placed]]:
    """The layers of each operation by its id. An operation does one layer and the activation or sum that joined it."""
    members: dict[int, list[Placed]] = {}
    waiting = list(operations)
    latest: Any = None

    def take(member: Placed) -> Any:
        own = waiting.pop(0)
        members[id(own)] = [*members.get(id(own), []), member]
        return own

    for member in placed:
        following = waiting[0] if waiting else None
        if isinstance(member.layer, Activate):
            if following is not None and following.kind == "activate":
                latest = take(member)
            elif latest is not None and latest.activation != IDENTITY:
                members[id(latest)].append(member)
            elif following is not None:  # it moved behind the maximum that comes next
                members[id(following)] = [member]
        elif following is not None and LAYERS.get(following.kind) is type(member.layer):
            latest = take(member)
        elif isinstance(member.layer, Residual) and latest is not None:
            members[id(latest)].append(member)
    return members
