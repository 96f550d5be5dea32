"""Where types meet, threads leave at different times, and loops vote: alike in step mode and as compiled."""

from __future__ import annotations

import math

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import fixed


@cuda.jit
def one_of_two(x, out):
    inside = x[0] > 0
    out[0] = (x[0] if inside else 0.0) * x[1]
    out[1] = (x[0] if inside else -1) * x[1]
    out[2] = (x[0] if inside else x[1]) * x[1]
    out[3] = (x[9] if x.size > 9 else x[0]) * x[1]


@cuda.jit
def types_that_meet(x32, i32, u8, out):
    out[0] = (x32[0] * 3 == x32[0] * float32(3)) + 0
    out[1] = x32[0] + x32[0] == np.float32(0.2)
    out[2] = i32[0] + i32[0]
    out[3] = u8[0] + u8[0]
    out[4] = True + True
    out[5] = -7 // 2
    out[6] = -7 % 5
    out[7] = int(-2.7)
    out[8] = ((i32[1] - 2) << 62) * 4
    out[9] = x32[0] < 0.1
    out[10] = max(i32[1], 2.5) * 2
    out[11] = 7 // i32[2] + 7 % i32[2]
    out[12] = math.sqrt(x32[1]) * 0 != 0
    out[13] = np.uint8(300)
    out[14] = ~i32[1]
    out[15] = i32[2] ** (i32[2] - 1) == -(2**63)
    out[16] = i32[1] ** (i32[2] - 1)


@cuda.jit
def leaves_early(out, n):
    t = cuda.threadIdx.x
    if t >= n:
        return
    for k in range(3):
        out[t] += cuda.syncthreads_count(True)
        if t == k:
            return


@cuda.jit
def stores_what_is_too_large(out, u):
    out[0] = (1 << 31) + 5
    out[1] = -(1 << 40) - 3
    u[0] = -1
    u[1] = 300


@cuda.jit(device=True)
def anybody_above(x, least):
    return cuda.any_sync(0xFFFFFFFF, x > least)


@cuda.jit
def continues_in_loops_that_vote(out):
    t = cuda.threadIdx.x
    x = t
    while cuda.any_sync(0xFFFFFFFF, x > 0):
        x -= 1
        if x == 5:
            continue
        out[0, t] += 1
    x = t
    while cuda.syncthreads_or(x > 0):
        x -= 1
        if x == 5:
            continue
        out[1, t] += 1
    x = t
    while anybody_above(x, 0):
        x -= 1
        if x == 5:
            continue
        out[2, t] += cuda.popc(cuda.activemask())


FEW = np.array([0.1, 0.3], np.float32)
WIDE = float(FEW[0]) * float(FEW[1])
MET = (np.array([0.1, -1], np.float32), np.array([2**31 - 1, 3, 0], np.int32), np.array([200], np.uint8))
# float32 * int is float64; int32 + int32 is int64; an int64 wraps around; float32(0.1) is above 0.1; x // 0 is 0;
# 0 ** -1 is the smallest integer, and 3 ** -1 is cut to 0.
MEETING = [0, 1, 2**32 - 2, 400, 2, -4, 3, -2, 0, 0, 6, 0, 1, 44, -4, 1, 0]
# In each round all count that are there, one fewer where one had just come to 5.
LEFT = np.arange(32)[:, None] - np.arange(1, 32)
ROUNDS = np.where(np.arange(32) > 5, 30, 31)
THERE = ((LEFT != 5) * (LEFT != 5).sum(axis=0)).sum(axis=1)

EXAMPLES = {
    "one_of_two": fixed(
        one_of_two, 1, (FEW, np.zeros(4)), {1: [WIDE, WIDE, float(FEW[0] * FEW[1]), float(FEW[0] * FEW[1])]}
    ),
    "types_that_meet": fixed(types_that_meet, 1, (*MET, np.zeros(17)), {3: MEETING}),
    "leaves_early": fixed(leaves_early, 6, (np.zeros(6), 4), {0: [4, 7, 9, 9, 0, 0]}),
    "stores_what_is_too_large": fixed(
        stores_what_is_too_large, 1, (np.zeros(2, np.int32), np.zeros(2, np.uint8)), {0: [5 - 2**31, -3], 1: [255, 44]}
    ),
    "continues_in_loops_that_vote": fixed(
        continues_in_loops_that_vote, 32, (np.zeros((3, 32), np.int64),), {0: [ROUNDS, ROUNDS, THERE]}
    ),
}
