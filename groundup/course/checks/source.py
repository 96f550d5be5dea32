"""What stands in a learner's Python function, and in those of its file that it calls: the names used, and the loops.

The point of some exercises is not the result but the way to it, such as a product without `@`, or softmax without a
loop. There the check `way` reads the source.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from groundup.course.checks.check import Tally

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

LOOPING = {"map", "vectorize", "apply_along_axis", "frompyfunc", "fromiter", "nditer", "ndenumerate", "ndindex"}
"""Functions that call Python once for each element or row."""

REDUCING = {"sum", "max", "min"}
"""Python's own functions that walk over their argument, if it is the only one."""


def uses_none_of(function: Callable[..., Any], causes: Mapping[str, str]) -> Callable[[Tally], None]:
    """The check that a function uses none of these names. causes: the message for each name; "@" is the operator."""

    def check(tally: Tally) -> None:
        for each in with_helpers(function):
            for name, line in names_in(syntax_of(each)):
                stands_for = getattr(each.__globals__.get(name), "__name__", name)
                used = stands_for if stands_for in causes else name
                tally.holds(used not in causes, f"{each.__name__} uses {used}", cause=causes.get(used, ""), line=line)
        tally.count += 1  # a function without any name is right, too

    return check


def without_loops(
    function: Callable[..., Any], cause: str, nested: int = 0, of_size: Callable[[int], Any] | None = None
) -> Callable[[Tally], None]:
    """The check that a function has no loop in Python. nested: how deep loops may be nested; 0 allows none.

    of_size: calls the function with arrays that have so many times as many numbers, where loops over anything but
        numbers are allowed, such as one over two buffers: those whose rounds do not become more with the size
    """

    def check(tally: Tally) -> None:
        for each in with_helpers(function):
            for depth, line in loops_in(syntax_of(each)):
                within = "a loop within a loop" if nested else "a loop"
                allowed = depth <= nested or (of_size and _lines_run(of_size, 1) == _lines_run(of_size, 7))
                tally.holds(allowed, f"{each.__name__} has {within} in Python", cause=cause, line=line)
        tally.count += 1

    return check


def _lines_run(of_size: Callable[[int], Any], size: int) -> int:
    """How many lines of Python a call runs, each round of a loop anew."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    of_size(size)  # what is done once, such as an import, is done
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        of_size(size)
    finally:
        sys.settrace(before)
    return count


def with_helpers(function: Callable[..., Any]) -> list[Any]:
    """The function, and the functions of its own file that it calls by their names, and that these call."""
    found: list[Any] = [inspect.unwrap(function)]
    for each in found:  # grows meanwhile
        for name, _ in plain_names(syntax_of(each)):
            other = each.__globals__.get(name)
            if not inspect.isfunction(other) or other.__name__ == "<lambda>" or other in found:
                continue
            if other.__code__.co_filename == each.__code__.co_filename:
                found.append(other)
    return found


def syntax_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """A function's syntax tree. Its lines are those of the function's file."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    ast.increment_lineno(tree, inspect.unwrap(function).__code__.co_firstlineno - 1)
    (found,) = tree.body
    if not isinstance(found, ast.FunctionDef):
        raise TypeError(f"{function.__name__}: expected a function, got {type(found).__name__}")
    return found


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, line) of every name and attribute that is read, and ("@", line) of every matrix product.

    Local variables are left out: `inner = a.shape[1]` has nothing to do with NumPy's inner.
    """
    yield from plain_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            yield "@", node.lineno


def plain_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, line) of every name that is read and is neither an attribute nor a local variable."""
    local = local_variables(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            yield node.id, node.lineno


def local_variables(tree: ast.AST) -> set[str]:
    """The names that a function gives to its parameters and variables. An import gives none."""
    given = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    given |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return given


def loops_in(tree: ast.AST, depth: int = 0) -> Iterator[tuple[int, int]]:
    """(depth, line) of every loop, comprehension and call that loops in Python. A loop in no other has depth 1."""
    inner = depth + 1 if isinstance(tree, LOOPS) or _calls_a_loop(tree) else depth
    if inner > depth:
        yield inner, getattr(tree, "lineno", 0)
    for child in ast.iter_child_nodes(tree):
        yield from loops_in(child, inner)


def _calls_a_loop(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in REDUCING:
        return len(node.args) == 1
    called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return called in LOOPING
