"""Compute a profile from the events of a trace.

    memories.py       finds the array of each address
    requests.py       groups the events of threads into requests of warps
    examples.py       chooses the requests that the pictures show
    costs.py          counts sectors, bank passes and broadcasts of each request
    granules.py       numbers the pieces of memory that are accessed
    races.py          finds unordered accesses of two threads to one place
    uninitialised.py  finds shared memory that is read before it is written
    reuse.py          counts how often each element is read

This file has the rest: branches, collectives, phases, operations, and the profile that holds all results.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..trace import NotTraced, Site, Space, Trace
from .compiled import Array
from .costs import SUMS, cost_table
from .examples import choose
from .granules import number_elements, number_granules
from .memories import ATOMIC, BRANCH, KINDS, WARP, Places, find_places, index_of
from .profile import Access, Branch, Collective, LineOperations, Phase, Profile, Request
from .races import find_races
from .requests import Requests, find_requests
from .reuse import find_reuse
from .uninitialised import find_uninitialised


def analyse(trace: Trace) -> Profile:
    """The profile of a trace. `static` and `roofline` are None: they need more than a trace.

    A site that accesses several arrays (in a device function that is called with each of them) has an Access for each.
    Constant memory uses the fields of the banks: `wavefronts` is the number of different addresses in the requests. For
    a thread's own arrays only `lanes` is counted and `requests` is 0, since they have no events.
    """
    kinds = np.array([KINDS.index(site.kind) for site in trace.sites], np.int64)
    places = find_places(trace, kinds)
    requests = find_requests(trace, places, kinds)
    granules = number_granules(trace, places, kinds)
    elements = number_elements(trace, places)
    unjudged: list[str] = []
    return Profile(
        kernel=trace.kernel,
        source=[(trace.file, trace.first_line, trace.source), *trace.device_functions],
        arguments=trace.arguments,
        argument_types=trace.argument_types,
        grid=trace.grid,
        block=trace.block,
        blocks=trace.blocks,
        grid_blocks=trace.grid_blocks,
        events=len(trace.events),
        accesses=_accesses(trace, places, requests, kinds),
        branches=_branches(trace, requests, kinds),
        collectives=_collectives(trace, kinds),
        phases=_phases(trace, requests, kinds),
        reuse=find_reuse(trace, places, requests, elements, kinds),
        operations=_operations(trace),
        races=find_races(trace, places, granules, kinds, unjudged),
        uninitialised=find_uninitialised(trace, places, granules, kinds, unjudged),
        not_traced=[*trace.not_traced, *_nowhere(trace, places)],
        unjudged=unjudged,
        shared_bytes=trace.shared_bytes,
        local_bytes=trace.local_bytes,
        fault=trace.fault,
        fault_line=trace.fault_line,
    )


def _in_source_order(trace: Trace, site: Site) -> tuple[bool, str, int, int, int]:
    """A sort key: the kernel's lines first, then those of device functions in other files."""
    return site.file != trace.file, site.file, site.line, site.column, site.number


def _accesses(trace: Trace, places: Places, requests: Requests, kinds: Array) -> list[Access]:
    table = cost_table(trace, places, requests, kinds)
    found = []
    for number, memory in np.argwhere(table[:, :, 0]):
        site = trace.sites[number]
        known = places.memories[memory] if memory < places.frame else None
        row = dict(zip(SUMS, (int(each) for each in table[number, memory]), strict=True))
        del row["highest"]
        chosen, rounds = choose(trace, places, requests, row.pop("example"))
        example, *others = (_example(trace, places, requests, *each) for each in zip(chosen, rounds, strict=True))
        examples = tuple(sorted([example, *others], key=lambda each: (each.warp, each.round)))
        shape = tuple(known.shape) if known and known.space != "local" else ()
        # In a device function the array has the name of a parameter; the profile shows the kernel's name.
        name = known.name if known and known.space in ("global", "shared") else site.array
        space: Space = known.space if known else "local"
        found.append(Access(site, name, space, site.kind, **row, example=example, examples=examples, shape=shape))
    for number, lanes in trace.own_accesses.items():
        site = trace.sites[number]
        found.append(Access(site, site.array, "local", site.kind, requests=0, lanes=lanes, bytes_used=0))
    return sorted(found, key=lambda each: _in_source_order(trace, each.site))


