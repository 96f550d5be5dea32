"""Pairs of accesses that look like a race, and that an idiom of atomics makes right.

A guess before an atomic: a thread reads an element plainly, and each of its atomics on that element comes behind such a
read. A guess that is out of date does no harm, because the atomic tests it or repeats its work:

    old = top[0]                                        if x[i] > top[0]:
    while old < value:                                      cuda.atomic.max(top, 0, x[i])
        guess, old = old, cuda.atomic.compare_and_swap(top, old, value)

An order by atomics and cuda.threadfence(), as of a lock, or of a counter whose last block sums the results of all: one
thread makes an atomic behind its access, and the other an atomic on the same element before its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .granules import Granules
from .memories import ATOMIC, LOAD


def idiomatic(trace: Trace, kinds: Array, granules: Granules, pairs: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether each pair of events, which no barrier orders, is right for one of these reasons."""
    kind = kinds[trace.events["site"]]
    if not pairs or not (kind == ATOMIC).any():
        return [False] * len(pairs)
    site = trace.events["site"]
    guesses = guessing_sites(
        np.asarray(trace.bounds, np.int64), site, trace.events["thread"], trace.events["epoch"],
        kinds, granules.first, granules.numbers, granules.count,
    )  # fmt: skip
    legal = []
    for x, y in pairs:
        guess = {int(kind[x]), int(kind[y])} == {LOAD, ATOMIC} and guesses[site[x if kind[x] == LOAD else y]]
        legal.append(bool(guess) or (trace.fence and _ordered(trace, kind == ATOMIC, x, y)))
    return legal


def _ordered(trace: Trace, atomic: Array, x: int, y: int) -> bool:
    """Whether an atomic behind event x, by its thread or behind a barrier, and one before y are on one element."""
    events = trace.events
    number = np.arange(len(events))
    block = np.searchsorted(trace.bounds, [x, y], side="right") - 1
    bounds = np.asarray(trace.bounds)

    def same_side(event: int, which: int, later: bool) -> Array:
        inside = (number >= bounds[block[which]]) & (number < bounds[block[which] + 1]) & atomic
        epoch = events["epoch"]
        over_barrier = epoch > epoch[event] if later else epoch < epoch[event]
        by_itself = (events["thread"] == events["thread"][event]) & (number >= event if later else number <= event)
        return np.flatnonzero(inside & (by_itself | over_barrier))

    released, acquired = same_side(x, 0, later=True), same_side(y, 1, later=False)
    common = np.intersect1d(events["address"][released], events["address"][acquired])
    for address in common:
        first = released[events["address"][released] == address].min()
        if (acquired[events["address"][acquired] == address] > first).any():
            return True
    return False


@compiled
def guessing_sites(
    bounds: Array,
    site: Array,
    thread: Array,
    epoch: Array,
    kinds: Array,
    first: Array,
    numbers: Array,
    granules: int,
) -> Array:
    """For each site whether its loads are guesses: an atomic that is always behind a load of its thread follows it."""
    last = np.full(granules, -1, np.int64)  # the last load of each granule
    before = np.full(site.shape[0], -1, np.int64)  # the load of the same thread and granule before a load
    guarded = np.ones(kinds.shape[0], np.bool_)  # atomic sites that are always behind a load
    for look in range(2):
        guesses = np.zeros(kinds.shape[0], np.bool_)
        last[:] = -1
        for b in range(bounds.shape[0] - 1):
            for i in range(bounds[b], bounds[b + 1]):
                if first[i] == first[i + 1] or (kinds[site[i]] != LOAD and kinds[site[i]] != ATOMIC):
                    continue
                granule = numbers[first[i]]
                x = last[granule]
                mine = x >= bounds[b] and thread[x] == thread[i] and epoch[x] == epoch[i]
                if kinds[site[i]] == LOAD:
                    before[i] = x if mine else -1
                    last[granule] = i
                elif not mine:
                    guarded[site[i]] = False
                elif look == 1 and guarded[site[i]]:
                    while x >= 0:
                        guesses[site[x]] = True
                        x = before[x]
                    before[last[granule]] = -1  # the loads before it are known now
    return guesses
