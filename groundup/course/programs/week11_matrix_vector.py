"""11.d  Find the fault, name it, mend it.

A matrix times a vector, one thread for each row. All rows need the whole vector, so each block copies it to shared
memory, TILE numbers at a time, and every thread goes on from there. The matrix is stored transposed, so that
neighbouring threads read neighbouring numbers. On many runs the result is right, on some it is not.

    groundup learn check 11.d      runs it, and shows what goes wrong
    groundup learn answer 11.d LINE KIND
    groundup lens detective/week11_matrix_vector.py:multiply      says nearly all: look for yourself first
"""

import numpy as np
from numba import cuda, float32

TILE = 64
"""Numbers of the vector in shared memory, and threads of a block."""


@cuda.jit
def multiply(transposed, vector, out):
    """out[row] = the sum of transposed[k, row] * vector[k] over k. Blocks of TILE threads."""
    tile = cuda.shared.array(TILE, float32)
    x = cuda.threadIdx.x
    row = cuda.grid(1)
    total = float32(0)
    start = 0
    while start < vector.size:
        if start + x < vector.size:
            tile[x] = vector[start + x]
        cuda.syncthreads()
        count = min(TILE, vector.size - start)
        k = 0
        while k < count and row < out.size:
            total += transposed[start + k, row] * tile[k]
            k += 1
        start += TILE
    if row < out.size:
        out[row] = total


def main():
    rng = np.random.default_rng(0)
    transposed = rng.standard_normal((100, 50)).astype(np.float32)
    vector = rng.standard_normal(100).astype(np.float32)
    out = np.zeros(50, np.float32)
    multiply[1, TILE](transposed, vector, out)
    print("largest difference from NumPy:", np.abs(out - vector @ transposed).max())


if __name__ == "__main__":
    main()
