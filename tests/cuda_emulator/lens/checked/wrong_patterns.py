"""The same mistakes in other forms: through device functions, tuples, views, records, 2-D tiles and while loops."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, fresh, keys, numbers, zeros

WRONG = Collection()
FULL = 0xFFFFFFFF
PARTICLE = np.dtype([("x", np.float32), ("speed", np.float32), ("hits", np.int32)], align=True)
RACE = "and nothing orders the two"
UNWRITTEN = "is read before it is written"


@cuda.jit(device=True)
def add_to(cell, value):  # type: ignore[no-untyped-def]
    cell[0, 0] = cell[0, 0] + value  # here


@cuda.jit(device=True)
def deeper(pair, value):  # type: ignore[no-untyped-def]
    add_to(pair[1], value)


@WRONG.case(2, 32, numbers(64), lambda: (np.ones((2, 2)), np.zeros((2, 2))), says=RACE, marked=lambda: add_to)
def lost_update_two_functions_deep(x, pair):  # type: ignore[no-untyped-def]
    deeper(pair, x[cuda.grid(1)])


@WRONG.case(2, 64, zeros(1, dtype=PARTICLE), says=RACE)
def lost_update_of_an_attribute(total):  # type: ignore[no-untyped-def]
    total[0].hits += 1  # here


@WRONG.case(2, 64, keys(128, 8), zeros(2, 8, dtype=np.int32), says=RACE)
def lost_update_in_a_row_of_the_blocks(x, private):  # type: ignore[no-untyped-def]
    mine = private[cuda.blockIdx.x]
    mine[x[cuda.grid(1)]] += 1  # here


@WRONG.case(4, 32, keys(100, 9), zeros(100, dtype=np.int32), zeros(1, dtype=np.int32), says=RACE)
def a_queue_whose_head_is_no_atomic(items, out, head):  # type: ignore[no-untyped-def]
    mine = head[0]
    while mine < items.size:
        head[0] = mine + 1  # here
        out[mine] = items[mine]
        mine = head[0]


@cuda.jit(device=True)
def put(tile, row, column, value):  # type: ignore[no-untyped-def]
    tile[row, column] = value


@WRONG.case((2, 2), (8, 8), numbers(16, 16), zeros(16, 16), says=RACE)
def a_2d_tile_that_a_function_fills(a, out):  # type: ignore[no-untyped-def]
    tile = cuda.shared.array((8, 9), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    put(tile, ty, tx, a[y, x])
    out[y, x] = tile[tx, ty]  # here


@WRONG.case(2, 32, numbers(64 * 8), zeros(2), says=RACE)
def a_while_loop_that_refills_too_early(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    start = 0
    while start < 256:
        near[t] = x[cuda.blockIdx.x * 256 + start + t]  # here
        cuda.syncthreads()
        total += near[31 - t]
        start += 32
    cuda.atomic.add(out, cuda.blockIdx.x, total)


@WRONG.case(3, 32, numbers(32 * 40), zeros(3), says=RACE)
def tiles_loaded_ahead_into_the_one_in_use(x, out):  # type: ignore[no-untyped-def]
    tiles = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    base = cuda.blockIdx.x * 320
    tiles[0, t] = x[base + t]
    cuda.syncthreads()
    total = float32(0)
    for step in range(9):
        for k in range(32):
            total += tiles[step % 2, k]
        tiles[step % 2, t] = x[base + step * 32 + t]  # here
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = total


@WRONG.case((3, 3), (16, 16), numbers(40, 40), says=RACE)
def transposed_in_place_without_a_triangle(a):  # type: ignore[no-untyped-def]
    column, row = cuda.grid(2)
    if row < a.shape[0] and column < a.shape[1]:
        a[row, column] = a[column, row]  # here


@WRONG.case(2, 64, numbers(128), zeros(128), says=RACE)
def two_views_that_overlap(x, out):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    left, right = out[:64], out[32:96]
    left[t] = x[t]
    right[t] = x[t + 64]  # here


@WRONG.case(1, 64, numbers(64), zeros(64), says=RACE)
def each_warp_with_the_row_of_the_other(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array((2, 32), float32)
    lane = cuda.threadIdx.x % 32
    near[cuda.threadIdx.x // 32][lane] = x[cuda.threadIdx.x]
    cuda.syncwarp()
    out[cuda.threadIdx.x] = near[1 - cuda.threadIdx.x // 32, lane]  # here


@WRONG.case((2, 2), (8, 8), numbers(15, 15), zeros(15, 15), says=UNWRITTEN)
def a_halo_without_its_corners(a, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array((10, 10), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x + 1, cuda.threadIdx.y + 1
    inside = x < a.shape[1] and y < a.shape[0]
    near[ty, tx] = a[y, x] if inside else float32(0)
    if ty == 1:
        near[0, tx] = 0
        near[9, tx] = 0
    if tx == 1:
        near[ty, 0] = 0
        near[ty, 9] = 0
    cuda.syncthreads()
    if inside:
        total = float32(0)
        dy = -1
        while dy <= 1:
            for dx in range(-1, 2):
                total += near[ty + dy, tx + dx]  # here
            dy += 1
        out[y, x] = total


@cuda.jit(device=True)
def last_of(values):  # type: ignore[no-untyped-def]
    return values[values.size]  # here


@WRONG.case(2, 32, numbers(64), zeros(2), says="is out of bounds", marked=lambda: last_of)
def one_past_a_view_in_a_function(x, out):  # type: ignore[no-untyped-def]
    block = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        out[block] = last_of(x[block * 32 : (block + 1) * 32])


@cuda.jit(device=True)
def meet(near, t, value):  # type: ignore[no-untyped-def]
    near[t] = value
    cuda.syncthreads()  # here


@WRONG.case(1, 64, numbers(64), zeros(64), says="was reached by", marked=lambda: meet)
def a_barrier_in_a_function_that_some_call(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 40:
        meet(near, t, x[t])
    out[t] = 1


@WRONG.case(2, 64, keys(128, 16), fresh(2, 16, dtype=np.int32), zeros(16, dtype=np.int32), says=UNWRITTEN)
def a_histogram_in_fresh_global_memory(x, private, counts):  # type: ignore[no-untyped-def]
    mine = private[cuda.blockIdx.x]
    cuda.atomic.add(mine, x[cuda.grid(1)], 1)  # here
    cuda.syncthreads()
    if cuda.threadIdx.x < 16:
        cuda.atomic.add(counts, cuda.threadIdx.x, mine[cuda.threadIdx.x])


@WRONG.case(4, 64, numbers(256), zeros(256), zeros(1, dtype=np.int32), says=RACE)
def compaction_whose_count_is_read_and_written(x, out, length):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    votes = cuda.ballot_sync(FULL, x[i] > 0)
    lane = cuda.threadIdx.x % 32
    start = length[0]
    if lane == 0:
        length[0] = start + cuda.popc(votes)  # here
    if x[i] > 0:
        out[start + cuda.popc(votes & ((1 << lane) - 1))] = x[i]


@WRONG.case(4, 32, numbers(4 * 32), zeros(2), zeros(1, dtype=np.int32), says=RACE)
def a_lock_that_one_block_forgets(x, both, mutex):  # type: ignore[no-untyped-def]
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x > 0:
            while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
                pass
        both[0] += x[cuda.grid(1)]  # here
        cuda.threadfence()
        if cuda.blockIdx.x > 0:
            cuda.atomic.exch(mutex, 0, 0)


@WRONG.case(1, 64, numbers(64), zeros(64, dtype=np.int32), says=RACE)
def a_vote_taken_as_a_barrier(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    near[t] = 1 if x[t] > 0 else 0
    if cuda.any_sync(FULL, x[t] > 0):
        out[t] = near[t ^ 1]  # here
