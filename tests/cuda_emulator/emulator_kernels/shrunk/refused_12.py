# ruff: noqa
"""Made small from seed 12: a vote after a synchronising function, in a loop in one arm of a uniform branch."""

import numpy as np
from numba import int32, int64

from cuda_emulator import cuda

GRID, BLOCK = ((3,), (7, 3))
T, W, H = (21, 5, 5)
HALF, ZERO = (np.float32(0.5), np.float32(0))


@cuda.jit(device=True)
def neighbours(t, value):
    private = cuda.shared.array(T, int64)
    private[t] = value
    cuda.syncthreads()
    total = private[t] + private[(t + 1) % T] * 2
    cuda.syncthreads()
    return total


@cuda.jit
def k(xi, xw, xu, xh, xf, x2, out, outf, acc, acc32, accu, accf, n, scale):
    s0 = cuda.shared.array(T, int64)
    s2 = cuda.shared.array((H, W), int32)
    loc = cuda.local.array(4, int64)
    pos = cuda.grid(2)
    t = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    lane = t % 32
    a = t * 7 % 50
    c = (pos[0] + pos[1]) % 9 + 1
    f = xf[t % xf.shape[0]]
    p = 2
    q = n + cuda.blockIdx.x
    if (p + (p + q) % 5) % 2 == 1:
        if lane < 16:
            a = (a + cuda.shfl_xor_sync(65535, a, 6)) % 1009
    elif p < 3:
        s2[t // W, t % W] = int(f) % 1009 % 1009
    else:
        for i5 in range((p + q) % 5 % 4):
            a = neighbours(t, q) % 1009
            a = s0[loc[t % 4] % T] % 1009
            c = cuda.match_any_sync(4294967295, np.int32(c % 4)) % 1009
