"""Shared and local arrays: their declarations become entries in the unit's tables and leave no statement."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from ..unit import ArrayDeclaration
from . import names
from .source import FunctionSource, own_nodes
from .statics import as_dtype

if TYPE_CHECKING:
    from .normalise import Normaliser

#: Bytes of local memory that one thread has on a device.
LOCAL_BYTES = 512 * 1024


def declare(normaliser: Normaliser, path: str, targets: list[ast.expr], value: ast.Call, node: ast.stmt) -> None:
    """Record `name = cuda.shared.array(shape, dtype)`, or the same with cuda.local.array, in the unit."""
    _record(normaliser, path, targets, value, node, "")


def anonymous(
    normaliser: Normaliser, path: str, targets: list[ast.expr], value: ast.Call, node: ast.stmt, sliced: bool = False
) -> str:
    """Record an array whose name is assigned other values, too, or that is sliced at once; return the name that it has
    in the generated source. There the learner's name is a variable that holds one array or the other."""
    return _record(normaliser, path, targets, value, node, f"_at_line_{node.lineno}", sliced)


def has_another_value(normaliser: Normaliser, targets: list[ast.expr]) -> bool:
    """Whether the name of a declared array is assigned anything else, such as another array to take turns with, or an
    array of another shape in the other branch."""
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    name, source = targets[0].id, normaliser.source
    declared: set[str] = set()
    for part in own_nodes(source.tree.body):
        if isinstance(part, ast.Assign) and any(_names(target, name) for target in part.targets):
            is_array = isinstance(part.value, ast.Call) and names.cuda_path(source, part.value.func) in ARRAYS
            if not is_array or len(part.targets) > 1:
                return True
            declared.add(ast.unparse(part.value))
        elif isinstance(part, ast.AugAssign | ast.AnnAssign | ast.For) and _names(part.target, name):
            return True
    return len(declared) > 1 or (
        len(declared) == 1 and "shared" in next(iter(declared)) and _declared_twice(source, name)
    )


ARRAYS = ("shared.array", "local.array")


def _declared_twice(source: FunctionSource, name: str) -> bool:
    nodes = own_nodes(source.tree.body)
    return sum(isinstance(each, ast.Assign) and _names(each.targets[0], name) for each in nodes) > 1


def _names(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store) for each in ast.walk(target)
    )


def _record(
    normaliser: Normaliser,
    path: str,
    targets: list[ast.expr],
    value: ast.Call,
    node: ast.stmt,
    suffix: str,
    sliced: bool = False,
) -> str:
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise normaliser.error(f"cuda.{path}(shape, dtype) must be assigned to one name", node)
    given: dict[str, ast.expr] = dict(zip(("shape", "dtype", "alignment"), value.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in value.keywords if keyword.arg})
    if not {"shape", "dtype"} <= set(given):
        raise normaliser.error(f"cuda.{path} needs a shape and a dtype", node)
    shape = shape_of(normaliser, path, given["shape"], node)
    dtype = dtype_of(normaliser, path, given["dtype"], node)
    spelled = targets[0].id
    name = normaliser.rename(spelled) + suffix
    if suffix:
        normaliser.unit.spelled[name] = spelled
    new = ArrayDeclaration(name, shape, dtype, node.lineno, sliced)
    if path == "local.array" and name not in normaliser.unit.local:
        total = new.nbytes + sum(array.nbytes for array in normaliser.unit.local.values())
        if total > LOCAL_BYTES:
            raise normaliser.error(
                f"with {spelled!r} the local arrays take {total:,} bytes of every thread's local memory; a device has "
                f"{LOCAL_BYTES:,}. Use a global array that you pass in",
                node,
            )
    known = normaliser.unit.arrays.get(name)
    same = known is not None and (known.shape, known.dtype) == (new.shape, new.dtype)
    # An inlined function's array, and a local array that is declared alike in two branches, is one array.
    if known is not None and not (same and (normaliser.prefix or suffix or path == "local.array")):
        raise normaliser.error(f"{spelled!r} is declared twice; give the second array a name of its own", node)
    table = normaliser.unit.shared if path == "shared.array" else normaliser.unit.local
    table[name] = new
    return name


def shape_of(normaliser: Normaliser, path: str, value: ast.expr, node: ast.stmt) -> tuple[int, ...]:
    """The array's shape, which must be a constant."""
    shape = names.constant(normaliser.source, value)
    dimensions = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in dimensions):
        raise normaliser.error(
            f"the shape of cuda.{path} is {ast.unparse(value)!r}; it must be known when the kernel is compiled: "
            "a number, a global or captured constant, or a tuple of those. For a size known at the launch only, use "
            "cuda.shared.array(0, dtype) and kernel[blocks, threads, stream, bytes]",
            node,
        )
    return tuple(int(n) for n in dimensions)


def dtype_of(normaliser: Normaliser, path: str, value: ast.expr, node: ast.stmt) -> np.dtype:
    """The type of the array's elements: a constant, or `a.dtype` of a parameter that is an array."""
    if isinstance(value, ast.Attribute) and value.attr == "dtype" and isinstance(value.value, ast.Name):
        kind = normaliser.argument_type(value.value.id)
        if isinstance(kind, types.Array):
            return as_dtype(kind.dtype)
    try:
        dtype = as_dtype(names.constant(normaliser.source, value))
    except TypeError:
        raise normaliser.error(
            f"the dtype of cuda.{path} is {ast.unparse(value)!r}; it must be a Numba or NumPy type, or the dtype of an "
            "array that the kernel is given",
            node,
        ) from None
    if dtype.kind not in "biufcV":
        raise normaliser.error(f"cuda.{path} cannot hold {dtype}; it holds booleans, integers and floats", node)
    return dtype
