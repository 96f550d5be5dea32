"""Checked indices, memory of one thread, masks and barriers: what generated code calls besides warps and atomics.

    A[at(A.shape, (i, j), status, site, block, thread)]      A[i, j], refused where it is out of bounds
    carray(stack_array(64, np.float32), (8, 8))        a local array that the compiler can keep in registers
    anyone(mask)                                       is a thread left in the mask?
    barrier(here, alive, status, site, block)          have all threads come that are still alive?
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from .status import (
    DETAIL,
    DIVERGED_SITE,
    DIVERGENT_BARRIER,
    EXITED_BLOCK,
    EXITED_COUNT,
    EXITED_SITE,
    NEGATIVE_INDEX,
    OUT_OF_BOUNDS,
    RAISED,
    _as_array,
    fail,
)

__all__ = ["anyone", "at", "at_strict", "barrier", "extents", "met_in_part", "raise_error", "some_returned", "stack_array"]


@njit(nogil=True)
def refuse(status, site, block, thread, axis, index, shape):  # type: ignore[no-untyped-def]
    """Record an index that is refused, with up to three axes of the index and the shape, and end the run."""
    record = _as_array(status)
    for k in range(min(3, len(shape))):
        record[DETAIL + 4 + k] = shape[k]
    for k in range(min(3, len(index))):
        record[DETAIL + 1 + k] = index[k]
    # Within bounds when counted from the end, and refused all the same: only the strict check does that.
    code = NEGATIVE_INDEX if -shape[axis] <= index[axis] < 0 else OUT_OF_BOUNDS
    fail(status, code, site, block, thread, axis, record[DETAIL + 1], record[DETAIL + 2])


def at(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
    """The index as unsigned numbers, negative ones counted from the end, for use as array[at(array.shape, ...)].

    An index out of bounds ends the run (status: OUT_OF_BOUNDS). Whatever is no array index (a slice, a field's name, an
    index into something without a shape) comes back as it is.
    """
    raise NotImplementedError


def at_strict(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
    """The same, and a negative index is refused, too (status: NEGATIVE_INDEX): on a device it wraps silently."""
    raise NotImplementedError


def _overloads(function, strict):  # type: ignore[no-untyped-def]
    """Both functions are one, but for what they do about negative indices."""

    def choose(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        if not isinstance(shape, types.BaseTuple) or len(shape) == 0:
            return lambda shape, index, status, site, block, thread: index
        if isinstance(index, types.Integer):
            return _one(strict)
        parts = index.types if isinstance(index, types.BaseTuple) else ()
        if not parts or not all(isinstance(part, types.Integer) for part in parts):
            return lambda shape, index, status, site, block, thread: index
        return {1: _tuple_of_one, 2: _two, 3: _three}.get(len(parts), _more)(strict)

    overload(function, jit_options={"nogil": True, "forceinline": True, "error_model": "numpy"})(choose)


def _one(strict):  # type: ignore[no-untyped-def]
    def check(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        i = _place(np.int64(index), shape[0], strict)
        if i >= np.uint64(shape[0]):
            refuse(status, site, block, thread, 0, (np.int64(index),), shape)
        return i

    return check


def _tuple_of_one(strict):  # type: ignore[no-untyped-def]
    def check(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        i = _place(np.int64(index[0]), shape[0], strict)
        if i >= np.uint64(shape[0]):
            refuse(status, site, block, thread, 0, (np.int64(index[0]),), shape)
        return (i,)

    return check


def _two(strict):  # type: ignore[no-untyped-def]
    def check(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        i = _place(np.int64(index[0]), shape[0], strict)
        j = _place(np.int64(index[1]), shape[1], strict)
        if i >= np.uint64(shape[0]):
            refuse(status, site, block, thread, 0, (np.int64(index[0]), np.int64(index[1])), shape)
        if j >= np.uint64(shape[1]):
            refuse(status, site, block, thread, 1, (np.int64(index[0]), np.int64(index[1])), shape)
        return i, j

    return check


def _three(strict):  # type: ignore[no-untyped-def]
    def check(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        i = _place(np.int64(index[0]), shape[0], strict)
        j = _place(np.int64(index[1]), shape[1], strict)
        k = _place(np.int64(index[2]), shape[2], strict)
        bad = -1
        if k >= np.uint64(shape[2]):
            bad = 2
        if j >= np.uint64(shape[1]):
            bad = 1
        if i >= np.uint64(shape[0]):
            bad = 0
        if bad >= 0:
            came = (np.int64(index[0]), np.int64(index[1]), np.int64(index[2]))
            refuse(status, site, block, thread, bad, came, shape)
        return i, j, k

    return check


def _more(strict):  # type: ignore[no-untyped-def]
    def check(shape, index, status, site, block, thread):  # type: ignore[no-untyped-def]
        for axis in range(len(index)):
            if _place(np.int64(index[axis]), shape[axis], strict) >= np.uint64(shape[axis]):
                refuse(status, site, block, thread, axis, index, shape)
        return index

    return check


@njit(nogil=True, forceinline=True)
def _place(index, extent, strict):  # type: ignore[no-untyped-def]
    """The place of an index along its axis; one that is out of bounds becomes a number that is none, too."""
    if index < 0 and not strict:
        index += extent
    return np.uint64(index)


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


_overloads(at, False)
_overloads(at_strict, True)


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


@njit(nogil=True)
def anyone(mask):  # type: ignore[no-untyped-def]
    """Whether a thread is left in the mask."""
    for thread in range(mask.size):
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


