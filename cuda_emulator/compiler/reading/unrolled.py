"""`for x in numba.literal_unroll(values)`: the body once for each item of a tuple, whose items may differ in type."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numba import literal_unroll, types

from ..trees import constant, copied, placed, stored_names
from . import assignments, expressions, names
from .source import stored_in

if TYPE_CHECKING:
    from .normalise import Normaliser


def unrolled_loop(normaliser: Normaliser, node: ast.For) -> list[ast.stmt] | None:
    """The statements of such a loop in normal form; None for every other loop."""
    called = node.iter if isinstance(node.iter, ast.Call) else None
    if called is None or names.look_up(normaliser.source, called.func) is not literal_unroll or len(called.args) != 1:
        return None
    if _jumps_out(node.body):
        raise normaliser.error(
            "break and continue are not supported by the emulator in a loop over literal_unroll()", node
        )
    done: list[ast.stmt] = []
    for item in _items(normaliser, called.args[0], node):
        new = assignments.stored(normaliser, node.target, item, node)
        new += normaliser.marks(stored_names(node.target), True)
        done += [placed(each, node) for each in new]
        done += normaliser.statements([copied(each) for each in node.body])
    return done


def _items(normaliser: Normaliser, given: ast.expr, node: ast.For) -> list[ast.expr]:
    """The items of a tuple in normal form, as they are before the loop."""
    value = names.look_up(normaliser.source, given)
    if isinstance(value, tuple):  # arrays become arguments, one by one
        return [expressions.outside_value(normaliser, item, given) for item in value]
    if isinstance(given, ast.Tuple):
        assigned = {normaliser.rename(name) for name in stored_in([node])}
        return [_kept(normaliser, item, assigned) for item in normaliser.in_order(given.elts)]
    kind = normaliser.argument_type(given.id) if isinstance(given, ast.Name) else None
    if not isinstance(kind, types.BaseTuple):
        raise normaliser.error(
            "literal_unroll() takes a tuple in the emulator: an argument of the kernel, a global or captured one, or "
            f"one that is written in the call; {ast.unparse(given)!r} is none of these",
            given,
        )
    return [
        ast.Subscript(value=normaliser.expression(given), slice=constant(place), ctx=ast.Load())
        for place in range(len(kind))
    ]


def _kept(normaliser: Normaliser, item: ast.expr, assigned: set[str]) -> ast.expr:
    """An item that the loop's body cannot change: what the body may assign or write is put in a variable."""
    if isinstance(item, ast.Tuple):
        return ast.Tuple([_kept(normaliser, each, assigned) for each in item.elts], ast.Load())
    if isinstance(item, ast.Constant) or (isinstance(item, ast.Name) and item.id not in assigned):
        return item
    return normaliser.in_variable("item", item, item)


def _jumps_out(body: Sequence[ast.AST]) -> bool:
    """Whether a `break` or `continue` of these statements belongs to the loop around them."""
    return any(
        isinstance(each, ast.Break | ast.Continue)
        or (
            not isinstance(each, ast.For | ast.While | ast.FunctionDef) and _jumps_out(list(ast.iter_child_nodes(each)))
        )
        for each in body
    )
