"""Matrix multiplication on tensor cores: a warp multiplies small matrices as one instruction, of rounded numbers.

    tf32    16 x 8 by 8 x 8 at a time      factors rounded to 11 significant bits of float32's 24
    bf16    16 x 16 by 16 x 8 at a time    factors rounded to 8 bits, two of them to a register

Products and sums are float32. So a result is off by what rounding the factors does, up to 2⁻¹¹ or 2⁻⁸ of each product:
that is enough for training, but it is not the arithmetic of the other stages: these rungs stand beside the ladder.

Blocks, tiles and double buffering are the warp tile's. A number is rounded once, on its way into shared memory. Eight
warps stand 2 x 4, and each computes 64 x 32 numbers as 4 x 4 times 16 x 8, whose factors it reads from shared memory as
the instruction wants them: numbers k and k + 4 (or pairs of neighbours) of rows g and g + 8, for lane 4g + k. A tile's
rows are padded so that these 32 words lie in 32 banks. Needs compute capability 8.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32

from ..backend import cuda
from .matmul_tiles import SIDE, mover
from .ptx import multiply_bf16, multiply_tf32, to_bf16, to_tf32

DEPTH = 16
"""How much of K is in shared memory at a time, twice."""

EPSILON = {"tf32": 2.0**-11, "bf16": 2.0**-8}
"""The most that rounding changes a factor by, relative to it."""


@cache
def multiply(form: str, vector: bool, precision: str) -> Any:
    """The kernel (a, b, c) for blocks of THREADS threads, each block SIDE x SIDE of the result; float32 only.

    precision: "tf32" or "bf16"; vector: as for the warp tile
    """
    rounded, product, step, pad = {"tf32": (to_tf32, multiply_tf32, 8, 8), "bf16": (to_bf16, multiply_bf16, 16, 4)}[
        precision
    ]
    a_tiles, b_tiles = mover(form != "tn", vector, DEPTH), mover(form == "nt", vector, DEPTH)
    place_a, first_a, aim_a, load_a, unload_a = a_tiles
    place_b, first_b, aim_b, load_b, unload_b = b_tiles
    inner = 0 if form == "tn" else 1
    pitch, rows, parts, twice = SIDE + pad, 2 * DEPTH, DEPTH // 8, DEPTH // step
    places = parts + 1

    @cuda.jit(device=True)
    def round_all(staged):
        for part in range(parts):
            for lane in range(4):
                staged[part, lane] = rounded(staged[part, lane])

    @cuda.jit(device=True)
    def strip(tiles_a, tiles_b, sums, first, k, y, x):
        """16 rows from y on by 32 columns from x on."""
        for n in range(4):
            t = first + n
            sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3] = product(
                tiles_a, tiles_b, k, y, x + n * 8, sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3]
            )

    @cuda.jit(device=True)
    def strips(tiles_a, tiles_b, sums, k, y, x):
        strip(tiles_a, tiles_b, sums, 0, k, y, x)
        strip(tiles_a, tiles_b, sums, 4, k, y + 16, x)
        strip(tiles_a, tiles_b, sums, 8, k, y + 32, x)
        strip(tiles_a, tiles_b, sums, 12, k, y + 48, x)

    @cuda.jit(device=True)
    def multiply_tile(tiles_a, tiles_b, sums, base, y, x):
        strips(tiles_a, tiles_b, sums, base, y, x)
        if twice == 2:
            strips(tiles_a, tiles_b, sums, base + step, y, x)

    @cuda.jit(device=True)
    def write(c, sums, row, column):
        """A thread has two neighbours of row g and two of row g + 8 in each 16 x 8 numbers."""
        for t in range(16):
            for i in range(4):
                target = row + (t >> 2) * 16 + (i >> 1) * 8
                x = column + (t & 3) * 8 + (i & 1)
                if target < c.shape[0] and x < c.shape[1]:
                    c[target, x] = sums[t, i]

    @cuda.jit
    def kernel(a, b, c):
        tiles_a = cuda.shared.array((rows, pitch), a.dtype, alignment=16)
        tiles_b = cuda.shared.array((rows, pitch), a.dtype, alignment=16)
        staged_a = cuda.local.array((parts, 4), a.dtype)
        staged_b = cuda.local.array((parts, 4), a.dtype)
        at_a = cuda.local.array(places, int32)
        at_b = cuda.local.array(places, int32)
        sums = cuda.local.array((16, 4), a.dtype)
        for t in range(16):
            for i in range(4):
                sums[t, i] = a.dtype.type(0)
        warp = cuda.threadIdx.x >> 5
        lane = cuda.threadIdx.x & 31
        y = (warp >> 2) * 64
        x = (warp & 3) * 32
        row = cuda.blockIdx.y * SIDE
        column = cuda.blockIdx.x * SIDE
        i_a, k_a = place_a()
        i_b, k_b = place_b()
        count = int32(a.shape[inner])
        start = int32((count - 1) & (DEPTH - 1)) + int32(1)
        base = int32(0)
        first_a(staged_a, a, row + i_a, k_a, start)
        first_b(staged_b, b, column + i_b, k_b, start)
        round_all(staged_a)
        round_all(staged_b)
        unload_a(tiles_a, i_a, k_a, staged_a)
        unload_b(tiles_b, i_b, k_b, staged_b)
        cuda.syncthreads()
        aim_a(at_a, a, row + i_a, start + k_a)
        aim_b(at_b, b, column + i_b, start + k_b)
        while start < count:
            load_a(staged_a, a, at_a)
            load_b(staged_b, b, at_b)
            multiply_tile(tiles_a, tiles_b, sums, base, y, x)
            base = int32(DEPTH) - base
            round_all(staged_a)
            round_all(staged_b)
            unload_a(tiles_a, i_a, base + k_a, staged_a)
            unload_b(tiles_b, i_b, base + k_b, staged_b)
            cuda.syncthreads()
            start += int32(DEPTH)
        multiply_tile(tiles_a, tiles_b, sums, base, y, x)
        write(c, sums, row + y + (lane >> 2), column + x + (lane & 3) * 2)

    return kernel
