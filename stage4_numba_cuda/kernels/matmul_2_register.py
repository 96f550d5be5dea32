"""Matrix multiplication on the GPU, the middle rungs: a thread computes several numbers, and keeps them in registers.

    register_1d      8 rows of one column                 a number of b, once in a register, serves 8 products
    register_2d      8 rows of 8 columns                  16 numbers from shared memory serve 64 products
    vectorised       tiles move 128 bits at a time        a quarter of the loads and stores; a's tile is stored turned
    conflict_free    the 8 x 8 as 2 x 2 blocks of 4 x 4   a wide load of a warp meets every bank of shared memory once

A tiled kernel reads two numbers of shared memory for every multiply-add, and so spends its time reading. What decides
from here on is how many multiply-adds a number serves once it is in a register. Compiled for compute capability 8.0 and
9.0, so many of the inner loop's instructions are multiply-adds, in float32: 22 and 18 %, 74 %, 90 %, and 90 % again.
That the last rung's loads do not wait for each other is not to be seen in a count of instructions. Nothing is spilled.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .matmul_tiles import SIDE, THREADS, mover, outer_products, writer

DEPTH = 8
"""How much of K a block has in shared memory at a time."""


def filler(rows: int, columns: int, threads: int, turned: bool) -> Any:
    """The device function fill(tile, source, row, column): rows x columns numbers of `source`, or where `turned` of its
    transpose, zeros beyond the edge. Neighbouring threads read neighbours, whichever way they write."""
    numbers = rows * columns // threads

    @cuda.jit(device=True)
    def fill(tile, source, row, column):
        for part in range(numbers):
            index = uint32(cuda.threadIdx.x + part * threads)
            if turned:
                y = index % uint32(rows)
                x = index // uint32(rows)
                inside = column + x < source.shape[0] and row + y < source.shape[1]
                tile[y, x] = source[column + x, row + y] if inside else source.dtype.type(0)
            else:
                y = index // uint32(columns)
                x = index % uint32(columns)
                inside = row + y < source.shape[0] and column + x < source.shape[1]
                tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)

    return fill


@cache
def register_1d(form: str) -> Any:
    """The kernel (a, b, c) for blocks of 512 threads, each block 64 x 64 of the result, x along its columns."""
    side, per_thread, threads = 64, 8, 512
    fill_a = filler(side, DEPTH, threads, form == "tn")
    fill_b = filler(DEPTH, side, threads, form == "nt")
    inner = 0 if form == "tn" else 1

    @cuda.jit
    def multiply(a, b, c):
        tile_a = cuda.shared.array((side, DEPTH), a.dtype)
        tile_b = cuda.shared.array((DEPTH, side), a.dtype)
        sums = cuda.local.array(per_thread, a.dtype)
        for i in range(per_thread):
            sums[i] = a.dtype.type(0)
        x = cuda.threadIdx.x & 63
        y = (cuda.threadIdx.x >> 6) * per_thread
        row = cuda.blockIdx.y * int32(side)
        column = cuda.blockIdx.x * int32(side)
        start = int32(0)
        while start < a.shape[inner]:
            fill_a(tile_a, a, row, start)
            fill_b(tile_b, b, start, column)
            cuda.syncthreads()
            for step in range(DEPTH):
                k = uint32(step)  # unsigned, as in matmul_1_basic.py
                right = tile_b[k, x]
                for i in range(per_thread):
                    sums[i] += tile_a[y + i, k] * right
            cuda.syncthreads()
            start += int32(DEPTH)
        for i in range(per_thread):
            if row + y + i < c.shape[0] and column + x < c.shape[1]:
                c[row + y + i, column + x] = sums[i]

    return multiply


@cache
def register_2d(form: str) -> Any:
    """The kernel (a, b, c) for blocks of THREADS threads, each block SIDE x SIDE of the result, x along its columns."""
    per_thread = 8
    fill_a = filler(SIDE, DEPTH, THREADS, form == "tn")
    fill_b = filler(DEPTH, SIDE, THREADS, form == "nt")
    inner = 0 if form == "tn" else 1

    @cuda.jit
    def multiply(a, b, c):
        tile_a = cuda.shared.array((SIDE, DEPTH), a.dtype)
        tile_b = cuda.shared.array((DEPTH, SIDE), a.dtype)
        sums = cuda.local.array((per_thread, per_thread), a.dtype)
        left = cuda.local.array(per_thread, a.dtype)
        right = cuda.local.array(per_thread, a.dtype)
        for i in range(per_thread):
            for j in range(per_thread):
                sums[i, j] = a.dtype.type(0)
        x = (cuda.threadIdx.x & 15) * per_thread
        y = (cuda.threadIdx.x >> 4) * per_thread
        row = cuda.blockIdx.y * int32(SIDE)
        column = cuda.blockIdx.x * int32(SIDE)
        start = int32(0)
        while start < a.shape[inner]:
            fill_a(tile_a, a, row, start)
            fill_b(tile_b, b, start, column)
            cuda.syncthreads()
            for step in range(DEPTH):
                k = uint32(step)
                for i in range(per_thread):
                    left[i] = tile_a[y + i, k]
                    right[i] = tile_b[k, x + i]
                for i in range(per_thread):
                    for j in range(per_thread):
                        sums[i, j] += left[i] * right[j]
            cuda.syncthreads()
            start += int32(DEPTH)
        for i in range(per_thread):
            for j in range(per_thread):
                if row + y + i < c.shape[0] and column + x + j < c.shape[1]:
                    c[row + y + i, column + x + j] = sums[i, j]

    return multiply


@cache
def vectorised(form: str, vector: bool, dtype: str) -> Any:
    """register_2d with loads and stores of 128 bits. A thread's 8 columns are neighbours, so a warp's wide loads of b's
    tile begin 8 words apart, and two of every eight threads want the same bank.

    vector: whether global memory may be read so, too: rows of a multiple of four numbers, 16-byte addresses
    dtype: what it is compiled for; all dtypes share the text, but not the object: the wide rungs are asked for alike
    """
    return _wide(form, vector, step=8, gap=4, pitch=SIDE)


@cache
def conflict_free(form: str, vector: bool, dtype: str) -> Any:
    """vectorised, arranged for the 32 banks. A thread's columns are 4 and 4 more, 64 further on: eight threads' wide
    loads are 32 neighbouring words. Rows of a tile are 4 words longer: what is stored turned goes to other banks."""
    return _wide(form, vector, step=4, gap=SIDE // 2, pitch=SIDE + 4)


def _wide(form: str, vector: bool, step: int, gap: int, pitch: int) -> Any:
    """step: how far apart neighbouring threads' first rows and columns are; gap: how far a thread's first four are from
    its others; pitch: numbers from one row of a tile to the next."""
    a_tiles, b_tiles = mover(form != "tn", vector, DEPTH), mover(form == "nt", vector, DEPTH)
    place_a, first_a, aim_a, load_a, unload_a = a_tiles
    place_b, first_b, aim_b, load_b, unload_b = b_tiles
    eight, write = outer_products(gap), writer(vector, gap)
    inner = 0 if form == "tn" else 1

    @cuda.jit
    def multiply(a, b, c):
        tile_a = cuda.shared.array((DEPTH, pitch), a.dtype, alignment=16)
        tile_b = cuda.shared.array((DEPTH, pitch), a.dtype, alignment=16)
        sums = cuda.local.array((8, 8), a.dtype)
        left = cuda.local.array(8, a.dtype)
        right = cuda.local.array(8, a.dtype)
        staged_a = cuda.local.array((1, 4), a.dtype)
        staged_b = cuda.local.array((1, 4), a.dtype)
        at_a = cuda.local.array(2, int32)
        at_b = cuda.local.array(2, int32)
        for i in range(8):
            for j in range(8):
                sums[i, j] = a.dtype.type(0)
        x = (cuda.threadIdx.x & 15) * step
        y = (cuda.threadIdx.x >> 4) * step
        row = cuda.blockIdx.y * int32(SIDE)
        column = cuda.blockIdx.x * int32(SIDE)
        count = int32(a.shape[inner])
        start = int32((count - 1) & (DEPTH - 1)) + int32(1)  # what is over when K is cut into tiles, or a whole one
        i_a, k_a = place_a()
        i_b, k_b = place_b()
        first_a(staged_a, a, row + i_a, k_a, start)
        first_b(staged_b, b, column + i_b, k_b, start)
        unload_a(tile_a, i_a, k_a, staged_a)
        unload_b(tile_b, i_b, k_b, staged_b)
        cuda.syncthreads()
        aim_a(at_a, a, row + i_a, start + k_a)
        aim_b(at_b, b, column + i_b, start + k_b)
        while start < count:
            eight(tile_a, tile_b, sums, left, right, 0, y, x)
            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
            load_a(staged_a, a, at_a)
            load_b(staged_b, b, at_b)
            unload_a(tile_a, i_a, k_a, staged_a)
            unload_b(tile_b, i_b, k_b, staged_b)
            cuda.syncthreads()
            start += int32(DEPTH)
        if count > 0:  # see matmul_3_warp.py
            eight(tile_a, tile_b, sums, left, right, 0, y, x)
        for i in range(8):
            target = row + y + (i & 3) + (i >> 2) * gap
            if target < c.shape[0]:
                write(c, target, column + x, sums, i)

    return multiply
