"""What a block of the persistent kernel does with its tile of the first layer's weights.

The tile has K_TILE inputs by H_TILE neurons, and a step needs it twice, each time with the block's slice of the batch:

    multiply    part = x w, for `chunk` rows of the batch: 4 x 4 numbers a thread, and K is shared by the threads that
                have the same 16; `join` adds up what they have, by shuffles
    gradient    dw = xᵀ d: four neighbours of one row of the tile a thread, over all rows of the batch

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
from .ptx import REAL, load4

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

NO_SAMPLE = -1
"""In place of a sample's number, past the end of a batch or of the run."""

FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def from_byte(value, shades):
    return shades[value]


@cuda.jit(device=True)
def from_number(value, shades):
    return shades.dtype.type(value)


@cuda.jit(device=True)
def first_of_row():
    """This thread's place in the tile where each has four neighbours of a row: row, column."""
    return int32(cuda.threadIdx.x // ACROSS), int32(cuda.threadIdx.x % ACROSS * WIDE)


if REAL:
    # Wide loads have to be said: the compiler of a GPU does not see that these addresses are multiples of 16 bytes.
    @cuda.jit(device=True)
    def add_patches(sums, x_tile, row, w_tile, column, k, step):
        while k < K_TILE:
            x0, x1, x2, x3 = load4(x_tile, k, row)
            add_row(sums, 0, x0, w_tile, k, column)
            add_row(sums, 1, x1, w_tile, k, column)
            add_row(sums, 2, x2, w_tile, k, column)
            add_row(sums, 3, x3, w_tile, k, column)
            k += step

    @cuda.jit(device=True)
    def add_rows(sums, x_tile, k, d_tile, column, rows):
        r = 0
        while r < rows:
            x0, x1, x2, x3 = load4(x_tile, k, r)
            add_row(sums, 0, x0, d_tile, r, column)
            add_row(sums, 0, x1, d_tile, r + 1, column)
            add_row(sums, 0, x2, d_tile, r + 2, column)
            add_row(sums, 0, x3, d_tile, r + 3, column)
            r += WIDE

    @cuda.jit(device=True)
    def add_row(sums, i, x, tile, row, column):
        v0, v1, v2, v3 = load4(tile, row, column)
        sums[i, 0] += x * v0
        sums[i, 1] += x * v1
        sums[i, 2] += x * v2
        sums[i, 3] += x * v3
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
    def add_rows(sums, x_tile, k, d_tile, column, rows):
        """sums[0, j] += the sum over r < rows, a multiple of 4, of x_tile[k, r] * d_tile[r, column + j]; 4 of them."""
        s0, s1, s2, s3 = sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3]
        for r in range(rows):
            x = x_tile[k, r]
            s0 += x * d_tile[r, column]
            s1 += x * d_tile[r, column + 1]
            s2 += x * d_tile[r, column + 2]
            s3 += x * d_tile[r, column + 3]
        sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3] = s0, s1, s2, s3


@cuda.jit(device=True)
def gradient(x_tile, d_tile, rows, changes):
    """changes[0, j] += the sum over r < rows of x_tile[k, r] * d_tile[r, column + j], at this thread's k and column."""
    k, column = first_of_row()
    add_rows(changes, x_tile, k, d_tile, column, rows)


@cuda.jit(device=True)
def exchange(kept, sent, bit):
    """The sum of what this thread keeps and what its partner, whose number differs in that bit, sends."""
    return kept + cuda.shfl_xor_sync(FULL, sent, bit)


@cuda.jit(device=True)
def after(step, fetch, pieces):
    """The step and the fetch in it that come next. A step fetches each piece of its batch, and where there are several
    all of them again for the gradient."""
    last = pieces == 1 or fetch + 1 == 2 * pieces
    return int32(step + 1 if last else step), int32(0 if last else fetch + 1)


def make_tile(chunk: int, as_bytes: bool) -> tuple[Any, ...]:
    """The device functions (sample_of, ask, put, first_of_patch, multiply, join) for `chunk` rows at a time.

    as_bytes: samples are bytes, and `shades` has the number that stands for each
    """
    lanes = THREADS // chunk  # threads that have a row of the slice together, or a patch of 4 x 4 numbers of the part
    each = K_TILE // lanes  # numbers of the slice that a thread fetches
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
        for i in range(each):
            asked[i] = values.dtype.type(0)
            if sample >= 0 and k < values.shape[1]:
                asked[i] = values[uint32(sample), uint64(k)]
            k += lanes

    @cuda.jit(device=True)
    def put(asked, shades, x_tile):
        """x_tile[k, r] = what `ask` has brought, as a number of the network."""
        r = cuda.threadIdx.x // lanes
        k = cuda.threadIdx.x % lanes
        for i in range(each):
            x_tile[k, r] = number_of(asked[i], shades)
            k += lanes

    @cuda.jit(device=True)
    def first_of_patch():
        """This thread's place in the part, where each has 4 x 4 numbers: row, column."""
        patch = cuda.threadIdx.x // lanes
        return int32(patch // ACROSS * WIDE), int32(patch % ACROSS * WIDE)

    @cuda.jit(device=True)
    def multiply(x_tile, w_tile, sums):
        """sums[i, j] = this thread's share of xw at its row + i, column + j: every lanes-th k."""
        row, column = first_of_patch()
        for i in range(WIDE):
            for j in range(WIDE):
                sums[i, j] = x_tile.dtype.type(0)
        add_patches(sums, x_tile, row, w_tile, column, int32(cuda.threadIdx.x % lanes), lanes)

    @cuda.jit(device=True)
    def join(sums):
        """sums[0] = one row of the patch, summed over all lanes. Returns which row, 0 to 3, or WIDE for no row.

        Two threads whose numbers differ in one bit exchange halves: each sends the half that the other keeps. After two
        bits each of four threads has a row of its own. If a patch has more than four lanes, they have the same rows,
        and their sums are added.
        """
        lane = int32(cuda.threadIdx.x % lanes)
        upper = lane & 1 == 0
        first = lane & 2 == 0
        for j in range(WIDE):
            row0 = sums[0, j]
            row1 = sums[1, j]
            row2 = sums[2, j]
            row3 = sums[3, j]
            a = exchange(row0 if upper else row2, row2 if upper else row0, 1)
            b = exchange(row1 if upper else row3, row3 if upper else row1, 1)
            total = exchange(a if first else b, b if first else a, 2)
            if lanes > 4:
                total = exchange(total, total, 4)
            if lanes > 8:
                total = exchange(total, total, 8)
            sums[0, j] = total
        return int32((0 if upper else 2) + (0 if first else 1) if lane < WIDE else WIDE)

    return sample_of, ask, put, first_of_patch, multiply, join
