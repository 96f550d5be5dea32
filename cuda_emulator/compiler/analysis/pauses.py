"""Barriers across the grid: a block stops there, and goes on when every other block is there, too.

A grid has more blocks than the CPU has cores, and a block that waits must not keep a core. So the function of a block
returns at such a barrier, with the barrier's number, and is called again behind it: `_resume` is that number, and 0
means that statements are executed. Until then the function walks back to the barrier: it passes over what it did before
and enters every `if` and loop around the barrier without a test.

    if _resume == 0:                                 what comes before
        ...
    while 1 <= _resume <= 2 or (_resume == 0 and step < steps):
        if _resume == 0:
            ...
        if _resume == 0:                             the barrier with number 1
            _kept_step[0] = step
            return 1
        if _resume == 1:
            _resume = 0
        ...
    return -1                                        the block has ended

The variables of a block outlive the return in arrays of one element, as those of its threads and its shared memory do
in the block's own part of the workspace (runtime/grid_barriers.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from ...intrinsics import GRID_BARRIER
from ..trees import Collective, loaded_names, stored_names, walk
from ..unit import Unit
from .infer import carried_dtype
from .regions import CollectiveCall, OncePerBlock, Regions

RESUME = "_resume"
ENDED = -1
"""What the function of a block returns at its end."""


class Pauses:
    """The barriers across the grid of one kernel, numbered from 1 in the order of the source.

    kept: {variable of the block: its dtype}, for the variables that are restored behind a barrier
    again: statements of the block that are executed again instead, since their values are no numbers
    """

    def __init__(self, unit: Unit, regions: Regions, variable_types: Mapping[str, types.Type | None]) -> None:
        self.calls: list[CollectiveCall] = []
        # By id: a part is a dataclass, compared by its values, and has no hash.
        self._numbers: dict[int, int] = {}
        self._find(regions.tree)
        self.kept: dict[str, np.dtype[Any]] = {}
        self.again: list[ast.stmt] = []
        needed = Needed()
        needed.before(unit.body, set())
        for name in sorted(needed.at_barriers & stored_names(unit.body) - regions.uniformity.varying):
            if is_number(variable_types.get(name)):
                self.kept[name] = carried_dtype(unit, name, variable_types)
            else:
                self.again += self._once(unit, name, variable_types)

    def _find(self, parts: list[Any]) -> None:
        for part in parts:
            if isinstance(part, CollectiveCall):
                if part.collective.path == GRID_BARRIER:
                    self.calls.append(part)
                    self._numbers[id(part)] = len(self.calls)
            else:
                for inner in inner_parts(part):
                    self._find(inner)

    def _once(self, unit: Unit, name: str, variable_types: Mapping[str, types.Type | None]) -> list[ast.stmt]:
        """The only assignment of a variable that holds no number, if it gives the same value at any time."""
        stores = [part for part in walk(unit.body) if isinstance(part, ast.Assign) and name in stored_names(part)]
        counts = {each: sum(each in stored_names(part) for part in walk(unit.body) if isinstance(part, ast.stmt))
                  for each in loaded_names(stores)}  # fmt: skip
        if len(stores) != 1 or any(counts.values()):
            carried_dtype(unit, name, variable_types)  # raises the error that says what to do
        return list(stores)

    def number(self, part: CollectiveCall) -> int | None:
        """The number of a barrier across the grid; None for any other collective."""
        return self._numbers.get(id(part))

    def inside(self, parts: list[Any]) -> list[int]:
        """The numbers of the barriers in these parts, ascending."""
        found: list[int] = []
        for part in parts:
            if isinstance(part, CollectiveCall):
                found += [self._numbers[id(part)]] if id(part) in self._numbers else []
            else:
                found += [number for inner in inner_parts(part) for number in self.inside(inner)]
        return found

    def may_skip(self, part: Any) -> bool:
        """Whether a block passes over the part on its way back to a barrier."""
        # Its value lies in no array, so every call of the function makes it anew.
        if isinstance(part, OncePerBlock) and part.statement in self.again:
            return False
        return not self.inside([part])

    def entered(self, test: str | None, parts: list[Any]) -> str:
        """The condition to enter `parts`: that the test holds, or that the block goes on at a barrier in them.

        test: None for the else of an `if`
        """
        numbers = self.inside(parts)
        own = f"{RESUME} == 0" if test is None else f"({RESUME} == 0 and ({test}))"
        if not numbers:
            return own
        within = f"{RESUME} == {numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} <= {RESUME} <= {numbers[-1]}"
        return f"({within} or {own})"

    def kept_lines(self) -> list[str]:
        """The lines that save the block's variables."""
        return [f"_kept_{name}[0] = {name}" for name in self.kept]

    def restored_lines(self) -> list[str]:
        """The lines that restore them, at the start of the function."""
        return [f"{name} = _kept_{name}[0]" for name in self.kept]


class Needed:
    """Finds the variables that are read behind a barrier across the grid before they are written again.

    at_barriers: their names
    """

    def __init__(self) -> None:
        self.at_barriers: set[str] = set()

    def before(
        self, body: Sequence[ast.stmt], after: set[str], loop: tuple[set[str], set[str]] | None = None
    ) -> set[str]:
        """The names whose values are needed before some statements.

        after: those needed behind them; loop: those needed where a break and where a continue goes
        """
        for node in reversed(body):
            after = self.before_one(node, after, loop)
        return after

    def before_one(self, node: ast.stmt, after: set[str], loop: tuple[set[str], set[str]] | None) -> set[str]:
        """The variables that may be read from this statement on. after: those read after it"""
        if isinstance(node, ast.If):
            return self.before(node.body, after, loop) | self.before(node.orelse, after, loop) | loaded_names(node.test)
        if isinstance(node, ast.For | ast.While):
            head = node.test if isinstance(node, ast.While) else node.iter
            again = after | loaded_names(head)
            while True:  # another round may come behind this one
                body = self.before(node.body, again, (after, again))
                if body <= again:
                    return again
                again = again | body
        # What stands behind it is never reached from here, whatever is read there.
        if isinstance(node, ast.Return):
            return set()
        if isinstance(node, ast.Break | ast.Continue):
            assert loop is not None
            return loop[isinstance(node, ast.Continue)]
        if isinstance(node, Collective) and node.path == GRID_BARRIER:
            self.at_barriers |= after
        return (after - stored_names(node)) | loaded_names(node)


def is_number(kind: types.Type | None) -> bool:
    """Whether a variable of this type fits in an array of one element."""
    return isinstance(kind, types.Number | types.Boolean)


def inner_parts(part: Any) -> list[list[Any]]:
    """The lists of parts in a part of the tree: of a uniform `if`, its body and its else."""
    names = ("body", "orelse", "other")
    return [inner for name in names if isinstance(inner := getattr(part, name, None), list)]
