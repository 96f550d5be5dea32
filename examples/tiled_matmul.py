"""A tiled matrix product, as a CUDA kernel in Python: the script that docs/emulator.md takes apart.

With an NVIDIA GPU and numba-cuda:   python examples/tiled_matmul.py
Without:                             groundup run examples/tiled_matmul.py
"""

import sys

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def tiled_matmul(a, b, c):
    """c = a @ b. A block of TILE x TILE threads computes one tile of c, each thread one number of it."""
    tile_a = cuda.shared.array((TILE, TILE), float32)  # seen by all threads of the block
    tile_b = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        # Each thread brings one number of each tile. Past an edge it brings 0, which adds nothing to the sum.
        tile_a[ty, tx] = a[row, start + tx] if row < a.shape[0] and start + tx < a.shape[1] else float32(0)
        tile_b[ty, tx] = b[start + ty, column] if start + ty < b.shape[0] and column < b.shape[1] else float32(0)
        cuda.syncthreads()  # the tiles are complete
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()  # nobody reads them any more: they may be filled anew
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def main(rows: int = 100, inner: int = 70, columns: int = 130) -> None:
    """Multiply two random matrices and compare with NumPy."""
    generator = np.random.default_rng(0)
    a = generator.standard_normal((rows, inner)).astype(np.float32)
    b = generator.standard_normal((inner, columns)).astype(np.float32)

    device_a, device_b = cuda.to_device(a), cuda.to_device(b)
    device_c = cuda.device_array((rows, columns), np.float32)
    blocks = (-(-columns // TILE), -(-rows // TILE))  # -(-n // TILE) is n / TILE, rounded up
    tiled_matmul[blocks, (TILE, TILE)](device_a, device_b, device_c)
    c = device_c.copy_to_host()

    expected = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(c - expected).max()
    print(f"({rows}, {inner}) @ ({inner}, {columns}): largest difference from NumPy {error:.1e}")
    # float32 keeps 24 bits; the error of a sum grows with its terms.
    if error > inner * 2.0**-24 * np.abs(expected).max():
        sys.exit("that is too large")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
