"""Compiled kernels without the compiler: njit functions called as compile.CompiledKernel's are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cuda_emulator.errors import KernelError
from cuda_emulator.helpers.status import BLOCK, address_of, fail, go_on

ADD, FAIL, SPIN, DIVIDE = 0, 1, 2, 3
"""What a block of `by_block` does, by the number that its argument `what` holds for it."""


@njit(nogil=True)
def by_block(out, what, grid, block, first, end, dynamic_bytes, status):  # type: ignore[no-untyped-def]
    """out[b] += 1 in block b; then what what[b] says."""
    for b in range(first, end):
        go_on(address_of(status))
        out[b] += 1
        if what[b] == FAIL:
            fail(status, 1, 0, b, 0, 0, 0, 0)
        elif what[b] == DIVIDE:
            out[b] = 1 // (grid[1] - 1)
        while what[b] == SPIN:
            go_on(address_of(status))


LAST_WRITER, SUM, OWN, FAILS_IN_REVERSE = 0, 1, 2, 3


@njit(nogil=True)
def in_order(out, what, grid, block, first, end, dynamic_bytes, status, threads, blocks):  # type: ignore[no-untyped-def]
    """All threads in the given order, each doing what `what` says."""
    for b in blocks[first:end]:
        for t in threads:
            if what == LAST_WRITER:
                out[2] = t
            elif what == SUM:
                out[0] += out.dtype.type(1) / out.dtype.type(t + 3)
            else:
                out[t] += 1
        if what == FAILS_IN_REVERSE and threads[0] != 0:
            fail(status, 1, 0, b, threads[0], 0, 0, 0)


@dataclass
class FakeKernel:
    """Stands for compile.CompiledKernel."""

    run: Any
    said: tuple[str, ...] = ()
    prints: bool = False
    may_loop: bool = False
    waits: bool = False
    cooperative: bool = False
    constants: tuple[np.ndarray, ...] = ()
    shared_bytes: int = 0
    source: str = "def run(): ..."
    places: tuple[tuple[str, int, str], ...] = ()

    def together(self, grid: Any, block: Any, dynamic_bytes: int) -> None:
        return None

    def failure(self, status: np.ndarray, grid: Any, block: Any) -> KernelError:
        return KernelError(f"block {status[BLOCK]} failed")

    def absent_lane(self, status: np.ndarray, grid: Any, block: Any, difference: str) -> KernelError:
        raise AssertionError("this kernel has no shuffle")

    def notes(self, status: np.ndarray) -> list[str]:
        return list(self.said)
