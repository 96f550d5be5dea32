"""How running code reports an error: it writes a small array of integers, the status, and raises Stopped.

status[STOP]     set from outside to stop the run (Ctrl-C, or an error in another worker)
status[CODE]     the error (one of the codes below); 0 without an error
status[SITE]     its place: an index into the compiled kernel's list of places
status[BLOCK]    the linear number of its block
status[THREAD]   the linear number of its thread in the block; -1 for an error of the whole block
status[DETAIL:]  numbers for the message
status[POISON]   the bytes that fill fresh memory in check mode (poison.py): another set in each order of threads
status[ABSENT]   the bytes that a shuffle gives for the value of a lane that takes no part
status[SHIFT]    how far off a negative index reads, where check mode asks whether its value matters
status[ONLY]     a site + 1: the other shuffles give the bytes of POISON for it; 0: all give those of ABSENT
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload

from ..poison import FLOAT, OTHER, POISONS

LENGTH = 24
STOP, CODE, SITE, BLOCK, THREAD, DETAIL = 0, 1, 2, 3, 4, 5
#: Threads that had returned before a barrier: its site + 1, their number, the block. Check mode warns of it.
EXITED_SITE, EXITED_COUNT, EXITED_BLOCK = 12, 13, 14
#: Site + 1 of a barrier that only a part of the threads reached, for divergence="warn".
DIVERGED_SITE = 15
POISON = 16
ABSENT, ONLY = 17, 18
#: The first shuffle that read from a lane that took no part: its site + 1, the block, the reading thread, that lane.
READ_SITE, READ_BLOCK, READ_THREAD, READ_LANE = 19, 20, 21, 22
#: Added to the place that a wrapped negative index reads from, to find out whether the value matters.
SHIFT = 23

OUT_OF_BOUNDS = 1  # details: axis, index, extent
NEGATIVE_INDEX = 2  # details: axis, index, extent
DIVERGENT_BARRIER = 3  # details: threads here, threads alive
WARP_MEMBERS = 4  # details: lanes named and alive, of which here
NOT_A_MEMBER = 5  # details: the mask
RAISED = 6
OTHER_MASK = 7  # details: the mask, a lane that it names, the mask of that lane
UNASSIGNED = 8


class Stopped(Exception):
    """A run ended early; the status has the reason."""


def end_run(context, builder):  # type: ignore[no-untyped-def]
    """End the instructions here with a jump to the one place of the function that ends the run.

    A kernel can stop at hundreds of places, and each of them would else have the instructions that raise the exception.
    """
    function = builder.function
    if not hasattr(function, "stopped"):
        function.stopped = function.append_basic_block("stopped")
        context.call_conv.return_user_exc(ir.IRBuilder(function.stopped), Stopped, ())
    builder.branch(function.stopped)


def _as_array(status):  # type: ignore[no-untyped-def]
    """The status array; the argument is the array or its address."""
    raise NotImplementedError


@overload(_as_array)
def _overload_as_array(status):  # type: ignore[no-untyped-def]
    if isinstance(status, types.CPointer):
        return lambda status: carray(status, LENGTH)
    return lambda status: status


@intrinsic
def fail(typingctx, status, code, site, block, thread, detail0, detail1, detail2):  # type: ignore[no-untyped-def]
    """Record the error and end the run. status: the array, or its address.

    It is an intrinsic because a function would be compiled again for each combination of integer types.
    """
    numbers = (code, site, block, thread, detail0, detail1, detail2)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        stop(context, builder, status, arguments[0], arguments[1:], signature.args[1:])
        builder.position_at_end(builder.append_basic_block("never"))
        return context.get_dummy_value()

    return types.none(status, *numbers), build


def stop(context, builder, kind, status, numbers, kinds):  # type: ignore[no-untyped-def]
    """Write the instructions that record an error and end the run.

    kind: the type of the status; numbers, kinds: the code, the site, the block, the thread and the details, their types
    """
    positions = (CODE, SITE, BLOCK, THREAD, DETAIL, DETAIL + 1, DETAIL + 2)
    for position, value, given in zip(positions, numbers, kinds, strict=False):
        place = entry(context, builder, kind, status, position)
        builder.store(context.cast(builder, value, given, types.int64), place)
    end_run(context, builder)


@intrinsic
def address_of(typingctx, array):  # type: ignore[no-untyped-def]
    """The address of an array's first element. Generated code passes it instead of the array, because Numba counts the
    owners of an array, and counting at every check would cost more than the check."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    return types.CPointer(array.dtype)(array), build


@intrinsic
def go_on(typingctx, status):  # type: ignore[no-untyped-def]
    """Return True, or end the run if STOP is set. It is part of the condition of a loop. status: its address.

    The load is atomic because the compiler could move an ordinary load out of the loop.
    """

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        stop = builder.load_atomic(arguments[0], ordering="monotonic", align=8)  # STOP is the first entry
        with builder.if_then(builder.icmp_unsigned("!=", stop, stop.type(0)), likely=False):
            end_run(context, builder)
        return context.get_constant(types.boolean, True)

    return types.boolean(status), build


@intrinsic
def made_of(typingctx, poison, values):  # type: ignore[no-untyped-def]
    """The number of the type of `values`, an array or a number, whose bytes are those of `poison` for that type."""
    kind = types.unliteral(values.dtype if isinstance(values, types.Array) else values)
    place = FLOAT if isinstance(kind, types.Float) else OTHER
    size, poison_type = kind.bitwidth // 8, ir.IntType(64)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        byte = builder.and_(builder.lshr(arguments[0], poison_type(8 * place)), poison_type(0xFF))
        whole = builder.mul(byte, byte.type(int.from_bytes(b"\x01" * size, "little")))
        bits = whole if size == 8 else builder.trunc(whole, ir.IntType(8 * size))
        return builder.bitcast(bits, context.get_value_type(kind))

    return kind(types.int64, values), build


def entry(context, builder, kind, status, position):  # type: ignore[no-untyped-def]
    """The address of an entry of the status, which is the array or its address."""
    first = context.make_array(kind)(context, builder, value=status).data if isinstance(kind, types.Array) else status
    return builder.gep(first, [ir.Constant(ir.IntType(64), position)])


@intrinsic
def poison(typingctx, status, kind):  # type: ignore[no-untyped-def]
    """The byte that fills fresh memory of a kind (FLOAT, OTHER or BOOL of poison.py) in this run."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        bytes_of_run = builder.load(builder.gep(arguments[0], [ir.Constant(ir.IntType(64), POISON)]))
        place = context.cast(builder, arguments[1], signature.args[1], types.int64)
        return builder.lshr(bytes_of_run, builder.mul(place, place.type(8)))

    return types.int64(status, kind), build


def new_status() -> np.ndarray:
    """A new status array, without an error."""
    status = np.zeros(LENGTH, np.int64)
    status[POISON] = status[ABSENT] = POISONS[0]
    return status


LAUNCH_LENGTH = 9


def launch_numbers(
    grid: tuple[int, int, int], block: tuple[int, int, int], first: int, end: int, dynamic_bytes: int
) -> np.ndarray:
    """The numbers of a launch for the generated `run`, which executes blocks `first` to `end`.

    They are one array because the instructions that take a number out of a Python object would be compiled for each.
    """
    return np.array((*grid, *block, first, end, dynamic_bytes), np.int64)


__all__ = ["Stopped", "address_of", "fail", "go_on", "made_of", "new_status", "poison"]
