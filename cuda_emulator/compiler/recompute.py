"""Which variables need not be carried over a cut: those that are cheap to compute again, and those written before read.

`row = cuda.blockIdx.y * TILE + ty` is computed anew in each region that reads it, which also keeps the compiler's view
of the addresses clear.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from numba.core import types

from .trees import loaded_names, stored_names, walk
from .uniformity import THREAD_NAMES, is_pure_call
from .unit import Unit

INDEX_NAMES = THREAD_NAMES | {stem + axis for stem in ("_b", "_bd", "_gd") for axis in "xyz"}


def find_recomputed(
    unit: Unit, variable_types: Mapping[str, types.Type | None], varying: AbstractSet[str], met: AbstractSet[str]
) -> dict[str, ast.expr]:
    """The varying variables with one assignment, of an expression that has the same value wherever it is evaluated.

    met: variables that collectives read or write, which are kept for each thread in any case
    """
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in walk(unit.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    # Computing a view's address checks its index, so it must not happen where the learner would not have done it.
    unconditional = {name for node in unit.body if isinstance(node, ast.Assign) for name in stored_names(node)}
    fixed = (set(unit.parameters) | set(unit.constants) | set(unit.shared)) - set(counts)
    found: dict[str, ast.expr] = {}
    grew = True
    while grew:
        grew = False
        for name, value in values.items():
            is_view = isinstance(variable_types.get(name), types.Array) and name in unconditional
            known = INDEX_NAMES | fixed | set(found)
            if name not in found and name not in met and counts[name] == 1 and is_stable(value, known, is_view):
                found[name] = value
                grew = True
    return {name: value for name, value in found.items() if name in varying}


def is_stable(node: ast.expr, known: AbstractSet[str], is_view: bool = False) -> bool:
    """Whether an expression of the names in `known` has the same value wherever it is evaluated.

    is_view: whether it stands for a view of an array; subscripts of a view only compute an address, all others read
    """
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "size", "ndim", "strides", "T") and is_stable(node.value, known, is_view)
    if isinstance(node, ast.Subscript):
        of_shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides")
        return (of_shape or is_view) and is_stable(node.value, known, is_view) and is_stable(node.slice, known)
    if isinstance(node, ast.Call):
        return is_pure_call(node) and all(is_stable(argument, known) for argument in node.args)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.Tuple | ast.Slice):
        return all(is_stable(part, known) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    return False


class Flow:
    """Which names a region reads before it has certainly written them, and which it may write.

    reads, writes: the names, once the statements were followed
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()

    def statements(self, body: Sequence[ast.stmt], written: set[str]) -> set[str]:
        """Follow `body`; `written` grows by what is certainly assigned at its end."""
        for node in body:
            self.statement(node, written)
        return written

    def read(self, node: ast.AST, written: set[str]) -> None:
        """Every name that is read in `node`."""
        self.reads |= loaded_names(node) - written

    def write(self, node: ast.AST, written: set[str]) -> None:
        """Every name that is assigned in `node`."""
        names = stored_names(node)
        written |= names
        self.writes |= names

    def statement(self, node: ast.stmt, written: set[str]) -> None:
        """One statement."""
        if isinstance(node, ast.Assign):
            self.read(node.value, written)
            for target in node.targets:
                self.read(target, written)
                self.write(target, written)
        elif isinstance(node, ast.If):
            self.read(node.test, written)
            one, other = set(written), set(written)
            self.statements(node.body, one)
            self.statements(node.orelse, other)
            written |= one & other
        elif isinstance(node, ast.For):
            self.read(node.iter, written)
            inside = set(written)
            self.write(node.target, inside)
            self.statements(node.body, inside)
        elif isinstance(node, ast.While):
            self.read(node.test, written)
            self.statements(node.body, set(written))
        else:
            self.read(node, written)
