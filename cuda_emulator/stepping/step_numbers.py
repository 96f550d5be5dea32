"""Arithmetic in step mode: Python computes the value, Numba's rules decide its type.

Python and NumPy differ from Numba in the type of a result: a float32 times the literal 2.0 is a float32 in NumPy and a
float64 in Numba; the sum of two int32 is an int64 in Numba; and True + True is True in NumPy. So every operator of a
kernel becomes a call of a function of this module (step_rewrite.py rewrites it), which uses Numba's own typing rules.

While a kernel runs, an int64 is an int, a float64 a float and a bool a bool, because they print best; every other value
is a NumPy scalar. Integers wrap around at 64 bits as they do in compiled code.

One difference from compiled code remains: a variable that is float32 on one path and float64 on another is always
float64 in Numba; here it has the type of its last value. The same holds for the two values of `a if c else b`, unless
one of them is a constant, as in `x if inside else 0.0` (`unified`).
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core.registry import cpu_target
from numba.np import numpy_support

from ..helpers.half import learn_float16

NAN, INFINITY = float("nan"), float("inf")
SMALLEST, LARGEST = -(2**63), 2**63 - 1

#: {name of the AST operator: name of the function in this module}.
OPERATORS = {
    kind.__name__: name
    for kind, name in (
        *((ast.Add, "add"), (ast.Sub, "sub"), (ast.Mult, "mul"), (ast.Div, "truediv"), (ast.FloorDiv, "floordiv")),
        *((ast.Mod, "mod"), (ast.Pow, "pow"), (ast.MatMult, "matmul"), (ast.LShift, "lshift"), (ast.RShift, "rshift")),
        *((ast.BitAnd, "and_"), (ast.BitOr, "or_"), (ast.BitXor, "xor")),
        *((ast.USub, "neg"), (ast.UAdd, "pos"), (ast.Invert, "invert")),
    )
}

_NUMBA_TYPES: dict[type, Any] = {
    kind: numba.from_dtype(np.dtype(kind))
    for kind in (
        *(int, float, bool, complex, np.bool_, np.complex64, np.complex128, np.float16, np.float32, np.float64),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    )
}


def plain(value: Any) -> Any:
    """Convert np.int64, np.float64 and np.bool_ to int, float and bool; return other values unchanged."""
    if isinstance(value, np.int64 | np.float64 | np.bool_):
        return value.item()
    return value


def exact(value: Any) -> Any:
    """The exact Python number for a value, for comparisons: 0.1 and float32(0.1) differ, as they do in Numba."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value


def strong(value: Any) -> Any:
    """Convert an int to np.int64 (or np.uint64 if it needs that), and a float to np.float64; return others as is."""
    if type(value) is int:
        return np.int64(value) if SMALLEST <= value <= LARGEST else np.uint64(value & (2**64 - 1))
    return np.float64(value) if type(value) is float else value


def convert(kind: Any, value: Any = 0) -> Any:
    """`value` as `kind` (int, float, bool, a NumPy scalar type or dtype, a Numba type), cast as C does."""
    if not isinstance(value, int | float | complex | np.generic):
        return kind(value)
    dtype = numpy_dtype(kind)
    if dtype.kind not in "iu":
        return plain(dtype.type(exact(value)))
    bits = 8 * dtype.itemsize
    if isinstance(value, float | np.floating):
        # C and LLVM leave the result open for infinity and NaN; here it is the smallest integer.
        value = int(value) if math.isfinite(value) else -(2 ** (bits - 1))
    whole = int(value) & (2**bits - 1)
    if dtype.kind == "i" and whole >= 2 ** (bits - 1):
        whole -= 2**bits
    return whole if dtype == np.int64 else dtype.type(whole)


@functools.cache
def numpy_dtype(kind: Any) -> np.dtype[Any]:
    """The dtype of int, of a NumPy or Numba type, or of a name like "float32"."""
    return np.dtype(numpy_support.as_dtype(kind) if isinstance(kind, numba.types.Type) else kind)


#: NumPy's for two functions of math, as in the generated source.
_NUMPYS: dict[Any, Any] = {math.fmod: np.fmod, math.nextafter: np.nextafter}


@functools.cache
def _signature(function: Any, types: tuple[type, ...]) -> tuple[tuple[np.dtype[Any], ...], np.dtype[Any]] | None:
    """(dtypes that Numba casts the operands to, dtype of the result); None if an operand is no number."""
    if not all(kind in _NUMBA_TYPES for kind in types):
        return None
    if np.float16 in types:
        learn_float16()
    context = cpu_target.typing_context
    context.refresh()
    function = _NUMPYS.get(function, function)
    found = context.resolve_function_type(function, tuple(_NUMBA_TYPES[kind] for kind in types), {})
    if found is None:
        return None
    return tuple(numpy_dtype(kind) for kind in found.args), numpy_dtype(found.return_type)


