"""Which arrays the order of a kernel's atomics may change without a race.

It may change what an atomic returns, as a place from a counter. It may change an array on which the last or the first
thread decides (exch, compare_and_swap), and a sum of floats, which rounds differently. From there it goes on to
whatever is computed from such a value, stored at such an index, or done under such a condition.

The names are followed through the generated source of the kernel, in any order of its statements. So a name may be
said to be left to chance that is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["left_to_chance"]

DECIDES = ("exch", "cas")
ROUNDS = ("add", "sub")
PLUMBING = re.compile(r"_(?!all_|mask)")
"""The names of what generated code passes on, such as the status: nothing of a result goes through them."""


def left_to_chance(generated: str, dtype: np.dtype[Any]) -> set[str]:
    """The names of the kernel's source whose values the order of its atomics may change.

    generated: the source of the compiled kernel; dtype: of the results that differ
    """
    found = _Followed(ast.parse(generated), dtype.kind in "fc")
    while found.grows():
        pass
    return found.names


class _Followed:
    """names: those found so far. A function whose result is left to chance is among them."""

    def __init__(self, tree: ast.Module, rounds: bool) -> None:
        self.rounds, self.names = rounds, set[str]()
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.views = [
            (node.targets[0].id, _name(node.value))
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _name(node.value)
        ]
        self.bodies = [(node.name, node.body) for node in self.functions.values()] or [("", tree.body)]

    def grows(self) -> bool:
        """Follow every statement once more. Returns whether there are more names than before."""
        before = len(self.names)
        for name, body in self.bodies:
            self.follow(body, name, self.leaves_early(body))
        for view, array in self.views:  # what is written through a view is in the array, too
            if view in self.names:
                self.names.add(array)
        return len(self.names) > before

    def leaves_early(self, body: list[ast.stmt]) -> bool:
        """Whether a part of the threads leaves a loop or the function by chance, so that all the rest is left to it."""
        return any(
            isinstance(inner, ast.Return | ast.Break | ast.Continue)
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.If | ast.While) and self.uses(node.test)
            for inner in ast.walk(node)
        )

    def follow(self, body: list[ast.stmt], function: str, chance: bool) -> None:
        """chance: whether it is left to chance that these statements are done at all."""
        for node in body:
            for call in _calls(node):
                self.passes(call, chance)
                self.decides(call, chance)
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if chance or self.uses(node.value) or self.uses(target):
                        self.names |= _stored(target)
            elif isinstance(node, ast.If | ast.While):
                inside = chance or self.uses(node.test)
                self.follow([*node.body, *node.orelse], function, inside)
            elif isinstance(node, ast.For):
                if chance or self.uses(node.iter):
                    self.names |= _stored(node.target)
                self.follow([*node.body, *node.orelse], function, chance or self.uses(node.iter))
            elif isinstance(node, ast.Return) and (chance or self.uses(node.value)):
                self.names.add(function)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self.writes(node.value, chance)

    def uses(self, node: ast.AST | None) -> bool:
        """Whether an expression takes a value that is left to chance: an atomic's result, or one of the names."""
        return node is not None and any(
            (isinstance(each, ast.Name) and each.id in self.names)
            or (isinstance(each, ast.Call) and _name(each.func).startswith("_atomic_"))
            for each in ast.walk(node)
        )

    def passes(self, call: ast.Call, chance: bool) -> None:
        """What goes into a device function of this kernel, and comes out of it through its arrays."""
        function = self.functions.get(_name(call.func))
        if function is None:
            return
        for parameter, given in zip(function.args.args, call.args, strict=False):
            if PLUMBING.match(parameter.arg):
                continue
            if chance or self.uses(given):
                self.names.add(parameter.arg)
            if parameter.arg in self.names:
                self.names |= _arrays(given)

    def decides(self, call: ast.Call, chance: bool) -> None:
        """An atomic, for the array that it changes."""
        name, given = _name(call.func), call.args
        if name.startswith("_atomic_"):
            kind = name.removeprefix("_atomic_")
            by_itself = kind in DECIDES or (self.rounds and kind in ROUNDS)
            if chance or by_itself or any(map(self.uses, given)):
                self.names |= _arrays(given[0])

    def writes(self, call: ast.Call, chance: bool) -> None:
        """A call of a helper whose result is not used, such as a shuffle: it writes into an array."""
        name, given = _name(call.func), call.args
        if not name.startswith("_atomic_") and name not in self.functions and (chance or any(map(self.uses, given))):
            for each in given:
                self.names |= _arrays(each)


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, those of the statements inside it left out."""
    for field, value in ast.iter_fields(node):
        if field not in ("body", "orelse"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from (each for each in ast.walk(part) if isinstance(each, ast.Call))


def _name(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
        if isinstance(node, ast.Call):  # x.view(…)[0], x.reshape(…).T
            node = node.func
    return node.id if isinstance(node, ast.Name) else ""


def _arrays(node: ast.AST) -> set[str]:
    """The name of the array that an argument is, or is a part of."""
    name = _name(node)
    return {name} if name and not PLUMBING.match(name) else set()


def _stored(target: ast.expr) -> set[str]:
    """The names that an assignment changes."""
    if isinstance(target, ast.Tuple | ast.List):
        return {name for each in target.elts for name in _stored(each)}
    return {_name(target)} - {""}
