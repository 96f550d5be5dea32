"""16.d  Find the fault, name it, mend it.

A weight matrix is transposed once before a step, so that every kernel of the backward pass can read it along its rows.
A block reads a tile of the matrix along the rows, and writes it along the rows of the result; it is turned around in
shared memory. The numbers are right, global memory is used well, and still the kernel waits for memory.

    groundup learn check 16.d      runs it, and shows what goes wrong
    groundup learn answer 16.d LINE KIND
    groundup lens detective/week16_transpose.py:transpose      says nearly all: look for yourself first
"""

import numpy as np
from numba import cuda, float32

TILE = 32


@cuda.jit
def transpose(weights, out):
    """out = weights transposed. Blocks of (TILE, TILE) threads, x along the columns of weights."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE
    column = cuda.blockIdx.x * TILE
    if row + y < weights.shape[0] and column + x < weights.shape[1]:
        tile[y, x] = weights[row + y, column + x]
    cuda.syncthreads()
    if column + y < out.shape[0] and row + x < out.shape[1]:
        out[column + y, row + x] = tile[x, y]


def main():
    weights = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    out = np.zeros((96, 64), np.float32)
    transpose[(3, 2), (TILE, TILE)](weights, out)
    print("the same as NumPy's:", np.array_equal(out, weights.T))


if __name__ == "__main__":
    main()