def _example(trace: Trace, places: Places, requests: Requests, request: int, number: int) -> Request:
    """A request as an example for the pictures, its lanes ascending. number: its round"""
    numbers = requests.order[requests.start[request] : requests.start[request + 1]]
    events = trace.events[numbers]
    events = events[np.argsort(events["thread"] & 31, kind="stable")]
    addresses = [int(address) for address in events["address"]]
    memory = int(places.of[numbers[0]])
    known = places.memories[memory] if memory < places.frame else None
    base = int(places.base[memory]) if known and known.space != "local" else min(addresses)
    return Request(
        block=trace.blocks[requests.block[request]],
        warp=int(events["thread"][0]) >> 5,
        lanes=tuple(int(thread) & 31 for thread in events["thread"]),
        addresses=tuple(address - base for address in addresses),
        size=int(events["size"].max()),
        indices=tuple(index_of(known, address) for address in addresses) if known and known.space != "local" else (),
        round=number,
    )


def _branches(trace: Trace, requests: Requests, kinds: Array) -> list[Branch]:
    events = np.flatnonzero(kinds[trace.events["site"]] == BRANCH)
    if not len(events):
        return []
    request = requests.of[events]
    lanes = np.bincount(request, minlength=requests.count)
    taken = np.bincount(request, weights=trace.events["address"][events], minlength=requests.count).astype(np.int64)
    groups = np.unique(request)
    site = trace.events["site"][requests.first[groups]]
    mixed = (taken[groups] > 0) & (taken[groups] < lanes[groups])
    found = []
    for number in np.unique(site):
        mine = groups[site == number]
        divergent = groups[(site == number) & mixed]
        example = _sides(trace, requests, divergent[0]) if len(divergent) else None
        sums = len(mine), len(divergent), int(lanes[mine].sum()), int(taken[mine].sum())
        found.append(Branch(trace.sites[number], *sums, example))
    return sorted(found, key=lambda each: _in_source_order(trace, each.site))


def _sides(trace: Trace, requests: Requests, request: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(lanes of a request that took a branch, lanes that did not)."""
    events = trace.events[requests.order[requests.start[request] : requests.start[request + 1]]]
    lanes = events["thread"] & 31
    sides = [tuple(sorted(int(lane) for lane in lanes[events["address"] == way])) for way in (1, 0)]
    return sides[0], sides[1]


def _collectives(trace: Trace, kinds: Array) -> list[Collective]:
    events = trace.events[kinds[trace.events["site"]] > BRANCH]
    bits = np.unpackbits((events["address"] & 0xFFFFFFFF).astype("<u4").view(np.uint8)).reshape(-1, 32)
    lanes = bits.sum(axis=1, dtype=np.int64)
    found = []
    for number in np.unique(events["site"]):
        mine = events["site"] == number
        found.append(Collective(trace.sites[number], int(mine.sum()), int(lanes[mine].sum())))
    return sorted(found, key=lambda each: _in_source_order(trace, each.site))


def _phases(trace: Trace, requests: Requests, kinds: Array) -> list[Phase]:
    """The loads, stores, atomics and warp collectives of each phase; a barrier belongs to no phase."""
    first = trace.events[requests.first]
    counted = (kinds[first["site"]] <= ATOMIC) | (kinds[first["site"]] == WARP)
    pairs, times = np.unique(
        first["epoch"][counted].astype(np.int64) * len(trace.sites) + first["site"][counted], return_counts=True
    )
    made: dict[int, dict[int, int]] = defaultdict(dict)
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        made[pair // len(trace.sites)][pair % len(trace.sites)] = count
    return [Phase(number, made[number], int(warps)) for number, warps in enumerate(requests.active)]


def _operations(trace: Trace) -> list[LineOperations]:
    sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for each in trace.operations:
        line = sums[each.file, each.line]
        for place, count in enumerate((each.simple, each.division, each.special, each.double)):
            line[place] += count
    lines = sorted(sums, key=lambda place: (place[0] != trace.file, place))
    return [LineOperations(file, line, *sums[file, line]) for file, line in lines]


def _nowhere(trace: Trace, places: Places) -> list[NotTraced]:
    """Sites with addresses outside all known arrays, whose costs cannot be computed."""
    lost = np.unique(trace.events["site"][places.of == places.nowhere])
    sites = sorted((trace.sites[number] for number in lost), key=lambda site: _in_source_order(trace, site))
    reason = "its addresses are in no known array, so its sectors and races are not counted"
    return [NotTraced(site.file, site.line, site.text, reason) for site in sites]
