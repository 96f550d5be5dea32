"""Kernels that read what nobody wrote, leave an array, or part at a barrier. `# here` marks the line of the mistake."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, fresh, keys, numbers, zeros

WRONG = Collection()
PAIR = np.dtype([("left", np.float32), ("right", np.int32)], align=True)
UNWRITTEN = "is read before it is written"
OUTSIDE = "is out of bounds"
NEGATIVE = "counts from the end of"
PARTED = "cuda.syncthreads() was reached by"


@WRONG.case(1, 32, zeros(32, dtype=np.int32), says=UNWRITTEN)
def shared_memory_that_nobody_wrote(out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, int32)
    out[cuda.threadIdx.x] = near[cuda.threadIdx.x]  # here


@WRONG.case(4, 64, keys(256, 32), zeros(32, dtype=np.int32), says=UNWRITTEN)
def counts_that_do_not_start_at_zero(x, counts):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    cuda.atomic.add(near, x[cuda.grid(1)], 1)  # here
    cuda.syncthreads()
    if t < 32:
        cuda.atomic.add(counts, t, near[t])


@WRONG.case(2, 32, numbers(64), zeros(64), says=UNWRITTEN)
def a_halo_that_is_not_filled(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(34, float32)
    t = cuda.threadIdx.x
    near[t + 1] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = near[t] + near[t + 2]  # here


@WRONG.case(1, 32, zeros(32, dtype=np.int32), says=UNWRITTEN)
def a_flag_of_bool(out):  # type: ignore[no-untyped-def]
    seen = cuda.shared.array(1, np.bool_)
    if seen[0]:  # here
        out[cuda.threadIdx.x] = 1


@WRONG.case(1, 32, zeros(32), says=UNWRITTEN, dynamic_bytes=128)
def dynamic_memory_that_nobody_wrote(out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(0, float32)
    out[cuda.threadIdx.x] = near[cuda.threadIdx.x]  # here


@WRONG.case(1, 32, numbers(32), zeros(32), says=UNWRITTEN)
def a_local_sum_without_a_start(x, out):  # type: ignore[no-untyped-def]
    sums = cuda.local.array(2, float32)  # here
    for k in range(2):
        sums[k] += x[cuda.threadIdx.x]
    out[cuda.threadIdx.x] = sums[0] + sums[1]


@WRONG.case(1, 32, zeros(32, dtype=np.int32), says=UNWRITTEN)
def a_local_array_over_a_barrier(out):  # type: ignore[no-untyped-def]
    mine = cuda.local.array(4, int32)  # here
    mine[0] = 1
    cuda.syncthreads()
    out[cuda.threadIdx.x] = mine[1]


@WRONG.case(2, 64, numbers(128), fresh(128), says=UNWRITTEN)
def a_sum_on_fresh_global_memory(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    out[i] += x[i]  # here


@WRONG.case(2, 64, keys(128, 8), fresh(8, dtype=np.uint8), zeros(8, dtype=np.int32), says=UNWRITTEN)
def flags_of_a_byte_that_few_set(x, seen, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < 8:
        if x[i] == i:
            seen[i] = 205
        out[i] = 2 * seen[i]  # here


@WRONG.case(2, 64, keys(128, 8), fresh(8, dtype=np.int32), says=UNWRITTEN)
def counts_in_fresh_global_memory(x, counts):  # type: ignore[no-untyped-def]
    cuda.atomic.add(counts, x[cuda.grid(1)], 1)  # here


@WRONG.case(2, 32, fresh(64, dtype=PAIR), zeros(64), says=UNWRITTEN)
def the_other_field_of_a_fresh_record(pairs, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    pairs[i]["right"] = i
    out[i] = pairs[i]["left"] + 1  # here


@cuda.jit(device=True)
def first_of(row):  # type: ignore[no-untyped-def]
    return row[0] * 2  # here


@WRONG.case(2, 32, fresh(64, 3), zeros(64), says=UNWRITTEN, marked=lambda: first_of)
def a_row_of_fresh_memory_in_a_device_function(a, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    a[i, 1] = 1
    out[i] = first_of(a[i])


@WRONG.case(4, 64, numbers(200), zeros(200), says=OUTSIDE)
def a_guard_that_lets_one_too_many_pass(x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i <= x.size:
        y[i] = x[i] + 1  # here


@WRONG.case(1, 32, numbers(32), zeros(32), says=NEGATIVE)
def one_before_the_start(x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    y[i] = x[i] - x[i - 1]  # here


@WRONG.case(1, 32, numbers(32), zeros(32), says=OUTSIDE)
def one_past_the_end_of_a_tile(x, y):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    near[t] = x[t]
    cuda.syncthreads()
    y[t] = near[t + 1]  # here


@WRONG.case(1, 32, numbers(32), zeros(32), says=OUTSIDE)
def one_past_a_local_array(x, y):  # type: ignore[no-untyped-def]
    mine = cuda.local.array(4, float32)
    for k in range(5):
        mine[k] = x[cuda.threadIdx.x]  # here
    y[cuda.threadIdx.x] = mine[0]


@WRONG.case((2, 3), (16, 16), numbers(40, 30), zeros(40, 30), says=OUTSIDE)
def x_and_y_swapped(a, b):  # type: ignore[no-untyped-def]
    x, y = cuda.grid(2)
    b[x, y] = a[x, y]  # here


@WRONG.case(1, 64, keys(64, 40), zeros(32, dtype=np.int32), says=OUTSIDE)
def an_atomic_past_the_end(x, counts):  # type: ignore[no-untyped-def]
    cuda.atomic.add(counts, x[cuda.grid(1)], 1)  # here


@WRONG.case(1, 64, numbers(64), zeros(64), says=OUTSIDE, dynamic_bytes=128)
def too_little_dynamic_memory(x, y):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(0, float32)
    near[cuda.threadIdx.x] = x[cuda.threadIdx.x]  # here
    cuda.syncthreads()
    y[cuda.threadIdx.x] = near[cuda.threadIdx.x]


@WRONG.case(2, 64, numbers(128), zeros(2), says=PARTED)
def a_barrier_in_the_branch(x, out):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    near[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            near[t] += near[t + half]
            cuda.syncthreads()  # here
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = near[0]


@WRONG.case(1, 64, keys(64, 5), zeros(64), says=PARTED)
def a_barrier_in_a_loop_of_each_threads_own_length(x, out):  # type: ignore[no-untyped-def]
    for _ in range(x[cuda.threadIdx.x]):
        out[cuda.threadIdx.x] += 1
        cuda.syncthreads()  # here
