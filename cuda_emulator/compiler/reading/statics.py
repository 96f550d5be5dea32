"""Expressions that replace a global name in the generated source: a literal, or the dotted name of a NumPy or math
function.

The generated source imports `np`, `math`, `cmath` and `operator`; it has no access to the learner's module.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import enum
import math
import operator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError
from numba.np import numpy_support

from ...helpers.half import has_half, learn_float16
from ..trees import call, constant, expression

MODULES = {"math": math, "cmath": cmath, "operator": operator, "np": np}
#: Names with a meaning in the generated source: a learner's variable with such a name is renamed.
RESERVED = frozenset(MODULES) | frozenset(vars(builtins)) | {"njit", "run", "run_block", "run_thread"}


#: NumPy's functions that make arrays. Numba compiles them for the CPU; a device cannot allocate memory.
NEW_ARRAYS = frozenset(
    getattr(np, name)
    for name in (
        *("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "arange", "linspace"),
        *("array", "asarray", "eye", "identity", "copy", "concatenate", "stack", "hstack", "vstack", "repeat"),
    )
)


def as_dtype(value: Any) -> np.dtype[Any]:
    """The NumPy dtype that `float32`, `np.float32`, 'f4' or a record type stands for. TypeError for any other value."""
    if isinstance(value, types.Type):
        try:
            dtype = np.dtype(numpy_support.as_dtype(value))
        except NumbaError:
            raise TypeError(f"{value} has no NumPy dtype") from None
    else:
        dtype = np.dtype(np.bool_ if value is bool else value)
    if has_half(dtype):
        learn_float16()
    return dtype


def static_expression(value: Any) -> ast.expr | None:
    """The expression for `value` in the generated source; None if a kernel cannot use such a value.

    An array has none: it becomes an argument (expressions.py).
    """
    if isinstance(value, enum.IntEnum):
        value = int(value)
    if value is None or isinstance(value, bool | str):
        return constant(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        inner = static_expression(value.item())
        return None if inner is None else call(f"np.{as_dtype(value.dtype).name}", inner)
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return expression("np.nan" if math.isnan(value) else "np.inf" if value > 0 else "(-np.inf)")
        return constant(value) if value >= 0 else ast.UnaryOp(op=ast.USub(), operand=constant(-value))
    if isinstance(value, complex):
        parts = [static_expression(value.real), static_expression(value.imag)]
        return call("complex", *[part for part in parts if part is not None])
    if isinstance(value, tuple):
        items = [static_expression(item) for item in value]
        if any(item is None for item in items):
            return None
        return ast.Tuple(elts=[item for item in items if item is not None], ctx=ast.Load())
    return _function(value)


def _function(value: Any) -> ast.expr | None:
    """The dotted name of a number type, or of a function of math, NumPy or the builtins; None for anything else."""
    if isinstance(value, types.Number | types.Boolean) or (isinstance(value, type) and issubclass(value, np.generic)):
        dtype = as_dtype(value)
        return expression("np.bool_" if dtype == np.bool_ else f"np.{dtype.name}")
    if value is math.fmod:  # devices have it; Numba's CPU does not
        return expression("_fmod")
    if value is math.nextafter:
        return expression("np.nextafter")
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or (isinstance(value, FunctionType) and value.__module__ not in ("numpy", "operator")):
        return None
    if getattr(builtins, name, None) is value:
        return expression(name)
    for module, contents in MODULES.items():
        if getattr(contents, name, None) is value:
            return expression(f"{module}.{name}")
    return None


def describe_kind(value: Any) -> str:
    """The kind of a value in words, for messages: `a list`, `the module os`, `a plain Python function`."""
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, FunctionType):
        return "a plain Python function"
    if isinstance(value, BuiltinFunctionType):
        return "a built-in function that kernels do not have"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
