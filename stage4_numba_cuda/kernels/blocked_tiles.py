"""The tiles of the step's register-blocked kernels: how they get to shared memory, and are multiplied there.

A result is cut into tiles of side x side, and a block of 256 threads computes one, each thread 4 x 4 numbers. 64 x 64
is 16 numbers for each of the threads. 32 x 32 is a quarter of that: there the threads are four groups, each of which
takes a quarter of every tile's k, and at the end the four sums are added. So a small result, which has few tiles, still
has enough threads.

The tiles of both operands lie in one shared array, two of each: one is multiplied while the next one is fetched. When
the sums are complete they are left there, so that neighbouring threads then write neighbouring numbers.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from numba import int32, uint32

from ..backend import cuda
from .gather import shade
from .ptx import REAL, load4

THREADS = 256
SIDES = (32, 64)
GROUPS = {32: 4, 64: 1}
"""Of the threads of a block, that each have the whole tile among them."""

MOVED = 4
"""Numbers of each operand that a thread moves for a tile."""


TURNED, STRAIGHT, BYTES = "turned", "straight", "bytes"
"""How an operand lies: k along its rows; k down its columns; k along the rows of images of bytes, picked by number."""


class Mover(NamedTuple):
    """The device functions that bring tiles of one operand to shared memory as tile[k, i].

    take(staged, source, at, copy, first, k0, end): a thread's numbers into its registers: of rows `first` … of the
    operand, columns where it lies STRAIGHT, and k0 … of k; zero from `end` of k on
    load(…): the same of a whole tile, in which no k is beyond the end
    put(tiles, base, staged): from there to row `base` … of the shared array

    Beyond the edge of the result both move back to the last row or column: what is computed there is never stored. Of
    BYTES, row i of the operand is pixel / 255 of image at[i / 32], and the first column of blocks also writes it to
    `copy`, the operand itself. Otherwise at and copy are not looked at.
    """

    take: Any
    load: Any
    put: Any


@cache
def mover(side: int, lies: str) -> Mover:
    """For tiles of side x side that lie TURNED, STRAIGHT or as BYTES."""
    if lies == STRAIGHT:
        return straight_mover(side)
    taker = number_taker if lies == TURNED else byte_taker
    take, load = taker(side, guarded=True), taker(side, guarded=False)
    down = side // 32

    @cuda.jit(device=True)
    def put(tiles, base, staged):
        """A warp writes 4 numbers each of 8 rows of the tile, which are in 32 different banks."""
        for part in range(MOVED):
            k = base + (cuda.threadIdx.x & 7) + part // down * 8
            tiles[uint32(k), uint32((cuda.threadIdx.x >> 3) + part % down * 32)] = staged[part]

    return Mover(take, load, put)


@cache
def number_taker(side: int, guarded: bool) -> Any:
    """take, or load where not guarded, of an operand with k along its rows: 8 threads read 8 neighbours, a sector."""
    down = side // 32

    @cuda.jit(device=True)
    def take(staged, source, at, copy, first, k0, end):
        for part in range(MOVED):
            row = min(first + int32(cuda.threadIdx.x >> 3) + int32(part % down * 32), int32(source.shape[0] - 1))
            k = k0 + int32(cuda.threadIdx.x & 7) + int32(part // down * 8)
            staged[part] = source[uint32(row), uint32(k)] if not guarded or k < end else source.dtype.type(0)

    return take


@cache
def byte_taker(side: int, guarded: bool) -> Any:
    """The same of images of bytes."""
    down = side // 32

    @cuda.jit(device=True)
    def take(staged, source, at, copy, first, k0, end):
        for part in range(MOVED):
            row = first + int32(cuda.threadIdx.x >> 3) + int32(part % down * 32)
            k = k0 + int32(cuda.threadIdx.x & 7) + int32(part // down * 8)
            pixel = copy.dtype.type(0)
            if not guarded or k < end:
                # through float32 in either dtype: as the data set is made on the host
                pixel = copy.dtype.type(shade(source[uint32(at[part % down]), uint32(k)]))
                if cuda.blockIdx.x == 0 and row < copy.shape[0]:
                    copy[uint32(row), uint32(k)] = pixel
            staged[part] = pixel

    return take


@cache
def straight_mover(side: int) -> Mover:
    """For an operand with k down its columns: neighbouring threads read and write neighbours."""
    shift = side.bit_length() - 1
    further = THREADS // side

    @cuda.jit(device=True)
    def take(staged, source, at, copy, first, k0, end):
        column = min(first + int32(cuda.threadIdx.x & (side - 1)), int32(source.shape[1] - 1))
        for part in range(MOVED):
            k = k0 + int32(cuda.threadIdx.x >> shift) + int32(part * further)
            staged[part] = source[uint32(k), uint32(column)] if k < end else source.dtype.type(0)

    @cuda.jit(device=True)
    def load(staged, source, at, copy, first, k0, end):
        column = min(first + int32(cuda.threadIdx.x & (side - 1)), int32(source.shape[1] - 1))
        for part in range(MOVED):
            k = k0 + int32(cuda.threadIdx.x >> shift) + int32(part * further)
            staged[part] = source[uint32(k), uint32(column)]

    @cuda.jit(device=True)
    def put(tiles, base, staged):
        for part in range(MOVED):
            k = base + (cuda.threadIdx.x >> shift) + part * further
            tiles[uint32(k), uint32(cuda.threadIdx.x & (side - 1))] = staged[part]

    return Mover(take, load, put)


@cache
def multiplier(side: int) -> tuple[Any, Any]:
    """The device functions multiply(tiles, sums, base), which adds this thread's share of a tile to its 4 x 4 numbers,
    and leave(tiles, sums), which writes them to the shared array: those of group g from row g * side on.

    A warp's threads stand 4 x 8. In a tile of 64 x 64 the warps are two abreast, and all are one group.
    """
    depth = MOVED * THREADS // side
    groups = GROUPS[side]
    steps = depth // groups

    @cuda.jit(device=True)
    def place():
        warp = cuda.threadIdx.x >> 5
        lane = cuda.threadIdx.x & 31
        y = (lane >> 3) * 4
        x = (lane & 7) * 4
        if groups == 1:
            return 0, (warp >> 1) * 16 + y, (warp & 1) * 32 + x
        return warp >> 1, (warp & 1) * 16 + y, x

    @cuda.jit(device=True)
    def add(tiles, sums, left, right, k, y, x):
        left[0], left[1], left[2], left[3] = load4(tiles, k, y)
        right[0], right[1], right[2], right[3] = load4(tiles, k + 2 * depth, x)
        for i in range(4):
            for j in range(4):
                sums[i, j] += left[i] * right[j]

    if REAL:
        # Calls and no loop, as in matmul_tiles.py: of itself the compiler unrolls only two of these steps.
        @cuda.jit(device=True)
        def eight(tiles, sums, left, right, k, y, x):
            add(tiles, sums, left, right, k, y, x)
            add(tiles, sums, left, right, k + 1, y, x)
            add(tiles, sums, left, right, k + 2, y, x)
            add(tiles, sums, left, right, k + 3, y, x)
            add(tiles, sums, left, right, k + 4, y, x)
            add(tiles, sums, left, right, k + 5, y, x)
            add(tiles, sums, left, right, k + 6, y, x)
            add(tiles, sums, left, right, k + 7, y, x)

        @cuda.jit(device=True)
        def multiply(tiles, sums, left, right, base):
            group, y, x = place()
            k = base + group * steps
            eight(tiles, sums, left, right, k, y, x)
            if steps == 16:
                eight(tiles, sums, left, right, k + 8, y, x)
    else:

        @cuda.jit(device=True)
        def multiply(tiles, sums, left, right, base):
            group, y, x = place()
            k = base + group * steps
            for step in range(steps):
                add(tiles, sums, left, right, k + step, y, x)

    @cuda.jit(device=True)
    def leave(tiles, sums):
        group, y, x = place()
        for i in range(4):
            for j in range(4):
                tiles[uint32(group * side + y + i), uint32(x + j)] = sums[i, j]

    return multiply, leave


@cache
def blocked(side: int, a_lies: str, b_lies: str) -> SimpleNamespace:
    """What the kernels of one tile size share, for operands that lie so:

    product(a, at, copy, b, tiles, staged_a, staged_b, sums, left, right, row0, column0, k0, end): leaves the tile's
    product over k0 … end in `tiles`; returns the sum of the numbers of b that this thread moved
    number(tiles, i, j): that number of the product
    """
    depth = MOVED * THREADS // side
    groups = GROUPS[side]
    take_a, load_a, put_a = mover(side, a_lies)
    take_b, load_b, put_b = mover(side, b_lies)
    multiply, leave = multiplier(side)

    @cuda.jit(device=True)
    def product(a, at, copy, b, tiles, staged_a, staged_b, sums, left, right, row0, column0, k0, end):
        for i in range(4):
            for j in range(4):
                sums[i, j] = b.dtype.type(0)
        moved = b.dtype.type(0)
        # What is over when k is cut into tiles, or a whole one: with it first, all others are whole.
        start = min(k0 + int32((end - k0 - 1) & (depth - 1)) + int32(1), end)
        take_a(staged_a, a, at, copy, row0, k0, start)
        take_b(staged_b, b, at, copy, column0, k0, start)
        base = int32(0)
        put_a(tiles, base, staged_a)
        put_b(tiles, base + 2 * depth, staged_b)
        for part in range(MOVED):
            moved += staged_b[part]
        cuda.syncthreads()
        while start < end:
            load_a(staged_a, a, at, copy, row0, start, end)
            load_b(staged_b, b, at, copy, column0, start, end)
            multiply(tiles, sums, left, right, base)
            base = int32(depth) - base
            put_a(tiles, base, staged_a)
            put_b(tiles, base + 2 * depth, staged_b)
            for part in range(MOVED):
                moved += staged_b[part]
            cuda.syncthreads()
            start += int32(depth)
        multiply(tiles, sums, left, right, base)
        cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
        leave(tiles, sums)
        cuda.syncthreads()
        return moved

    @cuda.jit(device=True)
    def number(tiles, i, j):
        value = tiles[i, j]
        for group in range(1, groups):
            value += tiles[group * side + i, j]
        return value

    rows, pitch = 4 * depth, side + 4
    return SimpleNamespace(product=product, number=number, rows=rows, pitch=pitch)
