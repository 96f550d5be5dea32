"""Matrix multiplication on the GPU, the end of the ladder on ordinary cores: no waiting inside a tile, and its size.

    pipelined      the numbers of the next k are read          no multiplication waits for shared memory; across the
                   before those of this k are multiplied       barrier, too: the next tile's first numbers are there
    wide_tile      128 x 256 a block, 8 x 16 a thread          24 numbers serve 128 products, where 16 served 64
    fitted_tile    64 x 128 or 64 x 64 where few large         every multiprocessor has something to do
                   blocks would leave multiprocessors idle

All three are one text with another tile. A thread has 8 rows, as two times four that lie half a tile apart, and four
columns of every 64. So a warp's wide loads meet every bank of shared memory once, as on the rung below.

The price of a wide tile is registers: 128 sums and the numbers on their way are 200 and more, so that one block has a
multiprocessor for itself. In float64, where each takes two, there are not enough: there is no wide tile in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import int32

from ..backend import cuda
from .matmul_tiles import WIDE, inside, moved_parts, mover, writer
from .ptx import REAL, load4

ROWS = 8
"""Of a thread."""

ACROSS = 64
"""Columns from one of a thread's groups of four to the next: two warps side by side, and 8 threads of each, have 64."""

PAD = 4
"""Numbers more a row of a tile than are needed: what is stored turned goes to different banks."""


class Tile(NamedTuple):
    """What a block computes: rows x columns of the result, `depth` of K at a time.

    rows: 64 or 128; columns: 64, 128 or 256; depth: 8 or 16
    blocks: as many as shall fit on a multiprocessor in float32, which decides how many registers a thread may have
    """

    rows: int
    columns: int
    depth: int
    blocks: int

    @property
    def threads(self) -> int:
        """Of a block: 16 side by side, each with columns / 16 columns."""
        return self.rows // ROWS * 16

    @property
    def groups(self) -> int:
        """Of four columns that a thread has."""
        return self.columns // ACROSS


TILES = {
    "pipelined": Tile(128, 128, 8, 2),
    "wide_tile": Tile(128, 256, 8, 1),
    "small_tile": Tile(64, 128, 16, 3),
    "narrow_tile": Tile(64, 64, 16, 4),
}


def in_dtype(tile: Tile, dtype: str) -> Tile:
    """The tile with a depth for which 48 KB of shared memory, the most of a static array, are enough in float64."""
    return tile._replace(depth=8) if dtype == "float64" else tile


def bounds(tile: Tile, vector: bool, dtype: str) -> dict[str, Any]:
    """What to tell the compiler: how many blocks shall fit. Scalar loads and float64 take more registers than that."""
    return {"launch_bounds": (tile.threads, tile.blocks)} if REAL and vector and dtype == "float32" else {}


