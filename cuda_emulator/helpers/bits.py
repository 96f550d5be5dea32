"""Device instructions without an operator in Python: bit counts and reversals, fused multiply-add, select.

    popc(x)          the number of bits that are 1            8 to 64 bits; the type of x
    clz(x)           zeros above the highest 1; width for 0   8 to 64 bits; the type of x
    ffs(x)           position of the lowest 1, from 1; or 0   32 and 64 bits; uint32
    brev(x)          the bits in reverse                      uint64 for uint64; else x becomes a uint32, as it is
    fma(a, b, c)     a * b + c, rounded once                  float32 if all are, else float64
    selp(p, a, b)    a if p else b, without a branch          a and b of one type
    cbrt(x)          the cube root                            float32 or float64
    rsqrt(x)         1 / sqrt(x)                              float32 or float64
    lanemask_lt(n)   a 1 for every lane below lane n          uint32

Widths and result types are those of numba-cuda. Beware of brev of an int64 (an ordinary int variable): it uses the low
32 bits, on a device and here. Other types raise a numba TypingError.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from .linking import helper


def _integer(name: str, x: Any, widths: tuple[int, ...]) -> Any:
    """The type of x without its literal value. Raises TypingError if it is no integer of one of these widths."""
    if isinstance(x, types.Boolean):  # a bool is a byte to a device
        x = types.int8
    if not isinstance(x, types.Integer) or x.bitwidth not in widths:
        bits = f"{widths[0]} to {widths[-1]}" if len(widths) > 2 else " or ".join(map(str, widths))
        raise TypingError(f"cuda.{name} takes an integer of {bits} bits, not {x}")
    return types.unliteral(x)


@intrinsic
def popc(typingctx, x):  # type: ignore[no-untyped-def]
    """The number of bits of x that are 1."""
    kind = _integer("popc", x, (8, 16, 32, 64))
    return kind(kind), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@intrinsic
def clz(typingctx, x):  # type: ignore[no-untyped-def]
    """The number of zeros above the highest 1 of x; its width if x is 0."""
    kind = _integer("clz", x, (8, 16, 32, 64))

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], context.get_constant(types.boolean, False))

    return kind(kind), build


@intrinsic
def ffs(typingctx, x):  # type: ignore[no-untyped-def]
    """The position of the lowest 1 of x, counted from 1; 0 if x is 0."""
    kind = _integer("ffs", x, (32, 64))

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        bits = arguments[0]
        zero = bits.type(0)
        place = builder.add(builder.cttz(bits, context.get_constant(types.boolean, False)), bits.type(1))
        place = builder.select(builder.icmp_unsigned("==", bits, zero), zero, place)
        return context.cast(builder, place, kind, types.uint32)

    return types.uint32(kind), build


@intrinsic
def brev(typingctx, x):  # type: ignore[no-untyped-def]
    """The bits of x in reverse."""
    kind = types.uint64 if _integer("brev", x, (8, 16, 32, 64)) == types.uint64 else types.uint32
    return kind(kind), lambda context, builder, signature, arguments: builder.bitreverse(arguments[0])


def _float_of(name: str, arguments: tuple[Any, ...]) -> Any:
    """float32 if every argument fits into it, else float64. Raises TypingError for other types."""
    for argument in arguments:
        if not isinstance(argument, types.Integer | types.Boolean) and argument not in (types.float32, types.float64):
            raise TypingError(f"cuda.{name} takes float32 and float64, not {argument}")
    fits = (
        argument == types.float32 or isinstance(argument, types.Boolean) or argument.bitwidth <= 16
        for argument in arguments
    )
    return types.float32 if all(fits) else types.float64


@intrinsic
def fma(typingctx, a, b, c):  # type: ignore[no-untyped-def]
    """a * b + c, rounded once at the end."""
    kind = _float_of("fma", (a, b, c))
    return kind(kind, kind, kind), lambda context, builder, signature, arguments: builder.fma(*arguments)


@intrinsic
def selp(typingctx, predicate, a, b):  # type: ignore[no-untyped-def]
    """a if the predicate is true, else b; both are evaluated."""
    kind, other = types.unliteral(a), types.unliteral(b)
    works = (
        types.float32,
        types.float64,
        types.int16,
        types.uint16,
        types.int32,
        types.uint32,
        types.int64,
        types.uint64,
    )
    if kind != other or kind not in works:
        raise TypingError(
            f"cuda.selp chooses between two numbers of one type, 16 to 64 bits wide; these are {kind} and {other}: "
            "convert one of them, for instance np.float32(0)"
        )
    if not isinstance(predicate, types.Boolean):
        raise TypingError(f"cuda.selp takes a bool as its first argument, not {predicate}: compare it with 0")

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(*arguments)

    return kind(types.boolean, kind, kind), build


@intrinsic
def cbrt(typingctx, x):  # type: ignore[no-untyped-def]
    """The cube root of x."""
    kind = _float_of("cbrt", (x,))

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.compile_internal(builder, lambda x: np.cbrt(x), signature, arguments)

    return kind(kind), build


@intrinsic
def rsqrt(typingctx, x):  # type: ignore[no-untyped-def]
    """1 / sqrt(x); infinity for 0, NaN for a negative x."""
    kind = _float_of("rsqrt", (x,))

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        root = context.compile_internal(builder, lambda x: math.sqrt(x), signature, arguments)
        return builder.fdiv(root.type(1.0), root)

    return kind(kind), build


@intrinsic
def fmod(typingctx, x, y):  # type: ignore[no-untyped-def]
    """C's fmod: the remainder of x / y with the sign of x. Integers are converted to float64."""
    kind = types.float32 if (x, y) == (types.float32, types.float32) else types.float64

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        operands = [
            context.cast(builder, value, given, kind) for value, given in zip(arguments, signature.args, strict=True)
        ]
        return builder.frem(*operands)

    return kind(x, y), build


@helper(inlined=True)
def lanemask_lt(lane):  # type: ignore[no-untyped-def]
    """A 1 for every lane below `lane` (0 to 31)."""
    return np.uint32((np.int64(1) << np.int64(lane)) - 1)


__all__ = ["brev", "cbrt", "clz", "ffs", "fma", "fmod", "lanemask_lt", "popc", "rsqrt", "selp"]
