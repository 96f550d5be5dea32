"""Correct kernels of common patterns: queues, last blocks, compaction, double buffers, swaps, halos."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, keys, numbers, zeros

CORRECT = Collection()
PARTICLE = np.dtype([("x", np.float32), ("speed", np.float32), ("hits", np.int32)], align=True)


@CORRECT.case(4, 64, keys(100, 9), zeros(100, dtype=np.int32), zeros(1, dtype=np.int32))
def a_work_queue_of_blocks(items, out, head):  # type: ignore[no-untyped-def]
    start = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        start[0] = cuda.atomic.add(head, 0, 64)
    cuda.syncthreads()
    while start[0] < items.size:
        i = start[0] + t
        if i < items.size:
            out[i] = items[i] * items[i]
        cuda.syncthreads()
        if t == 0:
            start[0] = cuda.atomic.add(head, 0, 64)
        cuda.syncthreads()


@cuda.jit(device=True)
def summed(value, near):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    near[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            near[t] += near[t + half]
        cuda.syncthreads()
        half //= 2
    total = near[0]
    cuda.syncthreads()
    return total


@CORRECT.case(6, 64, numbers(384), zeros(6), zeros(1), zeros(1, dtype=np.int32))
def the_last_block_sums_with_all_its_threads(x, partial, out, finished):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    last = cuda.shared.array(1, np.bool_)
    t = cuda.threadIdx.x
    total = summed(x[cuda.grid(1)], near)
    if t == 0:
        partial[cuda.blockIdx.x] = total
        cuda.threadfence()
        last[0] = cuda.atomic.add(finished, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0]:
        value = float32(0)
        for k in range(t, cuda.gridDim.x, cuda.blockDim.x):
            value += partial[k]
        total = summed(value, near)
        if t == 0:
            out[0] = total


@CORRECT.case(4, 64, numbers(250), zeros(250), zeros(1, dtype=np.int32))
def compacted_by_the_lanes_that_are_there(x, out, length):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    lane = cuda.threadIdx.x % 32
    if i < x.size and x[i] > 0:
        here = cuda.activemask()
        leader = cuda.ffs(here) - 1
        start = 0
        if lane == leader:
            start = cuda.atomic.add(length, 0, cuda.popc(here))
        start = cuda.shfl_sync(here, start, leader)
        out[start + cuda.popc(here & ((1 << lane) - 1))] = x[i]


@CORRECT.case((3, 3), (16, 16), numbers(40, 40))
def transposed_in_place_by_swaps(a):  # type: ignore[no-untyped-def]
    column, row = cuda.grid(2)
    if row < a.shape[0] and column < row:
        a[row, column], a[column, row] = a[column, row], a[row, column]


@CORRECT.case((3, 2), (16, 8), numbers(20, 40), zeros(20, 40))
def five_points_with_a_halo(a, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array((10, 18), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x + 1, cuda.threadIdx.y + 1
    rows, columns = a.shape
    inside = x < columns and y < rows
    near[ty, tx] = a[y, x] if inside else float32(0)
    if ty == 1:
        near[0, tx] = a[y - 1, x] if y > 0 and inside else float32(0)
    if ty == cuda.blockDim.y:
        near[ty + 1, tx] = a[y + 1, x] if y + 1 < rows and x < columns else float32(0)
    if tx == 1:
        near[ty, 0] = a[y, x - 1] if x > 0 and inside else float32(0)
    if tx == cuda.blockDim.x:
        near[ty, tx + 1] = a[y, x + 1] if x + 1 < columns and y < rows else float32(0)
    cuda.syncthreads()
    if inside:
        out[y, x] = near[ty - 1, tx] + near[ty + 1, tx] + near[ty, tx - 1] + near[ty, tx + 1] - 4 * near[ty, tx]


@CORRECT.case(3, 64, keys(600, 16), zeros(3, 16, dtype=np.int32), zeros(16, dtype=np.int32))
def a_histogram_for_each_block(x, private, counts):  # type: ignore[no-untyped-def]
    mine = private[cuda.blockIdx.x]
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 16:
        cuda.atomic.add(counts, cuda.threadIdx.x, mine[cuda.threadIdx.x])


@CORRECT.case(2, 32, zeros(64, dtype=PARTICLE), zeros(1, dtype=np.int32))
def records_of_ones_own_in_a_while_loop(particles, bounces):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    particles[i].x = float32(i) / 64
    particles[i].speed = float32(0.3)
    step = 0
    while step < 20:
        particles[i].x += particles[i].speed
        if particles[i].x > 1 or particles[i].x < 0:
            particles[i].speed = -particles[i].speed
            particles[i].hits += 1
            cuda.atomic.add(bounces, 0, 1)
        step += 1


@CORRECT.case(2, 64, lambda: (np.ones(128, np.float32), np.ones(128, np.float32)), zeros(128))
def a_tuple_of_arrays_and_a_view_of_each_block(pair, out):  # type: ignore[no-untyped-def]
    start = cuda.blockIdx.x * cuda.blockDim.x
    mine = out[start : start + cuda.blockDim.x]
    t = cuda.threadIdx.x
    mine[t] = pair[0][start + t]
    mine[t] += pair[1][start + t]
    pair[1][start + t] = mine[t]


@CORRECT.case(1, 64, numbers(64), zeros(64))
def each_warp_with_a_row_of_its_own(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array((2, 32), float32)
    row = near[cuda.threadIdx.x // 32]
    lane = cuda.threadIdx.x % 32
    row[lane] = x[cuda.threadIdx.x]
    cuda.syncwarp()
    out[cuda.threadIdx.x] = row[31 - lane]
    cuda.syncwarp()
    row[lane] = out[cuda.threadIdx.x]
