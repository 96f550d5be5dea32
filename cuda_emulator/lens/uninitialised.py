"""Find reads of memory that nobody has written: on a GPU they return values of an earlier block or program.

Shared memory must be written by the block. Global memory that is fresh from cuda.device_array must be written by a copy
or an earlier launch, or by the block; what another block writes in the same launch is a matter for races.py. A read
before the first write counts, too, unless the write and the read have no order: then races.py reports a race.
"""

from __future__ import annotations

import re

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .granules import Granules
from .memories import ATOMIC, LOAD, STORE, Places, index_of
from .profile import Uninitialised
from .races import moment, unordered


def find_uninitialised(
    trace: Trace, places: Places, granules: Granules, kinds: Array, unjudged: list[str]
) -> list[Uninitialised]:
    """The first such read of each site with their number, sorted by line.

    If an access that was not traced may write to shared memory, the reads cannot be judged: then a sentence about it is
    added to `unjudged`.
    """
    shared = [memory.name for memory in places.memories if memory.space == "shared"]
    fresh = _reads_of_fresh_memory(trace, places, kinds)
    if not shared and not fresh.any():
        return []
    for missing in trace.not_traced:
        kernel = missing.file == trace.file and 0 <= missing.line - trace.first_line < len(trace.source)
        if not kernel or any(re.search(rf"\b{re.escape(name)}\b", missing.text) for name in shared):
            unjudged.append(
                f"line {missing.line} (`{missing.text}`) may write to shared memory and is not traced, so whether "
                "shared memory is read before it is written was not judged"
            )
            return []
    events = trace.events
    is_shared = np.array([memory.space == "shared" for memory in places.memories] + [False] * 3, np.bool_)
    times, examples = unwritten_reads(
        np.asarray(trace.bounds, np.int64), events["site"], events["thread"], events["epoch"], events["warp_epoch"],
        kinds, is_shared[places.of], fresh, granules.first, granules.numbers, granules.count,
    )  # fmt: skip
    reads = [_describe(trace, places, int(examples[site]), int(times[site])) for site in np.flatnonzero(times)]
    return sorted(reads, key=lambda read: (read.site.line, read.site.column))


def _reads_of_fresh_memory(trace: Trace, places: Places, kinds: Array) -> Array:
    """For each event whether it reads global memory that nobody had written before the launch."""
    events = trace.events
    fresh = np.zeros(len(events), np.bool_)
    if trace.not_traced:  # it may write to global memory
        return fresh
    if trace.rounds is not None and len(trace.blocks) < trace.grid_blocks:  # so may a block that is not traced
        return fresh
    for number, memory in enumerate(places.memories):
        if memory.unwritten is not None:
            here = np.flatnonzero((places.of == number) & (kinds[events["site"]] != STORE))
            fresh[here] = memory.unwritten[events["address"][here] - memory.address]
    return fresh


def _describe(trace: Trace, places: Places, event: int, times: int) -> Uninitialised:
    one = trace.events[event]
    memory = places.memories[places.of[event]]
    site = trace.sites[one["site"]]
    block = trace.blocks[int(np.searchsorted(trace.bounds, event, side="right")) - 1]
    index = index_of(memory, int(one["address"]))
    return Uninitialised(site, site.array or memory.name, index, block, int(one["thread"]), times, memory.space)


@compiled
def unwritten_reads(
    bounds: Array,
    site: Array,
    thread: Array,
    epoch: Array,
    warp_epoch: Array,
    kinds: Array,
    shared: Array,
    fresh: Array,
    first: Array,
    numbers: Array,
    granules: int,
) -> tuple[Array, Array]:
    """(number of events of each site that read unwritten memory, the first of these events)."""
    times = np.zeros(kinds.shape[0], np.int64)
    examples = np.zeros(kinds.shape[0], np.int64)
    written = np.full(granules, -1, np.int32)  # the first event of this block that writes each granule
    # The only block that writes each granule, by a store or by anything: -1 for none, -2 for several.
    storing = np.full(granules, -1, np.int32)
    writing = np.full(granules, -1, np.int32)
    for b in range(bounds.shape[0] - 1):
        for i in range(bounds[b], bounds[b + 1]):
            if kinds[site[i]] != LOAD:
                for touch in range(first[i], first[i + 1]):
                    at = numbers[touch]
                    writing[at] = b if writing[at] == -1 or writing[at] == b else -2
                    if kinds[site[i]] == STORE:
                        storing[at] = b if storing[at] == -1 or storing[at] == b else -2
    for b in range(bounds.shape[0] - 1):
        block = bounds[b]
        for i in range(block, bounds[b + 1]):
            if kinds[site[i]] != LOAD:
                for touch in range(first[i], first[i + 1]):
                    if written[numbers[touch]] < block:
                        written[numbers[touch]] = i
        for i in range(block, bounds[b + 1]):
            if not (shared[i] or fresh[i]) or kinds[site[i]] == STORE:  # a store reads nothing
                continue
            # Of atomics alone, one is the first and reads what nobody wrote.
            writers = storing if kinds[site[i]] == ATOMIC else writing
            for touch in range(first[i], first[i + 1]):
                if fresh[i] and writers[numbers[touch]] != b and writers[numbers[touch]] != -1:
                    continue
                writer = written[numbers[touch]]
                late = writer >= i and not unordered(
                    moment(thread[i], epoch[i], warp_epoch[i]),
                    moment(thread[writer], epoch[writer], warp_epoch[writer]),
                )
                if writer < block or late:
                    if times[site[i]] == 0:
                        examples[site[i]] = i
                    times[site[i]] += 1
                    break
    return times, examples