def _typed(function: Callable[..., Any], *operands: Any) -> Any:
    signature = _signature(function, tuple(type(operand) for operand in operands))
    if signature is None:
        return function(*operands)
    casts, result = signature
    if result.kind in "iu" and all(cast.kind in "biu" for cast in casts):
        return convert(result, function(*(int(operand) for operand in operands)))
    values = (cast.type(exact(operand)) for cast, operand in zip(casts, operands, strict=True))
    return convert(result, function(*values))


def _fast(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator with a fast path for two ints or two floats of one type, the most frequent cases."""

    def operate(a: Any, b: Any) -> Any:
        if type(a) is type(b) is float or type(a) is type(b) is np.float32:
            return function(a, b)
        if type(a) is type(b) is int:
            result = function(a, b)
            return result if SMALLEST <= result <= LARGEST else convert(np.int64, result)
        return _typed(function, a, b)

    return operate


def _careful(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: _typed(function, a, b)


add, sub, mul = _fast(operator.add), _fast(operator.sub), _fast(operator.mul)
and_, or_, xor = _careful(operator.and_), _careful(operator.or_), _careful(operator.xor)
matmul = operator.matmul


def truediv(a: Any, b: Any) -> Any:
    """a / b; x / 0 is infinite or NaN, as on a device."""
    return _typed(operator.truediv, strong(a), strong(b))


def floordiv(a: Any, b: Any) -> Any:
    """a // b; an integer divided by 0 is 0, as in code that Numba compiles with error_model='numpy'."""
    return 0 if _whole(a, b) and b == 0 else _typed(operator.floordiv, a, b)


def mod(a: Any, b: Any) -> Any:
    """a % b, with the sign of b; an integer modulo 0 gives 0."""
    return 0 if _whole(a, b) and b == 0 else _typed(operator.mod, a, b)


def pow(a: Any, b: Any) -> Any:
    """a ** b; an integer to a negative power is truncated to an integer."""
    if _whole(a, b) and b < 0:
        return int(exact(a) ** exact(b)) if a != 0 else SMALLEST
    return _typed(operator.pow, a, b)


def lshift(a: Any, b: Any) -> Any:
    """a << b; the shift is b modulo 64, as in the processor."""
    return _typed(operator.lshift, a, int(b) % 64)


def rshift(a: Any, b: Any) -> Any:
    """a >> b; the shift is b modulo 64, and the sign does not change."""
    return _typed(operator.rshift, a, int(b) % 64)


def neg(a: Any) -> Any:
    """-a."""
    return _typed(operator.neg, a)


def pos(a: Any) -> Any:
    """+a."""
    return _typed(operator.pos, a)


def invert(a: Any) -> Any:
    """~a; for a bool, `not a`."""
    return not a if isinstance(a, bool | np.bool_) else _typed(operator.invert, a)


def _whole(a: Any, b: Any) -> bool:
    return isinstance(a, int | np.integer | np.bool_) and isinstance(b, int | np.integer | np.bool_)


def least(*values: Any) -> Any:
    """min(a, b, ...) in the common type of all arguments."""
    return _select(operator.lt, values)


def greatest(*values: Any) -> Any:
    """max(a, b, ...) in the common type of all arguments."""
    return _select(operator.gt, values)


def _select(better: Callable[[Any, Any], bool], values: tuple[Any, ...]) -> Any:
    if len(values) == 1:
        values = tuple(values[0])
    best = values[0]
    for value in values[1:]:
        if better(exact(value), exact(best)):
            best = value
    return unified(best, *values)


def unified(value: Any, *others: Any) -> Any:
    """`value` in the common type of all arguments; unchanged if one is no number, or if they have no common type."""
    kinds = {type(each) for each in (value, *others)}
    if len(kinds) == 1 or not all(kind in _NUMBA_TYPES for kind in kinds):
        return value
    common = cpu_target.typing_context.unify_types(*(_NUMBA_TYPES[kind] for kind in kinds))
    return value if common is None else convert(common, value)


#: NumPy's versions of functions of `math` that raise an exception for which a device returns infinity or NaN.
_UFUNCS = {
    name: getattr(np, name.replace("a", "arc", 1) if name.startswith("a") else name)
    for name in (
        *("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("acos", "asin", "atan", "atan2", "acosh", "asinh", "atanh", "fmod", "hypot", "fabs"),
    )
} | {"pow": np.power}


def mathematics(function: Callable[..., Any], *operands: Any) -> Any:
    """The result of a function of `math`, computed in float64 and converted to Numba's type (float32 for a float32)."""
    signature = _signature(function, tuple(type(operand) for operand in operands))
    ufunc = _UFUNCS.get(function.__name__)
    if ufunc is not None:
        value = ufunc(*(np.float64(operand) for operand in operands))
    else:
        try:
            value = function(*(exact(operand) for operand in operands))
        except OverflowError:
            value = INFINITY
        except ValueError:
            value = NAN
    return value if signature is None or isinstance(value, tuple) else convert(signature[1], value)


def universal(function: np.ufunc, *operands: Any) -> Any:
    """The result of a NumPy function of single numbers, like np.maximum; an int is an int64, a float a float64."""
    return plain(function(*(strong(operand) for operand in operands)))
