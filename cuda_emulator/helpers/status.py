"""How running code says what went wrong: a small array of integers, filled once, and an exception that ends the run.

status[STOP]     set from outside: stop soon (Ctrl-C, or another worker has failed)
status[CODE]     what went wrong (one of the codes below); 0 while nothing has
status[SITE]     where: an index into the compiled kernel's list of places
status[BLOCK]    in which block, counted linearly
status[THREAD]   in which thread of the block, counted linearly; -1 where it is the block's fault
status[DETAIL:]  numbers that belong to the code
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload

LENGTH = 16
STOP, CODE, SITE, BLOCK, THREAD, DETAIL = 0, 1, 2, 3, 4, 5
#: Threads that had returned before a barrier: where, how many, in which block. Legal, and worth a word in check mode.
EXITED_SITE, EXITED_COUNT, EXITED_BLOCK = 12, 13, 14
#: Threads that were elsewhere at a barrier, where that is a warning (divergence="warn").
DIVERGED_SITE = 15

OUT_OF_BOUNDS = 1  # details: axis, index, extent
NEGATIVE_INDEX = 2  # details: axis, index, extent
DIVERGENT_BARRIER = 3  # details: threads here, threads alive
WARP_MEMBERS = 4  # details: lanes named and alive, of which here
NOT_A_MEMBER = 5  # details: the mask
RAISED = 6


class Stopped(Exception):
    """A run ended before its last thread: `status` says why."""


def _as_array(status):  # type: ignore[no-untyped-def]
    """The status array, from itself or from its address."""
    raise NotImplementedError


@overload(_as_array)
def _overload_as_array(status):  # type: ignore[no-untyped-def]
    if isinstance(status, types.CPointer):
        return lambda status: carray(status, LENGTH)
    return lambda status: status


@intrinsic
def fail(typingctx, status, code, site, block, thread, detail0, detail1, detail2):  # type: ignore[no-untyped-def]
    """Record the fault and end the run. status: the array, or its address.

    An intrinsic: a function would be compiled anew for each combination of integer types that it is called with.
    """
    numbers = (code, site, block, thread, detail0, detail1, detail2)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address = arguments[0]
        if isinstance(status, types.Array):
            address = context.make_array(status)(context, builder, value=address).data
        positions = (CODE, SITE, BLOCK, THREAD, DETAIL, DETAIL + 1, DETAIL + 2)
        for position, value, kind in zip(positions, arguments[1:], signature.args[1:], strict=True):
            place = builder.gep(address, [ir.Constant(ir.IntType(64), position)])
            builder.store(context.cast(builder, value, kind, types.int64), place)
        context.call_conv.return_user_exc(builder, Stopped, ())
        builder.position_at_end(builder.append_basic_block("never"))
        return context.get_dummy_value()

    return types.none(status, *numbers), build


@intrinsic
def address_of(typingctx, array):  # type: ignore[no-untyped-def]
    """The address of an array's first element. Passed on instead of the array: an array is counted by who holds it, and
    counting at every check would cost more than the check."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    return types.CPointer(array.dtype)(array), build


@intrinsic
def go_on(typingctx, status):  # type: ignore[no-untyped-def]
    """True; ends the run where someone asked for that. Stands in the condition of every loop. status: its address.

    The entry is read from memory each time: an ordinary load could be moved out of the loop.
    """

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        stop = builder.load_atomic(arguments[0], ordering="monotonic", align=8)  # STOP is the first entry
        with builder.if_then(builder.icmp_unsigned("!=", stop, stop.type(0)), likely=False):
            context.call_conv.return_user_exc(builder, Stopped, ())
        return context.get_constant(types.boolean, True)

    return types.boolean(status), build


def new_status() -> np.ndarray:
    """A fresh status array: nothing has gone wrong."""
    return np.zeros(LENGTH, np.int64)


__all__ = ["Stopped", "address_of", "fail", "go_on", "new_status"]
