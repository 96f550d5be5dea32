"""13.d  Find the fault, name it, mend it.

The sum of each row, by which softmax divides the row's exponentials. A block takes a row: each thread adds every
THREADS-th number, and a tree in shared memory adds up the threads' sums. Long rows come out right.

    groundup run detective/week13_row_totals.py      shows what goes wrong
    groundup learn answer 13.d LINE KIND
"""

import numpy as np
from numba import cuda, float32

THREADS = 64
"""Threads of a block, a power of two."""


@cuda.jit
def row_totals(exponentials, totals):
    """totals[row] = the sum of exponentials[row]. A block of THREADS threads for each row."""
    partial = cuda.shared.array(THREADS, float32)
    x = cuda.threadIdx.x
    row = cuda.blockIdx.x
    own = float32(0)
    column = x
    while column < exponentials.shape[1]:
        own += exponentials[row, column]
        partial[x] = own
        column += THREADS
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if x < half:
            partial[x] += partial[x + half]
        cuda.syncthreads()
        half //= 2
    if x == 0:
        totals[row] = partial[0]


def main():
    rng = np.random.default_rng(0)
    for columns in (100, 10):
        exponentials = np.exp(rng.standard_normal((3, columns))).astype(np.float32)
        totals = np.zeros(3, np.float32)
        row_totals[3, THREADS](exponentials, totals)
        print(f"{columns} columns: totals {totals}, NumPy finds {exponentials.sum(axis=1)}")


if __name__ == "__main__":
    main()
