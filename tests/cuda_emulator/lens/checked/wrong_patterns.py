"""The same mistakes in other forms: through device functions, tuples, views, records, 2-D tiles and while loops."""

from __future__ import annotations

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, keys, numbers, zeros

WRONG = Collection()
RACE = "and nothing orders the two"


@cuda.jit(device=True)
def add_to(cell, value):  # type: ignore[no-untyped-def]
    cell[0, 0] = cell[0, 0] + value  # here


@cuda.jit(device=True)
def deeper(pair, value):  # type: ignore[no-untyped-def]
    add_to(pair[1], value)


@WRONG.case(2, 32, numbers(64), lambda: (np.ones((2, 2)), np.zeros((2, 2))), says=RACE, marked=lambda: add_to)
def lost_update_two_functions_deep(x, pair):  # type: ignore[no-untyped-def]
    deeper(pair, x[cuda.grid(1)])


@WRONG.case(2, 64, keys(128, 8), zeros(2, 8, dtype=np.int32), says=RACE)
def lost_update_in_a_row_of_the_blocks(x, private):  # type: ignore[no-untyped-def]
    mine = private[cuda.blockIdx.x]
    mine[x[cuda.grid(1)]] += 1  # here


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
