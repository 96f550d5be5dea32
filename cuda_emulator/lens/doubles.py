"""The reasons for float64 arithmetic in a kernel whose arrays are float32, by line, with the change that avoids it.

Numba infers the types: a literal like 0.5 is float64, a number that Python passes to the kernel is float64, an integer
with a float32 gives float64, and so does every operation with one of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from .profile import Profile
from .syntax import Place, innermost, path

WIDE = ("float64", "complex128")


def double_lines(profile: Profile) -> dict[Place, int]:
    """{line: number of float64 operations in the traced blocks}; empty if an array argument is float64 itself."""
    if any("array(" in kind and any(wide in kind for wide in WIDE) for kind in profile.argument_types):
        return {}
    return {(each.file, each.line): each.double for each in profile.operations if each.double}


def may_widen(tree: ast.AST, arguments: Sequence[Any]) -> bool:
    """Whether a kernel may compute in float64, as far as its source and its arguments show without their types.

    A literal that is not converted, a Python float among the arguments, a division, which may be one of integers, or
    a whole number in a sum or a product with an element of an array.
    """
    if any(isinstance(value, float) for value in arguments) or any(_literals(tree)):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            return True
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            whole = any(isinstance(side, ast.Constant) and isinstance(side.value, int) for side in sides)
            if whole and any(isinstance(part, ast.Subscript) for side in sides for part in ast.walk(side)):
                return True
    return False


def reason(profile: Profile, place: Place) -> str:
    """The change that avoids float64 at a line, as far as the source shows its cause."""
    statement = innermost(profile, place)
    if statement is None:
        return ""
    own = statement.test if isinstance(statement, ast.If | ast.While) else statement
    names = {node.id for node in ast.walk(own) if isinstance(node, ast.Name)}
    literal = next(_literals(own), None)
    if literal is not None:
        return f"write np.float32({literal}) for {literal}, a float64"
    for name, kind in zip((name for name, _ in profile.arguments), profile.argument_types, strict=False):
        if name in names and kind in WIDE:
            return f"pass np.float32({name}) to the kernel: {name} is a Python float, a float64"
    function = path(profile, place)[0].statement
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            first = next(_literals(node.value), None)
            if first is not None and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                return f"let {name} begin as np.float32({first}) in line {node.lineno}: {first} is a float64"
    return "convert integers and results of `/` to np.float32 before they meet a float32"


def _literals(node: ast.AST) -> Iterator[str]:
    """The float literals in an expression that are not converted, like 0.5 (not the one in float32(0.5))."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
        yield ast.unparse(node)
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("float32", "float16", "complex64"):
        return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)
