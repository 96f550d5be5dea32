"""Functions that the generated code of a traced kernel calls to record events.

    a[traced(a, index, status, site, thread, key)]       a load or an atomic; the index comes back unchanged
    a[traced_store(a, index, ...)] = v; stored(a, ...)   a store; `stored` records whether it changed the value
    if branched(test, status, site, thread, key):        a condition
    key_of(status, thread, path, 3, 5)                   the key of lanes that execute a place together
    counted(x * y, status, slot, 1)                      a floating-point operation
    acc[tallied(index, status, slot)]                    an access to a thread's own array: counted, without an event
    met(status, site, threads, here, key, kind)          a barrier, vote or shuffle

They find the event buffer through the status array, which every generated function has: from status[EVENTS] on it holds
addresses and counts. trace.EVENT is the layout of an event.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .linking import helper
from .status import CODE, LENGTH, end_run

__all__ = [
    *("branched", "counted", "enter_round", "enter_rounds", "key_of", "met", "next_round", "next_rounds"),
    *("stored", "tallied", "traced", "traced_store"),
]

EVENTS = LENGTH
"""status[EVENTS]: the address of the event buffer."""
COUNT, CAPACITY = EVENTS + 1, EVENTS + 2
ROUNDS, LOOPS = EVENTS + 3, EVENTS + 4
"""The address of rounds[thread, loop], int64: the iterations of each thread in each loop; and the number of loops."""
EPOCH, WARP_EPOCHS = EVENTS + 5, EVENTS + 6
"""The number of barriers of the block so far; the address of an int64 for each thread: its number of syncwarps."""
COUNTERS = EVENTS + 7
"""The address of the counters, int64."""
OLD = EVENTS + 8
"""Two words: the value in memory before a store. PENDING: whether that store has an event that `stored` completes."""
PENDING = EVENTS + 10
OWN, OWN_END = EVENTS + 11, EVENTS + 12
"""The first address of the threads' own arrays, and the first behind them, in a kernel that is cut at barriers."""
TRACED_LENGTH = EVENTS + 13

FULL = 7
"""status[CODE] of a run whose event buffer was too small."""

WHOLE = 2
"""Flag of an event for a store of several elements at once, which is not traced."""

BARRIER, SYNC_WARP, OTHER = range(3)
"""Kinds of collectives for `met`: which accesses they order."""

NO_SLOT = -1
"""The slot of an access that cannot be to a thread's own array."""

WORD = ir.IntType(64)
WORDS_OF_EVENT = 5
LARGEST_COMPARED = 16  # bytes of an element that `stored` can compare
MIX = 0x9E3779B97F4A7C15 - 2**64  # 2^64 divided by the golden ratio: gives neighbouring numbers very different keys


def _word(builder: Any, status: Any, position: int) -> Any:
    return builder.load(builder.gep(status, [ir.Constant(WORD, position)]))


def _set(builder: Any, status: Any, position: int, value: Any) -> None:
    builder.store(value, builder.gep(status, [ir.Constant(WORD, position)]))


def _table(builder: Any, status: Any, position: int, index: Any) -> Any:
    """A pointer to entry `index` of the table whose address is in status[position]."""
    return builder.gep(builder.inttoptr(_word(builder, status, position), WORD.as_pointer()), [index])


def _packed(builder: Any, low: Any, high: Any) -> Any:
    """Two numbers of 32 bits in one word."""
    mask = ir.Constant(WORD, 0xFFFFFFFF)
    return builder.or_(builder.and_(low, mask), builder.shl(high, ir.Constant(WORD, 32)))


def _append_event(
    context: Any, builder: Any, status: Any, address: Any, key: Any, site: Any, thread: Any, size: Any
) -> None:
    """Append one event. size: with the flags in its upper half."""
    count = _word(builder, status, COUNT)
    with builder.if_then(builder.icmp_signed(">=", count, _word(builder, status, CAPACITY)), likely=False):
        _set(builder, status, CODE, ir.Constant(WORD, FULL))
        end_run(context, builder)
    event = _table(builder, status, EVENTS, builder.mul(count, ir.Constant(WORD, WORDS_OF_EVENT)))
    warp_epoch = builder.load(_table(builder, status, WARP_EPOCHS, thread))
    times = _packed(builder, _word(builder, status, EPOCH), warp_epoch)
    for position, value in enumerate((address, key, _packed(builder, site, thread), times, size)):
        builder.store(value, builder.gep(event, [ir.Constant(WORD, position)]))
    _set(builder, status, COUNT, builder.add(count, ir.Constant(WORD, 1)))