@cache
def multiply(name: str, form: str, vector: bool, dtype: str) -> Any:
    """The kernel (a, b, c): c = the product of that form, for blocks of TILES[name].threads threads.

    vector: whether memory may be read 128 bits at a time: rows of a multiple of four numbers, 16-byte addresses
    """
    tile = in_dtype(TILES[name], dtype)
    rows, columns, depth = tile.rows, tile.columns, tile.depth
    product, write = blocked_product(tile, form, vector), writer(vector, ACROSS, tile.groups)
    twice, pitch_a, pitch_b, width = 2 * depth, rows + PAD, columns + PAD, tile.groups * WIDE
    parts_a, parts_b = moved_parts(depth, rows, tile.threads), moved_parts(depth, columns, tile.threads)
    places_a, places_b = parts_a + 1, parts_b + 1

    @cuda.jit(**bounds(tile, vector, dtype))
    def kernel(a, b, c):
        tiles_a = cuda.shared.array((twice, pitch_a), a.dtype, alignment=16)
        tiles_b = cuda.shared.array((twice, pitch_b), a.dtype, alignment=16)
        staged_a = cuda.local.array((parts_a, 4), a.dtype)
        staged_b = cuda.local.array((parts_b, 4), a.dtype)
        at_a = cuda.local.array(places_a, int32)
        at_b = cuda.local.array(places_b, int32)
        sums = cuda.local.array((8, width), a.dtype)
        left = cuda.local.array((2, 8), a.dtype)
        right = cuda.local.array((2, width), a.dtype)
        product(a, b, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right)
        y, x = inside()
        row = int32(cuda.blockIdx.y * rows + y)
        column = cuda.blockIdx.x * columns + x
        for i in range(8):
            target = int32(row + (i & 3) + (i >> 2) * (rows // 2))
            if target < c.shape[0]:
                write(c, target, column, sums, i)

    return kernel


@cache
def blocked_product(tile: Tile, form: str, vector: bool) -> Any:
    """The device function that leaves a thread's numbers of the product in `sums`, 8 rows of groups * 4 columns.

    left and right hold two k's numbers: those that are multiplied, and those that are on their way.
    """
    rows, columns, depth = tile.rows, tile.columns, tile.depth
    place_a, first_a, aim_a, load_a, unload_a = mover(form != "tn", vector, depth, rows, tile.threads)
    place_b, first_b, aim_b, load_b, unload_b = mover(form == "nt", vector, depth, columns, tile.threads)
    fetch, add, tile_but_last = pipeline(rows // 2, tile.groups, depth)
    inner = 0 if form == "tn" else 1
    width = tile.groups * WIDE

    @cuda.jit(device=True)
    def product(a, b, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right):
        for i in range(8):
            for j in range(width):
                sums[i, j] = a.dtype.type(0)
        y, x = inside()
        row = cuda.blockIdx.y * rows
        column = cuda.blockIdx.x * columns
        count = int32(a.shape[inner])
        start = int32((count - 1) & (depth - 1)) + int32(1)  # what is over when K is cut into tiles, or a whole one
        i_a, k_a = place_a()
        i_b, k_b = place_b()
        first_a(staged_a, a, row + i_a, k_a, start)
        first_b(staged_b, b, column + i_b, k_b, start)
        unload_a(tiles_a, i_a, k_a, staged_a)
        unload_b(tiles_b, i_b, k_b, staged_b)
        cuda.syncthreads()
        base = int32(0)  # which half of the tiles' rows is being multiplied: 0 or depth
        aim_a(at_a, a, row + i_a, start + k_a)
        aim_b(at_b, b, column + i_b, start + k_b)
        fetch(tiles_a, tiles_b, left, right, 0, base, y, x)
        while start < count:
            load_a(staged_a, a, at_a)
            load_b(staged_b, b, at_b)
            tile_but_last(tiles_a, tiles_b, sums, left, right, base, y, x)
            base = int32(depth) - base
            unload_a(tiles_a, i_a, base + k_a, staged_a)
            unload_b(tiles_b, i_b, base + k_b, staged_b)
            cuda.syncthreads()
            fetch(tiles_a, tiles_b, left, right, 0, base, y, x)
            add(sums, left, right, 1)
            start += int32(depth)
        if count > 0:  # always so; see matmul_3_warp.py
            tile_but_last(tiles_a, tiles_b, sums, left, right, base, y, x)
            add(sums, left, right, 1)

    return product


@cache
def pipeline(gap: int, groups: int, depth: int) -> tuple[Any, Any, Any]:
    """The device functions (fetch, add, tile_but_last) for a thread with two times four rows and `groups` of columns.

    fetch(tile_a, tile_b, left, right, half, k, y, x): row k of both tiles into that half of the registers
    add(sums, left, right, half): the products of what is in that half
    tile_but_last(…, base, y, x): `depth` rows of k from `base` on, of which fetch has brought the first into half 0;
    the last one is then in half 1, and not yet added
    """
    width = groups * WIDE

    @cuda.jit(device=True)
    def fetch(tile_a, tile_b, left, right, half, k, y, x):
        left[half, 0], left[half, 1], left[half, 2], left[half, 3] = load4(tile_a, k, y)
        left[half, 4], left[half, 5], left[half, 6], left[half, 7] = load4(tile_a, k, y + gap)
        for group in range(groups):
            j = group * WIDE
            right[half, j], right[half, j + 1], right[half, j + 2], right[half, j + 3] = load4(
                tile_b, k, x + group * ACROSS
            )

    @cuda.jit(device=True)
    def add(sums, left, right, half):
        for i in range(8):
            for j in range(width):
                sums[i, j] += left[half, i] * right[half, j]

    if REAL:
        # Calls and no loop, as in matmul_tiles.py: the compiler would not unroll so many multiply-adds of itself.
        @cuda.jit(device=True)
        def last(tile_a, tile_b, sums, left, right, k, y, x):
            fetch(tile_a, tile_b, left, right, 1, k + 1, y, x)
            add(sums, left, right, 0)

        @cuda.jit(device=True)
        def pair(tile_a, tile_b, sums, left, right, k, y, x):
            last(tile_a, tile_b, sums, left, right, k, y, x)
            fetch(tile_a, tile_b, left, right, 0, k + 2, y, x)
            add(sums, left, right, 1)

        @cuda.jit(device=True)
        def eight(tile_a, tile_b, sums, left, right, k, y, x):
            pair(tile_a, tile_b, sums, left, right, k, y, x)
            pair(tile_a, tile_b, sums, left, right, k + 2, y, x)
            pair(tile_a, tile_b, sums, left, right, k + 4, y, x)
            pair(tile_a, tile_b, sums, left, right, k + 6, y, x)

        @cuda.jit(device=True)
        def tile_but_last(tile_a, tile_b, sums, left, right, base, y, x):
            if depth == 16:
                eight(tile_a, tile_b, sums, left, right, base, y, x)
            k = base + (depth - 8)
            pair(tile_a, tile_b, sums, left, right, k, y, x)
            pair(tile_a, tile_b, sums, left, right, k + 2, y, x)
            pair(tile_a, tile_b, sums, left, right, k + 4, y, x)
            last(tile_a, tile_b, sums, left, right, k + 6, y, x)
    else:
        most = depth - 1

        @cuda.jit(device=True)
        def tile_but_last(tile_a, tile_b, sums, left, right, base, y, x):
            for i in range(most):
                fetch(tile_a, tile_b, left, right, (i + 1) & 1, base + i + 1, y, x)
                add(sums, left, right, i & 1)

    return fetch, add, tile_but_last
