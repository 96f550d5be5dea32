"""Small tools for syntax trees, and a statement that Python's own trees do not have: the collective."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ..intrinsics import GRID_BARRIER

Node = TypeVar("Node", bound=ast.AST)

JUMPS = (ast.Return, ast.Break, ast.Continue)
LOOPS = (ast.For, ast.While)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)

ASSIGNED, LENT = "_assigned", "_lent"
"""The calls around a variable that may have no value yet: ASSIGNED where it is read, LENT where it is only passed on to
a function that may read it (reading/unassigned.py). The arguments are `_has_v` and `v`."""
HAS = "_has_"
"""The beginning of the name of a variable that says whether another one has a value."""


class Collective(ast.stmt):
    """A statement that all threads of a block, or all lanes of a warp, execute together.

    path: the function's name below `cuda`, like `syncthreads` or `shfl_down_sync`
    operands: its arguments: names and constants
    results: the variables that it assigns; a plain barrier assigns none
    """

    _fields = ("operands", "results")
    path: str
    operands: list[ast.expr]
    results: list[ast.Name]
    lineno: int

    # Copying a node calls its class without arguments, or (from Python 3.13 on) with None for each field.
    def __init__(
        self,
        path: str | None = None,
        operands: Sequence[ast.expr] | None = None,
        results: Sequence[ast.Name] | None = None,
        line: int = 0,
    ) -> None:
        super().__init__()
        self.path, self.operands, self.results = path or "", list(operands or ()), list(results or ())
        self.lineno = self.end_lineno = line
        self.col_offset = self.end_col_offset = 0


def load(name: str) -> ast.Name:
    """The name as an expression."""
    return ast.Name(id=name, ctx=ast.Load())


def store(name: str) -> ast.Name:
    """The name as a target."""
    return ast.Name(id=name, ctx=ast.Store())


def constant(value: Any) -> ast.Constant:
    """A literal."""
    return ast.Constant(value=value)


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """`function(*arguments)`; the function's name may be dotted."""
    return ast.Call(func=expression(function), args=list(arguments), keywords=[])


def expression(text: str) -> ast.expr:
    """`text`, parsed as an expression."""
    return ast.parse(text, mode="eval").body


def assign(name: str, value: ast.expr) -> ast.Assign:
    """`name = value`."""
    return ast.Assign(targets=[store(name)], value=value)


def negate(test: ast.expr) -> ast.expr:
    """`not test`."""
    return ast.UnaryOp(op=ast.Not(), operand=test)


def placed(node: Node, at: ast.AST | int) -> Node:
    """`node`; its parts without a line number get that of `at`, so that errors point to the learner's line."""
    line = at if isinstance(at, int) else getattr(at, "lineno", 1)
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0
            if isinstance(at, ast.expr) and part is node:  # it replaces the whole of `at`
                ast.copy_location(part, at)
    return node


def copied(node: Node) -> Node:
    """A deep copy."""
    return copy.deepcopy(node)


def stored_names(node: ast.AST | Iterable[ast.AST]) -> set[str]:
    """Every name that is assigned somewhere in `node`."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def loaded_names(node: ast.AST | Iterable[ast.AST]) -> set[str]:
    """Every name that is read somewhere in `node`."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def walk(node: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """ast.walk over one node or several."""
    for root in [node] if isinstance(node, ast.AST) else node:
        yield from ast.walk(root)


def contains(node: ast.AST | Iterable[ast.AST], kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    """Whether `node` contains a node of one of these kinds."""
    return any(isinstance(part, kinds) for part in walk(node))


def has_grid_barrier(node: ast.AST | Iterable[ast.AST]) -> bool:
    """Whether `node` is or contains a barrier across the grid."""
    return any(isinstance(part, Collective) and part.path == GRID_BARRIER for part in walk(node))


def index_parts(index: ast.expr) -> list[ast.expr]:
    """The parts of a subscript's index: [i, j] of a[i, j]."""
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def unguarded(node: ast.expr) -> ast.expr:
    """The variable v of `_assigned(_has_v, v)`; any other expression as it is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (ASSIGNED, LENT):
        return node.args[1]
    return node


def subscript(array: ast.expr, parts: list[ast.expr], ctx: ast.expr_context) -> ast.Subscript:
    """`array[parts]`."""
    index: ast.expr = parts[0] if len(parts) == 1 else ast.Tuple(elts=parts, ctx=ast.Load())
    return ast.Subscript(value=array, slice=index, ctx=ctx)
