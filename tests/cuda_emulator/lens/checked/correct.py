"""Correct kernels that check mode must not accuse: arrays, tiles, warps and loops."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, fresh, keys, numbers, zeros

CORRECT = Collection()
PAIR = np.dtype([("left", np.float32), ("right", np.int32)], align=True)


@CORRECT.case(3, 64, numbers(1000))
def grid_stride_in_place(x):  # type: ignore[no-untyped-def]
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] = x[i] * x[i] + x[i]
        x[i] += 1


@CORRECT.case((3, 3), (16, 16), numbers(37, 32), numbers(32, 40), zeros(37, 40))
def tiles_whose_outer_rows_nobody_writes(a, b, c):  # type: ignore[no-untyped-def]
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], 16):
        if y < a.shape[0]:
            left[ty, tx] = a[y, start + tx]
        if x < b.shape[1]:
            right[ty, tx] = b[start + ty, x]
        cuda.syncthreads()
        for k in range(16):  # the threads outside compute garbage, and keep it to themselves
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@CORRECT.case(4, 32, numbers(128), zeros(4))
def double_buffered(x, out):  # type: ignore[no-untyped-def]
    buffers = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    buffers[0, t] = x[cuda.grid(1)]
    cuda.syncthreads()
    source = 0
    step = 1
    while step < 32:
        buffers[1 - source, t] = buffers[source, t] + (buffers[source, t - step] if t >= step else float32(0))
        source = 1 - source
        step *= 2
        cuda.syncthreads()
    if t == 31:
        out[cuda.blockIdx.x] = buffers[source, t]


@CORRECT.case(2, 64, numbers(128), zeros(2))
def tree_whose_last_warp_has_syncwarps(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    near[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    if t < 32:
        near[t] += near[t + 32]
        cuda.syncwarp()
        for step in (16, 8, 4, 2, 1):
            value = near[t + step] if t < step else float32(0)
            cuda.syncwarp()
            near[t] += value
            cuda.syncwarp()
        if t == 0:
            out[cuda.blockIdx.x] = near[0]


@CORRECT.case(2, 32, zeros(64, dtype=PAIR))
def fields_of_records(pairs):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, PAIR)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    near[t]["left"] = float32(i)
    near[31 - t]["right"] = i  # another field of another thread's record
    cuda.syncthreads()
    pairs[i]["left"] = near[31 - t]["left"]
    pairs[i]["right"] = near[t]["right"]


@CORRECT.case(2, 32, numbers(64), zeros(64), dynamic_bytes=256)
def dynamic_shared_memory_in_two_parts(x, out):  # type: ignore[no-untyped-def]
    both = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    first, second = both[:32], both[32:]
    first[t] = x[cuda.grid(1)]
    second[t] = 2 * x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = first[31 - t] + second[31 - t]


@CORRECT.case(2, 32, numbers(64), zeros(64))
def local_arrays(x, out):  # type: ignore[no-untyped-def]
    mine = cuda.local.array(8, float32)
    for k in range(8):
        mine[k] = x[cuda.grid(1)] * k
    total = float32(0)
    for k in range(8):
        total += mine[7 - k]
    out[cuda.grid(1)] = total


@CORRECT.case(1, (8, 4, 2), numbers(64), zeros(64))
def three_dimensions(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array((2, 4, 8), float32)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    near[tz, ty, tx] = x[(tz * 4 + ty) * 8 + tx]
    cuda.syncthreads()
    out[(tz * 4 + ty) * 8 + tx] = near[1 - tz, 3 - ty, 7 - tx]


@CORRECT.case(2, 64, numbers(128), zeros(1, dtype=np.int32))
def a_flag_that_all_set_to_one(x, found):  # type: ignore[no-untyped-def]
    if x[cuda.grid(1)] > 0.5:
        found[0] = 1  # which thread is last does not matter: all write the same


@CORRECT.case(2, 64, numbers(128), zeros(128))
def the_block_decides_by_a_vote(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    many = cuda.syncthreads_count(x[i] > 0)
    out[i] = many if cuda.syncthreads_or(x[i] > 0.9) else -many


@CORRECT.case(1, 64, numbers(64))
def bitonic_sort(x):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    near[t] = x[t]
    size = 2
    while size <= 64:
        step = size // 2
        while step > 0:
            cuda.syncthreads()
            other = t ^ step
            if other > t and (near[t] > near[other]) == (t & size == 0):
                near[t], near[other] = near[other], near[t]
            step //= 2
        size *= 2
    cuda.syncthreads()
    x[t] = near[t]


@CORRECT.case(1, 64, numbers(64), zeros(64))
def read_wait_and_write_in_place(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    for _ in range(3):
        left = x[i - 1] if i > 0 else float32(0)
        cuda.syncthreads()
        x[i] = left
        cuda.syncthreads()
    out[i] = x[i]


@CORRECT.case(64, 64, keys(64 * 64, 100), zeros(64 * 64, dtype=np.int32))
def many_blocks_over_one_array(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    total = int32(0)
    for k in range(40):
        total += x[(i + k) % x.size]
    out[i] = total


@CORRECT.case(2, 64, numbers(100), fresh(128), fresh(128, dtype=np.bool_), fresh(128, dtype=np.uint8))
def fresh_memory_of_which_a_part_is_used(x, scratch, signs, codes):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        scratch[i] = x[i]
        signs[i] = x[i] > 0
        codes[i] = 205 if signs[i] else 77  # the values that fresh memory has in two of the orders
        if codes[i] == 205:
            scratch[i] += 1
