"""Shared and local arrays: their declarations become entries in the unit's tables and leave no statement."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from ..unit import ArrayDeclaration
from . import names
from .statics import as_dtype

if TYPE_CHECKING:
    from .normalise import Normaliser

#: Bytes of local memory that one thread has on a device.
LOCAL_BYTES = 512 * 1024


def declare(normaliser: Normaliser, path: str, targets: list[ast.expr], value: ast.Call, node: ast.stmt) -> None:
    """Record `name = cuda.shared.array(shape, dtype)`, or the same with cuda.local.array, in the unit."""
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise normaliser.error(f"cuda.{path}(shape, dtype) must be assigned to one name", node)
    given: dict[str, ast.expr] = dict(zip(("shape", "dtype", "alignment"), value.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in value.keywords if keyword.arg})
    if not {"shape", "dtype"} <= set(given):
        raise normaliser.error(f"cuda.{path} needs a shape and a dtype", node)
    shape = shape_of(normaliser, path, given["shape"], node)
    dtype = dtype_of(normaliser, path, given["dtype"], node)
    spelled = targets[0].id
    new = ArrayDeclaration(normaliser.rename(spelled), shape, dtype, node.lineno)
    if path == "local.array":
        total = new.nbytes + sum(array.nbytes for array in normaliser.unit.local.values())
        if total > LOCAL_BYTES:
            raise normaliser.error(
                f"with {spelled!r} the local arrays take {total:,} bytes of every thread's local memory; a device has "
                f"{LOCAL_BYTES:,}. Use a global array that you pass in",
                node,
            )
    known = normaliser.unit.arrays.get(new.name)
    inlined_again = normaliser.prefix and known and (known.shape, known.dtype) == (new.shape, new.dtype)
    if known is not None and not inlined_again:
        raise normaliser.error(f"{spelled!r} is declared twice; give the second array a name of its own", node)
    table = normaliser.unit.shared if path == "shared.array" else normaliser.unit.local
    table[new.name] = new


def shape_of(normaliser: Normaliser, path: str, given: ast.expr, node: ast.stmt) -> tuple[int, ...]:
    """The array's shape, which must be a constant."""
    shape = names.constant(normaliser.source, given)
    dimensions = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in dimensions):
        raise normaliser.error(
            f"the shape of cuda.{path} is {ast.unparse(given)!r}; it must be known when the kernel is compiled: "
            "a number, a global or captured constant, or a tuple of those. For a size known at the launch only, use "
            "cuda.shared.array(0, dtype) and kernel[blocks, threads, stream, bytes]",
            node,
        )
    return tuple(int(n) for n in dimensions)


def dtype_of(normaliser: Normaliser, path: str, given: ast.expr, node: ast.stmt) -> np.dtype:
    """The type of the array's elements: a constant, or `a.dtype` of a parameter that is an array."""
    if isinstance(given, ast.Attribute) and given.attr == "dtype" and isinstance(given.value, ast.Name):
        kind = normaliser.argument_type(given.value.id)
        if isinstance(kind, types.Array):
            return as_dtype(kind.dtype)
    try:
        dtype = as_dtype(names.constant(normaliser.source, given))
    except TypeError:
        raise normaliser.error(
            f"the dtype of cuda.{path} is {ast.unparse(given)!r}; it must be a Numba or NumPy type, or the dtype of an "
            "array that the kernel is given",
            node,
        ) from None
    if dtype.kind not in "biufcV":
        raise normaliser.error(f"cuda.{path} cannot hold {dtype}; it holds booleans, integers and floats", node)
    return dtype
