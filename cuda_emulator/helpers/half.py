"""float16 for Numba's CPU target, which knows the type's name and nothing else of it.

As on a device, each operation is computed in half precision, and rounded once; a product and a sum may be fused. LLVM
does that with the processor's conversions to and from float32. Numba is taught the type when a kernel first needs it;
code without float16 is typed and compiled as before.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import boxing, types
from numba.core.datamodel import default_manager, models
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.pythonapi import NativeValue, _unboxers
from numba.core.registry import cpu_target
from numba.core.typing import signature

from ..errors import KernelError

__all__: list[str] = []

HALF = types.float16
ARITHMETIC = (*("add", "sub", "mul", "truediv"), *("iadd", "isub", "imul", "itruediv"))
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
MATHEMATICS = ("sin", "cos", "tanh", "exp", "exp2", "log", "log2", "log10", "sqrt", "fabs", "floor", "ceil", "trunc")


def has_half(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is float16, or a record with one."""
    inner = [part[0] for part in (dtype.fields or {}).values()] + ([dtype.base] if dtype.subdtype else [])
    return dtype == np.float16 or any(map(has_half, inner))


@functools.cache
def learn_float16() -> None:
    """Teach Numba's CPU target float16, once. Raises KernelError on a processor that cannot convert it."""
    target = cpu_target.target_context.codegen()
    if llvmlite.binding.get_process_triple().startswith("x86_64") and "+f16c" not in target._tm_features:
        raise KernelError("float16 needs a processor with F16C, and Numba's settings must let it be used: use float32")
    cpu_target.typing_context.refresh()
    default_manager.register(types.Float, _FloatModel)
    _unboxers.functions[types.Float] = _unboxed(boxing.unbox_float)
    lower_cast(types.float64, HALF)(_rounded_once)
    for name in ARITHMETIC:
        _take(getattr(operator, name), signature(HALF, HALF, HALF))
    for division in (operator.truediv, operator.itruediv):  # Numba's looks for a zero, in float32 and float64
        lower_builtin(division, HALF, HALF)(lambda context, builder, sig, arguments: builder.fdiv(*arguments))
    for name in COMPARISONS:
        _take(getattr(operator, name), signature(types.boolean, HALF, HALF))
    for function in (operator.neg, operator.pos, abs):
        _take(function, signature(HALF, HALF))
    for name in MATHEMATICS:
        function = getattr(math, name)
        _take(function, signature(HALF, HALF))
        lower_builtin(function, HALF)(_in_float32(function))
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _take(function: Any, case: Any) -> None:
    """Let a function that Numba knows take float16."""
    for template in cpu_target.typing_context.resolve_value_type(function).templates:
        cases = getattr(template, "cases", None)
        if cases is not None and case not in cases:
            template.cases = [*cases, case]  # its own: the functions of `math` share a list


class _FloatModel(models.FloatModel):
    """How LLVM sees a float, with float16."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        if fe_type == HALF:
            models.PrimitiveModel.__init__(self, dmm, fe_type, ir.HalfType())
        else:
            super().__init__(dmm, fe_type)


def _unboxed(others: Any) -> Any:
    """A Python number as a float: a float16 comes as a float64, and is one exactly."""

    def unbox(typ, obj, c):  # type: ignore[no-untyped-def]
        if typ != HALF:
            return others(typ, obj, c)
        whole = others(types.float64, obj, c)
        return NativeValue(
            c.builder.fptrunc(c.builder.fptrunc(whole.value, ir.FloatType()), ir.HalfType()), whole.is_error
        )

    return unbox


def _rounded_once(context, builder, fromty, toty, value):  # type: ignore[no-untyped-def]
    """float64 to float16 by way of a float32 that is rounded to an odd last bit where it is not exact: from that one
    the second rounding gives what a single one would. The processor has no conversion of its own."""
    single, word = ir.FloatType(), ir.IntType(32)
    near = builder.fptrunc(value, single)
    bits, back = builder.bitcast(near, word), builder.fpext(near, value.type)
    inexact = builder.fcmp_ordered("!=", back, value)
    even = builder.icmp_unsigned("==", builder.and_(bits, word(1)), word(0))
    magnitude = context.get_function(abs, signature(fromty, fromty))
    smaller = builder.fcmp_ordered("<", magnitude(builder, [back]), magnitude(builder, [value]))
    other = builder.add(bits, builder.select(smaller, word(1), word(-1)))
    odd = builder.select(builder.and_(inexact, even), other, bits)
    return builder.fptrunc(builder.bitcast(odd, single), ir.HalfType())


def _in_float32(function: Any) -> Any:
    """The lowering of a function of `math` for float16: computed in float32, and rounded."""

    def lower(context, builder, sig, arguments):  # type: ignore[no-untyped-def]
        single = context.cast(builder, arguments[0], HALF, types.float32)
        if function in (math.floor, math.ceil, math.trunc):  # Numba's give an integer, and infinity has none
            whole = builder.module.declare_intrinsic(f"llvm.{function.__name__}", [single.type])
            return builder.fptrunc(builder.call(whole, [single]), ir.HalfType())
        computed = context.get_function(function, signature(types.float32, types.float32))(builder, [single])
        return builder.fptrunc(computed, ir.HalfType())

    return lower
