"""What happened in the traced blocks of one launch: every access, branch and collective, one event a thread.

The emulator writes the events while the kernel runs (runtime/tracing.py), and the lens reads them.
An event says where in the source it comes from (its site), which thread, at which address. Threads of a warp make one
request together when they are at the same site with the same key: the key is a hash of how many rounds each loop
around the site has made, and of the calls that led there. So lanes that leave a loop early do not mix up the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Kind = Literal["load", "store", "atomic", "branch", "barrier", "warp"]
"""What a site does. "warp": a shuffle, vote, match or syncwarp; "branch": an if, while or for that threads decide."""

Space = Literal["global", "shared", "local", "constant", ""]
"""Where an array lies. "" for a branch or a collective."""

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
"""One event, 40 bytes. The events of a block stand in the order in which the emulator ran them: piece by piece between
barriers, in a piece thread by thread."""

SAME_VALUE = 1
"""Flag of a store that left memory as it was."""


@dataclass(frozen=True)
class Site:
    """A place in the source that leaves events.

    line: in the file, from 1; column: from 0; function: the kernel's name, or the device function's
    array: as the learner calls it there; text: the expression, as the learner wrote it (as unparsed)
    space: where the array lies as far as the source says; "" for an argument of a device function, where only addresses
    tell
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
    """An array, where it lies while the kernel runs.

    name: an argument's name (of one in a tuple: "a[1]"), or what the kernel calls its shared or local array
    address: of its first byte; offset: how many bytes that is into its allocation, which starts at a multiple of 256
    A local array in a thread's own frame, whose address is the frame's business, has address 0.
    """

    name: str
    space: Space
    address: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0


@dataclass(frozen=True)
class Operations:
    """Floating-point operations that a source line did in the traced blocks, all threads together.

    simple: + - * (a fused multiply-add counts as two), comparisons not; division: / // %; special: math.exp and its kin
    """

    file: str
    line: int
    simple: int
    division: int
    special: int


@dataclass(frozen=True)
class NotTraced:
    """Something that touches memory and leaves no event, with the reason."""

    file: str
    line: int
    text: str
    reason: str


@dataclass
class Trace:
    """The events of one launch, and what is needed to read them.

    kernel: its name; file, first_line, source: where it is, and its text from the decorator on, line by line
    device_functions: (file, first line, text) of each device function that it calls, itself or through others
    argument_types: Numba's names of them, like "array(float32, 2d, C)"; arguments: (name, "float32 (64, 64)" or "7")
    grid, block: three numbers each; dynamic_bytes, shared_bytes: of a block; local_bytes: of a thread's local arrays
    blocks: the traced ones, counted linearly, ascending; bounds: events[bounds[i]:bounds[i + 1]] are those of blocks[i]
    own_accesses: by site, how often threads touched their own (local) arrays there, which leaves no events
    fault: what ended the run early (an index out of bounds, a barrier that a part reached), as the emulator tells it;
    fault_line: its line, 0 where it has none
    fence: whether the kernel calls cuda.threadfence(), which can order blocks in ways that are not followed here
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

    @property
    def grid_blocks(self) -> int:
        """Blocks of the whole launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]
