"""What a block of the persistent kernel does with its tile of the first layer's weights.

The tile has K_TILE inputs by H_TILE neurons, and a step needs it twice, each time with the block's slice of the batch:

    multiply    part = x w, for `chunk` rows of the batch: 4 x 4 numbers a thread, and K is shared by the threads that
                have the same 16; `join` adds up what they have, by shuffles
    gradient    dw = xᵀ d: 4 x 4 numbers a thread as well, and the rows of the batch are shared by four threads

The slice comes from memory in two actions, so that no thread has to wait for it: `ask` starts loads into registers, and
one multiplication or more later `put` writes the loaded numbers to shared memory.

An index is unsigned where many are computed, and moves on by additions. Numba tests for every signed index whether it
is negative, and computes it in 64 bits, for which a GPU has no multiplication in one instruction. So an address would
take many instructions.
"""

from __future__ import annotations

from typing import Any

from numba import int32, uint32, uint64

from ..backend import cuda
from .gather import shade
from .ptx import REAL, load4, store4

THREADS = 256
K_TILE, H_TILE = 64, 16
"""A block's tile of the first layer's weights: inputs, neurons."""

WIDE = 4
"""Numbers of one 128-bit load of float32, and the side of the square of sums that a thread has in registers."""

ACROSS = H_TILE // WIDE
"""Threads that share a row of the tile."""

PAD = 4
"""Unused numbers at the end of each row of a tile: rows stay multiples of 16 bytes, and begin in different banks."""

PITCH = H_TILE + PAD
"""Of the tile of slopes. Rows four apart, which a warp reads together, begin 16 banks apart."""

W_PITCH = {64: H_TILE + 8, 32: H_TILE + PAD, 16: H_TILE + PAD}
"""Of the tile of weights, by chunk. With these, what a warp reads in one turn lies in 32 banks: 16 numbers of each of
two rows, or 4 of each of eight."""

SHARED_BY = 4
"""Threads that sum over the rows of the batch together, for 4 x 4 numbers of the gradient."""

NO_SAMPLE = -1
"""In place of a sample's number, past the end of a batch or of the run."""

FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def from_byte(value, tile):
    return tile.dtype.type(shade(value))


@cuda.jit(device=True)
def from_number(value, tile):
    return tile.dtype.type(value)


@cuda.jit(device=True)
def place_of_patch():
    """This thread's patch of 4 x 4 numbers, one of 64, and which of its four threads it is: row, column, lane.

    Shared memory gives a warp 128 bytes a turn, so that 128-bit loads of 32 threads take four turns. Two are enough if
    each two threads whose numbers differ only in bit 0, or each two whose numbers differ only in bit 1, load the same
    (NVIDIA's forum says so of compute capability 7). So bit 0 of the number decides the row and not the column, and
    bit 1 the column and not the row: both operands are loaded in two turns. The lane is in bits 3 and 4.
    """
    t = cuda.threadIdx.x
    return int32(((t & 1) | ((t >> 4) & 14)) * WIDE), int32(((t >> 1) & 3) * WIDE), int32((t >> 3) & 3)


@cuda.jit(device=True)
def first_of_row():
    """This thread's place in the tile where each has four neighbours of a row: row, column."""
    k, column, lane = place_of_patch()
    return int32(k + row_of_lane(lane)), column


@cuda.jit(device=True)
def row_of_lane(lane):
    """The row of a patch of 4 x 4 numbers that `share_rows` leaves with this one of four threads."""
    return (0 if lane & 1 == 0 else 2) + (0 if lane & 2 == 0 else 1)


