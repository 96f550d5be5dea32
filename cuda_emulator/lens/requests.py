"""Group the events of threads into requests of warps: lanes at the same place at the same time make one request.

The same place means the same site; the same time means the same key (the iterations of the loops around it, and the
calls that led there). If a lane is there twice, its second event starts another request, so that no event is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .memories import BRANCH, Places


@dataclass(frozen=True)
class Requests:
    """All requests of a trace, in the order of their first events.

    of: the number of each event's request
    first: the first event of each request; block: the position of its block in trace.blocks
    order, start: the events of request r are order[start[r]:start[r + 1]], in the order of the trace
    active: for each phase the number of warps, in all traced blocks, that have an event in it
    """

    of: Array
    first: Array
    block: Array
    order: Array
    start: Array
    active: Array

    @property
    def count(self) -> int:
        return len(self.first)


def find_requests(trace: Trace, places: Places, kinds: Array) -> Requests:
    """The requests of all events. kinds: the kind of each site as a number."""
    events = trace.events
    bounds = np.asarray(trace.bounds, np.int64)
    phases = int(events["epoch"].max()) + 1 if len(events) else 0
    largest = int(np.diff(bounds).max()) if len(bounds) > 1 else 0
    table = np.full(1 << max(2 * largest, 16).bit_length(), -1, np.int32)
    of, first, block, active = group(
        events["key"], events["site"], events["thread"], events["epoch"], places.of, kinds, bounds, table, phases
    )
    order, start = sort(of, len(first))
    return Requests(of, first, block, order, start, active)


@compiled
def find_place(
    i: int, oldest: int, table: Array, first: Array, key: Array, site: Array, thread: Array, memory: Array
) -> int:
    """The position in the table of the request of event i, or a free position for it."""
    last = table.shape[0] - 1
    mixed = np.uint64(key[i]) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64((site[i] * 32 + (thread[i] >> 5)) * 64 + memory[i]) * np.uint64(0xD6E8FEB86659FD93)
    place = int(np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(last)))
    while table[place] >= oldest:
        other = first[table[place]]
        same_time = key[other] == key[i] and thread[other] >> 5 == thread[i] >> 5
        if same_time and site[other] == site[i] and memory[other] == memory[i]:
            break
        place = (place + 1) & last
    return place


@compiled
def group(
    key: Array,
    site: Array,
    thread: Array,
    epoch: Array,
    memory: Array,
    kinds: Array,
    bounds: Array,
    table: Array,
    phases: int,
) -> tuple[Array, Array, Array, Array]:
    """Number the requests with a hash table from (warp, site, key, memory) to a request: of, first, block and active.

    The table is never cleared: an entry of an earlier block is recognised by its number, and counts as free. If lanes
    have several events with one key, the table has the first of a chain of requests: a lane's third event belongs to
    the third request. Each chain stores the last lane and its position, so that the search is short.
    """
    events = key.shape[0]
    of = np.empty(events, np.int32)
    first = np.empty(events, np.int32)
    block = np.empty(events, np.int32)
    lanes = np.empty(events, np.uint32)  # of each request so far, as a mask
    further = np.empty(events, np.int32)  # the next request of its chain
    current = np.empty(events, np.int32)  # of a chain's first request: the request of the last lane
    last_lane = np.empty(events, np.int32)  # of a chain's first request: the last lane
    active = np.zeros(phases, np.int64)
    count = 0
    for b in range(bounds.shape[0] - 1):
        oldest = count
        seen = np.full(32, -1, np.int64)  # the last phase of each warp
        for i in range(bounds[b], bounds[b + 1]):
            warp = thread[i] >> 5
            lane = thread[i] & 31
            if seen[warp] != epoch[i]:
                seen[warp] = epoch[i]
                active[epoch[i]] += 1
            request = -1
            head = -1
            end = -1  # the end of the chain, if a request has to be added to it
            if kinds[site[i]] <= BRANCH:  # the event of a collective is a request of its own
                place = find_place(i, oldest, table, first, key, site, thread, memory)
                if table[place] < oldest:
                    table[place] = count
                else:
                    request = table[place]
                    if last_lane[request] == lane:
                        request = current[request]
                    while request >= 0 and lanes[request] >> lane & 1:
                        end = request
                        request = further[request]
                head = table[place]
            if request < 0:
                request = count
                count += 1
                first[request] = i
                block[request] = b
                lanes[request] = 0
                further[request] = -1
                if end >= 0:
                    further[end] = request
            if head >= 0:
                current[head] = request
                last_lane[head] = lane
            lanes[request] |= np.uint32(1) << np.uint32(lane)
            of[i] = request
    return of, first[:count].copy(), block[:count].copy(), active


@compiled
def sort(of: Array, count: int) -> tuple[Array, Array]:
    """(events sorted by request, and by their order in the trace; position of each request's first event)."""
    start = np.zeros(count + 1, np.int32)
    for i in range(of.shape[0]):
        start[of[i] + 1] += 1
    for request in range(count):
        start[request + 1] += start[request]
    order = np.empty(of.shape[0], np.int32)
    following = start[:count].copy()
    for i in range(of.shape[0]):
        order[following[of[i]]] = i
        following[of[i]] += 1
    return order, start
