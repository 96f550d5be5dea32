"""The trace of one launch: one event for each access, branch and collective of each thread in the traced blocks.

The emulator writes the events while the kernel runs (runtime/tracing.py); a profiler reads them (hooks.py).
An event holds its place in the source (its site), the thread and the address. The threads of a warp that have the same
site and the same key make one request together. The key is a hash of the iteration numbers of all loops around the
site,
and of the calls that led there: so lanes that leave a loop early are not confused with those that go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Kind = Literal["load", "store", "atomic", "branch", "barrier", "warp"]
"""The kinds of sites. "warp": a shuffle, vote, match or syncwarp; "branch": an if, while or for whose condition each
thread evaluates."""

Space = Literal["global", "shared", "local", "constant", ""]
"""The memory that holds an array. "" for a branch or a collective."""

EVENT = np.dtype(
    [
        (
            "address",
            np.int64,
        ),  # of the element's first byte; branch: 1 taken, 0 not; collective: a bit for each lane here
        ("key", np.int64),  # threads of a warp with the same site and key act together
        ("site", np.int32),
        ("thread", np.int32),  # in its block, counted linearly; of a collective the first of its warp
        ("epoch", np.int32),  # how many barriers the block has passed
        ("warp_epoch", np.int32),  # how many times the thread was in a syncwarp
        ("size", np.int32),  # bytes of the element; 0 where there is none
        ("flags", np.int32),
    ]
)
"""One event, 40 bytes. The events of a block are in the order in which the emulator ran them: one piece between two
barriers after the other, and in a piece one thread after the other."""

SAME_VALUE = 1
"""Flag of a store that wrote the value which memory already held."""


@dataclass(frozen=True)
class Site:
    """A place in the source that creates events.

    line: in the file, from 1; column: from 0; function: the name of the kernel or device function
    array: the learner's name of the array; text: the learner's expression
    space: the array's memory; "" for an argument of a device function, whose memory only the addresses show
    """

    number: int
    file: str
    line: int
    column: int
    kind: Kind
    array: str
    text: str
    function: str
    space: Space = ""


@dataclass(frozen=True)
class Memory:
    """An array, and its place in memory while the kernel runs.

    name: the name of the argument ("a[1]" for one in a tuple), or of the kernel's shared or local array
    address: address of its first byte; 0 for a local array in the stack frame of a thread, which has no fixed address
    offset: bytes from the start of its allocation, which is a multiple of 256
    unwritten: a bool for each byte from its first to its last: whether nobody had written it before the launch; None
        where all were written, and where that is not known
    """

    name: str
    space: Space
    address: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0
    unwritten: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Operations:
    """The floating-point operations of a source line, added over all threads of the traced blocks.

    simple: + - * (a fused multiply-add counts as two; comparisons do not count); division: / // %
    special: functions of math, like math.exp
    double: those of all these whose result is float64, by the types that Numba infers
    """

    file: str
    line: int
    simple: int
    division: int
    special: int
    double: int = 0


@dataclass(frozen=True)
class NotTraced:
    """An expression that reads or writes memory without an event, and the reason."""

    file: str
    line: int
    text: str
    reason: str


@dataclass
class Trace:
    """The events of one launch, and what is needed to read them.

    kernel: its name; file, first_line: its place; source: its lines, from the decorator on
    device_functions: (file, first line, lines) of each device function that it calls, directly or through others
    argument_types: Numba's type names, like "array(float32, 2d, C)"; arguments: (name, "float32 (64, 64)" or "7")
    grid, block: three numbers each; dynamic_bytes, shared_bytes: bytes of a block; local_bytes: bytes of a thread's
        local arrays
    blocks: linear numbers of the traced blocks, ascending; bounds: the events of blocks[i] are
        events[bounds[i]:bounds[i + 1]]
    own_accesses: {site number: accesses of threads to their own local arrays}; these have no events
    fault: the message of the error that ended the run early (an index out of bounds, a barrier that only a part of the
        block reached), or ""; fault_line: its line, or 0
    cut: whether the last of the blocks did not fit, so that its later events are missing
    fence: whether the kernel calls cuda.threadfence(), which can order blocks; a trace does not show that order
    rounds: for each event how many barriers across the grid its block had passed; None for a kernel without them
    """

    kernel: str
    file: str
    first_line: int
    source: list[str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: list[int]
    bounds: list[int]
    events: np.ndarray[Any, Any]
    sites: list[Site]
    memories: list[Memory]
    operations: list[Operations]
    own_accesses: dict[int, int] = field(default_factory=dict)
    argument_types: list[str] = field(default_factory=list)
    arguments: list[tuple[str, str]] = field(default_factory=list)
    device_functions: list[tuple[str, int, list[str]]] = field(default_factory=list)
    not_traced: list[NotTraced] = field(default_factory=list)
    dynamic_bytes: int = 0
    shared_bytes: int = 0
    local_bytes: int = 0
    fault: str = ""
    fault_line: int = 0
    fence: bool = False
    cut: bool = False
    rounds: np.ndarray[Any, Any] | None = None

    @property
    def grid_blocks(self) -> int:
        """Blocks of the whole launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]
