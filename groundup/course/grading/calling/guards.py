"""Which conditions guard an index: those that decide whether its line is reached, or what it takes.

    Guards      the conditions of a function around one access of an array

`while row < rows:` around the line, `if row >= rows: return` above it and `x[row] if row < rows else 0` in it are
guards. A guard concerns an index if the two have a variable in common, if only through other variables: in
`row = i // columns` the guard `i < count` concerns row.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

LEAVES = ast.Return | ast.Continue | ast.Break | ast.Raise
"""Statements with which an `if` above a line keeps threads from it."""


class Guards:
    """The accesses of an array in a line of a function, and what guards them.

    written: the index, as the learner wrote it; "" if there is no such access
    any: whether there are guards at all; concerned: those that concern the index. A `for` has its range
    """

    def __init__(self, function: ast.FunctionDef, array: str, line: int, axis: int | None) -> None:
        """axis: the axis whose index is meant, None for all"""
        self._values = _assigned(function)
        self._sizes = {name for name, values in self._values.items() if any(map(_reads_a_size, values))}
        accesses = [(path, node) for path in _paths(function) if (node := _index(path[-1], array, axis)) is not None]
        here = [(path, node) for path, node in accesses if _has_line(path[-1], line)] or accesses
        guards = [(index, *guard) for path, index in here for guard in _around(path)]
        self.written = ast.unparse(here[0][1]) if here else ""
        self.any = bool(guards)
        self.concerned = [
            condition
            for index, of, guard in guards
            for condition in self._with_variables(guard)
            if self._names(of) & self._names(index)
        ]

    def _with_variables(self, guard: ast.expr) -> Iterator[ast.expr]:
        """A guard, and what its variables hold: in `if inside:` the condition stands elsewhere."""
        yield guard
        for part in ast.walk(guard):
            if isinstance(part, ast.Name):
                yield from (
                    each for each in self._values.get(part.id, []) if isinstance(each, ast.Compare | ast.BoolOp)
                )

    def _names(self, node: ast.expr) -> set[str]:
        """The variables that an expression is made of, and those that these are made of, without sizes."""
        names: set[str] = set()
        left = list(_own_names(node))
        while left:
            name = left.pop()
            if name not in names and name not in self._sizes:
                names.add(name)
                left += [each for value in self._values.get(name, []) for each in _own_names(value)]
        return names


def _paths(node: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """Every node below this one, behind the nodes that lead to it."""
    path = (*above, node)
    yield path
    for child in ast.iter_child_nodes(node):
        yield from _paths(child, path)


def _has_line(node: ast.AST, line: int) -> bool:
    return isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or 0)


def _index(node: ast.AST, array: str, axis: int | None) -> ast.expr | None:
    """The index of an access of this array: array[index], or cuda.atomic.add(array, index, …); else None."""
    if isinstance(node, ast.Subscript):
        of, index = node.value, node.slice
    elif isinstance(node, ast.Call) and "atomic." in ast.unparse(node.func) and len(node.args) > 1:
        of, index = node.args[:2]
    else:
        return None
    if not isinstance(of, ast.Name) or of.id != array:
        return None
    if isinstance(index, ast.Tuple) and axis is not None and axis < len(index.elts):
        return index.elts[axis]
    return index


def _around(path: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The conditions on the way from a function to one of its expressions: (what it asks about, the condition)."""
    for above, below in itertools.pairwise(path):
        if isinstance(above, ast.If | ast.While | ast.IfExp) and below is not above.test:
            yield above.test, above.test
        elif isinstance(above, ast.For) and below is not above.iter:
            yield above.target, above.iter
        elif isinstance(above, ast.BoolOp):
            before = above.values[: [value is below for value in above.values].index(True)]
            yield from zip(before, before, strict=True)
        for block in (getattr(above, name, []) for name in ("body", "orelse")):
            if isinstance(block, list) and below in block:
                for statement in block[: block.index(below)]:
                    if isinstance(statement, ast.If) and any(isinstance(part, LEAVES) for part in ast.walk(statement)):
                        yield statement.test, statement.test


def _assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """{variable: the values that are assigned to it}. Of `row, column = cuda.grid(2)` neither has one: what guards the
    one does not guard the other."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs += zip(target.elts, node.value.elts, strict=False)
                elif isinstance(target, ast.Tuple) and _reads_a_size(node.value):
                    pairs += [(each, node.value) for each in target.elts]
                else:
                    pairs.append((target, node.value))
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            pairs += [(node.target, first) for first in node.iter.args[:1] if len(node.iter.args) > 1]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
    return values


def _own_names(node: ast.AST) -> Iterator[str]:
    """The variables in an expression. `cuda.threadIdx.x` is one; what stands before `.size` and `.shape` is none."""
    if isinstance(node, ast.Attribute | ast.Call) and ast.unparse(node).startswith("cuda."):
        yield ast.unparse(node)
    elif isinstance(node, ast.Name):
        yield node.id
    elif not (isinstance(node, ast.Attribute) and node.attr in ("size", "shape", "dtype")):
        for child in ast.iter_child_nodes(node):
            yield from _own_names(child)


def _reads_a_size(node: ast.expr) -> bool:
    """Whether an expression is a size, or one size of a shape, or a product of such."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "shape")
    if isinstance(node, ast.Subscript):
        return _reads_a_size(node.value)
    if isinstance(node, ast.BinOp):
        return _reads_a_size(node.left) or _reads_a_size(node.right)
    return (
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("len", "min") and any(map(_reads_a_size, node.args))
    )
