"""The kernels of a network's step in their order.

`schedule` turns operations (operations.py) into steps, forward and backward; each step names the arrays that it reads
and writes. An array is alive from the first step that uses it to the last; operation_plan.py gives it a place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.shapes import check_several

from ..arrays import Array
from ..batch_norm import part_shape
from ..convolution_passes import parts_shape
from .operations import IDENTITY, NONE, SOFTMAX, Operation, Operations, Shape

OWN_SLOPE = ("max_pool", "normalise", "activate")
"""Operations whose way back goes through their activation, too."""

SLOPE_BELOW = ("convolve", "connect", "max_pool")
"""Operations whose way back can go through the activation of the operation below."""


class View(NamedTuple):
    """An array by its number, in the shape that a kernel takes it in."""

    number: int
    shape: Shape


@dataclass
class Step:
    """What is launched for an operation in one direction, and the arrays that it gets.

    below: the activation of the operation below that the way back includes
    """

    kind: str
    operation: Operation | None
    views: dict[str, View]
    below: int = IDENTITY
    arrays: dict[str, Array] = field(default_factory=dict)


@dataclass
class Schedule:
    """The steps of a batch of `rows`: forward, and back if training.

    sizes: of the arrays, in numbers; whole: those that hold int32
    given: arrays that are filled before the first step, by name; kept: those that are read after the last
    """

    rows: int
    forward: list[Step] = field(default_factory=list)
    backward: list[Step] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    given: dict[str, View] = field(default_factory=dict)
    kept: dict[str, View] = field(default_factory=dict)

    def array(self, shape: Shape, whole: bool = False) -> View:
        """A new array. whole: of int32"""
        self.sizes.append(math.prod(shape))
        if whole:
            self.whole.add(len(self.sizes) - 1)
        return View(len(self.sizes) - 1, shape)

    def lifetimes(self) -> list[tuple[int, int]]:
        """Of each array the first and the last step that has to do with it."""
        steps = [*self.forward, *self.backward]
        times: list[list[int]] = [[] for _ in self.sizes]
        for i, step in enumerate(steps):
            for view in step.views.values():
                times[view.number].append(i)
        # Filled before the first step, and read after the last: until then nobody else may have the memory.
        for view in self.given.values():
            times[view.number].append(-1)
        for view in self.kept.values():
            times[view.number].append(len(steps))
        return [(min(each, default=0), max(each, default=0)) for each in times]


def schedule(operations: Operations, shape: Shape, rows: int, classes: int, training: bool, labels: bool) -> Schedule:
    """The steps of a network for a batch of so many rows.

    shape: of one input; training: with the way back, and batch normalisation by the batch's own statistics
    labels: whether the loss takes labels, and not targets
    Raises ValueError where training would normalise one value a channel.
    """
    planned = Schedule(rows)
    x = planned.array((rows, *shape))
    planned.given["x"] = x
    values: dict[int, View] = {0: x}
    used: dict[int, dict[str, View]] = {}  # by the result of an operation, what the way back needs
    for operation in operations.found:
        step = _forward(planned, operation, values, training)
        used[operation.result] = step.views
        planned.forward.append(step)
    outputs = planned.kept["outputs"] = _as(values[operations.outputs], (rows, classes))
    if training:
        y = planned.given["y"] = planned.array((rows,), whole=True) if labels else planned.array((rows, classes))
        losses = planned.kept["losses"] = planned.array((rows,))
        grad = planned.array((rows, classes))
        views = {"outputs": outputs, "y": y, "losses": losses, "grad": grad}
        planned.backward.append(Step("loss", None, views))
        _Backward(planned, operations, values, used).walk(grad)
    return planned


def _as(view: View, shape: Shape) -> View:
    """The same array in another shape."""
    return View(view.number, shape)


def _of_planes(rows: int, shape: Shape) -> Shape:
    return (rows * shape[0], *shape[1:])


def _of_lines(rows: int, shape: Shape) -> Shape:
    return (rows, shape[0], math.prod(shape[1:]))


def _of_rows(rows: int, shape: Shape) -> Shape:
    return (rows, math.prod(shape))


def _of_numbers(rows: int, shape: Shape) -> Shape:
    return (rows * math.prod(shape),)


def _of_images(rows: int, shape: Shape) -> Shape:
    return (rows, *shape)


SEEN = {
    "convolve": _of_images,
    "max_pool": _of_planes,
    "average_pool": _of_planes,
    "normalise": _of_lines,
    "activate": _of_rows,
    "connect": _of_rows,
    "drop": _of_numbers,
    "join": _of_numbers,
}
"""By the kind of an operation, the shape in which its kernels see a value: (rows, shape of one sample) -> shape."""


def _forward(made: Schedule, each: Operation, values: dict[int, View], training: bool) -> Step:
    rows, seen = made.rows, SEEN[each.kind]
    views = {"x": _as(values[each.source], seen(rows, each.before))}
    views["output"] = values[each.result] = made.array(seen(rows, each.after))
    if each.kind == "max_pool":
        views["indices"] = made.array(views["output"].shape, whole=True)
    elif each.kind == "normalise":
        lines = views["x"].shape
        if training:
            check_several(_of_images(rows, each.before))
        views["statistics"] = made.array((3, lines[1]))
        views["parts"] = made.array(part_shape(lines, 3))
    elif each.kind == "drop":
        name = f"mask {each.mask}"
        views["mask"] = made.given[name] = made.array(views["x"].shape)
    if each.added != NONE:
        views["added"] = _as(values[each.added], views["x"].shape)
    return Step(each.kind, each, views)


class _Backward:
    """The way back through a schedule's operations."""

    def __init__(
        self, made: Schedule, operations: Operations, values: dict[int, View], used: dict[int, dict[str, View]]
    ) -> None:
        self.made, self.operations, self.values, self.used = made, operations, values, used
        self.needed = operations.needing_gradient()
        self.by_result = {each.result: each for each in operations.found}
        self.grads: dict[int, View] = {}
        self.behind: set[int] = set()  # values whose gradient is the one before their operation's activation

    def walk(self, grad: View) -> None:
        """Append all steps, given the gradient of the outputs."""
        if self.operations.outputs in self.needed:
            self.grads[self.operations.outputs] = grad
        for each in reversed(self.operations.found):
            # Taken out of `grads`, so that _exclusive finds only those who still wait for their gradient.
            if each.result in self.grads:
                self._step(each, self.grads.pop(each.result))

    def _step(self, operation: Operation, grad: View) -> None:
        rows, seen, forward = self.made.rows, SEEN[operation.kind], self.used[operation.result]
        grad = _as(grad, seen(rows, operation.after))
        output = forward["output"]
        if operation.activation != IDENTITY and operation.kind not in OWN_SLOPE and operation.result not in self.behind:
            below = grad if self._exclusive(grad) else self.made.array(grad.shape)
            flat = _of_numbers(rows, operation.after)
            views = {"grad": _as(grad, flat), "output": _as(output, flat), "grad_input": _as(below, flat)}
            self.made.backward.append(Step("slope_back", operation, views))
            grad = below
        # Both get the same array. While one waits for it in `grads`, _exclusive keeps the other from writing over it.
        if operation.kind == "join":
            self._give(operation.source, grad)
            self._give(operation.added, grad)
            return
        needs = operation.source in self.needed
        views = {"grad": grad} | {name: forward[name] for name in _READ.get(operation.kind, ()) if name in forward}
        if operation.activation != IDENTITY and operation.kind in OWN_SLOPE:
            views["output"] = output
        if operation.kind == "convolve":
            views["parts"] = self.made.array(parts_shape(operation.geometry, rows, operation.precision))
        elif operation.kind == "normalise":
            views["parts"] = self.made.array(part_shape(forward["x"].shape, 2))
        step = Step(f"{operation.kind}_back", operation, views)
        if operation.kind == "normalise" and operation.added in self.needed:
            if operation.activation != IDENTITY:
                views["grad_added"] = grad if self._exclusive(grad) else self.made.array(grad.shape)
            self._give(operation.added, views.get("grad_added", grad))
        if needs or operation.kind == "normalise":  # whose kernel writes it in any case
            views["grad_input"] = self._grad_input(operation, grad)
        if needs and self._may_go_below(operation):
            step.below = self.by_result[operation.source].activation
            views["below"] = forward["x"]
            self.behind.add(operation.source)
        self.made.backward.append(step)
        if needs:
            self._give(operation.source, views["grad_input"])

    def _grad_input(self, each: Operation, grad: View) -> View:
        """Where to write it: over the gradient that is read, if a kernel may and nobody else reads it."""
        in_place = each.kind in ("activate", "drop") or (each.kind == "normalise" and each.added == NONE)
        if in_place and self._exclusive(grad):
            return grad
        return self.made.array(SEEN[each.kind](self.made.rows, each.before))

    def _may_go_below(self, each: Operation) -> bool:
        # Not below a value with several readers: their shares are added first, and the slope belongs to the sum.
        below = self.by_result.get(each.source)
        return (
            each.kind in SLOPE_BELOW
            and below is not None
            and below.kind not in OWN_SLOPE
            and below.activation not in (IDENTITY, SOFTMAX)
            and below.result not in self.operations.shared
        )

    def _exclusive(self, view: View) -> bool:
        return all(other.number != view.number for other in self.grads.values())

    def _give(self, value: int, grad: View) -> None:
        """Another share of the gradient of this value; shares are added."""
        if value not in self.needed:
            return
        if value not in self.grads:
            self.grads[value] = grad
            return
        first = self.grads.pop(value)
        flat = (math.prod(grad.shape),)
        free = [view for view in (grad, first) if self._exclusive(view)]
        total = free[0] if free and first.number != grad.number else self.made.array(flat)
        views = {"x": _as(first, flat), "added": _as(grad, flat), "output": _as(total, flat)}
        self.made.backward.append(Step("add", None, views))
        self.grads[value] = total


_READ = {
    "convolve": ("x",),
    "max_pool": ("indices",),
    "normalise": ("x", "statistics"),
    "connect": ("x",),
    "drop": ("mask",),
}
"""By the kind of an operation, which of its arrays the way back reads, beside the gradient."""