if REAL:
    # Wide loads have to be said: the compiler of a GPU does not see that these addresses are multiples of 16 bytes.
    @cuda.jit(device=True)
    def add_patches(sums, x_tile, row, w_tile, column, k, step):
        while k < K_TILE:  # four k a turn: K_TILE is a multiple of four steps
            add_patch(sums, x_tile, row, w_tile, column, k)
            add_patch(sums, x_tile, row, w_tile, column, k + step)
            add_patch(sums, x_tile, row, w_tile, column, k + 2 * step)
            add_patch(sums, x_tile, row, w_tile, column, k + 3 * step)
            k += 4 * step

    @cuda.jit(device=True)
    def add_patch(sums, x_tile, row, w_tile, column, k):
        x0, x1, x2, x3 = load4(x_tile, k, row)
        add_column(sums, x0, x1, x2, x3, w_tile, k, column)

    @cuda.jit(device=True)
    def add_products(sums, x_tile, k, d_tile, column, r, rows):
        while r < rows:
            a0, a1, a2, a3 = load4(x_tile, k, r)
            b0, b1, b2, b3 = load4(x_tile, k + 1, r)
            c0, c1, c2, c3 = load4(x_tile, k + 2, r)
            d0, d1, d2, d3 = load4(x_tile, k + 3, r)
            add_column(sums, a0, b0, c0, d0, d_tile, r, column)
            add_column(sums, a1, b1, c1, d1, d_tile, r + 1, column)
            add_column(sums, a2, b2, c2, d2, d_tile, r + 2, column)
            add_column(sums, a3, b3, c3, d3, d_tile, r + 3, column)
            r += SHARED_BY * WIDE

    @cuda.jit(device=True)
    def add_column(sums, x0, x1, x2, x3, tile, row, column):
        v0, v1, v2, v3 = load4(tile, row, column)
        sums[0, 0] += x0 * v0
        sums[0, 1] += x0 * v1
        sums[0, 2] += x0 * v2
        sums[0, 3] += x0 * v3
        sums[1, 0] += x1 * v0
        sums[1, 1] += x1 * v1
        sums[1, 2] += x1 * v2
        sums[1, 3] += x1 * v3
        sums[2, 0] += x2 * v0
        sums[2, 1] += x2 * v1
        sums[2, 2] += x2 * v2
        sums[2, 3] += x2 * v3
        sums[3, 0] += x3 * v0
        sums[3, 1] += x3 * v1
        sums[3, 2] += x3 * v2
        sums[3, 3] += x3 * v3
else:

    @cuda.jit(device=True)
    def add_patches(sums, x_tile, row, w_tile, column, k, step):
        """sums[i, j] += the sum over k, k + step, … of x_tile[k, row + i] * w_tile[k, column + j]; 4 x 4 of them."""
        for i in range(WIDE):
            s0, s1, s2, s3 = sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3]
            for each in range(k, K_TILE, step):
                x = x_tile[each, row + i]
                s0 += x * w_tile[each, column]
                s1 += x * w_tile[each, column + 1]
                s2 += x * w_tile[each, column + 2]
                s3 += x * w_tile[each, column + 3]
            sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = s0, s1, s2, s3

    @cuda.jit(device=True)
    def add_products(sums, x_tile, k, d_tile, column, r, rows):
        """sums[i, j] += x_tile[k + i, r] * d_tile[r, column + j], 4 x 4 of them, over r … r + 3, r + 16 … r + 19, …
        below `rows`."""
        for i in range(WIDE):
            s0, s1, s2, s3 = sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3]
            for first in range(r, rows, SHARED_BY * WIDE):
                for each in range(first, first + WIDE):
                    x = x_tile[k + i, each]
                    s0 += x * d_tile[each, column]
                    s1 += x * d_tile[each, column + 1]
                    s2 += x * d_tile[each, column + 2]
                    s3 += x * d_tile[each, column + 3]
            sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = s0, s1, s2, s3


@cuda.jit(device=True)
def gradient(x_tile, d_tile, rows, sums):
    """sums[i, j] += this thread's share of the sum over r < rows of x_tile[k + i, r] * d_tile[r, column + j]: the rows
    of every fourth four."""
    k, column, lane = place_of_patch()
    add_products(sums, x_tile, k, d_tile, column, lane * WIDE, rows)


@cuda.jit(device=True)
def join_gradient(sums):
    """sums[0] = this thread's four neighbours of a row of the gradient, those at first_of_row, summed over all rows."""
    _, _, lane = place_of_patch()
    share_rows(sums, lane & 1 == 0, lane & 2 == 0, 8, 16)


@cuda.jit(device=True)
def put_row(w_tile, k, column, own):
    """Four neighbours of a row of the tile of weights."""
    store4(w_tile, k, column, own[0], own[1], own[2], own[3])


@cuda.jit(device=True)
def exchange(kept, sent, bit):
    """The sum of what this thread keeps and what its partner, whose number differs in that bit, sends."""
    return kept + cuda.shfl_xor_sync(FULL, sent, bit)


@cuda.jit(device=True)
def share_rows(sums, upper, first, bit_a, bit_b):
    """sums[0] = one row of a patch of 4 x 4 numbers, summed over four threads that differ in these two bits.

    Two threads whose numbers differ in one bit exchange halves: each sends the half that the other keeps.
    """
    for j in range(WIDE):
        row0 = sums[0, j]
        row1 = sums[1, j]
        row2 = sums[2, j]
        row3 = sums[3, j]
        a = exchange(row0 if upper else row2, row2 if upper else row0, bit_a)
        b = exchange(row1 if upper else row3, row3 if upper else row1, bit_a)
        sums[0, j] = exchange(a if first else b, b if first else a, bit_b)


