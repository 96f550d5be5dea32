"""How the rungs from `vectorised` on move a tile, and what they do with it once it is there.

A tile is 128 numbers of the result's rows or columns (i) by `depth` of the numbers that are summed over (k), stored as
tile[k, i] whatever lay in memory, so that one thread's numbers are neighbours and move four at a time. Which way an
operand lies is all that nn, tn and nt differ in:

    rows along i     a in tn, b in nn and tn     a thread copies four neighbours of a row as they are
    rows along k     a in nn and nt, b in nt     it copies four neighbours of a row into four rows of the tile

No access of the main loop is guarded. Beyond the edge of the result a load is moved back to the last row or column:
what is computed there is never stored. And the numbers of k that do not fill a tile come first, in a tile of their own
with zeros behind them, so that all others are full.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba import uint32

from ..backend import cuda
from .ptx import REAL, load4, store4

SIDE = 128
"""Rows and columns of the result that a block computes."""

THREADS = 256

WIDE = 4
"""Numbers that a thread moves at once."""


def mover(along_k: bool, vector: bool, depth: int) -> SimpleNamespace:
    """The device functions that bring tiles of one operand from memory to shared memory, in blocks of THREADS threads.

    along_k: whether a row of the operand runs along k; vector: whether four of its numbers may be loaded at once
    first(tile, source, origin, count): the first `count` rows of k, at most depth, and zeros behind them
    load(staged, source, origin, k): rows k … k + depth - 1 into this thread's registers, staged[depth / 8, 4]
    unload(tile, base, staged): from there to rows base … base + depth - 1 of the tile
    """
    parts = depth * SIDE // (THREADS * WIDE)
    groups = depth // WIDE  # of four numbers along k
    shift = groups.bit_length() - 1
    last = WIDE if vector and not along_k else 1

    if along_k:

        @cuda.jit(device=True)
        def place(part):
            thread = cuda.threadIdx.x
            return (thread >> shift) + part * (THREADS // groups), (thread & (groups - 1)) * WIDE

        @cuda.jit(device=True)
        def put(tile, k, i, v0, v1, v2, v3):
            # Unsigned, for an index that may be negative is tested, and counted from the end: two more instructions.
            tile[uint32(k), uint32(i)] = v0
            tile[uint32(k + 1), uint32(i)] = v1
            tile[uint32(k + 2), uint32(i)] = v2
            tile[uint32(k + 3), uint32(i)] = v3
    else:

        @cuda.jit(device=True)
        def place(part):
            thread = cuda.threadIdx.x
            return (thread & 31) * WIDE, (thread >> 5) + part * (THREADS // 32)

        @cuda.jit(device=True)
        def put(tile, k, i, v0, v1, v2, v3):
            store4(tile, k, i, v0, v1, v2, v3)

    fetch = reader(along_k, vector)

    @cuda.jit(device=True)
    def fetch_first(source, i, k, count):
        """fetch with zeros from row `count` of k on."""
        zero = source.dtype.type(0)
        if along_k and not vector:
            i = min(i, source.shape[0] - 1)
            return (
                source[i, k] if k < count else zero,
                source[i, k + 1] if k + 1 < count else zero,
                source[i, k + 2] if k + 2 < count else zero,
                source[i, k + 3] if k + 3 < count else zero,
            )
        if k < count:  # then all four are: rows of a multiple of four numbers leave a multiple of four
            return fetch(source, i, k)
        return zero, zero, zero, zero

    @cuda.jit(device=True)
    def first(tile, source, origin, count):
        for part in range(parts):
            i, k = place(part)
            v0, v1, v2, v3 = fetch_first(source, origin + i, k, count)
            put(tile, k, i, v0, v1, v2, v3)

    @cuda.jit(device=True)
    def load(staged, source, origin, start):
        for part in range(parts):
            i, k = place(part)
            staged[part, 0], staged[part, 1], staged[part, 2], staged[part, 3] = fetch(source, origin + i, start + k)

    @cuda.jit(device=True)
    def unload(tile, base, staged):
        for part in range(parts):
            i, k = place(part)
            put(tile, base + k, i, staged[part, 0], staged[part, 1], staged[part, 2], staged[part, 3])

    return SimpleNamespace(first=first, load=load, unload=unload, parts=parts, last=last)


def reader(along_k: bool, vector: bool) -> Any:
    """The device function fetch(source, i, k): four numbers of a row, from its i and k on, moved back to the edge of i."""
    if along_k and vector:

        @cuda.jit(device=True)
        def fetch(source, i, k):
            return load4(source, min(i, source.shape[0] - 1), k)
    elif along_k:

        @cuda.jit(device=True)
        def fetch(source, i, k):
            i = min(i, source.shape[0] - 1)
            return source[i, k], source[i, k + 1], source[i, k + 2], source[i, k + 3]
    elif vector:

        @cuda.jit(device=True)
        def fetch(source, i, k):
            return load4(source, k, min(i, source.shape[1] - WIDE))
    else:

        @cuda.jit(device=True)
        def fetch(source, i, k):
            last = source.shape[1] - 1
            return (
                source[k, min(i, last)],
                source[k, min(i + 1, last)],
                source[k, min(i + 2, last)],
                source[k, min(i + 3, last)],
            )

    return fetch


def outer_products(gap: int) -> Any:
    """The device function eight(...): adds eight rows of k, from row k of the tiles on, to a thread's 8 x 8 numbers.

    They are those of rows y … y + 3 and y + gap … y + gap + 3, and columns x … and x + gap … as well. left and right
    hold 8 numbers each; that they are arrays is for the eye: every index is a constant, so all are registers.
    """

    @cuda.jit(device=True)
    def add(tile_a, tile_b, sums, left, right, k, y, x):
        left[0], left[1], left[2], left[3] = load4(tile_a, k, y)
        left[4], left[5], left[6], left[7] = load4(tile_a, k, y + gap)
        right[0], right[1], right[2], right[3] = load4(tile_b, k, x)
        right[4], right[5], right[6], right[7] = load4(tile_b, k, x + gap)
        for i in range(8):
            for j in range(8):
                sums[i, j] += left[i] * right[j]

    if REAL:
        # Eight calls and no loop: 512 multiply-adds are more than the compiler unrolls of itself, and an index into
        # `sums` that is not a constant would put all of it into local memory.
        @cuda.jit(device=True)
        def eight(tile_a, tile_b, sums, left, right, k, y, x):
            add(tile_a, tile_b, sums, left, right, k, y, x)
            add(tile_a, tile_b, sums, left, right, k + 1, y, x)
            add(tile_a, tile_b, sums, left, right, k + 2, y, x)
            add(tile_a, tile_b, sums, left, right, k + 3, y, x)
            add(tile_a, tile_b, sums, left, right, k + 4, y, x)
            add(tile_a, tile_b, sums, left, right, k + 5, y, x)
            add(tile_a, tile_b, sums, left, right, k + 6, y, x)
            add(tile_a, tile_b, sums, left, right, k + 7, y, x)
    else:

        @cuda.jit(device=True)
        def eight(tile_a, tile_b, sums, left, right, k, y, x):
            for i in range(8):  # a CPU keeps nothing of it in registers either way, and compiles the loop sooner
                add(tile_a, tile_b, sums, left, right, k + i, y, x)

    return eight


def writer(vector: bool, gap: int) -> Any:
    """The device function write(c, row, column, sums, i): row i of a thread's 8 x 8 numbers into that row of c, four from
    `column` on and four from column + gap on, as far as c reaches."""
    if vector:

        @cuda.jit(device=True)
        def put(c, row, column, v0, v1, v2, v3):
            if column < c.shape[1]:
                store4(c, row, column, v0, v1, v2, v3)
    else:

        @cuda.jit(device=True)
        def put(c, row, column, v0, v1, v2, v3):
            if column < c.shape[1]:
                c[row, column] = v0
            if column + 1 < c.shape[1]:
                c[row, column + 1] = v1
            if column + 2 < c.shape[1]:
                c[row, column + 2] = v2
            if column + 3 < c.shape[1]:
                c[row, column + 3] = v3

    @cuda.jit(device=True)
    def write(c, row, column, sums, i):
        put(c, row, column, sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3])
        put(c, row, column + gap, sums[i, 4], sums[i, 5], sums[i, 6], sums[i, 7])

    return write
