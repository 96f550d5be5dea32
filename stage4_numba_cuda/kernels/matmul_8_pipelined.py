"""Matrix multiplication on tensor cores, the end of the ladder: no waiting at the barrier, and a larger tile.

    pipelined      fragments of the next half of a tile are        32 multiplications of a warp are ready to go on with
                   read before those of this half are multiplied   behind each barrier, where none were
    wide_tile      256 x 128 numbers a block in place of           a word from memory serves 85 products in place of 64
                   128 x 128                                       in tf32, and 171 in place of 128 in bf16

Operands, tiles and copies are those of the rungs above (matmul_7_fragments.py), whose warps of 64 x 64 numbers they
keep. A tile's 16 words along k are two halves, and a warp reads what it needs of a half with eight loads.

Behind a barrier, a warp of square_warps has nothing to multiply until its loads from the new tile have come. On the
multiprocessor that is no loss as long as another block has something to do. Of wide blocks there is one on each
multiprocessor, for 256 threads with 128 sums each take more than half of its registers. So these need `pipelined`.

A wide block's three tiles are 72 KB. A kernel that declares more than 48 KB of shared memory cannot be compiled: the
launch gives it the memory, after the driver was asked to allow so much (shared_memory.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import float32, int32

from ..backend import cuda
from .fragment_tiles import Block, clear, mover, reader, writer
from .fragments import NOTES
from .matmul_6_operands import ROWS, WORDS
from .matmul_7_fragments import MULTIPLY, STAGES
from .ptx import matrices, nothing_on_its_way, send, wait_for_all_but_one

BLOCKS = {"pipelined": Block(ROWS, 64), "wide_tile": Block(2 * ROWS, 64)}
RUNGS = tuple(BLOCKS)

BYTES = {"pipelined": 0, "wide_tile": STAGES * BLOCKS["wide_tile"].tile * 4}
"""Of shared memory, which a launch has to give a block for its tiles; 0 where the kernel declares them."""

WORDS_OF_HALF = 16
"""A lane's, of each operand: four for every 16 of the warp's 64 rows or columns."""


@cache
def multiply(rung: str, precision: str) -> Any:
    """The kernel (a, b, c) for blocks of BLOCKS[rung] with BYTES[rung] bytes of shared memory.

    a, b: int32 (rows, words), as matmul_6_operands makes them, a's rows a multiple of the block's; c: float32 (rows,
    columns), where a's rows and b's end
    """
    block = BLOCKS[rung]
    tile, last = block.tile, (STAGES - 1) * block.tile
    room = 0 if BYTES[rung] else STAGES * tile
    fetch, add = halves(precision)
    first, _, _, order = mover(block, swizzled=True)
    lanes, write = reader(block, by_words=False), writer(block)
    notes = STAGES * block.parts + 1

    @cuda.jit
    def kernel(a, b, c):
        tiles = cuda.shared.array(room, np.int32, alignment=16)
        flight = cuda.local.array((notes, NOTES), int32)
        left = cuda.local.array((2, WORDS_OF_HALF), int32)
        right = cuda.local.array((2, WORDS_OF_HALF), int32)
        sums = cuda.local.array((32, 4), float32)
        clear(sums)
        to, from_a, from_b = first(a, b)
        y, x, column_a, column_b = lanes()
        # Two chunks further on is the other half of the row, also where chunks have changed places.
        other_a, other_b = int32(column_a ^ 8), int32(column_b ^ 8)
        nothing_on_its_way(flight)
        order(tiles, to, a, b, from_a, from_b, flight)
        send(flight)
        if a.shape[1] > WORDS:
            order(tiles, int32(tile + to), a, b, int32(from_a + WORDS), int32(from_b + WORDS), flight)
        send(flight)
        wait_for_all_but_one(tiles, flight)
        cuda.syncthreads()
        if a.shape[1] > 2 * WORDS:
            order(tiles, int32(last + to), a, b, int32(from_a + 2 * WORDS), int32(from_b + 2 * WORDS), flight)
        send(flight)
        base = int32(0)  # where the tile begins that is being multiplied
        fetch(tiles, left, right, 0, int32(y + column_a), int32(x + column_b))
        k = int32(WORDS)
        while k < a.shape[1]:
            fetch(tiles, left, right, 1, int32(base + y + other_a), int32(base + x + other_b))
            add(sums, left, right, 0)
            wait_for_all_but_one(tiles, flight)
            cuda.syncthreads()  # everybody's copies of the next tile are there, and everybody has read all of this one
            ahead = int32(k + 2 * WORDS)
            if ahead < a.shape[1]:
                order(tiles, int32(base + to), a, b, int32(from_a + ahead), int32(from_b + ahead), flight)
            send(flight)
            base = int32(0 if base == last else base + tile)
            fetch(tiles, left, right, 0, int32(base + y + column_a), int32(base + x + column_b))
            add(sums, left, right, 1)
            k = int32(k + WORDS)
        fetch(tiles, left, right, 1, int32(base + y + other_a), int32(base + x + other_b))
        add(sums, left, right, 0)
        add(sums, left, right, 1)
        write(c, sums)

    return kernel


@cache
def halves(precision: str) -> tuple[Any, Any]:
    """The device functions (fetch, add) for half a tile and a warp of 64 x 64 numbers.

    fetch(tiles, left, right, half, at_a, at_b): a lane's words of 64 rows of a and of b, from where the lane reads
    add(sums, left, right, half): their products
    """
    product, down = MULTIPLY[precision], 16 * WORDS

    @cuda.jit(device=True)
    def fetch(tiles, left, right, half, at_a, at_b):
        for n in range(4):
            i = n * 4
            right[half, i], right[half, i + 1], right[half, i + 2], right[half, i + 3] = matrices(
                tiles, int32(at_b + n * down)
            )
            left[half, i], left[half, i + 1], left[half, i + 2], left[half, i + 3] = matrices(
                tiles, int32(at_a + n * down)
            )

    @cuda.jit(device=True)
    def add(sums, left, right, half):
        for m in range(4):
            for n in range(8):
                t, i, j = m * 8 + n, m * 4, n * 2
                sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3] = product(
                    left[half, i], left[half, i + 1], left[half, i + 2], left[half, i + 3],
                    right[half, j], right[half, j + 1],
                    sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3],
                )  # fmt: skip

    return fetch, add
