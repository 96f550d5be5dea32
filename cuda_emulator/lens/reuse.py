"""Count how often each element of an array is read; a tile in shared memory reduces that number."""

from __future__ import annotations

import math

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .granules import Granules
from .memories import LOAD, STORE, Places
from .profile import Reuse
from .requests import Requests


def find_reuse(trace: Trace, places: Places, requests: Requests, elements: Granules, kinds: Array) -> list[Reuse]:
    """A Reuse for each global or shared array, in the order of the trace's memories.

    Each block has its own shared memory, so its elements are counted for each block.
    """
    shared = np.array([memory.space == "shared" for memory in places.memories], np.bool_)
    table = count_uses(
        trace.events["site"], places.of, kinds, shared, requests.order, requests.start, requests.block,
        elements.first, elements.numbers, elements.count,
    )  # fmt: skip
    return [
        Reuse(memory.name, memory.space, math.prod(memory.shape), *(int(each) for each in row))
        for memory, row in zip(places.memories, table, strict=True)
        if memory.space in ("global", "shared")
    ]


@compiled
def count_uses(
    site: Array,
    memory: Array,
    kinds: Array,
    shared: Array,
    order: Array,
    start: Array,
    block: Array,
    first: Array,
    numbers: Array,
    elements: int,
) -> Array:
    """For each memory: touched, loads, stores, atomics, most_loads, most_loads_in_block, most_requests_in_block."""
    table = np.zeros((shared.shape[0], 7), np.int64)
    loads = np.zeros(elements, np.int32)  # of each element: loads in all blocks; in this block; requests in this block
    loads_here = np.zeros(elements, np.int32)
    requests_here = np.zeros(elements, np.int32)
    last_block = np.full(elements, -1, np.int32)
    last_request = np.full(elements, -1, np.int32)
    for request in range(start.shape[0] - 1):
        for k in range(start[request], start[request + 1]):
            event = order[k]
            of = memory[event]
            kind = kinds[site[event]]
            for touch in range(first[event], first[event + 1]):
                element = numbers[touch]
                if last_block[element] != block[request]:
                    if last_block[element] < 0 or shared[of]:
                        table[of, 0] += 1
                        loads[element] = 0
                    last_block[element] = block[request]
                    loads_here[element] = 0
                    requests_here[element] = 0
                if kind != LOAD:
                    table[of, 2 if kind == STORE else 3] += 1
                    continue
                table[of, 1] += 1
                loads[element] += 1
                loads_here[element] += 1
                if last_request[element] != request:
                    last_request[element] = request
                    requests_here[element] += 1
                table[of, 4] = max(table[of, 4], loads[element])
                table[of, 5] = max(table[of, 5], loads_here[element])
                table[of, 6] = max(table[of, 6], requests_here[element])
    return table
