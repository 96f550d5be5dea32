"""Functions of generated code for elements of arrays, whose indices they check.

A[at(A.shape, (i, j), status, site, block, thread)]     A[i, j]; an index out of bounds ends the run

A kernel can have hundreds of checks, and compiling it takes the longer the more instructions they have. So what is
needed only when an index is refused does not stand at each check: the report is written by a function of its own, and
a run ends at one place of each function (`end_run` in status.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from .memory import freeze
from .status import (
    BLOCK,
    CODE,
    DETAIL,
    NEGATIVE_INDEX,
    OUT_OF_BOUNDS,
    SHIFT,
    SITE,
    THREAD,
    end_run,
    entry,
)

__all__ = ["at", "at_shifted", "at_strict", "extents"]

WORD = ir.IntType(64)


def checked_index(strict: bool, shifted: bool = False) -> Any:
    """Make `at`, `at_strict` or `at_shifted`: an intrinsic, so that a check is a few instructions."""

    @intrinsic
    def at(typingctx, shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        is_tuple = isinstance(index, types.BaseTuple)
        parts = [types.unliteral(part) for part in (index.types if is_tuple else [index])]
        has_shape = isinstance(shape, types.BaseTuple) and len(shape) > 0
        if not has_shape or isinstance(types.unliteral(index), types.UnicodeType):
            return index(shape, index, status, site, block, thread), _unchanged
        for part in parts:
            if not isinstance(part, types.Integer | types.SliceType):
                raise TypingError(f"an index of type {part} is not supported by the emulator: use integers and slices")
        if len(parts) > len(shape):
            raise TypingError(f"an array of {len(shape)} dimensions is indexed with {len(parts)} numbers")
        results = [types.uint64 if isinstance(part, types.Integer) else part for part in parts]
        result = types.Tuple(results) if is_tuple else results[0]

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            extents = cgutils.unpack_tuple(builder, arguments[0])
            indices = cgutils.unpack_tuple(builder, arguments[1]) if is_tuple else [arguments[1]]
            places, came, outside = [], [], []
            shift = None
            if shifted:
                shift = builder.load(entry(context, builder, signature.args[2], arguments[2], SHIFT))
            for value, kind, extent in zip(indices, parts, extents, strict=False):
                if isinstance(kind, types.SliceType):  # Python shortens a slice that is too long: nothing to check
                    places.append(value)
                    came.append(ir.Constant(WORD, 0))
                    outside.append(ir.Constant(ir.IntType(1), 0))
                    continue
                number, place = _place(context, builder, value, kind, extent, strict, shift)
                came.append(number)
                places.append(place)
                outside.append(builder.icmp_unsigned(">=", place, extent))
            refused = outside[0]
            for bad in outside[1:]:
                refused = builder.or_(refused, bad)
            with builder.if_then(refused, likely=False):
                _report(context, builder, (arguments[2:], signature.args[2:]), came, extents, outside, strict)
                end_run(context, builder)
            return context.make_tuple(builder, result, places) if is_tuple else places[0]

        return result(shape, index, status, site, block, thread), build

    return at


def _place(context, builder, value, kind, extent, strict, shift=None):  # type: ignore[no-untyped-def]
    """(index as a 64-bit number for the message, position along the axis); an index outside gives a large position."""
    # An impossible conversion like int(1e30) is undefined in LLVM, and may be a different number at each use. Frozen,
    # it is one number, for the check and for the access.
    number = freeze(builder, context.cast(builder, value, kind, types.int64 if kind.signed else types.uint64))
    if not kind.signed:  # the message shows a signed number, so a larger one is reported as the largest
        largest = number.type(2**63 - 1)
        return builder.select(builder.icmp_unsigned(">", number, largest), largest, number), number
    if strict:
        return number, number
    wrapped = builder.add(number, extent)
    if shift is not None:
        filled = builder.select(builder.icmp_unsigned("==", extent, extent.type(0)), extent.type(1), extent)
        elsewhere = builder.urem(builder.add(wrapped, shift), filled)
        wrapped = builder.select(builder.icmp_unsigned("<", wrapped, extent), elsewhere, wrapped)
    return number, builder.select(builder.icmp_signed("<", number, number.type(0)), wrapped, number)


def _unchanged(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    """Return a field's name, or an index of a value without a shape, unchanged: there is nothing to check."""
    context.nrt.incref(builder, signature.return_type, arguments[1])
    return arguments[1]


