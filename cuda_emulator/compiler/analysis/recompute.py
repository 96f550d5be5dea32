"""Find the variables that need not be carried over a cut: those that are cheap to compute again, and those that a
region writes before it reads them. And find out whether a kernel's lines may be the body of a loop.

`row = cuda.blockIdx.y * TILE + ty` is computed again in each region that reads it. That also lets the compiler see how
the addresses depend on the thread's index.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from numba.core import types

from ..trees import loaded_names, stored_names, walk
from ..unit import Unit
from .uniformity import THREAD_NAMES, is_pure_call

INDEX_NAMES = THREAD_NAMES | {stem + axis for stem in ("_b", "_bd", "_gd") for axis in "xyz"}


def find_recomputed(
    unit: Unit,
    variable_types: Mapping[str, types.Type | None],
    varying: AbstractSet[str],
    in_collectives: AbstractSet[str],
) -> dict[str, ast.expr]:
    """The varying variables with one assignment, whose expression has the same value everywhere.

    in_collectives: variables that collectives read or write; each thread's value is always stored
    """
    counts: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    for node in walk(unit.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    # Making a view checks its index, so it must not happen on a path where the learner's kernel does not make it.
    unconditional = {name for node in unit.body if isinstance(node, ast.Assign) for name in stored_names(node)}
    fixed = (set(unit.parameters) | set(unit.constants) | set(unit.shared)) - set(counts)
    recomputed: dict[str, ast.expr] = {}
    grew = True
    while grew:
        grew = False
        for name, value in values.items():
            is_view = isinstance(variable_types.get(name), types.Array) and name in unconditional
            # Grows until it stays: a value may depend on one that is found stable only later in the dictionary.
            known = INDEX_NAMES | fixed | set(recomputed)
            if (
                name not in recomputed
                and name not in in_collectives
                and counts[name] == 1
                and is_stable(value, known, is_view)
            ):
                recomputed[name] = value
                grew = True
    # The uniform ones were needed above as parts of others; alone they are assigned once for the block.
    return {name: value for name, value in recomputed.items() if name in varying}


def is_stable(node: ast.expr, known: AbstractSet[str], is_view: bool = False) -> bool:
    """Whether the expression uses names in `known` only, and has the same value everywhere.

    is_view: whether the value is a view of an array; then a subscript computes an address and reads no memory
    """
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "size", "ndim", "strides", "T") and is_stable(node.value, known, is_view)
    if isinstance(node, ast.Subscript):
        of_shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides")
        # An element of an array may have changed since; an address or a length has not.
        return (of_shape or is_view) and is_stable(node.value, known, is_view) and is_stable(node.slice, known)
    if isinstance(node, ast.Call):
        return is_pure_call(node) and all(is_stable(argument, known) for argument in node.args)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.Tuple | ast.Slice):
        return all(is_stable(part, known) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    return False


class Flow:
    """Follows the statements of a region, and collects the names that it reads before it has certainly written them
    (reads), and the names that it may write (writes).
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()

    def statements(self, body: Sequence[ast.stmt], written: set[str]) -> set[str]:
        """Follow `body`, and add the names that are certainly assigned at its end to `written`."""
        for node in body:
            self.statement(node, written)
        return written

    def read(self, node: ast.AST, written: set[str]) -> None:
        """Add every name that `node` reads."""
        self.reads |= loaded_names(node) - written

    def write(self, node: ast.AST, written: set[str]) -> None:
        """Add every name that `node` assigns."""
        names = stored_names(node)
        written |= names
        self.writes |= names

    def statement(self, node: ast.stmt, written: set[str]) -> None:
        """Follow one statement."""
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
            # Into a copy: a loop may have no iteration, and then assigns nothing for certain.
            self.write(node.target, inside)
            self.statements(node.body, inside)
        elif isinstance(node, ast.While):
            self.read(node.test, written)
            self.statements(node.body, set(written))
        else:
            self.read(node, written)


def starts_afresh(unit: Unit) -> bool:
    """Whether the lines of a kernel without collectives may be the body of a loop over threads, where each round finds
    the variables as the round before has left them: it reads none of them before it has assigned it, and assigns no
    argument."""
    flow = Flow()
    flow.statements(unit.body, set())
    own = stored_names(unit.body)
    return not own & {*flow.reads, *unit.parameters, *unit.constants}
