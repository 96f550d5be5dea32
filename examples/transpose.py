"""A transpose on the GPU, three times: what coalescing and bank conflicts are, in six lines each.

python examples/transpose.py                      on an NVIDIA GPU, with numba-cuda
groundup run examples/transpose.py                without one, on the emulator
groundup lens examples/transpose.py:naive         what it does to memory; tiled and padded as well

naive     a warp reads a row and writes a column        32 neighbours read, 32 places written far apart
tiled     through a tile in shared memory               rows read, rows written; but the tile is read by columns
padded    the same with one number more a row           and now its columns lie in different banks
"""

import numpy as np
from numba import cuda, float32

TILE = 32
PITCH = TILE + 1


@cuda.jit
def naive(source, result):
    column, row = cuda.grid(2)
    if row < source.shape[0] and column < source.shape[1]:
        result[column, row] = source[row, column]


@cuda.jit
def tiled(source, result):
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    if row < source.shape[0] and column < source.shape[1]:
        tile[y, x] = source[row, column]
    cuda.syncthreads()  # the block reads what other threads wrote
    column, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    if row < result.shape[0] and column < result.shape[1]:
        result[row, column] = tile[x, y]


@cuda.jit
def padded(source, result):
    tile = cuda.shared.array((TILE, PITCH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    if row < source.shape[0] and column < source.shape[1]:
        tile[y, x] = source[row, column]
    cuda.syncthreads()
    column, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    if row < result.shape[0] and column < result.shape[1]:
        result[row, column] = tile[x, y]


def main(rows: int = 256, columns: int = 192) -> None:
    """Transpose a matrix by each kernel and compare with NumPy."""
    source = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    on_device = cuda.to_device(source)
    grid = (-(-columns // TILE), -(-rows // TILE))
    for kernel in (naive, tiled, padded):
        result = cuda.device_array((columns, rows), np.float32)
        kernel[grid, (TILE, TILE)](on_device, result)
        same = np.array_equal(result.copy_to_host(), source.T)
        print(f"{kernel.__name__:<7} {rows} x {columns}: {'equal to' if same else 'DIFFERENT FROM'} NumPy's")


if __name__ == "__main__":
    main()
