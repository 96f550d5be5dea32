"""The lines of the catalogue: what is said of one kernel, and the notation for its arguments.

The arguments, in order, one word each:

    T[2]        a C-contiguous matrix of the dtype that the kernel is compiled for; T[1] a vector, T[3] a stack of them
    T           one number of that dtype
    int32[1]    a vector of int32, whatever the dtype; int64 one such number, as Python's whole numbers become

A kernel is named by its file in kernels/ and an expression in that file: `sums.total_by_tree`, or for what a function
makes, `matmul_1_basic.tiled(32, 'nn').multiply`; `dtype` in it is the dtype that it is compiled for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from shared.names import DTYPES

Capability = tuple[int, int]
"""A GPU architecture's compute capability: (8, 0), (9, 0)."""

PACKAGE = "stage4_numba_cuda.kernels"


NO_DTYPE = ""
"""Of a kernel without T among its arguments: it is compiled once."""

ELEMENTS = ("float32", "float64", "int32", "int64", "uint8", "uint32", "uint64", "boolean")
WORD = re.compile(r"(\w+)(?:\[(\d)\])?")


@dataclass(frozen=True)
class Entry:
    """One kernel. Whether it is within its budget is judged for the dtypes named.

    kernel: "file.expression"; package: where the file is
    arguments: see above
    threads: the most that a block has
    registers: the budget for float32, and for float64
    needs: the oldest architecture whose instructions it uses
    launch_shared: bytes of shared memory that a launch gives each block, besides those that the kernel declares
    share: for a matrix product in float32, the least share of its inner loop that multiplies and adds, on 8.0 and 9.0;
    wide_loads: the least number of 128-bit loads from shared memory there
    float64: whether it computes with float64 on purpose, also where the dtype is float32
    variant: it differs from another line in a constant only; the test suite leaves it to `groundup check --compile`
    """

    kernel: str
    arguments: str
    threads: int
    registers: tuple[int, int]
    dtypes: tuple[str, ...] = DTYPES
    needs: Capability = (7, 5)
    launch_shared: int = 0
    share: float | None = None
    wide_loads: int = 0
    variant: bool = False
    float64: bool = False
    package: str = PACKAGE

    def budget(self, dtype: str) -> int:
        """The most registers of a thread."""
        return self.registers[dtype == "float64"]


def entry(kernel: str, arguments: str, threads: int, registers: int, registers_float64: int, **more: Any) -> Entry:
    """A line of the catalogue. A kernel without T among its arguments is compiled once, not for each dtype."""
    if not any(element == "T" for element, _ in words(arguments)):
        more.setdefault("dtypes", (NO_DTYPE,))
    return Entry(kernel, arguments, threads, (registers, registers_float64), **more)


def words(arguments: str) -> list[tuple[str, int]]:
    """The notation taken apart: (element, dimensions) of each argument, 0 dimensions for a number.

    Raises ValueError for a word that is none of its.

    >>> words("T[2] int32[1] T")
    [('T', 2), ('int32', 1), ('T', 0)]
    """
    found = []
    for word in arguments.split():
        match = WORD.fullmatch(word)
        if match is None or match.group(1) not in ("T", *ELEMENTS):
            raise ValueError(f"unknown argument type {word!r}; expected T or one of {', '.join(ELEMENTS)}, like T[2]")
        found.append((match.group(1), int(match.group(2) or 0)))
    return found


def argument_types(arguments: str, dtype: str) -> tuple[Any, ...]:
    """The notation as Numba's types, with T standing for dtype: "float32" or "float64"."""
    from numba import types

    made = []
    for element, dimensions in words(arguments):
        number = getattr(types, dtype if element == "T" else element)
        made.append(types.Array(number, dimensions, "C") if dimensions else number)
    return tuple(made)
