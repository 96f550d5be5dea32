"""Kernels with two accesses that nothing orders. The comment `# here` marks the line that check mode has to name."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, keys, numbers, zeros

WRONG = Collection()
FULL = 0xFFFFFFFF
PAIR = np.dtype([("left", np.float32), ("right", np.int32)], align=True)
LOST = "one of the updates is lost: use cuda.atomic on"
BARRIER = "cuda.syncthreads() between them"
WARP = "The lanes of a warp do not run in step"
BLOCKS = "Blocks run in any order"


@WRONG.case(4, 64, numbers(256), zeros(1), says=f"{LOST} s")
def lost_update(x, s):  # type: ignore[no-untyped-def]
    s[0] += x[cuda.grid(1)]  # here


@WRONG.case(1, 64, keys(64, 8), zeros(8, dtype=np.int32), says=f"{LOST} counts")
def lost_update_spelled_out(x, counts):  # type: ignore[no-untyped-def]
    key = x[cuda.grid(1)]
    counts[key] = counts[key] + 1  # here


@WRONG.case(64, 64, numbers(64 * 64), zeros(1), says=f"{LOST} s")
def lost_update_among_many_blocks(x, s):  # type: ignore[no-untyped-def]
    total = float32(0)
    for k in range(30):
        total += x[(cuda.grid(1) + k) % x.size]
    if cuda.threadIdx.x == 0:
        s[0] += total  # here


@WRONG.case(2, 32, zeros(2, dtype=PAIR), says="race on pairs")
def lost_update_of_a_field(pairs):  # type: ignore[no-untyped-def]
    pairs[cuda.blockIdx.x]["right"] += 1  # here


@WRONG.case(2, 64, numbers(128), zeros(128), says=BARRIER)
def no_barrier_before_the_use(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    near[t] = x[cuda.grid(1)]
    out[cuda.grid(1)] = near[63 - t]  # here


@WRONG.case((2, 2), (8, 8), numbers(16, 16), numbers(16, 16), zeros(16, 16), says=BARRIER)
def no_barrier_at_the_loops_end(a, b, c):  # type: ignore[no-untyped-def]
    left = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], 8):
        left[ty, tx] = a[y, start + tx]  # here
        cuda.syncthreads()
        for k in range(8):
            total += left[ty, k] * b[start + k, x]
    c[y, x] = total


@WRONG.case(1, 32, numbers(32), zeros(32), says=WARP)
def exchange_within_a_warp(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    near[t] = x[t]
    out[t] = near[t ^ 1]  # here


@WRONG.case(1, 32, numbers(32), zeros(32), says=WARP)
def a_shuffle_is_no_barrier(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    near[t] = x[t]
    value = cuda.shfl_xor_sync(FULL, x[t], 1)
    out[t] = near[31 - t] + value  # here


@WRONG.case(4, 64, numbers(256), says=BLOCKS)
def shifted_in_place(x):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i + 1 < x.size:
        x[i] = x[i + 1]  # here


@WRONG.case(4, 64, numbers(1000), zeros(1000), says=BLOCKS)
def stride_of_the_block(x, y):  # type: ignore[no-untyped-def]
    for i in range(cuda.grid(1), x.size, cuda.blockDim.x):
        y[i] = x[i] + cuda.blockIdx.x  # here


@WRONG.case(4, 64, numbers(256), zeros(4), zeros(1), says=BLOCKS)
def another_blocks_result(x, partial, out):  # type: ignore[no-untyped-def]
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = x[cuda.grid(1)]
        if cuda.blockIdx.x == cuda.gridDim.x - 1:
            total = float32(0)
            for k in range(cuda.gridDim.x):
                total += partial[k]  # here
            out[0] = total


@WRONG.case(2, 64, numbers(128), zeros(1), says="Which of them is last is chance")
def everybody_writes_another_value(x, out):  # type: ignore[no-untyped-def]
    if x[cuda.grid(1)] > 0 and cuda.blockIdx.x == 0:
        out[0] = x[cuda.grid(1)]  # here


@WRONG.case(2, 64, keys(128, 32), zeros(32, dtype=np.int32), says="An atomic does not order the plain access")
def no_barrier_before_the_counts_are_read(x, counts):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    if t < 32:
        near[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(near, x[cuda.grid(1)], 1)
    if t < 32:
        cuda.atomic.add(counts, t, near[t])  # here


@WRONG.case(8, 64, numbers(512), zeros(8), zeros(1), zeros(1, dtype=np.int32), says="race on partial")
def the_last_block_without_a_fence(x, partial, out, finished):  # type: ignore[no-untyped-def]
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = x[cuda.grid(1)]
        if cuda.atomic.add(finished, 0, 1) == cuda.gridDim.x - 1:
            total = float32(0)
            for k in range(cuda.gridDim.x):
                total += partial[k]  # here
            out[0] = total


@WRONG.case(2, 32, zeros(64, dtype=PAIR), says="do not run in step")
def a_field_without_a_barrier(pairs):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, PAIR)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    near[t]["left"] = float32(i)
    pairs[i]["left"] = near[31 - t]["left"]  # here
