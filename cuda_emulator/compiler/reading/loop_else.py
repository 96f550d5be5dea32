"""Loops with `else`, as loops without.

for i in range(n):          finished = True
    if x[i] == y:           for i in range(n):
        break                   if x[i] == y:
else:                               finished = False
    missing = 1                     break
                            if finished:
                                missing = 1
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..trees import assign, constant, load


class LoopsWithoutElse(ast.NodeTransformer):
    """Rewrites the loops of a function, and not those of functions defined in it: each of them is read on its own.

    taken: names that the function has already; flags: the flag of each loop around, None if nothing notes its `break`
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.flags: list[str | None] = []

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A list of statements without `else` at its loops."""
        done: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            done += new if isinstance(new, list) else [new]
        return done

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave a nested function as it is."""
        return node

    def visit_For(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        """The loop; with `else`, an assignment before it and an `if` after it."""
        flag = self.fresh() if node.orelse else None
        self.flags.append(flag)
        node.body = self.statements(node.body)
        self.flags.pop()
        if flag is None:
            return node
        rest, node.orelse = self.statements(node.orelse), []  # a `break` in it ends the loop around
        begin, test = assign(flag, constant(True)), ast.If(test=load(flag), body=rest, orelse=[])
        return [_placed(begin, node), node, _placed(test, rest[0])]

    visit_While = visit_For

    def visit_Break(self, node: ast.Break) -> ast.AST | list[ast.stmt]:
        """Note a `break`, if the loop has an `else`."""
        flag = self.flags[-1] if self.flags else None
        return node if flag is None else [_placed(assign(flag, constant(False)), node), node]

    def fresh(self) -> str:
        """A new name for a flag."""
        name = "loop_finished"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _placed(new: ast.stmt, old: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(new, old))


def without_loop_else(function: ast.FunctionDef) -> None:
    """Rewrite the loops of a function that have an `else`."""
    if any(isinstance(node, ast.For | ast.While) and node.orelse for node in ast.walk(function)):
        taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        taken |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
        function.body = LoopsWithoutElse(taken).statements(function.body)
