"""Matrix products: C = A @ B for A (M, K) and B (K, N), and the two transposed forms of backpropagation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

SIZES = ((1, 1, 1), (1, 7, 3), (13, 17, 11), (33, 65, 17), (64, 32, 48))
STEP_SIZES = ((1, 7, 3), (13, 17, 11))


@cuda.jit
def naive_rows_along_x(A, B, C):
    """Neighbouring threads write to neighbouring rows."""
    row, column = cuda.grid(2)
    if row < C.shape[0] and column < C.shape[1]:
        total = float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, column]
        C[row, column] = total


@cuda.jit
def naive(A, B, C):
    """Neighbouring threads write to neighbouring columns."""
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < C.shape[0] and column < C.shape[1]:
        total = float32(0)
        k = 0
        while k < A.shape[1]:
            total += A[row, k] * B[k, column]
            k += 1
        C[row, column] = total


def tiled(tile: int) -> Any:
    """The tiled product for square tiles of `tile`, a captured constant."""

    @cuda.jit
    def tiled_product(A, B, C):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), dtype=float32)
        column, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        rows, inner = A.shape
        columns = B.shape[1]
        total = float32(0.0)
        for start in range(0, inner, tile):
            tile_a[y, x] = A[row, start + x] if row < rows and start + x < inner else float32(0)
            if column < columns and start + y < inner:
                tile_b[y, x] = B[start + y, column]
            else:
                tile_b[y, x] = 0
            cuda.syncthreads()
            for k in range(tile):
                total += tile_a[y, k] * tile_b[k, x]
            cuda.syncthreads()
        if row < rows and column < columns:
            C[row, column] = total

    return tiled_product


TILE = 16
PADDED = TILE + 1  # numba-cuda wants a shape of names and numbers: it refuses (TILE, TILE + 1)


@cuda.jit
def transposed_left(A, B, C):
    """C = A.T @ B, for A (K, M) and B (K, N)."""
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    a_column = cuda.blockIdx.y * TILE + x
    total = float32(0)
    for t in range((A.shape[0] + TILE - 1) // TILE):
        k = t * TILE + y
        tile_a[y, x] = A[k, a_column] if k < A.shape[0] and a_column < A.shape[1] else float32(0)
        tile_b[y, x] = B[k, column] if k < B.shape[0] and column < B.shape[1] else float32(0)
        cuda.syncthreads()
        for j in range(TILE):
            total += tile_a[j, y] * tile_b[j, x]
        cuda.syncthreads()
    if row < C.shape[0] and column < C.shape[1]:
        C[row, column] = total


@cuda.jit
def transposed_right(A, B, C):
    """C = A @ B.T, for A (M, K) and B (N, K); the tile of B has a column more, so that its columns lie in all banks."""
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, PADDED), float32)
    column, row = cuda.grid(2)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    b_row = cuda.blockIdx.x * TILE + y
    total = float32(0)
    start = 0
    while start < A.shape[1]:
        k = start + x
        tile_a[y, x] = A[row, k] if row < A.shape[0] and k < A.shape[1] else float32(0)
        tile_b[y, x] = B[b_row, k] if b_row < B.shape[0] and k < B.shape[1] else float32(0)
        cuda.syncthreads()
        for j in range(TILE):
            total += tile_a[y, j] * tile_b[x, j]
        cuda.syncthreads()
        start += TILE
    if row < C.shape[0] and column < C.shape[1]:
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


def product(kernel: Any, tile: int, threads: int | None = None, *, left: bool = False, right: bool = False) -> Example:
    """The example for a kernel whose blocks compute tile x tile outputs, x along the columns."""

    def launch(size: tuple[int, int, int], generator: np.random.Generator) -> Launch:
        m, k, n = size
        a = normal(generator, *((k, m) if left else (m, k)))
        b = normal(generator, *((n, k) if right else (k, n)))
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        expected = (wide_a.T if left else wide_a) @ (wide_b.T if right else wide_b)
        grid = (blocks_for(n, tile), blocks_for(m, tile))
        if kernel is naive_rows_along_x:
            grid = (grid[1], grid[0])
        side = threads or tile
        return Launch(grid, (side, side), (a, b, poisoned((m, n))), {2: expected})

    return Example(kernel, launch, SIZES, STEP_SIZES)


EXAMPLES = {
    "naive_rows_along_x": product(naive_rows_along_x, 8),
    "naive": product(naive, 16),
    "tiled_16": product(tiled(16), 16),
    "tiled_32": product(tiled(32), 32),
    "transposed_left": product(transposed_left, TILE, left=True),
    "transposed_right": product(transposed_right, TILE, right=True),
    "register_blocked": product(register_blocked, BLOCK_SIDE, THREADS_SIDE),
}
