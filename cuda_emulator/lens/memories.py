"""Find the array of each address.

The addresses of events are those of this computer's memory. For each, this file finds the array, and the address that a
GPU would use: there an allocation of global memory starts at a multiple of 256, and the block's shared memory at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace import Memory, Trace
from .compiled import Array, compiled

KINDS = ("load", "store", "atomic", "branch", "barrier", "warp")
"""The kinds of sites; compiled code uses their positions in this tuple."""

LOAD, STORE, ATOMIC, BRANCH, BARRIER, WARP = range(6)


@dataclass(frozen=True)
class Places:
    """The arrays of a trace, and the array of each event.

    of: for each event the number of its memory in trace.memories, or `frame` (a local array in a thread's stack frame),
        `nowhere` (an address in no known array) or `none` (a branch or a collective)
    low, high: the addresses of each memory's first byte, and of the byte after its last
    base: for each memory the address of the GPU's address 0: the start of its allocation, or of all shared memory
    """

    of: Array
    memories: list[Memory]
    low: Array
    high: Array
    base: Array

    @property
    def frame(self) -> int:
        return len(self.memories)

    @property
    def nowhere(self) -> int:
        return len(self.memories) + 1

    @property
    def none(self) -> int:
        return len(self.memories) + 2

    @property
    def kinds(self) -> int:
        """The number of different values in `of`."""
        return len(self.memories) + 3


def extent(memory: Memory) -> tuple[int, int]:
    """The addresses of a memory's first byte, and of the byte after its last; strides may be negative."""
    reach = sum((length - 1) * abs(step) for length, step in zip(memory.shape, memory.strides, strict=False) if length)
    return memory.address, memory.address + max(memory.nbytes, reach + memory.dtype.itemsize)


def index_of(memory: Memory, address: int) -> tuple[int, ...]:
    """The index of the element at an address."""
    rest = address - memory.address
    index = [0] * len(memory.shape)
    for axis in sorted(range(len(memory.shape)), key=lambda axis: -abs(memory.strides[axis])):
        stride = memory.strides[axis]
        if stride == 0 or memory.shape[axis] <= 1:
            continue
        steps = min(rest // abs(stride), memory.shape[axis] - 1)
        rest -= steps * abs(stride)
        index[axis] = steps if stride > 0 else memory.shape[axis] - 1 - steps
    return tuple(int(each) for each in index)


def find_places(trace: Trace, kinds: Array) -> Places:
    """The memory of every event. kinds: the kind of each site as a number."""
    memories = trace.memories
    bounds = [extent(memory) if memory.address and memory.nbytes else (0, 0) for memory in memories]
    low = np.array([first for first, _ in bounds], np.int64)
    high = np.array([last for _, last in bounds], np.int64)
    shared = min(
        (first for (first, last), each in zip(bounds, memories, strict=True) if each.space == "shared" and last),
        default=0,
    )
    base = np.array([shared if each.space == "shared" else each.address - each.offset for each in memories], np.int64)
    # Two arguments may be views of one allocation. Then the one whose name is used in the source is preferred.
    numbers = range(len(memories))
    preferred = np.array(
        [sorted(numbers, key=lambda number: memories[number].name != site.array) for site in trace.sites], np.int64
    ).reshape(len(trace.sites), len(memories))
    local = np.array([site.space == "local" for site in trace.sites], np.bool_)
    events = trace.events
    of = locate(events["address"], events["site"], kinds, local, preferred, low, high)
    return Places(of, memories, low, high, base)


@compiled
def locate(address: Array, site: Array, kinds: Array, local: Array, preferred: Array, low: Array, high: Array) -> Array:
    """For each event the first memory, in its site's order of preference, whose bytes hold its address."""
    memories = low.shape[0]
    found = np.empty(address.shape[0], np.int32)
    for i in range(address.shape[0]):
        here = site[i]
        if kinds[here] > ATOMIC:
            found[i] = memories + 2
            continue
        found[i] = memories if local[here] else memories + 1
        for k in range(memories):
            memory = preferred[here, k]
            if low[memory] <= address[i] < high[memory]:
                found[i] = memory
                break
    return found
