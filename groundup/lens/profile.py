"""What a trace says, in numbers: the result of `kernel.profile(...)`, of `groundup lens`, and what every view shows.

Only numbers and texts here; analysis.py fills them in, and terminal.py, page.py and checks.py read them. All counts are
of the traced blocks; `scale` brings them to the whole launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cuda_emulator.trace import Kind, NotTraced, Site, Space

SECTOR = 32
"""Bytes that global memory gives at once. A cache line of 128 has four."""

BANKS = 32
"""Of shared memory: neighbouring 4-byte words lie in neighbouring banks, and a bank gives one word at a time."""


@dataclass(frozen=True)
class Request:
    """One access of one warp, kept as an example for the pictures.

    lanes: which took part, ascending; addresses: of each, in bytes from the start of the array's memory (shared: from
    the start of the block's shared memory); size: bytes of an element; indices: of each lane, into the array
    """

    block: int
    warp: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    size: int
    indices: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Access:
    """What all warps did at one site together.

    requests: of warps; lanes: active ones, all requests added up; bytes_used: distinct bytes that lanes asked for,
    added over requests
    Global memory: sectors fetched, the fewest that could have held bytes_used (ideal_sectors), most_sectors of one
    request. Shared memory: wavefronts (passes that the banks need, 1 without a conflict; 8-byte types go in two half
    warps, 16-byte ones in four, each of which counts), ideal_wavefronts (if no banks collided), most_ways of one pass.
    Constant memory: wavefronts are the distinct addresses, which it gives one after the other. A thread's own (local)
    arrays: lanes only, since they live in registers where a compiler can put them there; requests are 0.
    broadcasts: requests in which several lanes asked for one address, and no lane for another
    example: the request that costs most, its first occurrence
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

    @property
    def lanes_per_request(self) -> float:
        """Active lanes of a request, on average."""
        return self.lanes / self.requests if self.requests else 0.0

    @property
    def sectors_per_request(self) -> float:
        """On average; 4 is what 32 neighbouring float32 need."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def efficiency(self) -> float:
        """Bytes used of the bytes fetched, 0 to 1 (coalescing)."""
        return self.bytes_used / (SECTOR * self.sectors) if self.sectors else 0.0

    @property
    def ways(self) -> float:
        """Bank conflicts: passes needed for one that would do, on average. 1 is none."""
        return self.wavefronts / self.ideal_wavefronts if self.ideal_wavefronts else 0.0


@dataclass(frozen=True)
class Branch:
    """A condition that threads evaluate. evaluated: by warps; divergent: by warps whose lanes disagreed; taken: lanes
    that took it, lanes: that evaluated it. example: a divergent one's (lanes that took it, lanes that did not)."""

    site: Site
    evaluated: int
    divergent: int
    lanes: int
    taken: int
    example: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Collective:
    """A barrier, shuffle, vote or syncwarp: how often warps came (times), and with how many lanes altogether."""

    site: Site
    times: int
    lanes: int


@dataclass(frozen=True)
class Party:
    """One side of a race: who touched the element, at which site, and how."""

    site: Site
    block: int
    thread: int


@dataclass(frozen=True)
class Race:
    """Two threads touch one element, nothing orders them, and one of them writes.

    kind: "write after write", "read after write" or "write after read", in the order in which they were traced
    index: the element; times: how many pairs like this (same sites, same kind) were found
    """

    kind: str
    array: str
    space: Space
    index: tuple[int, ...]
    first: Party
    second: Party
    times: int

    @property
    def between_blocks(self) -> bool:
        """Whether the two are in different blocks, where no barrier could help."""
        return self.first.block != self.second.block


@dataclass(frozen=True)
class Uninitialised:
    """Reads of shared memory that nobody in the block had written. The first one, and how many."""

    site: Site
    array: str
    index: tuple[int, ...]
    block: int
    thread: int
    times: int


@dataclass(frozen=True)
class Phase:
    """What a block did between two barriers, all traced blocks together; for the timeline.

    number: from 0; sites of loads, stores and so on with how many requests each made: {site number: requests}
    """

    number: int
    requests: dict[int, int]
    active_warps: int


@dataclass(frozen=True)
class Reuse:
    """How often one array was read and written.

    touched: distinct elements of it in the traced blocks; loads, stores, atomics: by lanes
    most_loads: the most that one element was loaded in all traced blocks; most_loads_in_block: within one block
    most_requests_in_block: the most warp requests of one block that loaded one element (a broadcast counts once)
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
    """Floating-point operations of a line, all threads of the traced blocks together."""

    file: str
    line: int
    simple: int
    division: int
    special: int


@dataclass(frozen=True)
class Static:
    """What limits how many warps live on a multiprocessor.

    capability: of which device, like "9.0"; registers: of a thread, None where numba-cuda's compile libraries are not
    installed; source: where registers come from, or why there are none
    occupancy: share of the most warps, 0 to 1; blocks: per multiprocessor
    limit: "registers", "shared memory", "threads" or "blocks"
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


@dataclass(frozen=True)
class Roofline:
    """An estimate, and called one: what a device could make of this traffic and these operations.

    intensity: operations per byte of traffic; ridge: the intensity at which the device's peak and its bandwidth meet
    bound: "memory" or "compute"; seconds: of the whole launch, if nothing else slowed it down
    attainable: operations a second at this intensity; peak: the most that the device can do; bandwidth: bytes a second
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


@dataclass
class Profile:
    """What a kernel did, in numbers. profiling.py adds how they are printed and displayed.

    source: (file, first line, lines) of the kernel and of each device function it calls, the kernel first
    grid, block: three numbers each; blocks: the traced ones; grid_blocks: all
    scale: blocks of the launch for one that was traced
    fault, fault_line: what ended the run early ("" where nothing did)
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
        """How many blocks of the launch each traced one stands for."""
        return self.grid_blocks / len(self.blocks) if self.blocks else 0.0

    @property
    def flops(self) -> int:
        """Floating-point operations of the traced blocks: + - *, divisions and math functions, one each."""
        return sum(each.simple + each.division + each.special for each in self.operations)

    def traffic(self, space: Space = "global") -> int:
        """Bytes that moved in the traced blocks: whole sectors of global memory, the bytes used of shared memory."""
        mine = [each for each in self.accesses if each.space == space]
        return sum(each.sectors * SECTOR if space == "global" else each.bytes_used for each in mine)

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte of global memory traffic; infinite without traffic."""
        bytes_moved = self.traffic()
        return self.flops / bytes_moved if bytes_moved else (np.inf if self.flops else 0.0)

    @property
    def correct(self) -> bool:
        """Whether no race, no uninitialised read and no fault was found."""
        return not (self.races or self.uninitialised or self.fault)

    def access(self, kind: Kind, array: str, text: str | None = None) -> Access:
        """The access of that kind to that array; `text` picks one of several by its expression. LookupError else."""
        found = [a for a in self.accesses if a.kind == kind and a.array == array and text in (None, a.site.text)]
        if len(found) != 1:
            listed = "; ".join(f"{a.kind} {a.array}: {a.site.text} (line {a.site.line})" for a in self.accesses)
            wanted = " ".join(filter(None, (kind, array, text)))
            raise LookupError(f"{self.kernel}: {len(found)} accesses match {wanted}; there are: {listed}")
        return found[0]