@cuda.jit(device=True)
def after(step, fetch, pieces):
    """The step and the fetch in it that come next. A step fetches each piece of its batch, and where there are several
    all of them again for the gradient."""
    last = pieces == 1 or fetch + 1 == 2 * pieces
    return int32(step + 1 if last else step), int32(0 if last else fetch + 1)


def make_tile(chunk: int, as_bytes: bool) -> tuple[Any, ...]:
    """The device functions (sample_of, ask, put, first_of_patch, multiply, join) for `chunk` rows at a time.

    as_bytes: samples are bytes, each of which stands for itself / 255
    """
    lanes = THREADS // chunk  # threads that have a row of the slice together, or a patch of 4 x 4 numbers of the part
    fetches = K_TILE // lanes  # numbers of the slice that a thread fetches
    number_of = from_byte if as_bytes else from_number

    @cuda.jit(device=True)
    def sample_of(order, first, rows, steps, step, fetch):
        """The sample whose numbers this thread gets by that fetch of the step, or NO_SAMPLE."""
        pieces = int32(uint32(rows + chunk - 1) // uint32(chunk))
        piece = fetch if fetch < pieces else int32(fetch - pieces)
        row = int32(piece * chunk + cuda.threadIdx.x // lanes)
        return order[first + step * rows + row] if step < steps and row < rows else NO_SAMPLE

    @cuda.jit(device=True)
    def ask(values, sample, k0, asked):
        """asked[i] = input k0 + k of the sample, for this thread's k; 0 past an edge. Nothing is waited for."""
        k = k0 + cuda.threadIdx.x % lanes
        for i in range(fetches):
            asked[i] = values.dtype.type(0)
            if sample >= 0 and k < values.shape[1]:
                asked[i] = values[uint32(sample), uint64(k)]
            k += lanes

    @cuda.jit(device=True)
    def put(asked, x_tile):
        """x_tile[k, r] = what `ask` has brought, as a number of the network."""
        r = cuda.threadIdx.x // lanes
        k = cuda.threadIdx.x % lanes
        for i in range(fetches):
            x_tile[k, r] = number_of(asked[i], x_tile)
            k += lanes

    if lanes == SHARED_BY:

        @cuda.jit(device=True)
        def place():
            """This thread's 4 x 4 numbers of the part: row, column; its lane, and which k of every four it adds."""
            row, column, lane = place_of_patch()
            return row, column, lane, int32((lane & 1) * 2 + (lane >> 1))

        bit_a, bit_b = 8, 16
    else:

        @cuda.jit(device=True)
        def place():
            patch = cuda.threadIdx.x // lanes
            lane = int32(cuda.threadIdx.x % lanes)
            return int32(patch // ACROSS * WIDE), int32(patch % ACROSS * WIDE), lane, lane

        bit_a, bit_b = 1, 2

    @cuda.jit(device=True)
    def first_of_patch():
        """This thread's place in the part, where each has 4 x 4 numbers: row, column."""
        row, column, _, _ = place()
        return row, column

    @cuda.jit(device=True)
    def multiply(x_tile, w_tile, sums):
        """sums[i, j] = this thread's share of xw at its row + i, column + j: every lanes-th k."""
        row, column, _, k = place()
        for i in range(WIDE):
            for j in range(WIDE):
                sums[i, j] = x_tile.dtype.type(0)
        add_patches(sums, x_tile, row, w_tile, column, k, lanes)

    @cuda.jit(device=True)
    def join(sums):
        """sums[0] = one row of the patch, summed over all lanes. Returns which row, 0 to 3, or WIDE for no row.

        After share_rows each of four threads has a row of its own. If a patch has more than four lanes, they have the
        same rows, and their sums are added.
        """
        _, _, lane, _ = place()
        share_rows(sums, lane & 1 == 0, lane & 2 == 0, bit_a, bit_b)
        for j in range(WIDE):
            total = sums[0, j]
            if lanes > 4:
                total = exchange(total, total, 4)
            if lanes > 8:
                total = exchange(total, total, 8)
            sums[0, j] = total
        return int32(row_of_lane(lane) if lane < WIDE else WIDE)

    return sample_of, ask, put, first_of_patch, multiply, join
