"""Matrix products: C = A @ B for A (M, K) and B (K, N)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

SIZES = ((1, 1, 1), (1, 7, 3), (13, 17, 11), (33, 65, 17), (64, 32, 48))
STEP_SIZES = ((1, 7, 3), (13, 17, 11))


TILE = 16


@cuda.jit
def tiled_product(A, B, C):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), dtype=float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    rows, inner = A.shape
    columns = B.shape[1]
    total = float32(0.0)
    for start in range(0, inner, TILE):
        tile_a[y, x] = A[row, start + x] if row < rows and start + x < inner else float32(0)
        if column < columns and start + y < inner:
            tile_b[y, x] = B[start + y, column]
        else:
            tile_b[y, x] = 0
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        C[row, column] = total


# Each of 8 x 8 threads computes 4 x 4 outputs of a 32 x 32 tile.
BLOCK_SIDE, THREAD_SIDE, DEPTH = 32, 4, 8
THREADS_SIDE = BLOCK_SIDE // THREAD_SIDE


@cuda.jit
def register_blocked(A, B, C):
    tile_a = cuda.shared.array((DEPTH, BLOCK_SIDE), float32)  # transposed, so that a thread's rows are neighbours
    tile_b = cuda.shared.array((DEPTH, BLOCK_SIDE), float32)
    totals = cuda.local.array((THREAD_SIDE, THREAD_SIDE), float32)
    from_a = cuda.local.array(THREAD_SIDE, float32)
    from_b = cuda.local.array(THREAD_SIDE, float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    thread = y * cuda.blockDim.x + x
    threads = cuda.blockDim.x * cuda.blockDim.y
    first_row = cuda.blockIdx.y * BLOCK_SIDE
    first_column = cuda.blockIdx.x * BLOCK_SIDE
    rows, inner = A.shape
    columns = B.shape[1]
    for i in range(THREAD_SIDE):
        for j in range(THREAD_SIDE):
            totals[i, j] = 0.0
    for start in range(0, inner, DEPTH):
        for item in range(thread, BLOCK_SIDE * DEPTH, threads):
            r = item // DEPTH
            k = item % DEPTH
            inside = first_row + r < rows and start + k < inner
            tile_a[k, r] = A[first_row + r, start + k] if inside else float32(0)
        for item in range(thread, BLOCK_SIDE * DEPTH, threads):
            k = item // BLOCK_SIDE
            c = item % BLOCK_SIDE
            inside = start + k < inner and first_column + c < columns
            tile_b[k, c] = B[start + k, first_column + c] if inside else float32(0)
        cuda.syncthreads()
        for k in range(DEPTH):
            for i in range(THREAD_SIDE):
                from_a[i] = tile_a[k, y * THREAD_SIDE + i]
                from_b[i] = tile_b[k, x * THREAD_SIDE + i]
            for i in range(THREAD_SIDE):
                for j in range(THREAD_SIDE):
                    totals[i, j] += from_a[i] * from_b[j]
        cuda.syncthreads()
    for i in range(THREAD_SIDE):
        row = first_row + y * THREAD_SIDE + i
        for j in range(THREAD_SIDE):
            column = first_column + x * THREAD_SIDE + j
            if row < rows and column < columns:
                C[row, column] = totals[i, j]


def product(kernel: Any, tile: int, side: int) -> Example:
    """The example for a kernel whose blocks of side x side threads compute tile x tile outputs, x along the columns."""

    def launch(size: tuple[int, int, int], generator: np.random.Generator) -> Launch:
        m, k, n = size
        a, b = normal(generator, m, k), normal(generator, k, n)
        grid = (blocks_for(n, tile), blocks_for(m, tile))
        return Launch(grid, (side, side), (a, b, poisoned((m, n))), {2: a.astype(np.float64) @ b})

    return Example(kernel, launch, SIZES, STEP_SIZES)


EXAMPLES = {
    "tiled_16": product(tiled_product, TILE, TILE),
    "register_blocked": product(register_blocked, BLOCK_SIDE, THREADS_SIDE),
}
