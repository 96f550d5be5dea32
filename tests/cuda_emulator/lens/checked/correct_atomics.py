"""Correct kernels whose accesses look like races: atomics, fences, locks, places from a counter."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.lens.checked.cases import Collection, keys, numbers, zeros

CORRECT = Collection()


@CORRECT.case(4, 64, keys(256, 32), zeros(32, dtype=np.int32))
def histogram_in_shared_memory(x, counts):  # type: ignore[no-untyped-def]
    near = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    if t < 32:
        near[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(near, x[cuda.grid(1)], 1)
    cuda.syncthreads()
    if t < 32:
        cuda.atomic.add(counts, t, near[t])


@CORRECT.case(4, 64, numbers(256), zeros(256), zeros(1, dtype=np.int32))
def places_from_a_counter(x, out, length):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if x[i] > 0:
        out[cuda.atomic.add(length, 0, 1)] = x[i]


@CORRECT.case(4, 64, keys(256, 1000), zeros(1, dtype=np.int32))
def maximum_by_compare_and_swap(x, top):  # type: ignore[no-untyped-def]
    value = x[cuda.grid(1)]
    old = top[0]
    while old < value:
        guess = old
        old = cuda.atomic.compare_and_swap(top, guess, value)
        if old == guess:
            break


@CORRECT.case(4, 64, keys(256, 1000), zeros(3, dtype=np.int32))
def maximum_by_cas_at_an_index(x, top):  # type: ignore[no-untyped-def]
    value = x[cuda.grid(1)]
    done = False
    while not done:
        old = top[2]
        done = old >= value or cuda.atomic.cas(top, 2, old, value) == old


@CORRECT.case(4, 64, keys(256, 1000), zeros(1, dtype=np.int32))
def maximum_behind_a_look(x, top):  # type: ignore[no-untyped-def]
    value = x[cuda.grid(1)]
    if value > top[0]:
        cuda.atomic.max(top, 0, value)


@CORRECT.case(4, 64, lambda: np.resize(np.float32([3e7, -3e7, 0.125]), 256), zeros(1))
def a_sum_that_cancels(x, total):  # type: ignore[no-untyped-def]
    cuda.atomic.add(total, 0, x[cuda.grid(1)])


@CORRECT.case(2, 64, keys(128, 8), zeros(8, dtype=np.int32))
def every_kind_of_atomic(x, out):  # type: ignore[no-untyped-def]
    value = x[cuda.grid(1)]
    cuda.atomic.add(out, 0, value)
    cuda.atomic.sub(out, 1, value)
    cuda.atomic.and_(out, 2, value)
    cuda.atomic.or_(out, 3, value)
    cuda.atomic.xor(out, 4, value)
    cuda.atomic.max(out, 5, value)
    cuda.atomic.min(out, 6, value)
    cuda.atomic.exch(out, 7, 9)


@CORRECT.case(4, 1, numbers(4), zeros(2), zeros(1, dtype=np.int32))
def a_lock(x, both, mutex):  # type: ignore[no-untyped-def]
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass
    both[0] += x[cuda.grid(1)]
    both[1] += 1
    cuda.threadfence()
    cuda.atomic.exch(mutex, 0, 0)


@CORRECT.case(4, 32, numbers(128), zeros(4), zeros(1, dtype=np.int32))
def blocks_take_turns(x, sums, turn):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    block = cuda.blockIdx.x
    if t == 0:
        while cuda.atomic.add(turn, 0, 0) < block:
            pass
        sums[block] = x[cuda.grid(1)] + (sums[block - 1] if block > 0 else float32(0))
        cuda.threadfence()
        cuda.atomic.add(turn, 0, 1)


@CORRECT.case(2, 64, keys(128, 100), zeros(128, dtype=np.int32), zeros(1, dtype=np.int32))
def a_queue_in_shared_memory(x, out, length):  # type: ignore[no-untyped-def]
    queue = cuda.shared.array(64, int32)
    filled = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t == 0:
        filled[0] = 0
    cuda.syncthreads()
    if x[cuda.grid(1)] % 2 == 0:
        queue[cuda.atomic.add(filled, 0, 1)] = x[cuda.grid(1)]
    cuda.syncthreads()
    if t == 0:
        filled[1] = cuda.atomic.add(length, 0, filled[0])
    cuda.syncthreads()
    if t < filled[0]:
        out[filled[1] + t] = queue[t]


@CORRECT.case(2, 32, zeros(1, dtype=np.uint32), zeros(64, dtype=np.uint32))
def tickets_that_wrap(ticket, out):  # type: ignore[no-untyped-def]
    out[cuda.grid(1)] = cuda.atomic.inc(ticket, 0, 63)
