"""Statements in normal form; those that a kernel cannot have are refused."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..trees import (
    JUMPS,
    call,
    constant,
    contains,
    load,
    loaded_names,
    negate,
    placed,
    store,
    stored_names,
    walk,
)
from . import assignments, names
from .nested import nested_functions
from .unrolled import unrolled_loop

if TYPE_CHECKING:
    from .normalise import Normaliser

WITHOUT_SUPPORT = {
    ast.Try: "try",
    ast.With: "with",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Match: "match",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
}

WAITS = "this loop waits for what another thread writes"
"""The beginning of the warning about such a loop."""


def rewritten(normaliser: Normaliser, node: ast.stmt) -> list[ast.stmt]:
    """The normal form of one statement: a list of any length."""
    if isinstance(node, ast.Pass | ast.Break | ast.Continue):
        return [] if isinstance(node, ast.Pass) else [node]
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):  # a docstring
            return []
        value = normaliser.expression(node.value)
        return [ast.Expr(value=value)] if contains(value, ast.Call) else []
    if isinstance(node, ast.AnnAssign):
        return [] if node.value is None else assignments.assignment(normaliser, [node.target], node.value, node)
    if isinstance(node, ast.Assign):
        if isinstance(node.value, ast.Lambda) and all(isinstance(target, ast.Name) for target in node.targets):
            nested_functions(normaliser.source)
            return []
        return assignments.assignment(normaliser, node.targets, node.value, node)
    if isinstance(node, ast.AugAssign):
        return assignments.augmented(normaliser, node)
    if isinstance(node, ast.If):
        known = names.known_test(normaliser.source, node.test)
        if known is not None:  # Numba drops the other branch, too, with the names that have no value there
            return normaliser.statements(node.body if known else node.orelse)
        test = normaliser.expression(node.test)
        return [ast.If(test=test, body=normaliser.statements(node.body), orelse=normaliser.statements(node.orelse))]
    if isinstance(node, ast.For):
        return for_loop(normaliser, node)
    if isinstance(node, ast.While):
        return while_loop(normaliser, node)
    if isinstance(node, ast.Return):
        return returned(normaliser, node)
    if isinstance(node, ast.Assert):
        return asserted(normaliser, node)
    if isinstance(node, ast.Raise):
        return [raised(normaliser, "raise" if node.exc is None else f"raise {ast.unparse(node.exc)}")]
    if isinstance(node, ast.FunctionDef):  # its calls become calls of a device function
        nested_functions(normaliser.source)
        return []
    construct = WITHOUT_SUPPORT.get(type(node), type(node).__name__)
    raise normaliser.error(f"{construct} is not supported by the emulator inside a kernel", node)


def asserted(normaliser: Normaliser, node: ast.Assert) -> list[ast.stmt]:
    """`assert test, message` as an `if` that ends the launch."""
    said = "" if node.msg is None else f": {text_of(normaliser, node.msg)}"
    failure = raised(normaliser, f"assert {ast.unparse(node.test)}{said}")
    return [ast.If(test=negate(normaliser.expression(node.test)), body=[placed(failure, node)], orelse=[])]


def text_of(normaliser: Normaliser, node: ast.expr) -> str:
    """The text of an assertion's message."""
    value = names.look_up(normaliser.source, node)
    return value if isinstance(value, str) else ast.unparse(node)


def raised(normaliser: Normaliser, text: str) -> ast.stmt:
    """A statement that ends the launch with the text of the learner's `assert` or `raise`."""
    normaliser.unit.raised.append(text)
    return ast.Expr(value=call("_raise", constant(len(normaliser.unit.raised) - 1)))


def returned(normaliser: Normaliser, node: ast.Return) -> list[ast.stmt]:
    """`return`; a value is allowed in device functions only."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return [ast.Return(value=None)]
    if not normaliser.is_device:
        raise normaliser.error("a kernel cannot return a value: write it into an array that you pass in", node)
    return [ast.Return(value=normaliser.expression(node.value))]


def for_loop(normaliser: Normaliser, node: ast.For) -> list[ast.stmt]:
    """`for target in iterated`."""
    unrolled = unrolled_loop(normaliser, node)
    if unrolled is not None:
        return unrolled
    iterated = normaliser.expression(node.iter)
    target = assignments.target(normaliser, node.target)
    first: list[ast.stmt] = []
    if isinstance(iterated, ast.Tuple) and iterated.elts and not loaded_names(iterated):
        # `for offset in (16, 8, 4)` becomes a loop over positions 0, 1, 2, which can be cut at a shuffle like any
        # other.
        place = normaliser.unit.fresh("place")
        item = ast.Subscript(value=iterated, slice=load(place), ctx=ast.Load())
        first = [placed(ast.Assign(targets=[target], value=item), node)]
        target, iterated = store(place), call("range", constant(len(iterated.elts)))
    first += normaliser.marks(stored_names(node.target), True)
    return [ast.For(target=target, iter=iterated, body=[*first, *normaliser.statements(node.body)], orelse=[])]


def while_loop(normaliser: Normaliser, node: ast.While) -> list[ast.stmt]:
    """`while test`. A test with a collective moves into the body."""
    outer, normaliser.before = normaliser.before, []
    test = normaliser.expression(node.test)
    first, normaliser.before = normaliser.before, outer
    body = normaliser.statements(node.body)
    if first:
        leave = placed(ast.If(test=negate(test), body=[ast.Break()], orelse=[]), node)
        return [ast.While(test=constant(True), body=[*first, leave, *body], orelse=[])]
    if waits(test, body):
        normaliser.unit.warnings.append(
            (
                node.lineno,
                f"{WAITS}. The emulator runs the threads of a block one after "
                "another between barriers, so it may wait for ever (Ctrl-C ends it); on a device such loops can hang "
                "too. Use cuda.syncthreads(), or a second kernel",
            )
        )
    return [ast.While(test=test, body=body, orelse=[])]


def waits(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether only a write of another thread can end the loop."""
    atomics = any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id.startswith("_atomic_")
        for part in ast.walk(test)
    )
    reads = contains(test, ast.Subscript) and not loaded_names(test) & stored_names(body)
    writes = {
        part.value.id
        for part in walk(body)
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name)
    }
    return atomics or (reads and not writes & loaded_names(test) and not contains(body, JUMPS))
