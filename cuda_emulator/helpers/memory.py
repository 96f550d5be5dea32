"""Functions of generated code for a thread's memory, masks and barriers.

array_from(stack_array(64, np.float32), (8, 8))         a local array that the compiler can keep in registers
anyone(mask)                                            whether the mask names a thread
barrier(here, alive, status, site, block)               checks that all living threads have reached the barrier
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from .linking import helper
from .status import (
    DIVERGED_SITE,
    DIVERGENT_BARRIER,
    EXITED_BLOCK,
    EXITED_COUNT,
    EXITED_SITE,
    LAUNCH_LENGTH,
    RAISED,
    _as_array,
    fail,
)

__all__ = [
    *(
        "anyone",
        "barrier",
        "copy_mask",
        "fill_bytes",
        "warn_divergent_barrier",
        "raise_error",
    ),
    *("array_from", "borrowed", "frozen", "note_returned_threads", "numbers", "part_of", "stack_array", "unravelled"),
]


def freeze(builder, value):  # type: ignore[no-untyped-def]
    """LLVM's freeze instruction; llvmlite's builder has no method for it."""
    instruction = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(instruction)
    return instruction


@intrinsic
def frozen(typingctx, value):  # type: ignore[no-untyped-def]
    """Freeze an undefined LLVM value, the result of an impossible conversion or shift, to one fixed number."""
    kind = types.unliteral(value)
    if not isinstance(kind, types.Integer):
        return kind(value), lambda context, builder, signature, arguments: arguments[0]
    return kind(value), lambda context, builder, signature, arguments: freeze(builder, arguments[0])


@intrinsic
def borrowed(typingctx, value):  # type: ignore[no-untyped-def]
    """The array, or the tuple with arrays, as one that does not own its memory.

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
def array_from(typingctx, address, shape):  # type: ignore[no-untyped-def]
    """The array of this shape, an integer or a tuple of them, whose first element has this address."""
    is_tuple = isinstance(shape, types.BaseTuple)
    kinds = shape.types if is_tuple else [shape]
    result = types.Array(address.dtype, len(kinds), "C")

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given = cgutils.unpack_tuple(builder, arguments[1]) if is_tuple else [arguments[1]]
        lengths = [context.cast(builder, value, kind, types.intp) for value, kind in zip(given, kinds, strict=True)]
        view = context.make_array(result)(context, builder)
        size = as_dtype(address.dtype).itemsize
        strides = [ir.Constant(ir.IntType(64), size)]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        data = builder.bitcast(arguments[0], view.data.type)
        populate_array(view, data=data, shape=lengths, strides=strides, itemsize=size, meminfo=None)
        return view._getvalue()

    return result(address, shape), build


@intrinsic
def part_of(typingctx, address, offset, dtype):  # type: ignore[no-untyped-def]
    """The address of the array that is `offset` bytes behind the start of a workspace."""
    result = types.CPointer(dtype.dtype)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(builder.gep(arguments[0], [arguments[1]]), context.get_value_type(result))

    return result(address, offset, dtype), build


@intrinsic
def unravelled(typingctx, number, x, y):  # type: ignore[no-untyped-def]
    """The place of a block in the grid, or of a thread in its block: number % x, number // x % y, number // (x * y).

    Python's own divisions would also be code for negative numbers and for zero.
    """
    result = types.UniTuple(types.int64, 3)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        number, x, y = arguments
        row = builder.udiv(number, x)
        return context.make_tuple(
            builder, result, [builder.urem(number, x), builder.urem(row, y), builder.udiv(row, y)]
        )

    return result(types.int64, types.int64, types.int64), build


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
    """Check a barrier with divergence="warn": where some threads are missing, record the site and go on."""
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


@intrinsic
def numbers(typingctx, launch):  # type: ignore[no-untyped-def]
    """The numbers of a launch (`launch_numbers` in status.py) as a tuple."""
    result = types.UniTuple(types.int64, LAUNCH_LENGTH)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(launch)(context, builder, value=arguments[0]).data
        places = (ir.Constant(ir.IntType(64), position) for position in range(LAUNCH_LENGTH))
        return context.make_tuple(builder, result, [builder.load(builder.gep(data, [place])) for place in places])

    return result(launch), build
