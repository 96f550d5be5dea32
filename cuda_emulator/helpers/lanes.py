"""The state of one warp as 32-bit masks: the active lanes, the lanes with a true predicate; and the check of masks.

Each function gets the warp's first thread (`start`) and its number of lanes (`count`: fewer than 32 in the last warp of
a block). Some arguments may be a scalar, an array or None; the compiler selects the code for each, so that an unused
feature costs nothing at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .bits import popc
from .linking import helper
from .status import NOT_A_MEMBER, OTHER_MASK, WARP_MEMBERS, fail
from .whole_warps import nonzero_lanes

WARP = 32
ALL_LANES = 0xFFFFFFFF

block_level = helper(inlined=False)
inlined = helper(inlined=True)
_OPTIONS = {"error_model": "numpy", "forceinline": True}


# ---- arguments that may be a scalar, an array or None: the code is selected at compile time


def entry(value: Any, thread: Any) -> Any:
    """The value for this thread: its entry of an array, or the scalar itself."""
    raise NotImplementedError("compiled code only")


@overload(entry, jit_options=_OPTIONS)
def _compiled_entry(value, thread):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Array):
        return lambda value, thread: value[thread]
    return lambda value, thread: value


def is_in(threads: Any, thread: Any) -> Any:
    """This thread's entry of the bool array; True if the array is None."""
    raise NotImplementedError("compiled code only")


@overload(is_in, jit_options=_OPTIONS)
def _compiled_is_in(threads, thread):  # type: ignore[no-untyped-def]
    if isinstance(threads, types.NoneType | types.Omitted):
        return lambda threads, thread: True
    return lambda threads, thread: threads[thread]


def is_scalar(value: Any) -> Any:
    """Whether the value is one for all threads, known when the code is compiled."""
    raise NotImplementedError("compiled code only")


@overload(is_scalar, jit_options=_OPTIONS)
def _compiled_is_scalar(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Array):
        return lambda value: False
    return lambda value: True


@intrinsic
def bits_of(typingctx, value):  # type: ignore[no-untyped-def]
    """The number that a match compares: the bits of a float as an integer, or the integer itself."""
    if not isinstance(value, types.Float):
        return value(value), lambda context, builder, signature, arguments: arguments[0]
    kind = types.int32 if value.bitwidth == 32 else types.int64

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(kind))

    return kind(value), build


def _nonzero(values: Any, start: Any) -> Any:
    """A mask of 32 entries that are not 0; for a scalar, which has no entries, 0."""
    raise NotImplementedError("compiled code only")


@overload(_nonzero, jit_options=_OPTIONS)
def _compiled_nonzero(values, start):  # type: ignore[no-untyped-def]
    if isinstance(values, types.Array):
        return lambda values, start: nonzero_lanes(values, start)
    return lambda values, start: np.int64(0)


# ---- the state of one warp


@inlined
def lanes_in(threads, start, count):  # type: ignore[no-untyped-def]
    """A mask: bit i is the entry of thread start + i in the bool array."""
    if threads is None:
        return (np.int64(1) << count) - 1
    if count == WARP:
        return nonzero_lanes(threads, start)
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(threads[start + lane]) << lane
    return lanes


@inlined
def lanes_true(values, start, count):  # type: ignore[no-untyped-def]
    """A mask: bit i is set if the value of thread start + i is not 0."""
    if is_scalar(values):
        return (np.int64(1) << count) - 1 if entry(values, start) != 0 else np.int64(0)
    if count == WARP:
        return _nonzero(values, start)
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(entry(values, start + lane) != 0) << lane
    return lanes


@inlined
def named_by(members, thread):  # type: ignore[no-untyped-def]
    """The mask argument of this thread as a number from 0 to 2^32 - 1; -1 means all lanes."""
    return np.int64(entry(members, thread)) & ALL_LANES


@inlined
def _is_misused(named, lane, present, living):  # type: ignore[no-untyped-def]
    """Whether the mask of an active lane lacks that lane, or names a living lane that is not active here."""
    missing = np.int64(named & living & ~present != 0)
    return (present >> lane) & ((~named >> lane) | missing) & 1 != 0


@block_level
def _report_misuse(named, lane, present, living, status, site, block, start):  # type: ignore[no-untyped-def]
    """Record the error, and end the run."""
    if (named >> lane) & 1:
        awaited = named & living
        fail(status, WARP_MEMBERS, site, block, start + lane, popc(awaited), popc(awaited & present), 0)
    fail(status, NOT_A_MEMBER, site, block, start + lane, named, 0, 0)


@block_level
def _check_masks(members, present, status, site, block, start, count):  # type: ignore[no-untyped-def]
    """Check that the active lanes that a mask names have the same mask, and end the run where one has not."""
    first, different = -1, np.int64(0)
    for lane in range(count):
        if (present >> lane) & 1:
            if first < 0:
                first = lane
            different |= named_by(members, start + lane) ^ named_by(members, start + first)
    if different == 0:
        return
    for lane in range(count):
        if (present >> lane) & 1:
            named = named_by(members, start + lane)
            for other in range(count):
                if (named & present) >> other & 1 and named_by(members, start + other) != named:
                    theirs = named_by(members, start + other)
                    fail(status, OTHER_MASK, site, block, start + lane, named, other, theirs)


@inlined
def check_warp(members, present, alive, status, site, block, start, count):  # type: ignore[no-untyped-def]
    """Check the rule of *_sync functions: an active lane's mask names this lane, and of the living lanes only active
    ones, which have the same mask."""
    if status is not None:
        living = lanes_in(alive, start, count)
        misused = False
        if is_scalar(members):  # the lanes have one mask: no loop over them
            named = named_by(members, start)
            misused = present != 0 and (present & ~named) | (named & living & ~present) != 0
        else:
            for lane in range(count):  # no early exit, so that the compiler can use SIMD instructions
                misused |= _is_misused(named_by(members, start + lane), lane, present, living)
        if misused:
            for lane in range(count):
                named = named_by(members, start + lane)
                if _is_misused(named, lane, present, living):
                    _report_misuse(named, lane, present, living, status, site, block, start)
        if not is_scalar(members):
            _check_masks(members, present, status, site, block, start, count)


# ---- types that a device does not support, refused at compile time


@intrinsic
def check_predicate(typingctx, values):  # type: ignore[no-untyped-def]
    """Refuse, at compile time, a type that a device cannot vote with."""
    kind = values.dtype if isinstance(values, types.Array) else values
    if not isinstance(kind, types.Integer | types.Boolean):
        raise TypingError(f"a vote takes a bool or an integer, not {kind}: compare it first, for instance value != 0")
    return types.none(values), lambda context, builder, signature, arguments: context.get_dummy_value()


@intrinsic
def check_shuffled(typingctx, values):  # type: ignore[no-untyped-def]
    """Refuse, at compile time, a type that a device cannot shuffle."""
    kind = types.unliteral(values.dtype if isinstance(values, types.Array) else values)
    if kind not in (types.int32, types.int64, types.float32, types.float64):
        raise TypingError(
            f"a shuffle moves int32, int64, float32 and float64, not {kind}: convert the value first, "
            "for instance np.int32(value)"
        )
    return types.none(values), lambda context, builder, signature, arguments: context.get_dummy_value()
