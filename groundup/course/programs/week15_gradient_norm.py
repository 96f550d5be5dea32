"""15.d  Find the fault, name it, mend it.

The square of a gradient's length, which clipping needs before a step. Every block adds up its share by a tree in shared
memory, and its first thread adds the block's sum to the total. It works with one block; with many, parts of the sum get
lost on some runs. All blocks have to go on working.

    groundup learn check 15.d      runs it, and shows what goes wrong
    groundup learn answer 15.d LINE KIND
    groundup lens detective/week15_gradient_norm.py:squared_length      says nearly all: look for yourself first
"""

import numpy as np
from numba import cuda, float32

THREADS = 64
"""Threads of a block, a power of two."""


@cuda.jit
def squared_length(gradient, total):
    """Add the sum of gradient[i] * gradient[i] to total[0]. Blocks of THREADS threads, grid-stride."""
    partial = cuda.shared.array(THREADS, float32)
    x = cuda.threadIdx.x
    own = float32(0)
    i = cuda.grid(1)
    while i < gradient.size:
        own += gradient[i] * gradient[i]
        i += cuda.gridsize(1)
    partial[x] = own
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if x < half:
            partial[x] += partial[x + half]
        cuda.syncthreads()
        half //= 2
    if x == 0:
        total[0] += partial[0]


def main():
    gradient = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    total = np.zeros(1, np.float32)
    squared_length[4, THREADS](gradient, total)
    print(f"squared length {total[0]:.3f}, NumPy finds {(gradient * gradient).sum():.3f}")


if __name__ == "__main__":
    main()
