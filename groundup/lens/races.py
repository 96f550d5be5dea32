"""Races: two threads touch the same bytes, nothing orders them, and one of them writes.

What orders two accesses: that one thread makes both; a barrier between them, in one block (their epochs differ); a
syncwarp between them, in one warp (their warp epochs differ). Nothing orders two blocks. Two atomics may come in any
order. A warp's lanes are not in step: since Volta, only a syncwarp orders them.

The order of the trace says nothing here, so one pass must find a conflict whichever of the two came first. For each
granule of memory it keeps, of the loads, the stores and the atomics, three events each:

    latest       the last one
    companion    an earlier one of the same block, from another warp if there was any since the last barrier, else from
                 another thread: whoever comes next, one of the two was a different thread that nothing orders before it
    elsewhere    one of an earlier block

That is enough to find a race on every granule that has one; of many conflicting pairs on a granule, it finds some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_emulator.trace import SAME_VALUE, Trace
from groundup.lens.compiled import Array, compiled
from groundup.lens.granules import Granules
from groundup.lens.memories import ATOMIC, LOAD, STORE, Places, index_of
from groundup.lens.profile import Party, Race

CONFLICTS = ("write after write", "read after write", "write after read")
"""The kinds of races, by their numbers in compiled code."""

MOST = 4096
"""Different races that are told apart. A kernel's sites would have to be many for more."""


def find_races(trace: Trace, places: Places, granules: Granules, kinds: Array, unjudged: list[str]) -> list[Race]:
    """All races, one for each kind, pair of sites, array, and for within a block or between blocks; by line.

    What cannot be judged is said in a sentence that is added to `unjudged`.
    """
    shared = np.array([memory.space == "shared" for memory in places.memories], np.bool_)
    events = trace.events
    found, count = race_pairs(
        np.asarray(trace.bounds, np.int64), events["site"], events["thread"], events["epoch"], events["warp_epoch"],
        events["flags"], kinds, places.of, shared, granules.first, granules.numbers, granules.count,
    )  # fmt: skip
    races = [_race(trace, places, *(int(number) for number in row[:4])) for row in found[:count]]
    between = [race for race in races if race.between_blocks]
    if trace.fence and between:
        lines = sorted({race.second.site.line for race in between})
        unjudged.append(
            f"{trace.kernel} calls cuda.threadfence(), which can order blocks in ways that are not followed here: "
            f"blocks touch the same elements of {', '.join(sorted({race.array for race in between}))} "
            f"(line {', '.join(map(str, lines))}), and whether that is a race was not judged"
        )
        races = [race for race in races if not race.between_blocks]
    return sorted(races, key=lambda race: (race.first.site.line, race.second.site.line, race.first.site.number))


def _race(trace: Trace, places: Places, kind: int, first: int, second: int, times: int) -> Race:
    memory = places.memories[places.of[second]]
    index = index_of(memory, int(trace.events["address"][second]))
    parties = _party(trace, first), _party(trace, second)
    name = parties[1].site.array or memory.name
    return Race(CONFLICTS[kind], name, memory.space, index, *parties, times)


def _party(trace: Trace, event: int) -> Party:
    place = int(np.searchsorted(trace.bounds, event, side="right")) - 1
    one = trace.events[event]
    return Party(trace.sites[one["site"]], trace.blocks[place], int(one["thread"]))


@compiled
def moment(thread: int, epoch: int, warp_epoch: int) -> Any:
    """Who did it, and between which barriers, in one number: 10 bits, 26 and 26. A trace has fewer events than that."""
    return (np.int64(epoch) << 36) | (np.int64(warp_epoch) << 10) | np.int64(thread)


@compiled
def unordered(x: int, y: int) -> bool:
    """Whether nothing orders two moments of one block."""
    if x >> 36 != y >> 36 or x & 1023 == y & 1023:
        return False
    return x >> 5 & 31 != y >> 5 & 31 or x >> 10 == y >> 10


@compiled
def partner(place: int, now: int, events: Array, moments: Array, block: int, shared: bool) -> int:
    """A kept event that races with one at moment `now` if one of the two writes, else -1.

    place: of the kept ones, 3 * granule + kind; block: the first event of this block
    """
    if events[3 * place] >= block:
        for k in range(2):
            if events[3 * place + k] >= block and unordered(moments[2 * place + k], now):
                return events[3 * place + k]
        latest = events[3 * place + 2]
    else:
        latest = events[3 * place]
    return -1 if shared else latest  # each block has its own shared memory


@compiled
def keep(place: int, now: int, event: int, events: Array, moments: Array, block: int) -> None:
    """Make an event the latest of its kind, and keep of the others what later events may conflict with."""
    latest = moments[2 * place]
    if events[3 * place] < block:  # nothing of this block yet
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
    site: Array,
    thread: Array,
    epoch: Array,
    warp_epoch: Array,
    flags: Array,
    kinds: Array,
    memory: Array,
    shared: Array,
    first: Array,
    numbers: Array,
    granules: int,
) -> tuple[Array, int]:
    """Rows of (conflict, first event, second event, times, between blocks), each for the first pair of its sites."""
    events = np.full(9 * granules, -1, np.int32)  # of each granule by loads, stores, atomics: the three that are kept
    moments = np.zeros(6 * granules, np.int64)  # of the first two of these
    found = np.empty((MOST, 5), np.int64)
    count = 0
    for b in range(bounds.shape[0] - 1):
        block = bounds[b]
        for y in range(block, bounds[b + 1]):
            if first[y] == first[y + 1]:
                continue
            kind = kinds[site[y]]
            own = shared[memory[y]]
            now = moment(thread[y], epoch[y], warp_epoch[y])
            writer = -1
            reader = -1
            for touch in range(first[y], first[y + 1]):
                place = 3 * np.int64(numbers[touch])
                if kind != LOAD and reader < 0:
                    reader = partner(place + LOAD, now, events, moments, block, own)
                if writer < 0 and not (kind == STORE and flags[y] & SAME_VALUE):
                    writer = partner(place + STORE, now, events, moments, block, own)
                if writer < 0 and kind != ATOMIC:
                    writer = partner(place + ATOMIC, now, events, moments, block, own)
                keep(place + kind, now, y, events, moments, block)
            for side in range(2):
                x = writer if side == 0 else reader
                if x < 0:
                    continue
                conflict = 2 if side == 1 else 1 if kind == LOAD else 0
                known = 0
                while known < count and not (
                    found[known, 0] == conflict
                    and site[found[known, 1]] == site[x]
                    and site[found[known, 2]] == site[y]
                    and memory[found[known, 2]] == memory[y]
                    and found[known, 4] == (x < block)
                ):
                    known += 1
                if known < count:
                    found[known, 3] += 1
                elif count < MOST:
                    found[count, 0] = conflict
                    found[count, 1] = x
                    found[count, 2] = y
                    found[count, 3] = 1
                    found[count, 4] = x < block
                    count += 1
    return found, count
