"""What a walk has recorded: its steps, and in each step the accesses and the variables that changed.

All numbers are the kernel's own: NumPy scalars, ints, floats and bools, as step mode computes with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .marks import Mark

Space = Literal["global", "shared", "local", "constant"]


@dataclass
class ArrayInfo:
    """An array that a thread of the block has accessed.

    name: in the kernel; offset: its first byte in its allocation, for shared memory in that of the block
    before, after: its values at the beginning and the end, None for a local array, of which every thread has its own
    """

    name: str
    space: Space
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0
    before: np.ndarray | None = None
    after: np.ndarray | None = None


@dataclass
class Access:
    """What some threads did at one place: one request of each warp.

    mark: its place; array: its number in Walk.arrays
    threads, places, values: for each thread its linear number, the element (its place in memory, counted in elements)
        and the value read or written; for an atomic operation the new value
    """

    mark: int
    kind: Literal["read", "write", "atomic"]
    array: int
    threads: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


@dataclass
class Step:
    """A statement that some threads of the block have taken together.

    mark: the statement's mark; threads: their linear numbers, ascending; depth: 0 in the kernel itself, 1 in a device
        function that it calls
    phase: the number of barriers before it
    collective: "syncthreads" or another operation for which they wait here; "" if there is none
    results: {thread: (what it gave, what it got)} of a shuffle or a vote
    changes: {thread: [(depth, name of a variable, its new value)]} at the end of the step; the depth is that of the
        function that the variable belongs to
    """

    mark: int
    threads: list[int]
    depth: int
    phase: int
    accesses: list[Access] = field(default_factory=list)
    collective: str = ""
    results: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    changes: dict[int, list[tuple[int, str, Any]]] = field(default_factory=dict)


@dataclass
class Walk:
    """One block, walked through.

    kernel: its name; grid, block: of the launch; number, place: of the block, linear and along x, y, z
    marks, arrays, steps: the marks are in the order of the source, the steps in that of time
    fault: the sentence of the error that ended it, and its line; cut: whether it was ended because it is too long
    barriers: (file, line) of the barriers that the block waited at
    sources: (file, first line, lines) of the kernel and of the device functions that were called
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    number: int
    place: tuple[int, int, int]
    marks: list[Mark]
    arrays: list[ArrayInfo] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    fault: str = ""
    fault_line: int = 0
    cut: bool = False
    barriers: list[tuple[str, int]] = field(default_factory=list)
    sources: list[tuple[str, int, list[str]]] = field(default_factory=list)

    @property
    def threads(self) -> int:
        """The number of threads of the block."""
        x, y, z = self.block
        return x * y * z
