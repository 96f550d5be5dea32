"""Find races: two threads access the same bytes without an order between them, and one of them writes.

Two accesses are ordered if one thread makes both; if a barrier is between them, in one block (their epochs differ); or
if a syncwarp is between them, in one warp (their warp epochs differ). Only a barrier across the grid orders two blocks.
Two atomics may happen
in any order, without a race. The lanes of a warp do not run in step: since Volta, only a syncwarp orders them.

The order of two events in the trace is arbitrary, so one pass must find a conflict for either order. For each granule
of memory, three events are stored of each kind (loads, stores, atomics):

    latest       the last event
    companion    an earlier event of the same block, since the last barrier: of another warp if there is one, else of
                 another thread. For any following event, one of these two is from a different thread without an order
    elsewhere    an event of an earlier block

With these, a race is found on every granule that has one; of many conflicting pairs on a granule, some are found.
Two idioms of atomics are no races; idioms.py finds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trace import SAME_VALUE, Trace
from .compiled import Array, compiled
from .granules import Granules
from .idioms import idiomatic
from .memories import ATOMIC, LOAD, STORE, Places, index_of
from .profile import Party, Race

CONFLICTS = ("write after write", "read after write", "write after read")
"""The kinds of races; compiled code uses their positions in this tuple."""

MOST = 4096
"""The largest number of different races that are listed."""


def find_races(trace: Trace, places: Places, granules: Granules, kinds: Array, unjudged: list[str]) -> list[Race]:
    """All races, sorted by line. Pairs with the same kind, sites and array, both within a block or both between blocks,
    are one race.

    A sentence about accesses that cannot be judged is added to `unjudged`.
    """
    shared = np.array([memory.space == "shared" for memory in places.memories], np.bool_)
    events = trace.events
    bounds, floors = np.asarray(trace.bounds, np.int64), np.zeros(len(trace.bounds), np.int64)
    order = np.arange(0)
    if trace.rounds is not None:
        order, bounds, floors = by_rounds(trace)
        events, of = events[order], places.of[order]
        first, last = granules.first[:-1][order], granules.first[1:][order]
    else:
        of, first, last = places.of, granules.first[:-1], granules.first[1:]
    pairs, count = race_pairs(
        bounds, floors, events["site"], events["thread"], events["epoch"], events["warp_epoch"],
        events["flags"], kinds, of, shared, first, last, granules.numbers, granules.count,
    )  # fmt: skip
    if trace.rounds is not None:
        pairs[:count, 1:3] = order[pairs[:count, 1:3]]
    rows = [tuple(int(number) for number in row[:4]) for row in pairs[:count]]
    legal = idiomatic(trace, kinds, granules, [(first, second) for _, first, second, _ in rows])
    races = [_race(trace, places, *row) for row, fine in zip(rows, legal, strict=True) if not fine]
    between = [race for race in races if race.between_blocks and race.kind != CONFLICTS[0]]
    if trace.fence and between:
        lines = sorted({race.second.site.line for race in between})
        unjudged.append(
            f"{trace.kernel} calls cuda.threadfence(), which can order blocks, and a trace does not show that order: "
            f"blocks touch the same elements of {', '.join(sorted({race.array for race in between}))} "
            f"(line {', '.join(map(str, lines))}), and whether that is a race was not judged"
        )
        races = [race for race in races if race not in between]
    return sorted(races, key=lambda race: (race.first.site.line, race.second.site.line, race.first.site.number))


def by_rounds(trace: Trace) -> tuple[Array, Array, Array]:
    """The events in the order of the rounds between barriers across the grid.

    (number of each event in the trace, bounds of the pieces, for each piece the first event of its round). A piece is
    what one block does in one round.
    """
    assert trace.rounds is not None
    block = np.repeat(np.arange(len(trace.blocks)), np.diff(trace.bounds))
    order = np.argsort(trace.rounds, kind="stable")
    keys = np.stack([trace.rounds[order], block[order]])
    starts = np.flatnonzero(np.any(np.diff(keys, axis=1) != 0, axis=0)) + 1 if len(order) else np.arange(0)
    bounds = np.concatenate([[0], starts, [len(order)]]).astype(np.int64)
    floors = np.searchsorted(keys[0], keys[0][bounds[:-1]], side="left") if len(order) else np.zeros(1)
    return order, bounds, floors.astype(np.int64)


def _race(trace: Trace, places: Places, kind: int, first: int, second: int, times: int) -> Race:
    memory = places.memories[places.of[second]]
    index = index_of(memory, int(trace.events["address"][second]))
    parties = _party(trace, first), _party(trace, second)
    name = parties[1].site.array or memory.name
    one, other = (each.site for each in parties)
    same_line = (one.file, one.line) == (other.file, other.line)
    same_round = bool(trace.events["key"][first] == trace.events["key"][second]) if same_line else None
    return Race(CONFLICTS[kind], name, memory.space, index, *parties, times, same_round)


def _party(trace: Trace, event: int) -> Party:
    place = int(np.searchsorted(trace.bounds, event, side="right")) - 1
    one = trace.events[event]
    return Party(trace.sites[one["site"]], trace.blocks[place], int(one["thread"]))


@compiled
def moment(thread: int, epoch: int, warp_epoch: int) -> Any:
    """Thread (10 bits), warp epoch (26 bits) and epoch (26 bits) of an event in one number."""
    return (np.int64(epoch) << 36) | (np.int64(warp_epoch) << 10) | np.int64(thread)


@compiled
def unordered(x: int, y: int) -> bool:
    """Whether two events of one block, given by their moments, have no order."""
    if x >> 36 != y >> 36 or x & 1023 == y & 1023:
        return False
    return x >> 5 & 31 != y >> 5 & 31 or x >> 10 == y >> 10


@compiled
def partner(place: int, now: int, events: Array, moments: Array, block: int, floor: int, shared: bool) -> int:
    """A stored event that has no order with one at moment `now`, or -1.

    place: 3 * granule + kind of the stored events; block: the first event of this block, floor: of all blocks since the
    last barrier across the grid
    """
    if events[3 * place] >= block:
        for k in range(2):
            if events[3 * place + k] >= block and unordered(moments[2 * place + k], now):
                return events[3 * place + k]
        latest = events[3 * place + 2]
    else:
        latest = events[3 * place]
    return -1 if shared or latest < floor else latest  # each block has its own shared memory


@compiled
def remember(place: int, now: int, event: int, events: Array, moments: Array, block: int) -> None:
    """Store an event as the latest of its kind; it replaces the companion if later events cannot need the old one."""
    latest = moments[2 * place]
    if events[3 * place] < block:  # no event of this block yet
        events[3 * place + 2] = events[3 * place]
        events[3 * place + 1] = -1
    elif latest >> 36 != now >> 36:
        events[3 * place + 1] = -1
    elif latest & 1023 != now & 1023:
        lost = moments[2 * place + 1]
        if events[3 * place + 1] < 0 or lost >> 5 & 31 == now >> 5 & 31:
            events[3 * place + 1] = events[3 * place]
            moments[2 * place + 1] = latest
    events[3 * place] = event
    moments[2 * place] = now


@compiled
def race_pairs(
    bounds: Array,
    floors: Array,
    site: Array,
    thread: Array,
    epoch: Array,
    warp_epoch: Array,
    flags: Array,
    kinds: Array,
    memory: Array,
    shared: Array,
    first: Array,
    last: Array,
    numbers: Array,
    granules: int,
) -> tuple[Array, int]:
    """(rows, their number): each row is (kind, first event, second event, times, between blocks) of the first pair."""
    events = np.full(9 * granules, -1, np.int32)  # three stored events for each granule and kind
    moments = np.zeros(6 * granules, np.int64)  # of the first two stored events
    pairs = np.empty((MOST, 5), np.int64)
    count = 0
    for b in range(bounds.shape[0] - 1):
        block = bounds[b]
        floor = floors[b]
        for y in range(block, bounds[b + 1]):
            if first[y] == last[y]:
                continue
            kind = kinds[site[y]]
            own = shared[memory[y]]
            now = moment(thread[y], epoch[y], warp_epoch[y])
            writer = -1
            reader = -1
            for touch in range(first[y], last[y]):
                place = 3 * np.int64(numbers[touch])
                if kind != LOAD and reader < 0:
                    reader = partner(place + LOAD, now, events, moments, block, floor, own)
                if writer < 0 and not (kind == STORE and flags[y] & SAME_VALUE):
                    writer = partner(place + STORE, now, events, moments, block, floor, own)
                if writer < 0 and kind != ATOMIC:
                    writer = partner(place + ATOMIC, now, events, moments, block, floor, own)
                remember(place + kind, now, y, events, moments, block)
            for side in range(2):
                x = writer if side == 0 else reader
                if x < 0:
                    continue
                conflict = 2 if side == 1 else 1 if kind == LOAD else 0
                known = 0
                while known < count and not (
                    pairs[known, 0] == conflict
                    and site[pairs[known, 1]] == site[x]
                    and site[pairs[known, 2]] == site[y]
                    and memory[pairs[known, 2]] == memory[y]
                    and pairs[known, 4] == (x < block)
                ):
                    known += 1
                if known < count:
                    pairs[known, 3] += 1
                elif count < MOST:
                    pairs[count, 0] = conflict
                    pairs[count, 1] = x
                    pairs[count, 2] = y
                    pairs[count, 3] = 1
                    pairs[count, 4] = x < block
                    count += 1
    return pairs, count
