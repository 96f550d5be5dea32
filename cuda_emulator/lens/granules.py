"""Number the pieces of memory that a trace accesses from 0, so that data about each piece fits into arrays.

An array may be huge and used in a few places only, so a hash table numbers the pieces that are accessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .memories import LOAD, Places


@dataclass(frozen=True)
class Granules:
    """The granules of each event: event i accesses numbers[first[i]:first[i + 1]]. There are `count` granules."""

    first: Array
    numbers: Array
    count: int


def number_elements(trace: Trace, places: Places) -> Granules:
    """Number the elements of the global and shared arrays; two arrays in one allocation have different elements."""
    own = np.arange(len(places.memories), dtype=np.int64)
    size = np.array([memory.dtype.itemsize * _judged(memory.space) for memory in places.memories], np.int64)
    return _number(trace, places, own, places.low, size)


def number_granules(trace: Trace, places: Places, kinds: Array) -> Granules:
    """Number pieces of memory for the search for races: every access uses whole pieces, whatever its array and type.

    Arrays that overlap form a group. The size of its pieces is the largest power of two that divides the size and the
    offset of every access. Global memory that is only read is left out, since it cannot have a race, unless a part of
    it was not written before the launch.
    """
    together = np.zeros(len(places.memories), np.int64)
    start = places.low.copy()
    end = -1
    for number in np.argsort(places.low, kind="stable"):
        if not _judged(places.memories[number].space):
            continue
        if places.low[number] >= end:
            leader = number
        together[number] = leader
        start[number] = places.low[leader]
        end = max(end, places.high[number])
    judged = np.array([_judged(memory.space) for memory in places.memories], np.bool_)
    events = trace.events
    bits, written = used_bits(
        events["address"], events["size"], events["site"], kinds, places.of, judged, together, start
    )
    needed = np.array(
        [memory.space == "shared" or memory.unwritten is not None for memory in places.memories], np.bool_
    )
    size = np.where(judged & (written[together] | needed), (bits & -bits)[together], 0)
    return _number(trace, places, together, start, size)


def _judged(space: str) -> bool:
    """Whether several threads can write to an array in this memory."""
    return space in ("global", "shared")


def _number(trace: Trace, places: Places, together: Array, start: Array, size: Array) -> Granules:
    events = trace.events
    first, numbers, count = number(events["address"], events["size"], places.of, together, start, size)
    return Granules(first, numbers, int(count))


@compiled
def used_bits(
    address: Array,
    size: Array,
    site: Array,
    kinds: Array,
    memory: Array,
    judged: Array,
    together: Array,
    start: Array,
) -> tuple[Array, Array]:
    """(the bits in all sizes and offsets of accesses, whether one is a write) of each group of arrays."""
    bits = np.zeros(judged.shape[0], np.int64)
    written = np.zeros(judged.shape[0], np.bool_)
    for i in range(address.shape[0]):
        of = memory[i]
        if of < judged.shape[0] and judged[of]:
            bits[together[of]] |= (address[i] - start[of]) | np.int64(size[i])
            written[together[of]] |= kinds[site[i]] != LOAD
    return bits, written


@compiled
def number(
    address: Array, size: Array, memory: Array, together: Array, start: Array, granule: Array
) -> tuple[Array, Array, int]:
    """Number granules in the order in which they are first touched. Arrays with granule 0 are left out."""
    events = address.shape[0]
    first = np.empty(events + 1, np.int64)
    first[0] = 0
    for i in range(events):
        touched = 0
        if memory[i] < granule.shape[0] and granule[memory[i]] > 0:
            touched = max(1, size[i] // granule[memory[i]])
        first[i + 1] = first[i] + touched
    total = first[events]
    numbers = np.empty(total, np.int32)
    table = np.full(1 << 12, -1, np.int32)
    keys = np.empty(total, np.int64)  # of the numbered granules
    count = 0
    for i in range(events):
        for touch in range(first[i], first[i + 1]):
            of = memory[i]
            place_in_array = (address[i] - start[of]) // granule[of] + touch - first[i]
            key = (np.int64(together[of]) << 44) | place_in_array
            if 2 * count >= table.shape[0]:
                table = np.full(4 * table.shape[0], -1, np.int32)
                for other in range(count):
                    table[free_place(keys[other], keys, table)] = other
            place = free_place(key, keys, table)
            if table[place] < 0:
                table[place] = count
                keys[count] = key
                count += 1
            numbers[touch] = table[place]
    return first, numbers, count


@compiled
def free_place(key: int, keys: Array, table: Array) -> int:
    """The position of a key in the table, or the free position for it.

    Sixteen neighbours are stored together, because they are often accessed together.
    """
    last = table.shape[0] - 1
    mixed = np.uint64(key >> 4) * np.uint64(0x9E3779B97F4A7C15)
    place = (np.int64(mixed >> np.uint64(28)) & last & ~15) | (key & 15)
    while table[place] >= 0 and keys[table[place]] != key:
        place = (place + 1) & last
    return place
