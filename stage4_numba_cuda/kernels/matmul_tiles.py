"""How the rungs from `vectorised` on move a tile, and what they do with it once it is there.

A tile is `side` numbers of the result's rows or columns (i), 128 on most rungs, by `depth` of the numbers that are
summed over (k), stored as tile[k, i] whatever lay in memory, so that one thread's numbers are neighbours and move four
at a time. Which way an operand lies is all that nn, tn and nt differ in:

    rows along i     a in tn, b in nn and tn     a thread copies four neighbours of a row as they are
    rows along k     a in nn and nt, b in nt     it copies four neighbours of a row into four rows of the tile

No access of the main loop is guarded. Beyond the edge of the result a load is moved back to the last row or column:
what is computed there is never stored. And the numbers of k that do not fill a tile come first, in a tile of their own
with zeros behind them, so that all others are full.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import int32, uint32

from ..backend import cuda
from .ptx import REAL, fetch4, load4, store4

SIDE = 128
"""Rows and columns of the result that a block computes."""

THREADS = 256
WIDE = 4
"""Numbers that a thread moves at once."""


def two_blocks(vector: bool, dtype: str) -> dict[str, Any]:
    """What to tell the compiler: in float32, that two blocks of THREADS shall fit on a multiprocessor, which leaves 128
    registers to a thread. With scalar loads or in float64 that is not enough, and it would keep numbers in memory."""
    return {"launch_bounds": (THREADS, 2)} if REAL and vector and dtype == "float32" else {}


class Mover(NamedTuple):
    """The device functions that bring tiles of one operand from memory to shared memory, in blocks of so many threads.

    place(): the (i, k) of a tile from which on this thread moves its numbers, `parts` times four of them
    first(staged, source, i, k, count): four by four into its registers, staged[parts, 4], and zeros from row `count`
    of k on
    aim(at, source, i, k): notes in `at`, int32[parts + 1], where a thread's numbers lie, for wide loads as offsets into
    `source`, else as rows and columns; moved back to the edge where that is passed
    load(staged, source, at): the numbers from there, with nothing to guard in k; `at` is then one tile further on
    unload(tile, i, k, staged): from the registers to the tile
    """

    place: Any
    first: Any
    aim: Any
    load: Any
    unload: Any


def moved_parts(depth: int, side: int, threads: int = THREADS) -> int:
    """How many times four numbers of a tile of depth x side a thread moves."""
    return depth * side // (threads * WIDE)


@cache
def mover(along_k: bool, vector: bool, depth: int, side: int = SIDE, threads: int = THREADS) -> Mover:
    """along_k: whether a row of the operand runs along k; vector: whether four of its numbers may be loaded at once;
    depth, side: of the tile, both powers of two; threads: of a block. A thread moves `parts` times four numbers."""
    parts = moved_parts(depth, side, threads)

    if along_k:
        groups = depth // WIDE  # of four numbers along k
        shift = groups.bit_length() - 1
        further = threads // groups  # rows that all threads together have read, and so the way to a thread's next part

        @cuda.jit(device=True)
        def place():
            return cuda.threadIdx.x >> shift, (cuda.threadIdx.x & (groups - 1)) * WIDE

        @cuda.jit(device=True)
        def first(staged, source, i, k, count):
            for part in range(parts):
                row = min(i + part * further, source.shape[0] - 1)
                for lane in range(WIDE):
                    staged[part, lane] = source[row, k + lane] if k + lane < count else source.dtype.type(0)

        @cuda.jit(device=True)
        def aim(at, source, i, k):
            for part in range(parts):
                row = min(i + part * further, source.shape[0] - 1)
                at[part] = row * source.shape[1] + k if vector else row
            at[parts] = k

        if vector:

            @cuda.jit(device=True)
            def load(staged, source, at):
                for part in range(parts):
                    staged[part, 0], staged[part, 1], staged[part, 2], staged[part, 3] = fetch4(source, at[part])
                    at[part] += int32(depth)
        else:

            @cuda.jit(device=True)
            def load(staged, source, at):
                for part in range(parts):
                    for lane in range(WIDE):
                        staged[part, lane] = source[uint32(at[part]), uint32(at[parts] + lane)]
                at[parts] += int32(depth)

        @cuda.jit(device=True)
        def unload(tile, i, k, staged):
            for part in range(parts):
                for lane in range(WIDE):
                    # Unsigned, for an index that may be negative is tested, and counts from the end: more instructions.
                    tile[uint32(k + lane), uint32(i + part * further)] = staged[part, lane]
    else:
        groups = side // WIDE  # of four numbers along i: a warp where the side is 128
        shift = groups.bit_length() - 1
        further = threads // groups

        @cuda.jit(device=True)
        def place():
            return (cuda.threadIdx.x & (groups - 1)) * WIDE, cuda.threadIdx.x >> shift

        @cuda.jit(device=True)
        def first(staged, source, i, k, count):
            for part in range(parts):
                row = k + part * further
                for lane in range(WIDE):
                    column = min(i + lane, source.shape[1] - 1)
                    staged[part, lane] = source[row, column] if row < count else source.dtype.type(0)

        @cuda.jit(device=True)
        def aim(at, source, i, k):
            for part in range(parts):
                row = k + part * further
                at[part] = row * source.shape[1] + min(i, source.shape[1] - WIDE) if vector else row
            at[parts] = i

        if vector:

            @cuda.jit(device=True)
            def load(staged, source, at):
                for part in range(parts):
                    staged[part, 0], staged[part, 1], staged[part, 2], staged[part, 3] = fetch4(source, at[part])
                    at[part] += int32(depth * source.shape[1])
        else:

            @cuda.jit(device=True)
            def load(staged, source, at):
                for part in range(parts):
                    for lane in range(WIDE):
                        column = min(at[parts] + lane, source.shape[1] - 1)
                        staged[part, lane] = source[uint32(at[part]), uint32(column)]
                    at[part] += int32(depth)

        @cuda.jit(device=True)
        def unload(tile, i, k, staged):
            for part in range(parts):
                row = k + part * further
                store4(tile, row, i, staged[part, 0], staged[part, 1], staged[part, 2], staged[part, 3])

    return Mover(place, first, aim, load, unload)


@cuda.jit(device=True)
def inside():
    """A thread's first row and column within the block's: warps two abreast, and 4 x 8 threads in each."""
    warp = cuda.threadIdx.x >> 5
    lane = cuda.threadIdx.x & 31
    return (warp >> 1) * 16 + (lane >> 3) * 4, (warp & 1) * 32 + (lane & 7) * 4


@cache
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


@cache
def writer(vector: bool, gap: int, groups: int = 2) -> Any:
    """The device function write(c, row, column, sums, i): row i of a thread's numbers into that row of c, as far as c
    reaches: four from `column` on, and four from each `gap` further on, `groups` times in all."""
    if vector:

        @cuda.jit(device=True)
        def write(c, row, column, sums, i):
            for group in range(groups):
                x = column + group * gap
                j = group * WIDE
                if x < c.shape[1]:
                    store4(c, row, x, sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
    else:

        @cuda.jit(device=True)
        def write(c, row, column, sums, i):
            for group in range(groups):
                for lane in range(WIDE):
                    x = column + group * gap + lane
                    if x < c.shape[1]:
                        c[row, x] = sums[i, group * WIDE + lane]

    return write
