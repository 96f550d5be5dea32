# ruff: noqa
"""Made small from seed 6: a ballot is an int32, so lane 31 is its sign, and what follows must count with that."""

import numpy as np
from numba import int64

from cuda_emulator import cuda

GRID, BLOCK = ((1,), (11, 6))
T, W, H = (66, 8, 9)
HALF, ZERO = (np.float32(0.5), np.float32(0))


@cuda.jit
def k(xi, xw, xu, xh, xf, x2, out, outf, acc, acc32, accu, accf, n, scale):
    loc = cuda.local.array(4, int64)
    pos = cuda.grid(2)
    rows, cols = x2.shape
    t = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    g = t + T * (cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x)
    lane = t % 32
    a = t * 7 % 50
    b = xi[g % xi.shape[0]] % 60
    c = (pos[0] + pos[1]) % 9 + 1
    f = xf[t % xf.shape[0]]
    h = xh[g % xh.size]
    u = xu[t % xu.shape[0]]
    flag = a > 20
    p = 2
    q = n + cuda.blockIdx.x
    a = (cuda.ballot_sync(4294967295, h < b) ^ a) % 1009
    out[g] = (a * 31 + b * 17 + c + p * 5 + q + flag + u % 1000 + loc[a % 4]) % 1000003