def _numbers(context: Any, builder: Any, signature: Any, arguments: Any, first: int) -> list[Any]:
    """The arguments from `first` on as 64-bit integers."""
    kinds = signature.args[first:]
    return [
        context.cast(builder, value, kind, types.int64) for value, kind in zip(arguments[first:], kinds, strict=True)
    ]


# ---------------------------------------------------------------- accesses


def _element(array: Any, index: Any) -> bool:
    """Whether array[index] is a single element."""
    parts = index.types if isinstance(index, types.BaseTuple) else [index]
    return (
        isinstance(array, types.Array)
        and len(parts) == array.ndim
        and all(isinstance(types.unliteral(part), types.Integer) for part in parts)
    )


def _field(array: Any, field: Any) -> tuple[int, int] | None:
    """(offset, bytes) of the accessed field of a record, or of several elements at once; None for one element."""
    name = getattr(field, "literal_value", None)
    if isinstance(name, int):
        return 0, name * (array.dtype.bitwidth // 8)
    if isinstance(array.dtype, types.Record) and name in array.dtype.fields:
        return array.dtype.offset(name), array.dtype.typeof(name).bitwidth // 8
    return None


def _pointer(context: Any, builder: Any, array: Any, value: Any, index: Any, given: Any) -> Any:
    """(address, size) of the element; a negative index counts from the end."""
    view = context.make_array(array)(context, builder, value=value)
    pairs = (
        zip(index.types, cgutils.unpack_tuple(builder, given), strict=True)
        if isinstance(index, types.BaseTuple)
        else [(index, given)]
    )
    places = []
    for (kind, part), extent in zip(pairs, cgutils.unpack_tuple(builder, view.shape), strict=True):
        place = context.cast(builder, part, kind, types.int64)
        wrapped = builder.add(place, extent)
        places.append(builder.select(builder.icmp_signed("<", place, ir.Constant(WORD, 0)), wrapped, place))
    strides = cgutils.unpack_tuple(builder, view.strides)
    address = builder.ptrtoint(view.data, WORD)
    for place, stride in zip(places, strides, strict=True):
        address = builder.add(address, builder.mul(place, stride))
    return address, view.itemsize


def _access(store: bool) -> Any:
    """Make `traced` or `traced_store`."""

    def access(typingctx, array, index, status, site, thread, key, field, slot):  # type: ignore[no-untyped-def]
        one = _element(array, index)
        may_be_own = getattr(slot, "literal_value", 0) != NO_SLOT
        several = isinstance(getattr(field, "literal_value", None), int)

        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            status_value = arguments[2]
            site_value, thread_value, key_value = (
                context.cast(builder, arguments[i], signature.args[i], types.int64) for i in (3, 4, 5)
            )
            if one:
                address, size = _pointer(context, builder, array, arguments[0], index, arguments[1])
                part = _field(array, field)
                if part is not None:
                    address, size = builder.add(address, ir.Constant(WORD, part[0])), ir.Constant(WORD, part[1])
                own = _is_own(builder, status_value, address) if may_be_own else ir.Constant(ir.IntType(1), 0)
                with builder.if_else(own) as (counts, leaves_event):
                    with counts:
                        slot_value = context.cast(builder, arguments[7], signature.args[7], types.int64)
                        _tally(builder, status_value, slot_value, ir.Constant(WORD, 1))
                    with leaves_event:
                        _append_event(
                            context, builder, status_value, address, key_value, site_value, thread_value, size
                        )
                        if store and not several:
                            _save_old_value(builder, status_value, address, size)
            elif store and isinstance(array, types.Array):
                nothing = ir.Constant(WORD, 0)
                flags = ir.Constant(WORD, WHOLE << 32)
                _set(builder, status_value, PENDING, nothing)
                _append_event(context, builder, status_value, nothing, key_value, site_value, thread_value, flags)
            context.nrt.incref(builder, signature.return_type, arguments[1])
            return arguments[1]

        return index(array, index, status, site, thread, key, field, slot), build

    access.__name__ = access.__qualname__ = "traced_store" if store else "traced"
    return intrinsic(prefer_literal=True)(access)


def _is_own(builder: Any, status: Any, address: Any) -> Any:
    """Whether the address is in a thread's own array."""
    after = builder.icmp_unsigned(">=", address, _word(builder, status, OWN))
    return builder.and_(after, builder.icmp_unsigned("<", address, _word(builder, status, OWN_END)))


def _tally(builder: Any, status: Any, slot: Any, times: Any) -> None:
    """Add `times` to a counter."""
    place = _table(builder, status, COUNTERS, slot)
    builder.store(builder.add(builder.load(place), times), place)


def _save_old_value(builder: Any, status: Any, address: Any, size: Any) -> None:
    """Copy the value in memory to the status before a store, if it is small enough."""
    words = builder.gep(status, [ir.Constant(WORD, OLD)])
    for position in (OLD, OLD + 1):
        _set(builder, status, position, ir.Constant(WORD, 0))
    fits = builder.icmp_unsigned("<=", size, ir.Constant(WORD, LARGEST_COMPARED))
    with builder.if_then(fits):
        cgutils.raw_memcpy(builder, words, builder.inttoptr(address, WORD.as_pointer()), size, ir.Constant(WORD, 1))
    _set(builder, status, PENDING, builder.zext(fits, WORD))


traced = _access(store=False)
traced_store = _access(store=True)


@intrinsic
def stored(typingctx, status):  # type: ignore[no-untyped-def]
    """After a store: set the flag of its event if the value in memory did not change."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        status_value = arguments[0]
        with builder.if_then(builder.icmp_signed("!=", _word(builder, status_value, PENDING), ir.Constant(WORD, 0))):
            _set(builder, status_value, PENDING, ir.Constant(WORD, 0))
            last = builder.sub(_word(builder, status_value, COUNT), ir.Constant(WORD, 1))
            event = _table(builder, status_value, EVENTS, builder.mul(last, ir.Constant(WORD, WORDS_OF_EVENT)))
            place = builder.gep(event, [ir.Constant(WORD, 4)])
            size = builder.load(place)
            now = cgutils.alloca_once(builder, ir.ArrayType(WORD, 2))
            builder.store(ir.Constant(ir.ArrayType(WORD, 2), [0, 0]), now)
            words = builder.bitcast(now, WORD.as_pointer())
            address = builder.inttoptr(builder.load(event), WORD.as_pointer())
            cgutils.raw_memcpy(builder, words, address, size, ir.Constant(WORD, 1))
            same = ir.Constant(ir.IntType(1), 1)
            for position in range(2):
                held = builder.load(builder.gep(words, [ir.Constant(WORD, position)]))
                same = builder.and_(same, builder.icmp_signed("==", held, _word(builder, status_value, OLD + position)))
            flag = builder.shl(builder.zext(same, WORD), ir.Constant(WORD, 32))
            builder.store(builder.or_(size, flag), place)
        return context.get_dummy_value()

    return types.none(status), build


# ---------------------------------------------------------------- conditions and loops


@intrinsic
def branched(typingctx, test, status, site, thread, key):  # type: ignore[no-untyped-def]
    """Record a condition, and return it unchanged."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        site_value, thread_value, key_value = _numbers(context, builder, signature, arguments, 2)
        outcome = builder.zext(arguments[0], WORD)
        _append_event(
            context, builder, arguments[1], outcome, key_value, site_value, thread_value, ir.Constant(WORD, 0)
        )
        return arguments[0]

    return types.boolean(types.boolean, status, site, thread, key), build


def _round_place(builder: Any, status: Any, thread: Any, loop: Any) -> Any:
    return _table(builder, status, ROUNDS, builder.add(builder.mul(thread, _word(builder, status, LOOPS)), loop))


@intrinsic
def key_of(typingctx, status, thread, path, *loops):  # type: ignore[no-untyped-def]
    """A hash of the calls that led to this place (path) and of the iteration numbers of the loops around it."""
    around = types.StarArgTuple(loops)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        thread_value, key = (context.cast(builder, arguments[i], signature.args[i], types.int64) for i in (1, 2))
        for kind, loop in zip(around, cgutils.unpack_tuple(builder, arguments[3]), strict=True):
            number = context.cast(builder, loop, kind, types.int64)
            key = _mixed(builder, key, builder.load(_round_place(builder, arguments[0], thread_value, number)))
        return key

    return types.int64(status, thread, path, around), build


def _mixed(builder: Any, key: Any, value: Any) -> Any:
    spread = builder.mul(builder.xor(key, value), ir.Constant(WORD, MIX))
    return builder.xor(spread, builder.lshr(spread, ir.Constant(WORD, 29)))


@intrinsic
def enter_round(typingctx, status, thread, loop):  # type: ignore[no-untyped-def]
    """A thread enters a loop: its iteration number is 0."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        thread_value, loop_value = _numbers(context, builder, signature, arguments, 1)
        builder.store(ir.Constant(WORD, 0), _round_place(builder, arguments[0], thread_value, loop_value))
        return context.get_dummy_value()

    return types.none(status, thread, loop), build


@intrinsic
def next_round(typingctx, status, thread, loop):  # type: ignore[no-untyped-def]
    """A thread begins the next iteration of a loop."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        thread_value, loop_value = _numbers(context, builder, signature, arguments, 1)
        place = _round_place(builder, arguments[0], thread_value, loop_value)
        builder.store(builder.add(builder.load(place), ir.Constant(WORD, 1)), place)
        return context.get_dummy_value()

    return types.none(status, thread, loop), build


@helper(inlined=False)
def enter_rounds(status, threads, loop):  # type: ignore[no-untyped-def]
    """All threads of the block enter a loop."""
    for thread in range(threads):
        enter_round(status, thread, loop)


@helper(inlined=False)
def next_rounds(status, threads, loop):  # type: ignore[no-untyped-def]
    """All threads of the block begin the next iteration of a loop."""
    for thread in range(threads):
        next_round(status, thread, loop)


# ---------------------------------------------------------------- operations and collectives


@intrinsic
def counted(typingctx, value, status, slot, double_slot, times):  # type: ignore[no-untyped-def]
    """Return the value; add `times` to the counter `slot` if it is a floating-point number, or an array of them.

    If its type is float64 or complex128, `times` is also added to the counter `double_slot`.
    """
    number = value.dtype if isinstance(value, types.Array) else value
    is_float = isinstance(number, types.Float | types.Complex)
    is_double = number in (types.float64, types.complex128)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        if is_float:
            slot_value, double_value, times_value = _numbers(context, builder, signature, arguments, 2)
            _tally(builder, arguments[1], slot_value, times_value)
            if is_double:
                _tally(builder, arguments[1], double_value, times_value)
        context.nrt.incref(builder, signature.return_type, arguments[0])
        return arguments[0]

    return value(value, status, slot, double_slot, times), build


@intrinsic
def tallied(typingctx, index, status, slot):  # type: ignore[no-untyped-def]
    """Return the index unchanged; count one access."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (slot_value,) = _numbers(context, builder, signature, arguments, 2)
        _tally(builder, arguments[1], slot_value, ir.Constant(WORD, 1))
        context.nrt.incref(builder, signature.return_type, arguments[0])
        return arguments[0]

    return index(index, status, slot), build


@intrinsic
def _collective_event(typingctx, status, lanes, key, site, thread):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        lanes_value, key_value, site_value, thread_value = _numbers(context, builder, signature, arguments, 1)
        _append_event(
            context, builder, arguments[0], lanes_value, key_value, site_value, thread_value, ir.Constant(WORD, 0)
        )
        return context.get_dummy_value()

    return types.none(status, lanes, key, site, thread), build


@intrinsic
def _next_epoch(typingctx, status):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        _set(builder, arguments[0], EPOCH, builder.add(_word(builder, arguments[0], EPOCH), ir.Constant(WORD, 1)))
        return context.get_dummy_value()

    return types.none(status), build


@intrinsic
def _next_warp_epoch(typingctx, status, thread):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (thread_value,) = _numbers(context, builder, signature, arguments, 1)
        place = _table(builder, arguments[0], WARP_EPOCHS, thread_value)
        builder.store(builder.add(builder.load(place), ir.Constant(WORD, 1)), place)
        return context.get_dummy_value()

    return types.none(status, thread), build


@helper(inlined=False)
def met(status, site, threads, here, key, kind):  # type: ignore[no-untyped-def]
    """Record a collective of the threads in the mask `here` (None: all): one event for each warp.

    A barrier starts the next epoch of the block, a syncwarp that of its lanes.
    """
    for first in range(0, threads, 32):
        lanes = 0
        for lane in range(min(32, threads - first)):
            if here is None or here[first + lane]:
                lanes |= 1 << lane
                if kind == SYNC_WARP:
                    _next_warp_epoch(status, first + lane)
        if lanes:
            _collective_event(status, lanes, key, site, first)
    if kind == BARRIER:
        _next_epoch(status)
