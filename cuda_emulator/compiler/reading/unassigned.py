"""Find the reads of variables that may have no value yet.

A thread that takes another path than its neighbours may read a variable that only they have assigned. Python raises
UnboundLocalError there; on a device the variable has whatever its register holds. The statements are followed in order,
with the set of the variables that certainly have a value. Where two paths join, those remain that have one on both.

Such a variable v gets a second one beside it, `_has_v`, which says whether the thread has assigned v:

    if i < n:                   _has_v = False
        v = x[i]                if i < n:
    out[i] = v                      v = x[i]
                                    _has_v = True
                                out[i] = _assigned(_has_v, v)

A kernel whose variables certainly have a value at each read is left as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...intrinsics import THIS_GRID
from ..trees import ASSIGNMENTS, loaded_names, stored_names
from . import names
from .nested import NestedSource, nested_functions
from .source import FunctionSource, own_nodes

Read = tuple[int, int, str]
"""Line, column and name of a variable where it is read. A captured variable is read where its function is called."""

Assigned = frozenset[str]
"""The variables that certainly have a value at a place."""


@dataclass(frozen=True)
class Unassigned:
    """The reads in a function of variables that may have no value there.

    reads: in an expression; lent: of a captured variable, which the called function may leave unread
    """

    reads: frozenset[Read]
    lent: frozenset[Read]

    @property
    def variables(self) -> frozenset[str]:
        """The names of these variables."""
        return frozenset(name for _, _, name in self.reads | self.lent)


NONE = Unassigned(frozenset(), frozenset())


def find_unassigned(source: FunctionSource) -> Unassigned:
    """The reads of variables that may have no value yet, without those in functions that are defined inside."""
    variables = own_variables(source)
    if not variables:
        return NONE
    follow = Follow(source, variables)
    follow.statements(source.tree.body, frozenset())
    return Unassigned(frozenset(follow.reads), frozenset(follow.lent)) if follow.reads or follow.lent else NONE


def read_at(node: ast.AST, name: str) -> Read:
    """The read of `name` at the place of this node."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0), name


def own_variables(source: FunctionSource) -> frozenset[str]:
    """The variables that the function assigns, but for its parameters.

    Functions, shared and local arrays and groups are left out: they are made when the kernel is compiled.
    """
    found: set[str] = set()
    declared = {*source.parameters, *nested_functions(source)}
    for node in own_nodes(source.tree.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        made = node.value.func if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
        if made is not None and names.cuda_path(source, made) in ("shared.array", "local.array", THIS_GRID):
            declared |= stored_names(node)
    return frozenset(found - declared)


class Follow:
    """Follows the statements of a function, and collects what Unassigned holds. After a jump the state is None."""

    def __init__(self, source: FunctionSource, variables: frozenset[str]) -> None:
        self.source, self.variables = source, variables
        self.reads: set[Read] = set()
        self.lent: set[Read] = set()
        self.loops: list[tuple[list[Assigned], list[Assigned]]] = []  # the states at each break, and at each continue

    def read(self, nodes: Iterable[ast.AST | None], state: Assigned) -> None:
        """Record every variable without a certain value that these nodes read."""
        for node in own_nodes([each for each in nodes if each is not None]):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in self.variables - state:
                    self.reads.add(read_at(node, node.id))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = nested_functions(self.source).get(node.func.id)
                if called is not None and isinstance(called.source, NestedSource):
                    missing = self.variables.intersection(called.source.captured) - state
                    self.lent |= {read_at(node, name) for name in missing}

    def statements(self, body: Sequence[ast.stmt], state: Assigned | None) -> Assigned | None:
        """The state at the end of some statements."""
        for node in body:
            if state is None:
                return None
            state = self.statement(node, state)
        return state

    def statement(self, node: ast.stmt, state: Assigned) -> Assigned | None:
        """The state after one statement."""
        if isinstance(node, ASSIGNMENTS):
            return self.assignment(node, state)
        if isinstance(node, ast.If):
            self.read([node.test], state)
            outcome = self.constant(node.test)
            branches = [] if outcome is False else [node.body]
            branches += [] if outcome is True else [node.orelse]
            return joined([self.statements(branch, state) for branch in branches])
        if isinstance(node, ast.For | ast.While):
            return self.loop(node, state)
        if isinstance(node, ast.Break | ast.Continue):
            if self.loops:
                self.loops[-1][isinstance(node, ast.Continue)].append(state)
            return None
        if isinstance(node, ast.Return):
            self.read([node.value], state)
            return None
        if isinstance(node, ast.Raise):
            self.read([node.exc], state)
            return None
        if isinstance(node, ast.Assert):
            self.read([node.test], state)
            return state
        if isinstance(node, ast.Expr):
            self.read([node.value], state)
        return state

    def assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, state: Assigned) -> Assigned:
        """The state after an assignment."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        self.read([node.value], state)
        self.read(targets, state)  # the index of an element that is assigned
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.read([ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)], state)
        return state | stored_names(targets) if node.value is not None else state

    def loop(self, node: ast.For | ast.While, state: Assigned) -> Assigned | None:
        """The state after a loop. Each round begins with at least what had a value before the loop."""
        self.loops.append(([], []))
        if isinstance(node, ast.For):
            self.read([node.iter], state)
            end = self.statements(node.body, state | stored_names(node.target))
        else:
            self.read([node.test], state)
            end = self.statements(node.body, state)
        breaks, continues = self.loops.pop()
        left: Assigned | None = state
        if isinstance(node, ast.While) and self.constant(node.test) is True:
            left = None
        elif isinstance(node, ast.For) and self.has_a_round(node):
            left = joined([end, *continues])
        if left is not None:
            left = self.statements(node.orelse, left)
        return joined([left, *breaks])

    def has_a_round(self, node: ast.For) -> bool:
        """Whether the loop certainly has one round: its range or its tuple is a constant that is not empty."""
        if isinstance(node.iter, ast.Tuple):
            return bool(node.iter.elts)
        called = node.iter
        if not isinstance(called, ast.Call) or names.look_up(self.source, called.func) is not range:
            return False
        numbers = [names.constant(self.source, argument) for argument in called.args]
        try:
            return bool(range(*numbers))
        except (TypeError, ValueError):  # a number that only the launch knows; a step of 0
            return False

    def constant(self, test: ast.expr) -> bool | None:
        """The outcome of a test that is known when the kernel is compiled; else None."""
        if loaded_names(test) & self.source.stored:
            return None
        value: Any = names.constant(self.source, test)
        try:
            return None if value is names.UNKNOWN else bool(value)
        except ValueError:  # an array
            return None


def joined(states: Sequence[Assigned | None]) -> Assigned | None:
    """The state where several paths join; None if none of them gets there."""
    reached = [state for state in states if state is not None]
    return frozenset.intersection(*reached) if reached else None
