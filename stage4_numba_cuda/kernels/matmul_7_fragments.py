"""Matrix multiplication on tensor cores, of operands that were rounded before (matmul_6_operands.py).

    packed      rounded operands, four words to a load              half the bytes, and nothing rounded in the loop
    ldmatrix    a warp loads four matrices with one instruction     12 loads for 32 multiplications, where 48 were
    swizzled    chunks of a row change places, in place of padding  16 words a row instead of 20, and no bank conflicts
    staged      cp.async, three tiles: copies need no registers     two tiles are on their way while one is multiplied
    square_warps
                four warps of 64 x 64 numbers in place of eight     8 loads for 32 multiplications, where 12 were

Each rung is the one above with one change; above all of them stands `mma` (matmul_5_tensor.py), which rounds on the
way. Blocks compute SIDE x SIDE numbers. Eight warps stand 2 x 4, and each computes 64 x 32 numbers; on the last rung
four stand 2 x 2.

A tile is 128 rows of a and below them 128 of b, 16 words in each row: 32 numbers along k in bf16 and f16, 16 in tf32.
A chunk is four words, 16 bytes. Eight rows of 16 words are 4 KB, in which a chunk of the same number lies in the same
four banks on every second row: reading it from eight rows would take four turns. Rows of 20 words are read in one turn
and written in two. Without a word more both take one, if chunk c of row r lies where chunk c ^ (r / 2 % 4) would.

`staged` and `square_warps` need compute capability 8.0, as tf32 and bf16 do on every rung. f16 runs on 7.5 up to
`swizzled`, where its multiplication takes 8 numbers of k at a time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import float32, int32, uint32

from ..backend import cuda
from .fragments import NOTES
from .matmul_6_operands import ROWS, WORDS
from .ptx import (
    copy4,
    fetch4,
    matrices,
    mma_bf16,
    mma_f16,
    mma_tf32,
    nothing_on_its_way,
    send,
    store4,
    wait_for_all_but_one,
)

RUNGS = ("packed", "ldmatrix", "swizzled", "staged", "square_warps")
STAGED = RUNGS[3:]
"""Those whose copies cp.async makes."""

SIDE = ROWS

CHUNK = 4
"""Words that move at once."""

PADDED = WORDS + CHUNK

TILE = 2 * ROWS
"""Rows of a tile: those of a, and below them those of b."""

WARP_ROWS = 64
STAGES = 3

MULTIPLY = {"tf32": mma_tf32, "bf16": mma_bf16, "f16": mma_f16}


def warp_columns(rung: str) -> int:
    """Columns of the result that a warp computes."""
    return 64 if rung == "square_warps" else 32


def threads(rung: str) -> int:
    """Of a block."""
    return 32 * (SIDE // WARP_ROWS) * (SIDE // warp_columns(rung))


@cache
def multiply(rung: str, precision: str) -> Any:
    """The kernel (a, b, c) for blocks of threads(rung) threads, each SIDE x SIDE of the result.

    a, b: int32 (rows, words), as matmul_6_operands makes them; c: float32 (rows, columns), where a's rows and b's end
    """
    return _staged(rung, precision) if rung in STAGED else _through_registers(rung, precision)


def _through_registers(rung: str, precision: str) -> Any:
    """The rungs with two tiles, between which a thread holds four chunks in its registers."""
    swizzled = rung == "swizzled"
    pitch, rows = WORDS if swizzled else PADDED, 2 * TILE
    multiply_tile, lanes, write = tile_product(rung, precision)
    load, unload, _, parts = mover(rung)

    @cuda.jit
    def kernel(a, b, c):
        tiles = cuda.shared.array((rows, pitch), np.int32, alignment=16)
        chunks = cuda.local.array((parts, CHUNK), int32)
        right = cuda.local.array(8, int32)
        sums = cuda.local.array((16, 4), float32)
        clear(sums)
        row, chunk, column = copied(swizzled)
        from_a = int32((cuda.blockIdx.y * SIDE + row) * a.shape[1] + chunk * CHUNK)
        from_b = int32((cuda.blockIdx.x * SIDE + row) * b.shape[1] + chunk * CHUNK)
        y, x, column_a, column_b = lanes()
        load(chunks, a, b, from_a, from_b)
        unload(tiles, row, column, chunks)
        cuda.syncthreads()
        base = int32(0)  # where the tile begins that is being multiplied
        k = int32(0)
        while k < a.shape[1]:
            k = int32(k + WORDS)
            if k < a.shape[1]:
                load(chunks, a, b, int32(from_a + k), int32(from_b + k))
            multiply_tile(tiles, sums, right, int32(base + y), int32(base + x), column_a, column_b)
            base = int32(TILE - base)
            if k < a.shape[1]:
                unload(tiles, int32(base + row), column, chunks)
            cuda.syncthreads()
        write(c, sums)

    return kernel


def _staged(rung: str, precision: str) -> Any:
    """The rungs with three tiles: one is multiplied, two are on their way. Each turn orders the copy of one tile, which
    may be none at the end, and waits for all but the youngest."""
    rows = STAGES * TILE
    last = rows - TILE
    multiply_tile, lanes, write = tile_product(rung, precision)
    _, _, order, parts = mover(rung)
    notes, words, products = STAGES * parts + 1, warp_columns(rung) // 4, warp_columns(rung) // 2

    @cuda.jit
    def kernel(a, b, c):
        tiles = cuda.shared.array((rows, WORDS), np.int32, alignment=16)
        flight = cuda.local.array((notes, NOTES), int32)
        right = cuda.local.array(words, int32)
        sums = cuda.local.array((products, 4), float32)
        clear(sums)
        row, chunk, column = copied(True)
        from_a = int32((cuda.blockIdx.y * SIDE + row) * a.shape[1] + chunk * CHUNK)
        from_b = int32((cuda.blockIdx.x * SIDE + row) * b.shape[1] + chunk * CHUNK)
        y, x, column_a, column_b = lanes()
        nothing_on_its_way(flight)
        order(tiles, row, column, a, b, from_a, from_b, flight)
        send(flight)
        if a.shape[1] > WORDS:
            order(tiles, int32(TILE + row), column, a, b, int32(from_a + WORDS), int32(from_b + WORDS), flight)
        send(flight)
        base = int32(0)  # where the tile begins that is being multiplied
        free = int32(last)  # and the one that was multiplied before it
        k = int32(0)
        while k < a.shape[1]:
            wait_for_all_but_one(tiles, flight)
            cuda.syncthreads()  # everybody's copies are there, and everybody has multiplied the tile before
            ahead = int32(k + 2 * WORDS)
            if ahead < a.shape[1]:
                order(tiles, int32(free + row), column, a, b, int32(from_a + ahead), int32(from_b + ahead), flight)
            send(flight)
            multiply_tile(tiles, sums, right, int32(base + y), int32(base + x), column_a, column_b)
            base = int32(0 if base == last else base + TILE)
            free = int32(0 if free == last else free + TILE)
            k = int32(k + WORDS)
        write(c, sums)

    return kernel


@cuda.jit(device=True)
def clear(sums):
    for t in range(sums.shape[0]):
        for i in range(4):
            sums[t, i] = float32(0)


@cuda.jit(device=True)
def copied(swizzled):
    """What this thread copies of each operand's part of a tile: the row, the chunk, and the word where it goes. Its
    next chunks are as many rows on as the block copies at once, where the places of chunks are the same."""
    row = int32(cuda.threadIdx.x >> 2)
    chunk = int32(cuda.threadIdx.x & 3)
    place = (chunk ^ ((row >> 1) & 3)) if swizzled else chunk
    return row, chunk, int32(place * CHUNK)


@cache
def mover(rung: str) -> tuple[Any, Any, Any, int]:
    """The device functions (load, unload, order), and how many chunks of a tile a thread moves, half of them a's.

    from_a, from_b: the number of the first chunk's first word in each operand
    """
    further = threads(rung) * CHUNK // WORDS  # rows from one of a thread's chunks to its next
    of_each = ROWS // further

    @cuda.jit(device=True)
    def load(chunks, a, b, from_a, from_b):
        """Into registers."""
        for i in range(of_each):
            at = int32(from_a + i * further * a.shape[1])
            chunks[i, 0], chunks[i, 1], chunks[i, 2], chunks[i, 3] = fetch4(a, at)
        for i in range(of_each):
            j, at = i + of_each, int32(from_b + i * further * b.shape[1])
            chunks[j, 0], chunks[j, 1], chunks[j, 2], chunks[j, 3] = fetch4(b, at)

    @cuda.jit(device=True)
    def unload(tiles, row, column, chunks):
        """From registers into the tile."""
        for i in range(2 * of_each):
            store4(tiles, row + i * further, column, chunks[i, 0], chunks[i, 1], chunks[i, 2], chunks[i, 3])

    @cuda.jit(device=True)
    def order(tiles, row, column, a, b, from_a, from_b, flight):
        """Copies of the same chunks that load and unload would move."""
        for i in range(of_each):
            copy4(tiles, int32(row + i * further), column, a, int32(from_a + i * further * a.shape[1]), flight)
        for i in range(of_each):
            to = int32(row + ROWS + i * further)
            copy4(tiles, to, column, b, int32(from_b + i * further * b.shape[1]), flight)

    return load, unload, order, 2 * of_each


@cache
def tile_product(rung: str, precision: str) -> tuple[Any, Any, Any]:
    """The device functions (multiply_tile, lanes, write).

    lanes(): the rows of the tile, for a and b, and the words in them from which on this lane reads
    multiply_tile(tiles, sums, right, y, x, column_a, column_b): adds a tile's products to this lane's sums, as mma
    leaves them; right: two int32 of this lane for every eight columns of the warp, for what it reads of b
    write(c, sums): into the result; what is beyond it is dropped
    """
    columns = warp_columns(rung)
    abreast, eights, sixteens = SIDE // columns, columns // 8, columns // 16
    shift, mask = abreast.bit_length() - 1, abreast - 1  # for a quotient and a remainder in one instruction each
    read_a, read_b = (by_words_of_a, by_words_of_b) if rung == "packed" else (matrices, matrices)
    by_words, swizzled, product = rung == "packed", rung in RUNGS[2:], MULTIPLY[precision]

    @cuda.jit(device=True)
    def lanes():
        warp = cuda.threadIdx.x >> 5
        lane = cuda.threadIdx.x & 31
        y = (warp >> shift) * WARP_ROWS
        x = ROWS + (warp & mask) * columns
        if by_words:
            return int32(y + (lane >> 2)), int32(x + (lane >> 2)), int32(lane & 3), int32(lane & 3)
        # Lanes 0 to 7 name the rows of the first matrix, 8 to 15 those of the second: of a the rows below, of b the
        # next chunk, for mma takes them in this order.
        row_a = lane & 15
        row_b = (lane & 7) + ((lane >> 4) << 3)
        chunk_a = lane >> 4
        chunk_b = (lane >> 3) & 1
        if swizzled:
            chunk_a ^= (row_a >> 1) & 3
            chunk_b ^= (row_b >> 1) & 3
        return int32(y + row_a), int32(x + row_b), int32(chunk_a * CHUNK), int32(chunk_b * CHUNK)

    @cuda.jit(device=True)
    def half(tiles, sums, right, y, x, column_a, column_b):
        """Two of the tile's four chunks along k: the fragments of all columns, then those of 16 rows at a time."""
        for n in range(sixteens):
            i = n * 4
            right[i], right[i + 1], right[i + 2], right[i + 3] = read_b(tiles, int32(x + n * 16), column_b)
        for m in range(4):
            a0, a1, a2, a3 = read_a(tiles, int32(y + m * 16), column_a)
            for n in range(eights):
                t = m * eights + n
                sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3] = product(
                    a0, a1, a2, a3, right[n * 2], right[n * 2 + 1], sums[t, 0], sums[t, 1], sums[t, 2], sums[t, 3]
                )

    @cuda.jit(device=True)
    def multiply_tile(tiles, sums, right, y, x, column_a, column_b):
        for step in range(2):
            # Two chunks further on is the other half of the row, also where chunks have changed places.
            half(tiles, sums, right, y, x, int32(column_a ^ (step * 8)), int32(column_b ^ (step * 8)))

    @cuda.jit(device=True)
    def write_rows(c, sums, m, row, column):
        """The m-th 16 rows of the warp, of which a lane has row g and row g + 8, and there two of every 8 columns."""
        for i in range(2):
            y = int32(row + m * 16 + i * 8)
            if y < c.shape[0]:
                for n in range(eights):
                    x = int32(column + n * 8)
                    t = m * eights + n
                    if x + 1 < c.shape[1]:
                        c[uint32(y), uint32(x)] = sums[t, i * 2]
                        c[uint32(y), uint32(x + 1)] = sums[t, i * 2 + 1]
                    elif x < c.shape[1]:
                        c[uint32(y), uint32(x)] = sums[t, i * 2]

    @cuda.jit(device=True)
    def write(c, sums):
        warp = cuda.threadIdx.x >> 5
        lane = cuda.threadIdx.x & 31
        row = int32(cuda.blockIdx.y * SIDE + (warp >> shift) * WARP_ROWS + (lane >> 2))
        column = int32(cuda.blockIdx.x * SIDE + (warp & mask) * columns + (lane & 3) * 2)
        # No loop: were one left, the sums would have to lie in memory, where a run-time number can choose among them.
        write_rows(c, sums, 0, row, column)
        write_rows(c, sums, 1, row, column)
        write_rows(c, sums, 2, row, column)
        write_rows(c, sums, 3, row, column)

    return multiply_tile, lanes, write


@cuda.jit(device=True)
def by_words_of_a(tiles, y, x):
    """A lane's words of 16 rows and two chunks, one by one."""
    y, x = uint32(y), uint32(x)  # what may be negative is tested, and counts from the end: more instructions
    return tiles[y, x], tiles[uint32(y + 8), x], tiles[y, uint32(x + 4)], tiles[uint32(y + 8), uint32(x + 4)]


@cuda.jit(device=True)
def by_words_of_b(tiles, y, x):
    """A lane's words of 16 columns and two chunks: both chunks of the first 8 columns, then of the others."""
    y, x = uint32(y), uint32(x)
    return tiles[y, x], tiles[y, uint32(x + 4)], tiles[uint32(y + 8), x], tiles[uint32(y + 8), uint32(x + 4)]