def _report(context, builder, given, came, extents, outside, strict):  # type: ignore[no-untyped-def]
    """Call what writes a refused access to the status. given: (status, site, block, thread), and their types"""
    axes = len(came)
    name = f"cuda_emulator_refused_{axes}{'_strict' if strict else ''}"
    flag = ir.IntType(1)
    kind = ir.FunctionType(ir.VoidType(), [WORD.as_pointer(), *[WORD] * 3, *[WORD] * (2 * axes), *[flag] * axes])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    if function.is_declaration:
        function.linkage = "linkonce_odr"  # each module that is linked has one; all are the same
        function.attributes.add("cold")
        function.attributes.add("noinline")
        _write_report(function, axes, strict)
    (status, *numbers), (_, *kinds) = given
    words = [context.cast(builder, value, kind, types.int64) for value, kind in zip(numbers, kinds, strict=True)]
    builder.call(function, [status, *words, *came, *extents[:axes], *outside])


def _write_report(function, axes, strict):  # type: ignore[no-untyped-def]
    """The function that writes a report: the axis, and up to three axes of the index and of the shape."""
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    status, *place = function.args[:4]
    came, extents, outside = (function.args[4 + k * axes : 4 + (k + 1) * axes] for k in range(3))

    def put(position, value):  # type: ignore[no-untyped-def]
        builder.store(value, builder.gep(status, [ir.Constant(WORD, position)]))

    axis, index, extent = ir.Constant(WORD, axes - 1), came[-1], extents[-1]
    for k in reversed(range(axes - 1)):
        axis = builder.select(outside[k], ir.Constant(WORD, k), axis)
        index = builder.select(outside[k], came[k], index)
        extent = builder.select(outside[k], extents[k], extent)
    code = ir.Constant(WORD, OUT_OF_BOUNDS)
    if strict:  # a negative index that is inside when counted from the end is refused too
        wraps = builder.icmp_unsigned("<", builder.add(index, extent), extent)
        negative = builder.and_(builder.icmp_signed("<", index, ir.Constant(WORD, 0)), wraps)
        code = builder.select(negative, ir.Constant(WORD, NEGATIVE_INDEX), code)
    put(CODE, code)
    for position, number in zip((SITE, BLOCK, THREAD), place, strict=True):
        put(position, number)
    put(DETAIL, axis)
    for k in range(3):
        put(DETAIL + 1 + k, came[k] if k < axes else ir.Constant(WORD, 0))
        put(DETAIL + 4 + k, extents[k] if k < axes else ir.Constant(WORD, 0))
    builder.ret_void()


#: The index as unsigned numbers, for array[at(array.shape, index, ...)]; a negative index counts from the end. An index
#: out of bounds ends the run (status: OUT_OF_BOUNDS).
at = checked_index(strict=False)
#: The same; a negative index is refused too (status: NEGATIVE_INDEX), since on a device it wraps silently.
at_strict = checked_index(strict=True)
#: As `at`, but a negative index reads from status[SHIFT] elements further on: another value, if that is not 0.
at_shifted = checked_index(strict=False, shifted=True)


@intrinsic
def extents(typingctx, value):  # type: ignore[no-untyped-def]
    """The shape of an array, or () for any other value: a device function is written without its argument types."""
    if isinstance(value, types.Array):
        shape = types.UniTuple(types.intp, value.ndim)

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return context.make_array(signature.args[0])(context, builder, value=arguments[0]).shape

        return shape(value), build
    empty = types.Tuple(())
    return empty(value), lambda context, builder, signature, arguments: context.get_dummy_value()
