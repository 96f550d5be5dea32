"""The profile of a launch in numbers: the result of `kernel.profile(...)` and of the command `lens`.

This file has data only: analysis.py fills it in, and terminal.py, page.py and checks.py read it. All counts are for the
traced blocks; multiplied by `scale` they are an estimate for the whole launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..trace import Kind, NotTraced, Site, Space

SECTOR = 32
"""Bytes that global memory gives at once. A cache line of 128 bytes has four sectors."""

BANKS = 32
"""Banks of shared memory: neighbouring 4-byte words are in neighbouring banks; a bank gives one word at a time."""


@dataclass(frozen=True)
class Request:
    """One access of one warp, as an example for the pictures.

    lanes: the active lanes, ascending; addresses: the address of each in bytes, from the start of the array's
        allocation (shared memory: from the start of the block's shared memory)
    size: bytes of an element; indices: the index of each lane in the array
    round: the number of requests that this warp made at this place before, which is the iteration in a loop
    """

    block: int
    warp: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    size: int
    indices: tuple[tuple[int, ...], ...] = ()
    round: int = 0


@dataclass(frozen=True)
class Access:
    """All accesses at one site, of all warps together.

    requests: number of warp requests; lanes: active lanes, added over the requests
    bytes_used: different bytes that the lanes of a request asked for, added over the requests
    sectors, ideal_sectors, most_sectors (global memory): fetched sectors; the fewest sectors that could hold
        bytes_used; the most sectors of one request
    wavefronts, ideal_wavefronts, most_ways (shared memory): passes of the banks, 1 for a request without a conflict, 2
        for one of 8-byte elements and 4 of 16-byte elements; the passes without bank conflicts; the most words that one
        bank gives in a pass. In constant memory, wavefronts is the number of different addresses
    broadcasts: requests of several lanes for one and the same address
    example: the first of the requests with the highest cost
    examples: requests of the example's block to choose from, of up to three warps with up to three rounds of each
    shape: the shape of the array, () if it is unknown
    A thread's own (local) array has `lanes` only, and requests is 0: a compiler may keep it in registers.
    """

    site: Site
    array: str
    space: Space
    kind: Kind
    requests: int
    lanes: int
    bytes_used: int
    sectors: int = 0
    ideal_sectors: int = 0
    most_sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    most_ways: int = 0
    broadcasts: int = 0
    example: Request | None = None
    examples: tuple[Request, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def lanes_per_request(self) -> float:
        """Average number of active lanes of a request."""
        return self.lanes / self.requests if self.requests else 0.0

    @property
    def sectors_per_request(self) -> float:
        """Average number of sectors of a request; 32 neighbouring float32 need 4."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def efficiency(self) -> float:
        """Share of the fetched bytes that is used, 0 to 1 (coalescing)."""
        return self.bytes_used / (SECTOR * self.sectors) if self.sectors else 0.0

    @property
    def ways(self) -> float:
        """Average degree of bank conflicts: passes for each pass without conflicts. 1 means no conflict."""
        return self.wavefronts / self.ideal_wavefronts if self.ideal_wavefronts else 0.0


@dataclass(frozen=True)
class Branch:
    """A condition that threads evaluate.

    evaluated: number of evaluations by warps; divergent: those in which the lanes of the warp disagreed
    lanes: number of lanes that evaluated it; taken: those for which it was true
    example: (lanes that took the branch, lanes that did not) of a divergent evaluation
    """

    site: Site
    evaluated: int
    divergent: int
    lanes: int
    taken: int
    example: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Collective:
    """A barrier, shuffle, vote or syncwarp. times: executions by warps; lanes: active lanes in all of them."""

    site: Site
    times: int
    lanes: int


@dataclass(frozen=True)
class Party:
    """One side of a race: the site of the access, and its block and thread."""

    site: Site
    block: int
    thread: int


@dataclass(frozen=True)
class Race:
    """Two threads access one element without an order between them, and one of them writes.

    kind: "write after write", "read after write" or "write after read", in the order of the trace
    index: the element's index; times: the number of such pairs with the same sites and kind
    same_round: whether both accesses are in the same iteration of the loops around them; None if they are on different
        lines, which may be in different loops
    """

    kind: str
    array: str
    space: Space
    index: tuple[int, ...]
    first: Party
    second: Party
    times: int
    same_round: bool | None = None

    @property
    def between_blocks(self) -> bool:
        """Whether the threads are in different blocks, which no barrier synchronises."""
        return self.first.block != self.second.block


@dataclass(frozen=True)
class Uninitialised:
    """Reads, at one site, of memory that nobody had written: the first, and their number (times).

    space: "shared" for memory that the block had not written, "global" for memory that no kernel and no copy had
    """

    site: Site
    array: str
    index: tuple[int, ...]
    block: int
    thread: int
    times: int
    space: Space = "shared"


@dataclass(frozen=True)
class Phase:
    """The accesses between two barriers, of all traced blocks together, for the timeline.

    number: from 0; requests: {site number: number of requests}; active_warps: warps with an event in this phase
    """

    number: int
    requests: dict[int, int]
    active_warps: int


@dataclass(frozen=True)
class Reuse:
    """How often one array was read and written.

    elements: its size; touched: different elements that the traced blocks accessed
    loads, stores, atomics: numbers of accesses by lanes
    most_loads: the largest number of loads of one element in all traced blocks; most_loads_in_block: in one block
    most_requests_in_block: the largest number of warp requests of one block for one element; a broadcast counts once
    """

    array: str
    space: Space
    elements: int
    touched: int
    loads: int
    stores: int
    atomics: int
    most_loads: int
    most_loads_in_block: int
    most_requests_in_block: int


@dataclass(frozen=True)
class LineOperations:
    """The floating-point operations of a line, added over all threads of the traced blocks.

    simple: + - *; division: / // %; special: functions of math; double: those of all these whose result is float64
    """

    file: str
    line: int
    simple: int
    division: int
    special: int
    double: int = 0


@dataclass(frozen=True)
class Static:
    """The number of blocks and warps on a multiprocessor, its limit, and the multiprocessors that the launch uses.

    capability: compute capability of the device, like "9.0"
    registers: registers of a thread, or None if numba-cuda's compiler is not installed
    source: the origin of the number of registers, or the reason why it is unknown
    occupancy: the largest number of warps of this launch that are resident at once, as a share of those that the whole
        device can hold, 0 to 1
    blocks: blocks that a multiprocessor can hold
    limit: the reason for the occupancy: "registers", "shared memory", "threads", "blocks", or "grid" if the launch has
        too few blocks
    allowed: the occupancy of a launch with blocks enough for every multiprocessor
    multiprocessors: those of the device; busy: those that get a block
    waves: the blocks of the launch divided by those that the device can hold at once
    """

    capability: str
    registers: int | None
    spilled_bytes: int | None
    shared_bytes: int
    threads: int
    blocks: int
    occupancy: float
    limit: str
    source: str
    allowed: float = 0.0
    multiprocessors: int = 0
    busy: int = 0
    waves: float = 0.0


@dataclass(frozen=True)
class LeastTime:
    """The time that one part of a device needs for the launch. name: like Roofline.bound; reason: its calculation."""

    name: str
    seconds: float
    reason: str


@dataclass(frozen=True)
class Roofline:
    """An estimate of the launch's speed on a device, from its operations, its memory traffic and its blocks.

    intensity: operations for each byte of traffic; ridge: the intensity from which on the peak is the limit
    bound: the part that needs the longest time: "launch", "latency", "compute", "shared memory" or "memory"
    seconds: this time, as if no cache helped and all parts worked at the same time
    attainable: operations a second at this intensity; peak: the device's limit, for this mixture of float32 and
        float64; bandwidth: bytes a second
    dtype: the type of the operations that need the longest time; times: the time of each part
    """

    device: str
    dtype: str
    intensity: float
    ridge: float
    bound: str
    seconds: float
    attainable: float
    peak: float
    bandwidth: float
    source: str
    times: tuple[LeastTime, ...] = ()


@dataclass
class Profile:
    """The numbers of a launch. profiling.py adds the ways to print and display them.

    source: (file, first line, lines) of the kernel, and of each device function that it calls
    grid, block: three numbers each; blocks: numbers of the traced blocks; grid_blocks: the number of all blocks
    not_traced: accesses without events; unjudged: sentences about accesses that could not be checked for errors
    fault, fault_line: the error that ended the run early, and its line; "" and 0 without one
    """

    kernel: str
    source: list[tuple[str, int, list[str]]]
    arguments: list[tuple[str, str]]
    argument_types: list[str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: list[int]
    grid_blocks: int
    events: int
    accesses: list[Access]
    branches: list[Branch]
    collectives: list[Collective]
    phases: list[Phase]
    reuse: list[Reuse]
    operations: list[LineOperations]
    races: list[Race]
    uninitialised: list[Uninitialised]
    not_traced: list[NotTraced] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    shared_bytes: int = 0
    local_bytes: int = 0
    fault: str = ""
    fault_line: int = 0
    static: Static | None = None
    roofline: Roofline | None = None

    @property
    def scale(self) -> float:
        """The number of blocks of the launch for each traced block."""
        return self.grid_blocks / len(self.blocks) if self.blocks else 0.0

    @property
    def flops(self) -> int:
        """Floating-point operations of the traced blocks: each + - *, division and math function counts as one."""
        return sum(each.simple + each.division + each.special for each in self.operations)

    @property
    def double_flops(self) -> int:
        """Floating-point operations of the traced blocks with a float64 result, by the types that Numba infers."""
        return sum(each.double for each in self.operations)

    def traffic(self, space: Space = "global") -> int:
        """Bytes of traffic of the traced blocks: whole sectors of global memory, used bytes of shared memory."""
        mine = [each for each in self.accesses if each.space == space]
        return sum(each.sectors * SECTOR if space == "global" else each.bytes_used for each in mine)

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte of global memory traffic; infinite without traffic."""
        bytes_moved = self.traffic()
        return self.flops / bytes_moved if bytes_moved else (np.inf if self.flops else 0.0)

    @property
    def correct(self) -> bool:
        """Whether no race, no uninitialised read and no fault was found."""
        return not (self.races or self.uninitialised or self.fault)

    def access(self, kind: Kind, array: str, text: str | None = None) -> Access:
        """The access of that kind to that array; `text`, its expression, selects one of several. Else LookupError."""
        found = [a for a in self.accesses if a.kind == kind and a.array == array and text in (None, a.site.text)]
        if len(found) != 1:
            listed = "; ".join(f"{a.kind} {a.array}: {a.site.text} (line {a.site.line})" for a in self.accesses)
            wanted = " ".join(filter(None, (kind, array, text)))
            raise LookupError(f"{self.kernel}: {len(found)} accesses match {wanted}; there are: {listed}")
        return found[0]
