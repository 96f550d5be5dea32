"""Checked indices, memory of one thread, masks and barriers: what generated code calls besides warps and atomics.

A[at(A.shape, (i, j), status, site, block, thread)]      A[i, j], refused where it is out of bounds
carray(stack_array(64, np.float32), (8, 8))        a local array that the compiler can keep in registers
anyone(mask)                                       is a thread left in the mask?
barrier(here, alive, status, site, block)          have all threads come that are still alive?
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .status import (
    BLOCK,
    CODE,
    DETAIL,
    DIVERGED_SITE,
    DIVERGENT_BARRIER,
    EXITED_BLOCK,
    EXITED_COUNT,
    EXITED_SITE,
    NEGATIVE_INDEX,
    OUT_OF_BOUNDS,
    RAISED,
    SITE,
    THREAD,
    Stopped,
    _as_array,
    fail,
)

__all__ = [
    *("anyone", "at", "at_strict", "barrier", "copy_mask", "extents", "fill_bytes", "met_in_part", "raise_error"),
    *("some_returned", "stack_array"),
]


def checked_index(strict: bool) -> Any:
    """The function `at`, or `at_strict`: an intrinsic, so that a check is a few instructions in place and no call."""

    @intrinsic
    def at(typingctx, shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        parts = list(index.types) if isinstance(index, types.BaseTuple) else [index]
        is_shape = isinstance(shape, types.BaseTuple) and len(parts) <= len(shape)
        if not is_shape or not parts or not all(isinstance(types.unliteral(part), types.Integer) for part in parts):
            return index(shape, index, status, site, block, thread), _unchanged
        place = types.uint64
        result = types.UniTuple(place, len(parts)) if isinstance(index, types.BaseTuple) else place

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            extents = cgutils.unpack_tuple(builder, arguments[0])
            given = signature.args[1]
            came = cgutils.unpack_tuple(builder, arguments[1]) if isinstance(given, types.BaseTuple) else [arguments[1]]
            came = [context.cast(builder, value, kind, types.int64) for value, kind in zip(came, parts, strict=True)]
            zero = ir.Constant(ir.IntType(64), 0)
            places, outside = [], []
            for value, extent in zip(came, extents, strict=False):
                wrapped = builder.select(builder.icmp_signed("<", value, zero), builder.add(value, extent), value)
                places.append(value if strict else wrapped)
                outside.append(builder.icmp_unsigned(">=", places[-1], extent))
            refused = outside[0]
            for bad in outside[1:]:
                refused = builder.or_(refused, bad)
            with builder.if_then(refused, likely=False):
                _record(context, builder, signature, arguments, came, extents, outside)
                context.call_conv.return_user_exc(builder, Stopped, ())
            return context.make_tuple(builder, result, places) if isinstance(given, types.BaseTuple) else places[0]

        return result(shape, index, status, site, block, thread), build

    return at


def _unchanged(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    """Whatever is no array index (a slice, a field's name, an index into something without a shape) stays as it is."""
    context.nrt.incref(builder, signature.return_type, arguments[1])
    return arguments[1]


def _record(context, builder, signature, arguments, came, extents, outside):  # type: ignore[no-untyped-def]
    """Write into the status what was refused: the axis, and up to three axes of the index and of the shape."""
    word = ir.IntType(64)

    def put(position, value):  # type: ignore[no-untyped-def]
        builder.store(value, builder.gep(arguments[2], [ir.Constant(word, position)]))

    axis, index, extent = ir.Constant(word, len(came) - 1), came[-1], extents[len(came) - 1]
    for k in reversed(range(len(came) - 1)):
        axis = builder.select(outside[k], ir.Constant(word, k), axis)
        index = builder.select(outside[k], came[k], index)
        extent = builder.select(outside[k], extents[k], extent)
    # Within bounds when counted from the end, and refused all the same: only the strict check does that.
    wraps = builder.icmp_unsigned("<", builder.add(index, extent), extent)
    negative = builder.and_(builder.icmp_signed("<", index, ir.Constant(word, 0)), wraps)
    put(CODE, builder.select(negative, ir.Constant(word, NEGATIVE_INDEX), ir.Constant(word, OUT_OF_BOUNDS)))
    for position, number in ((SITE, 3), (BLOCK, 4), (THREAD, 5)):
        put(position, context.cast(builder, arguments[number], signature.args[number], types.int64))
    put(DETAIL, axis)
    for k in range(3):
        put(DETAIL + 1 + k, came[k] if k < len(came) else ir.Constant(word, 0))
        put(DETAIL + 4 + k, extents[k] if k < len(extents) else ir.Constant(word, 0))


#: The index as unsigned numbers, negative ones counted from the end, for array[at(array.shape, index, ...)]. One out
#: of bounds ends the run (status: OUT_OF_BOUNDS).
at = checked_index(strict=False)
#: The same, and a negative index is refused, too (status: NEGATIVE_INDEX): on a device it wraps silently.
at_strict = checked_index(strict=True)


@intrinsic
def extents(typingctx, value):  # type: ignore[no-untyped-def]
    """The shape of an array; () of anything else. For device functions, which do not know what they are given."""
    if isinstance(value, types.Array):
        shape = types.UniTuple(types.intp, value.ndim)

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return context.make_array(signature.args[0])(context, builder, value=arguments[0]).shape

        return shape(value), build
    empty = types.Tuple(())
    return empty(value), lambda context, builder, signature, arguments: context.get_dummy_value()


@intrinsic(prefer_literal=True)
def stack_array(typingctx, count, dtype):  # type: ignore[no-untyped-def]
    """A pointer to `count` elements of uninitialised memory in the function's own frame: a thread's local array.

    A frame's memory can become registers, which is what a device does with small local arrays.
    """
    element = dtype.dtype
    length = count.literal_value

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = context.get_data_type(element)
        size = ir.Constant(ir.IntType(64), length)
        with builder.goto_entry_block():
            pointer = builder.alloca(kind, size=size)
            pointer.align = 64
        return builder.bitcast(pointer, context.get_value_type(signature.return_type))

    return types.CPointer(element)(count, dtype), build


@intrinsic
def fill_bytes(typingctx, array, byte):  # type: ignore[no-untyped-def]
    """Set every byte of a contiguous array."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        value = builder.trunc(arguments[1], ir.IntType(8))
        cgutils.memset(builder, view.data, builder.mul(view.nitems, view.itemsize), value)
        return context.get_dummy_value()

    return types.none(array, byte), build


@intrinsic
def copy_mask(typingctx, target, source):  # type: ignore[no-untyped-def]
    """Make one mask equal to another of the same length."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to, come_from = (
            context.make_array(kind)(context, builder, value=value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        cgutils.raw_memcpy(builder, to.data, come_from.data, to.nitems, to.itemsize)
        return context.get_dummy_value()

    return types.none(target, source), build


@njit(nogil=True)
def anyone(mask):  # type: ignore[no-untyped-def]
    """Whether a thread is left in the mask."""
    for thread in range(mask.size):  # noqa: SIM110 - any() of a generator is slow code in Numba
        if mask[thread]:
            return True
    return False


@njit(nogil=True)
def _count(here, alive):  # type: ignore[no-untyped-def]
    present = 0
    living = 0
    for thread in range(here.size):
        present += here[thread]
        living += here[thread] if alive is None else alive[thread]
    return present, (here.size if alive is None else living)


@njit(nogil=True)
def barrier(here, alive, status, site, block):  # type: ignore[no-untyped-def]
    """A barrier under a mask: all threads that are still alive have to be here, or none."""
    present, living = _count(here, alive)
    if present != 0 and present != living:
        fail(status, DIVERGENT_BARRIER, site, block, -1, present, living, here.size)


@njit(nogil=True)
def met_in_part(here, alive, status, site, block):  # type: ignore[no-untyped-def]
    """The same where the learner asked for a warning only (divergence="warn"): note it and go on."""
    present, living = _count(here, alive)
    record = _as_array(status)
    if present != 0 and present != living and record[DIVERGED_SITE] == 0:
        record[DIVERGED_SITE] = site + 1


@njit(nogil=True)
def some_returned(alive, status, site, block):  # type: ignore[no-untyped-def]
    """Note, once, that threads had returned before a barrier."""
    record = _as_array(status)
    if record[EXITED_SITE] == 0:
        living = 0
        for thread in range(alive.size):
            living += alive[thread]
        if living < alive.size:
            record[EXITED_SITE] = site + 1
            record[EXITED_COUNT] = alive.size - living
            record[EXITED_BLOCK] = block


@njit(nogil=True)
def raise_error(status, site, block, thread):  # type: ignore[no-untyped-def]
    """The learner's own assert or raise."""
    fail(status, RAISED, site, block, thread, 0, 0, 0)
