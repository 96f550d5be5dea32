"""23.e  Find the fault, name it, mend it.

The mean of each channel, which batch normalisation subtracts. A block has a channel: every thread adds up its share,
and a tree in shared memory adds up the threads' sums. It ran for years on one kind of GPU; on the next it stood still.

    groundup learn check 23.e      runs it, and shows what goes wrong
    groundup learn answer 23.e LINE KIND
    groundup lens detective/week23_channel_means.py:channel_means      says nearly all: look for yourself first
"""

import numpy as np
from numba import cuda, float32

THREADS = 64
"""Threads of a block, a power of two."""


@cuda.jit
def channel_means(x, means):
    """means[c] = the mean of x[n, c, i] over n and i. Blocks of THREADS threads, one for each channel."""
    partial = cuda.shared.array(THREADS, float32)
    channel = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    count = x.shape[0] * x.shape[2]
    own = float32(0)
    index = thread
    while index < count:
        own += x[index // x.shape[2], channel, index % x.shape[2]]
        index += THREADS
    partial[thread] = own
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            partial[thread] += partial[thread + half]
            cuda.syncthreads()
        half //= 2
    if thread == 0:
        means[channel] = partial[0] / float32(count)


def main():
    x = np.random.default_rng(0).standard_normal((4, 3, 50)).astype(np.float32)
    means = np.zeros(3, np.float32)
    channel_means[3, THREADS](x, means)
    print("largest difference from NumPy:", np.abs(means - x.mean(axis=(0, 2))).max())


if __name__ == "__main__":
    main()
