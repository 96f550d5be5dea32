"""What the products of rounded operands share: how a block copies its tiles, where lanes read, and who writes what.

    Block     what a block computes and keeps in shared memory
    clear     a lane's sums before the first product
    mover     copies of a tile, through registers or by cp.async
    reader    where a lane reads in a tile
    writer    the sums into the result

matmul_7_fragments.py says how a tile is laid out.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import float32, int32, uint32

from ..backend import cuda
from .matmul_6_operands import ROWS, WORDS
from .ptx import copy4, fetch4, put4

COLUMNS = ROWS
"""Of the result that a block computes, on every rung."""

CHUNK = 4
"""Words that move at once."""

PADDED = WORDS + CHUNK

WARP_ROWS = 64


class Block(NamedTuple):
    """What a block computes and keeps: rows x COLUMNS of the result, by warps of WARP_ROWS x warp_columns.

    rows: a multiple of ROWS; pitch: words from a row of a tile to the next
    """

    rows: int
    warp_columns: int
    pitch: int = WORDS

    @property
    def abreast(self) -> int:
        """Warps side by side, a power of two."""
        return COLUMNS // self.warp_columns

    @property
    def threads(self) -> int:
        return 32 * (self.rows // WARP_ROWS) * self.abreast

    @property
    def tile(self) -> int:
        """Words of a tile: the rows of a, and below them those of b."""
        return (self.rows + COLUMNS) * self.pitch

    @property
    def further(self) -> int:
        """Rows of a tile from one chunk that a thread copies to its next: as many as the block copies at once."""
        return self.threads * CHUNK // WORDS

    @property
    def parts(self) -> int:
        """Chunks of a tile that a thread copies."""
        return (self.rows + COLUMNS) // self.further


@cuda.jit(device=True)
def clear(sums):
    for t in range(sums.shape[0]):
        for i in range(4):
            sums[t, i] = float32(0)


@cache
def mover(block: Block, swizzled: bool) -> tuple[Any, Any, Any, Any]:
    """The device functions (first, load, unload, order) that copy a tile.

    first(a, b): the word of a tile where this thread's first chunk goes, and those of a and b where it comes from. The
    thread's next chunks are `further` rows on each, where the places of chunks are the same.
    load(chunks, a, b, from_a, from_b): the thread's chunks of both operands into registers
    unload(tiles, to, chunks): and from there into the tile
    order(tiles, to, a, b, from_a, from_b, flight): the same on its own, by cp.async
    """
    rows, pitch, further = block.rows, block.pitch, block.further
    of_a, of_b, step = block.rows // further, COLUMNS // further, further * pitch

    @cuda.jit(device=True)
    def first(a, b):
        row = int32(cuda.threadIdx.x >> 2)
        chunk = int32(cuda.threadIdx.x & 3)
        place = (chunk ^ ((row >> 1) & 3)) if swizzled else chunk
        from_a = int32((cuda.blockIdx.y * rows + row) * a.shape[1] + chunk * CHUNK)
        from_b = int32((cuda.blockIdx.x * COLUMNS + row) * b.shape[1] + chunk * CHUNK)
        return int32(row * pitch + place * CHUNK), from_a, from_b

    @cuda.jit(device=True)
    def load(chunks, a, b, from_a, from_b):
        for i in range(of_a):
            at = int32(from_a + i * further * a.shape[1])
            chunks[i, 0], chunks[i, 1], chunks[i, 2], chunks[i, 3] = fetch4(a, at)
        for i in range(of_b):
            j, at = i + of_a, int32(from_b + i * further * b.shape[1])
            chunks[j, 0], chunks[j, 1], chunks[j, 2], chunks[j, 3] = fetch4(b, at)

    @cuda.jit(device=True)
    def unload(tiles, to, chunks):
        for i in range(of_a + of_b):
            put4(tiles, int32(to + i * step), chunks[i, 0], chunks[i, 1], chunks[i, 2], chunks[i, 3])

    @cuda.jit(device=True)
    def order(tiles, to, a, b, from_a, from_b, flight):
        for i in range(of_a):
            copy4(tiles, int32(to + i * step), a, int32(from_a + i * further * a.shape[1]), flight)
        for i in range(of_b):
            copy4(tiles, int32(to + (of_a + i) * step), b, int32(from_b + i * further * b.shape[1]), flight)

    return first, load, unload, order


@cache
def reader(block: Block, by_words: bool) -> Any:
    """The device function lanes(): the words of a tile where this lane's rows begin, for a and for b, and the words in
    these rows where it reads.

    by_words: for a lane that reads its own words, and not for `matrices`, to which it names a row
    """
    rows, columns, pitch = block.rows, block.warp_columns, block.pitch
    shift, mask = block.abreast.bit_length() - 1, block.abreast - 1  # quotient and remainder in one instruction each
    swizzled = pitch == WORDS

    @cuda.jit(device=True)
    def lanes():
        warp = cuda.threadIdx.x >> 5
        lane = cuda.threadIdx.x & 31
        y = (warp >> shift) * WARP_ROWS
        x = rows + (warp & mask) * columns
        if by_words:
            g = lane >> 2
            return int32((y + g) * pitch), int32((x + g) * pitch), int32(lane & 3), int32(lane & 3)
        # Lanes 0 to 7 name the rows of the first matrix, 8 to 15 those of the second: of a the rows below, of b the
        # next chunk, for mma takes them in this order.
        row_a = lane & 15
        row_b = (lane & 7) + ((lane >> 4) << 3)
        chunk_a = lane >> 4
        chunk_b = (lane >> 3) & 1
        if swizzled:
            chunk_a ^= (row_a >> 1) & 3
            chunk_b ^= (row_b >> 1) & 3
        return int32((y + row_a) * pitch), int32((x + row_b) * pitch), int32(chunk_a * CHUNK), int32(chunk_b * CHUNK)

    return lanes


@cache
def writer(block: Block) -> Any:
    """The device function write(c, sums): a lane's sums into the result; what is beyond it is dropped."""
    rows, columns, eights = block.rows, block.warp_columns, block.warp_columns // 8
    shift, mask = block.abreast.bit_length() - 1, block.abreast - 1

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
        row = int32(cuda.blockIdx.y * rows + (warp >> shift) * WARP_ROWS + (lane >> 2))
        column = int32(cuda.blockIdx.x * COLUMNS + (warp & mask) * columns + (lane & 3) * 2)
        # No loop: were one left, the sums would have to lie in memory, where a run-time number can choose among them.
        write_rows(c, sums, 0, row, column)
        write_rows(c, sums, 1, row, column)
        write_rows(c, sums, 2, row, column)
        write_rows(c, sums, 3, row, column)

    return write
