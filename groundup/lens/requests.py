"""From events of threads to requests of warps: lanes that are at the same place at the same time act together.

The same place is the same site, the same time the same key (rounds of the loops around it, and the calls that led
there). A lane that is there twice starts a further request, so no two events are ever merged into one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuda_emulator.trace import Trace
from groundup.lens.compiled import Array, compiled
from groundup.lens.memories import BRANCH, Places


@dataclass(frozen=True)
class Requests:
    """All requests of a trace, in the order of their first events.

    of: for each event its request's number
    first: for each request its first event; block: its block's place in trace.blocks
    order, start: the events of request r are order[start[r]:start[r + 1]], as they stand in the trace
    active: for each phase how many warps, of all traced blocks, left an event in it
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
    """The requests of all events. `kinds` holds each site's kind as a number."""
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
    """Where in the table the request of event i stands, or would stand."""
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

    The table is never emptied: an entry of an earlier block is known by its number, and counts as a free place. Where
    lanes come more than once, the table holds the first of a chain of requests. A lane's third event joins the third,
    so each chain remembers where its last lane stands.
    """
    events = key.shape[0]
    of = np.empty(events, np.int32)
    first = np.empty(events, np.int32)
    block = np.empty(events, np.int32)
    lanes = np.empty(events, np.uint32)  # that a request has so far, a bit each
    further = np.empty(events, np.int32)  # the next request of its chain
    current = np.empty(events, np.int32)  # of a chain's first: where the last lane stands
    last_lane = np.empty(events, np.int32)  # of a chain's first: which that was
    active = np.zeros(phases, np.int64)
    count = 0
    for b in range(bounds.shape[0] - 1):
        oldest = count
        seen = np.full(32, -1, np.int64)  # the phase in which each warp was last seen
        for i in range(bounds[b], bounds[b + 1]):
            warp = thread[i] >> 5
            lane = thread[i] & 31
            if seen[warp] != epoch[i]:
                seen[warp] = epoch[i]
                active[epoch[i]] += 1
            request = -1
            head = -1
            end = -1  # of the chain, where a request is to be added to it
            if kinds[site[i]] <= BRANCH:  # an event of a collective is a whole warp's, and stands for itself
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
    """The events by their requests, each request's as they stand in the trace; and where each request's begin."""
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
