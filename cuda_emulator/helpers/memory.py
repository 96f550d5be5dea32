"""Functions of generated code for checked indices, a thread's memory, masks and barriers.

A[at(A.shape, (i, j), status, site, block, thread)]     A[i, j]; an index out of bounds ends the run
carray(stack_array(64, np.float32), (8, 8))             a local array that the compiler can keep in registers
anyone(mask)                                            whether the mask names a thread
barrier(here, alive, status, site, block)               checks that all living threads have reached the barrier
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from .linking import helper
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
    *(
        "anyone",
        "at",
        "at_strict",
        "barrier",
        "copy_mask",
        "extents",
        "fill_bytes",
        "warn_divergent_barrier",
        "raise_error",
    ),
    *("borrowed", "frozen", "part_of", "note_returned_threads", "stack_array"),
]


def checked_index(strict: bool) -> Any:
    """Make `at` or `at_strict`: an intrinsic, so that a check is a few instructions and no function call."""

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
            given = cgutils.unpack_tuple(builder, arguments[1]) if is_tuple else [arguments[1]]
            places, came, outside = [], [], []
            for value, kind, extent in zip(given, parts, extents, strict=False):
                if isinstance(kind, types.SliceType):  # Python shortens a slice that is too long: nothing to check
                    places.append(value)
                    came.append(ir.Constant(ir.IntType(64), 0))
                    outside.append(ir.Constant(ir.IntType(1), 0))
                    continue
                number, place = _place(context, builder, value, kind, extent, strict)
                came.append(number)
                places.append(place)
                outside.append(builder.icmp_unsigned(">=", place, extent))
            refused = outside[0]
            for bad in outside[1:]:
                refused = builder.or_(refused, bad)
            with builder.if_then(refused, likely=False):
                _record(context, builder, signature, arguments, came, extents, outside, strict)
                context.call_conv.return_user_exc(builder, Stopped, ())
            return context.make_tuple(builder, result, places) if is_tuple else places[0]

        return result(shape, index, status, site, block, thread), build

    return at


def _freeze(builder, value):  # type: ignore[no-untyped-def]
    """LLVM's freeze instruction; llvmlite's builder has no method for it."""
    instruction = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(instruction)
    return instruction


def _place(context, builder, value, kind, extent, strict):  # type: ignore[no-untyped-def]
    """(index as a 64-bit number for the message, position along the axis); an index outside gives a large position."""
    # An impossible conversion like int(1e30) is undefined in LLVM, and may be a different number at each use. Frozen,
    # it is one number, for the check and for the access.
    number = _freeze(builder, context.cast(builder, value, kind, types.int64 if kind.signed else types.uint64))
    if not kind.signed:  # the message shows a signed number, so a larger one is reported as the largest
        largest = number.type(2**63 - 1)
        return builder.select(builder.icmp_unsigned(">", number, largest), largest, number), number
    if strict:
        return number, number
    wrapped = builder.add(number, extent)
    return number, builder.select(builder.icmp_signed("<", number, number.type(0)), wrapped, number)


def _unchanged(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    """Return a field's name, or an index of a value without a shape, unchanged: there is nothing to check."""
    context.nrt.incref(builder, signature.return_type, arguments[1])
    return arguments[1]


@intrinsic
def frozen(typingctx, value):  # type: ignore[no-untyped-def]
    """Freeze an undefined LLVM value, the result of an impossible conversion or shift, to one fixed number."""
    kind = types.unliteral(value)
    if not isinstance(kind, types.Integer):
        return kind(value), lambda context, builder, signature, arguments: arguments[0]
    return kind(value), lambda context, builder, signature, arguments: _freeze(builder, arguments[0])


@intrinsic
def borrowed(typingctx, value):  # type: ignore[no-untyped-def]
    """The same array, or tuple with arrays, that does not count as an owner of the memory.

    A run that ends early could not give its ownership back. The caller owns the array until the run has ended.
    """

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _borrowed(context, builder, signature.return_type, arguments[0])

    return value(value), build


def _borrowed(context, builder, kind, value):  # type: ignore[no-untyped-def]
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value=value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple) and len(kind):
        parts = cgutils.unpack_tuple(builder, value)
        parts = [_borrowed(context, builder, one, part) for one, part in zip(kind.types, parts, strict=True)]
        return context.make_tuple(builder, kind, parts)
    return value


