"""The facts of one warp as 32-bit numbers: who is here, whose predicate is true, whether the masks make sense.

Everything is called with the warp's first thread (`start`) and how many lanes exist (`count`: fewer than 32 in a
block's last warp). The arguments that may be a scalar, an array or None are told apart when compiling, so that what
is not asked for costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .bits import popc
from .status import NOT_A_MEMBER, WARP_MEMBERS, fail

WARP = 32
ALL_LANES = 0xFFFFFFFF

block_level = njit(error_model="numpy", no_cpython_wrapper=True)
inlined = njit(error_model="numpy", no_cpython_wrapper=True, forceinline=True)
_OPTIONS = {"error_model": "numpy", "forceinline": True}


# ---- arguments that may be a scalar, an array or None: decided when compiling


def entry(value: Any, thread: Any) -> Any:
    """What `value` is for this thread: its entry, or the scalar itself."""
    raise NotImplementedError("compiled code only")


@overload(entry, jit_options=_OPTIONS)
def _compiled_entry(value, thread):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Array):
        return lambda value, thread: value[thread]
    return lambda value, thread: value


def is_in(threads: Any, thread: Any) -> Any:
    """Whether the bool array names this thread; None names all."""
    raise NotImplementedError("compiled code only")


@overload(is_in, jit_options=_OPTIONS)
def _compiled_is_in(threads, thread):  # type: ignore[no-untyped-def]
    if isinstance(threads, types.NoneType | types.Omitted):
        return lambda threads, thread: True
    return lambda threads, thread: threads[thread]


@intrinsic
def bits_of(typingctx, value):  # type: ignore[no-untyped-def]
    """The bits of a float as an integer; an integer as it is: what a match compares."""
    if not isinstance(value, types.Float):
        return value(value), lambda context, builder, signature, arguments: arguments[0]
    kind = types.int32 if value.bitwidth == 32 else types.int64

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(kind))

    return kind(value), build


# ---- the facts of one warp


@inlined
def lanes_in(threads, start, count):  # type: ignore[no-untyped-def]
    """Bit i: thread start + i is in the bool array."""
    if threads is None:
        return (np.int64(1) << count) - 1
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(threads[start + lane]) << lane
    return lanes


@inlined
def lanes_true(values, start, count):  # type: ignore[no-untyped-def]
    """Bit i: thread start + i brought something other than 0."""
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(entry(values, start + lane) != 0) << lane
    return lanes


@inlined
def named_by(members, thread):  # type: ignore[no-untyped-def]
    """The mask of this thread, as a number from 0 to 2^32 - 1 (-1 names every lane)."""
    return np.int64(entry(members, thread)) & ALL_LANES


@inlined
def _is_misused(named, lane, present, living):  # type: ignore[no-untyped-def]
    """Whether a lane here is not in its own mask, or names a living lane that is elsewhere."""
    missing = np.int64(named & living & ~present != 0)
    return (present >> lane) & ((~named >> lane) | missing) & 1 != 0


@block_level
def _report_misuse(named, lane, present, living, status, site, block, start):  # type: ignore[no-untyped-def]
    """Record which of the two it is, and end the run."""
    if (named >> lane) & 1:
        awaited = named & living
        fail(status, WARP_MEMBERS, site, block, start + lane, popc(awaited), popc(awaited & present), 0)
    fail(status, NOT_A_MEMBER, site, block, start + lane, named, 0, 0)


@inlined
def check_warp(members, present, alive, status, site, block, start, count):  # type: ignore[no-untyped-def]
    """The rule of every *_sync: each lane here names itself, and all the living lanes it names are here."""
    if status is not None:
        living = lanes_in(alive, start, count)
        misused = False
        for lane in range(count):  # no way out of this loop, so that it takes several lanes at a time
            misused |= _is_misused(named_by(members, start + lane), lane, present, living)
        if misused:
            for lane in range(count):
                named = named_by(members, start + lane)
                if _is_misused(named, lane, present, living):
                    _report_misuse(named, lane, present, living, status, site, block, start)


# ---- what a device refuses, refused when compiling


@intrinsic
def check_predicate(typingctx, values):  # type: ignore[no-untyped-def]
    """Refuses, when compiling, what a device cannot vote with."""
    kind = values.dtype if isinstance(values, types.Array) else values
    if not isinstance(kind, types.Integer | types.Boolean):
        raise TypingError(f"a vote takes a bool or an integer, not {kind}: compare it first, for instance value != 0")
    return types.none(values), lambda context, builder, signature, arguments: context.get_dummy_value()


@intrinsic
def check_shuffled(typingctx, values):  # type: ignore[no-untyped-def]
    """Refuses, when compiling, what a device cannot shuffle."""
    kind = types.unliteral(values.dtype if isinstance(values, types.Array) else values)
    if kind not in (types.int32, types.int64, types.float32, types.float64):
        raise TypingError(
            f"a shuffle moves int32, int64, float32 and float64, not {kind}: convert the value first, "
            "for instance np.int32(value)"
        )
    return types.none(values), lambda context, builder, signature, arguments: context.get_dummy_value()
