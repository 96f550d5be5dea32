"""Count the costs of each request in the memory that it accesses.

    global memory   is fetched in sectors of 32 bytes: the cost is the number of sectors that the lanes access
    shared memory   has 32 banks; in one pass each bank gives one word of 4 bytes. The cost is the number of passes: the
                    largest number of different words in one bank. With elements of 8 bytes, the half warps (lanes 0-15
                    and 16-31) go one after the other, with 16 bytes the quarters
    constant memory gives one address at a time, to all lanes that ask for it: the cost is the number of addresses

The cost of a thread's local array depends on the compiler, which may use registers or memory outside the chip. So only
its requests and lanes are counted.
"""

from __future__ import annotations

import numpy as np

from ..trace import Trace
from .compiled import Array, compiled
from .memories import ATOMIC, Places
from .requests import Requests

SUMS = (
    "requests", "lanes", "bytes_used", "sectors", "ideal_sectors", "most_sectors",
    "wavefronts", "ideal_wavefronts", "most_ways", "broadcasts", "highest", "example",
)  # fmt: skip
"""The columns of a cost table. highest: the largest cost of one request; example: the number of the first such."""

SPACES = ("global", "shared", "constant", "local")
GLOBAL, SHARED, CONSTANT, LOCAL = range(4)


def cost_table(trace: Trace, places: Places, requests: Requests, kinds: Array) -> Array:
    """The costs of all requests, added for each site and memory: (sites, places.kinds, columns)."""
    spaces = np.array([SPACES.index(memory.space) for memory in places.memories] + [LOCAL], np.int64)
    events = trace.events
    return add_costs(
        events["address"], events["size"], events["site"], events["thread"], places.of, kinds, spaces, places.base,
        requests.order, requests.start, np.zeros((len(trace.sites), places.kinds, len(SUMS)), np.int64),
    )  # fmt: skip


@compiled
def count_sectors(address: Array, size: Array, lanes: int) -> tuple[int, int]:
    """(number of different sectors, number of different bytes) of sorted addresses."""
    sectors = 0
    used = 0
    last = -1  # the last counted sector
    end = address[0]  # of the counted bytes
    for k in range(lanes):
        begin = max(end, address[k])
        stop = address[k] + size[k]
        if stop > begin:
            used += stop - begin
            end = stop
        highest = (stop - 1) // 32
        if highest > last:
            sectors += highest - max(last, address[k] // 32 - 1)
            last = highest
    return sectors, used


@compiled
def count_passes(address: Array, size: Array, lane: Array, lanes: int) -> tuple[int, int, int]:
    """(passes, passes without bank conflicts, passes of the worst part of the warp) of sorted addresses."""
    widest = 0
    for k in range(lanes):
        widest = max(widest, size[k])
    together = 32 if widest <= 4 else 16 if widest <= 8 else 8
    busy = np.empty(32, np.int64)
    total = 0
    ideal = 0
    most = 0
    for part in range(32 // together):
        busy[:] = 0
        ways = 0
        last = -1  # the last counted word
        for k in range(lanes):
            if lane[k] // together == part:
                for word in range(max(last + 1, address[k] // 4), (address[k] + size[k] - 1) // 4 + 1):
                    last = word
                    busy[word % 32] += 1
                    ways = max(ways, busy[word % 32])
        total += ways
        ideal += ways > 0
        most = max(most, ways)
    return total, ideal, most


@compiled
def add_costs(
    address: Array,
    size: Array,
    site: Array,
    thread: Array,
    memory: Array,
    kinds: Array,
    spaces: Array,
    base: Array,
    order: Array,
    start: Array,
    table: Array,
) -> Array:
    """Add the costs of each request to the row of its site and memory."""
    where = np.empty(32, np.int64)  # the sorted addresses of one request; wide, lane: size and lane of each
    wide = np.empty(32, np.int64)
    lane = np.empty(32, np.int64)
    for request in range(start.shape[0] - 1):
        example = order[start[request]]
        here = site[example]
        of = memory[example]
        if kinds[here] > ATOMIC or of >= spaces.shape[0]:
            continue
        space = spaces[of]
        lanes = start[request + 1] - start[request]
        low = base[of] if space != LOCAL else 0
        different = 1
        for k in range(lanes):
            event = order[start[request] + k]
            new = address[event] - low
            hole = k
            while hole > 0 and where[hole - 1] > new:
                where[hole] = where[hole - 1]
                wide[hole] = wide[hole - 1]
                lane[hole] = lane[hole - 1]
                hole -= 1
            where[hole] = new
            wide[hole] = size[event]
            lane[hole] = thread[event] & 31
        for k in range(1, lanes):
            different += where[k] != where[k - 1]
        row = table[here, of]
        row[0] += 1
        row[1] += lanes
        row[9] += different == 1 and lanes > 1 and space != LOCAL
        cost = lanes
        if space == LOCAL:
            for k in range(lanes):
                row[2] += wide[k]
        else:
            sectors, used = count_sectors(where, wide, lanes)
            row[2] += used
            if space == GLOBAL:
                cost = sectors
                row[3] += sectors
                row[4] += (used + 31) // 32
                row[5] = max(row[5], sectors)
            else:
                passes, ideal, most = different, 1, different
                if space == SHARED:
                    passes, ideal, most = count_passes(where, wide, lane, lanes)
                cost = passes
                row[6] += passes
                row[7] += ideal
                row[8] = max(row[8], most)
        if cost > row[10]:
            row[10] = cost
            row[11] = request
    return table
