"""Matrix multiplication on tensor cores, of operands that were rounded before (matmul_6_operands.py).

    packed      rounded operands, four words to a load              half the bytes, and nothing rounded in the loop
    ldmatrix    a warp loads four matrices with one instruction     12 loads for 32 multiplications, where 48 were
    swizzled    chunks of a row change places, in place of padding  16 words a row instead of 20, and no bank conflicts
    staged      cp.async, three tiles: copies need no registers     two tiles are on their way while one is multiplied
    square_warps
                four warps of 64 x 64 numbers in place of eight     8 loads for 32 multiplications, where 12 were

Each rung is the one above with one change; above all of them stands `mma` (matmul_5_tensor.py), which rounds on the
way, and below them the rungs of matmul_8_pipelined.py. Blocks compute 128 x 128 numbers. Eight warps stand 2 x 4, and
each computes 64 x 32 numbers; on the last rung four stand 2 x 2.

A tile is 128 rows of a and below them 128 of b, 16 words in each row: 32 numbers along k in bf16 and f16, 16 in tf32.
A chunk is four words, 16 bytes. Eight rows of 16 words are 4 KB, in which a chunk of the same number lies in the same
four banks on every second row: reading it from eight rows would take four turns. Rows of 20 words are read in one turn
and written in two. Without a word more both take one, if chunk c of row r lies where chunk c ^ (r / 2 % 4) would.
All tiles of a block are one array of one dimension, in which rows of `pitch` words follow each other.

`staged` and `square_warps` need compute capability 8.0, as tf32 and bf16 do on every rung. f16 runs on 7.5 up to
`swizzled`, where its multiplication takes 8 numbers of k at a time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import float32, int32, uint64

from ..backend import cuda
from .fragment_tiles import CHUNK, PADDED, Block, clear, mover, reader, writer
from .fragments import NOTES
from .matmul_6_operands import ROWS, WORDS
from .ptx import matrices, mma_bf16, mma_f16, mma_tf32, nothing_on_its_way, send, wait_for_all_but_one

RUNGS = ("packed", "ldmatrix", "swizzled", "staged", "square_warps")
SWIZZLED, STAGED = RUNGS[2:], RUNGS[3:]
"""Those whose chunks change places, and those whose copies cp.async makes."""

STAGES = 3

BLOCKS = {
    "packed": Block(ROWS, 32, PADDED),
    "ldmatrix": Block(ROWS, 32, PADDED),
    "swizzled": Block(ROWS, 32),
    "staged": Block(ROWS, 32),
    "square_warps": Block(ROWS, 64),
}

MULTIPLY = {"tf32": mma_tf32, "bf16": mma_bf16, "f16": mma_f16}


@cache
def multiply(rung: str, precision: str) -> Any:
    """The kernel (a, b, c) for blocks of BLOCKS[rung].

    a, b: int32 (rows, words), as matmul_6_operands makes them; c: float32 (rows, columns), where a's rows and b's end
    """
    return _staged(rung, precision) if rung in STAGED else _through_registers(rung, precision)


def _through_registers(rung: str, precision: str) -> Any:
    """The rungs with two tiles, between which a thread holds four chunks in its registers."""
    block, swizzled = BLOCKS[rung], rung in SWIZZLED
    tile, room, parts = block.tile, 2 * block.tile, block.parts
    multiply_tile, lanes, write = tile_product(rung, precision), reader(block, rung == "packed"), writer(block)
    first, load, unload, _ = mover(block, swizzled)

    @cuda.jit
    def kernel(a, b, c):
        tiles = cuda.shared.array(room, np.int32, alignment=16)
        chunks = cuda.local.array((parts, CHUNK), int32)
        right = cuda.local.array(8, int32)
        sums = cuda.local.array((16, 4), float32)
        clear(sums)
        to, from_a, from_b = first(a, b)
        y, x, column_a, column_b = lanes()
        load(chunks, a, b, from_a, from_b)
        unload(tiles, to, chunks)
        cuda.syncthreads()
        base = int32(0)  # where the tile begins that is being multiplied
        k = int32(0)
        while k < a.shape[1]:
            k = int32(k + WORDS)
            if k < a.shape[1]:
                load(chunks, a, b, int32(from_a + k), int32(from_b + k))
            multiply_tile(tiles, sums, right, int32(base + y), int32(base + x), column_a, column_b)
            base = int32(tile - base)
            if k < a.shape[1]:
                unload(tiles, int32(base + to), chunks)
            cuda.syncthreads()
        write(c, sums)

    return kernel


def _staged(rung: str, precision: str) -> Any:
    """The rungs with three tiles: one is multiplied, two are on their way. Each turn orders the copy of one tile, which
    may be none at the end, and waits for all but the youngest."""
    block = BLOCKS[rung]
    tile, room = block.tile, STAGES * block.tile
    last = room - tile
    multiply_tile, lanes, write = tile_product(rung, precision), reader(block, by_words=False), writer(block)
    first, _, _, order = mover(block, swizzled=True)
    notes, words, products = STAGES * block.parts + 1, block.warp_columns // 4, block.warp_columns // 2

    @cuda.jit
    def kernel(a, b, c):
        tiles = cuda.shared.array(room, np.int32, alignment=16)
        flight = cuda.local.array((notes, NOTES), int32)
        right = cuda.local.array(words, int32)
        sums = cuda.local.array((products, 4), float32)
        clear(sums)
        to, from_a, from_b = first(a, b)
        y, x, column_a, column_b = lanes()
        nothing_on_its_way(flight)
        order(tiles, to, a, b, from_a, from_b, flight)
        send(flight)
        if a.shape[1] > WORDS:
            order(tiles, int32(tile + to), a, b, int32(from_a + WORDS), int32(from_b + WORDS), flight)
        send(flight)
        base = int32(0)  # where the tile begins that is being multiplied
        free = int32(last)  # and the one that was multiplied before it
        k = int32(0)
        while k < a.shape[1]:
            wait_for_all_but_one(tiles, flight)
            cuda.syncthreads()  # everybody's copies are there, and everybody has multiplied the tile before
            ahead = int32(k + 2 * WORDS)
            if ahead < a.shape[1]:
                order(tiles, int32(free + to), a, b, int32(from_a + ahead), int32(from_b + ahead), flight)
            send(flight)
            multiply_tile(tiles, sums, right, int32(base + y), int32(base + x), column_a, column_b)
            base = int32(0 if base == last else base + tile)
            free = int32(0 if free == last else free + tile)
            k = int32(k + WORDS)
        write(c, sums)

    return kernel


@cache
def tile_product(rung: str, precision: str) -> Any:
    """The device function multiply_tile(tiles, sums, right, y, x, column_a, column_b), which adds a tile's products to
    this lane's sums, as mma leaves them.

    y, x: the words where the lane's rows begin; right: two int32 of this lane for every eight columns of the warp, for
    what it reads of b
    """
    block, product = BLOCKS[rung], MULTIPLY[precision]
    eights, sixteens, down = block.warp_columns // 8, block.warp_columns // 16, 16 * block.pitch
    read_a, read_b = (by_words_of_a, by_words_of_b) if rung == "packed" else (matrices, matrices)

    @cuda.jit(device=True)
    def half(tiles, sums, right, at_a, at_b):
        """Two of the tile's four chunks along k: the fragments of all columns, then those of 16 rows at a time."""
        for n in range(sixteens):
            i = n * 4
            right[i], right[i + 1], right[i + 2], right[i + 3] = read_b(tiles, int32(at_b + n * down))
        for m in range(4):
            a0, a1, a2, a3 = read_a(tiles, int32(at_a + m * down))
            for n in range(eights):
                t = m * eights + n
                sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3] = product(
                    a0, a1, a2, a3, right[n * 2], right[n * 2 + 1], sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3]
                )

    @cuda.jit(device=True)
    def multiply_tile(tiles, sums, right, y, x, column_a, column_b):
        for step in range(2):
            # Two chunks further on is the other half of the row, also where chunks have changed places.
            half(tiles, sums, right, int32(y + (column_a ^ (step * 8))), int32(x + (column_b ^ (step * 8))))

    return multiply_tile


NEXT, EIGHT = uint64(CHUNK), uint64(8 * PADDED)
"""Words from a word to the same one of the next chunk, and of the eighth row below it."""


@cuda.jit(device=True)
def by_words_of_a(tiles, at):
    """A lane's words of 16 rows and two chunks, one by one."""
    at = uint64(at)  # what may be negative is tested, and counts from the end: more instructions
    return tiles[at], tiles[at + EIGHT], tiles[at + NEXT], tiles[at + EIGHT + NEXT]


@cuda.jit(device=True)
def by_words_of_b(tiles, at):
    """A lane's words of 16 columns and two chunks: both chunks of the first 8 columns, then of the others."""
    at = uint64(at)
    return tiles[at], tiles[at + NEXT], tiles[at + EIGHT], tiles[at + EIGHT + NEXT]
