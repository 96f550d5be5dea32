"""Finds out whether a kernel's variables can own memory.

Numba counts the owners of every array, wherever a variable gets or loses it: about a quarter of the instructions that a
kernel has before LLVM removes the needless ones. A kernel that computes with numbers, and only indexes the arrays that
it was given, creates no array and keeps none; it is compiled without the counting.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

import numpy as np
from numba.core import types

from ..trees import Collective, index_parts, walk
from ..unit import Unit

NUMBERS = (types.Number, types.Boolean)
BUILTINS = frozenset({"abs", "bool", "complex", "float", "int", "len", "max", "min", "range", "round"})
MODULES = frozenset({"cmath", "math", "operator"})
PLAIN = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.Attribute, ast.Call, ast.expr_context),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.Assign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Break, ast.Continue, ast.Pass, Collective),
)
"""The parts of a syntax tree that create nothing."""


def may_own(unit: Unit, variable_types: Mapping[str, types.Type | None], functions: Collection[str]) -> bool:
    """Whether a variable of the kernel may own memory, as a new array or a view does; True where it is not certain.

    functions: the device functions that it calls
    """
    arrays = {*unit.arrays, *unit.constants}
    axes = {name: len(array.shape) for name, array in unit.arrays.items()}
    for name in {part.id for part in walk(unit.body) if isinstance(part, ast.Name)} & variable_types.keys():
        kind = variable_types[name]
        if isinstance(kind, types.Array) and isinstance(kind.dtype, NUMBERS) and name in {*unit.parameters, *arrays}:
            arrays.add(name)
            axes[name] = kind.ndim
        elif not isinstance(kind, NUMBERS) and not name.startswith("_"):
            return True
    plain: set[int] = set()  # the names of arrays in places where only an element or the shape is asked for
    for node in walk(unit.body):
        if not isinstance(node, PLAIN) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return True
        if isinstance(node, ast.Attribute) and not _is_plain(node):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            if len(index_parts(node.slice)) != axes.get(node.value.id):
                return True
            plain.add(id(node.value))
        elif isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Attribute):
            return True
        elif isinstance(node, ast.Attribute):
            plain.add(id(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in functions and not node.func.id.startswith("_") and node.func.id not in BUILTINS:
                return True
            plain |= {id(value) for value in node.args if not (isinstance(value, ast.Name) and value.id in unit.local)}
        elif isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
            return True
    return any(isinstance(node, ast.Name) and node.id in arrays and id(node) not in plain for node in walk(unit.body))


def _is_plain(node: ast.Attribute) -> bool:
    """Whether an attribute is a number of an array, or a function of numbers."""
    if not isinstance(node.value, ast.Name):
        return False
    if node.value.id == "np":
        return isinstance(getattr(np, node.attr, None), type | np.ufunc)
    return node.value.id in MODULES or node.attr in ("shape", "size", "ndim", "strides")
