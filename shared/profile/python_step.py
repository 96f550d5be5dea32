"""Stages 1 and 2: the step is Python that calls one function for each operation, and a clock is put around each call.

Nothing of the step is written down here. The network takes its own step; for its duration the methods `forward` and
`backward` of its layers, and the functions of a room that it holds, are replaced by ones that read the clock, call the
original and read the clock again. A residual block's own time is what follows its layers: its addition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

from shared.bench.kinds.steps import Case, batch_of
from shared.contract import NetworkLike, Optimizer, Stage
from shared.profile.operations import BACKWARD, FORWARD, LOSS, UPDATE, plain
from shared.profile.step_profile import Noted

Key = tuple[str, str]
"""(layer, direction), as Operation.key."""

STANDSTILL = 1e-12
"""A learning rate at which thousands of steps on one batch leave the weights where they are; they cost the same."""

MARKS_FOR_COST = 20_000


class Clocked:
    """Calls functions and remembers when each began and ended, nanoseconds; `spans` are in the order of their ends."""

    def __init__(self) -> None:
        self.spans: list[tuple[Key, int, int]] = []

    def around(self, function: Callable[..., Any], keys: Iterator[Key]) -> Callable[..., Any]:
        """The function with a clock around it. keys: of one call after the other"""
        now, note = time.perf_counter_ns, self.spans.append

        def called(*arguments: Any, **options: Any) -> Any:
            begin = now()
            result = function(*arguments, **options)
            note((next(keys), begin, now()))
            return result

        return called


class ClockedOptimizer:
    """An optimizer whose step is clocked; a network asks no more of it than that."""

    def __init__(self, optimizer: Optimizer, clocked: Clocked) -> None:
        self.step = clocked.around(optimizer.step, repeat(("", UPDATE)))


class PythonStep:
    """A Listener of stage 1 or 2."""

    clock = "wall"

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage = stage
        self._network = stage.network.Network(case.network, dtype=case.dtype)
        x, y = batch_of(case)
        self._x = stage.arrays.asarray(x, case.dtype)
        self._y = y.tolist() if stage.number == 1 else y
        self._optimizer = stage.optimizers.SGD(STANDSTILL)
        itemsize = 4 if case.dtype == "float32" else 8
        self.operations = plain(self._network.architecture, case.batch, itemsize, copies=stage.number == 1)
        self._places = {each.key: i for i, each in enumerate(self.operations)}
        self.notes = 2 * len(self.operations)

    def step(self) -> object:
        """Take a step without listening to it."""
        return self._network.train_step(self._x, self._y, self._optimizer)

    def noted_step(self) -> Noted:
        """Take a step with a clock around every operation."""
        clocked = Clocked()
        optimizer = ClockedOptimizer(self._optimizer, clocked)
        with _replaced(self._network, self._stage, clocked):
            begin = time.perf_counter_ns()
            self._network.train_step(self._x, self._y, optimizer)
            end = time.perf_counter_ns()
        return Noted((end - begin) / 1e9, self._in_order(clocked.spans, begin))

    def cost_of_a_note(self) -> float:
        """Seconds of a reading of the clock: half of what the clock around a call costs."""
        clocked = Clocked()
        inner, outer = _nothing, clocked.around(_nothing, repeat(("", "")))
        took = {}
        for call in (inner, outer):
            begin = time.perf_counter_ns()
            for _ in range(MARKS_FOR_COST):
                call()
            took[call] = time.perf_counter_ns() - begin
        return max(took[outer] - took[inner], 0) / MARKS_FOR_COST / 2 / 1e9

    def _in_order(self, spans: Sequence[tuple[Key, int, int]], start: int) -> list[tuple[float, float]]:
        """(began, seconds) of each operation. One with others inside, a residual block, is what it does after them: its
        addition; what it does before and between them belongs to no operation."""
        found: list[tuple[float, float]] = [(0.0, 0.0)] * len(self.operations)
        last_end = 0
        for key, begin, end in spans:
            own = max(begin, last_end)  # spans come in the order of their ends
            found[self._places[key]] = ((own - start) / 1e9, (end - own) / 1e9)
            last_end = end
        return found


@contextmanager
def _replaced(network: NetworkLike, stage: Stage, clocked: Clocked) -> Iterator[None]:
    """Within this block the network's operations are clocked."""
    before: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, keys: Iterator[Key]) -> None:
        held = vars(owner)
        before.append((owner, name, held.get(name)))
        held[name] = clocked.around(getattr(owner, name), keys)

    try:
        for name, keys in _functions_of(network, stage):
            put(network, name, keys)
        for number, layer in _numbered(network.layers, ""):
            for direction in (FORWARD, BACKWARD):
                put(layer, direction, repeat((number, direction)))
        yield
    finally:
        for owner, name, held in reversed(before):
            if held is None:  # a method, which its class has
                del vars(owner)[name]
            else:
                vars(owner)[name] = held


def _functions_of(network: NetworkLike, stage: Stage) -> list[tuple[str, Iterator[Key]]]:
    """The network's attributes that are functions of a room, each with the keys of its calls."""
    losses, found = stage.losses, []
    keys: dict[Any, Iterator[Key]] = {
        getattr(losses, LOSS): repeat(("", FORWARD)),
        getattr(losses, f"{LOSS}_backward"): repeat(("", BACKWARD)),
    }
    for name, value in list(vars(network).items()):
        if callable(value) and value in keys:
            found.append((name, keys[value]))
    return found


def _numbered(layers: Sequence[Any], block: str) -> Iterator[tuple[str, Any]]:
    """The layers with their numbers in the architecture, those of residual blocks, too."""
    for i, layer in enumerate(layers, start=1):
        yield f"{block}{i}", layer
        yield from _numbered(getattr(layer, "layers", ()), f"{block}{i}.")


def _nothing() -> None:
    """What the clock is put around to find out what the clock costs."""