@intrinsic
def part_of(typingctx, address, offset, dtype):  # type: ignore[no-untyped-def]
    """The address of the array that is `offset` bytes behind the start of a workspace."""
    result = types.CPointer(dtype.dtype)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(builder.gep(arguments[0], [arguments[1]]), context.get_value_type(result))

    return result(address, offset, dtype), build


def _record(context, builder, signature, arguments, came, extents, outside, strict):  # type: ignore[no-untyped-def]
    """Write the refused access to the status: the axis, and up to three axes of the index and of the shape."""
    word = ir.IntType(64)

    def put(position, value):  # type: ignore[no-untyped-def]
        builder.store(value, builder.gep(arguments[2], [ir.Constant(word, position)]))

    axis, index, extent = ir.Constant(word, len(came) - 1), came[-1], extents[len(came) - 1]
    for k in reversed(range(len(came) - 1)):
        axis = builder.select(outside[k], ir.Constant(word, k), axis)
        index = builder.select(outside[k], came[k], index)
        extent = builder.select(outside[k], extents[k], extent)
    code = ir.Constant(word, OUT_OF_BOUNDS)
    if strict:  # a negative index that is inside when counted from the end is refused too
        wraps = builder.icmp_unsigned("<", builder.add(index, extent), extent)
        negative = builder.and_(builder.icmp_signed("<", index, ir.Constant(word, 0)), wraps)
        code = builder.select(negative, ir.Constant(word, NEGATIVE_INDEX), code)
    put(CODE, code)
    for position, number in ((SITE, 3), (BLOCK, 4), (THREAD, 5)):
        put(position, context.cast(builder, arguments[number], signature.args[number], types.int64))
    put(DETAIL, axis)
    for k in range(3):
        put(DETAIL + 1 + k, came[k] if k < len(came) else ir.Constant(word, 0))
        put(DETAIL + 4 + k, extents[k] if k < len(extents) else ir.Constant(word, 0))


#: The index as unsigned numbers, for array[at(array.shape, index, ...)]; a negative index counts from the end. An index
#: out of bounds ends the run (status: OUT_OF_BOUNDS).
at = checked_index(strict=False)
#: The same; a negative index is refused too (status: NEGATIVE_INDEX), since on a device it wraps silently.
at_strict = checked_index(strict=True)


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


@intrinsic(prefer_literal=True)
def stack_array(typingctx, count, dtype):  # type: ignore[no-untyped-def]
    """A pointer to `count` elements of uninitialised memory in the function's own frame: a thread's local array.

    The compiler can keep such memory in registers, as a device does with small local arrays.
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


@helper(inlined=False)
def anyone(mask):  # type: ignore[no-untyped-def]
    """Whether the mask names a thread."""
    for thread in range(mask.size):  # noqa: SIM110 - any() of a generator is slow code in Numba
        if mask[thread]:
            return True
    return False


@helper(inlined=False)
def _count(here, alive):  # type: ignore[no-untyped-def]
    present = 0
    living = 0
    for thread in range(here.size):
        present += here[thread]
        living += here[thread] if alive is None else alive[thread]
    return present, (here.size if alive is None else living)


@helper(inlined=False)
def barrier(here, alive, status, site, block):  # type: ignore[no-untyped-def]
    """Check a barrier under a mask: all living threads must reach it, or none."""
    present, living = _count(here, alive)
    if present != 0 and present != living:
        fail(status, DIVERGENT_BARRIER, site, block, -1, present, living, here.size)


@helper(inlined=False)
def warn_divergent_barrier(here, alive, status, site, block):  # type: ignore[no-untyped-def]
    """The same check for divergence="warn": record the site and go on."""
    present, living = _count(here, alive)
    record = _as_array(status)
    if present != 0 and present != living and record[DIVERGED_SITE] == 0:
        record[DIVERGED_SITE] = site + 1


@helper(inlined=False)
def note_returned_threads(alive, status, site, block):  # type: ignore[no-untyped-def]
    """Record, once in a run, that threads had returned before a barrier."""
    record = _as_array(status)
    if record[EXITED_SITE] == 0:
        living = 0
        for thread in range(alive.size):
            living += alive[thread]
        if living < alive.size:
            record[EXITED_SITE] = site + 1
            record[EXITED_COUNT] = alive.size - living
            record[EXITED_BLOCK] = block


@helper(inlined=False)
def raise_error(status, site, block, thread):  # type: ignore[no-untyped-def]
    """End the run for an `assert` or `raise` of the kernel."""
    fail(status, RAISED, site, block, thread, 0, 0, 0)
