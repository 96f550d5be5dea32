"""What other people's programs do: arrays that take turns, functions as arguments, default values, else, nested def."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import float32, int32, njit

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import fixed, poisoned

FLAG = False
HALF = np.float32(0.5)


@cuda.jit
def declared_in_both_branches(a):
    if FLAG:
        s = cuda.local.array((3, 3), float32)
        s[2, 2] = 0
    else:
        s = cuda.local.array((1, 1), float32)
    s[0, 0] = 1
    a[cuda.grid(1)] = s[0, 0]


@cuda.jit
def declared_alike_in_both_branches(a):
    i = cuda.grid(1)
    if i > 1:
        s = cuda.local.array(3, float32)
        s[0] = 1
    else:
        s = cuda.local.array(3, float32)
        s[0] = 1
    a[i] = s[0]


@cuda.jit
def takes_turns(a):
    one = cuda.shared.array(4, float32)
    other = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    one[t] = a[t]
    cuda.syncthreads()
    for _ in range(3):
        other[t] = one[(t + 1) % 4]
        cuda.syncthreads()
        one, other = other, one
    a[t] = one[t]


@cuda.jit
def divided_dynamic_memory(x):
    f = cuda.shared.array(0, float32)
    i = cuda.shared.array(0, int32)[1:]
    f[0] = 3.5
    i[0] = 1
    x[0] = f[0]
    x[1] = i[0]


@cuda.jit(device=True)
def place_of(value, a):
    for i in range(a.size):
        if a[i] == value:
            break
    else:
        return -1
    return i


@cuda.jit
def loops_with_else(a, out):
    shared = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    shared[t] = t
    for _ in range(2):
        if a[0] > 100:
            break
    else:
        cuda.syncthreads()
    out[t] = shared[3 - t]
    for _ in range(3):
        n = 0
        while n < t:
            if n == 2:
                break
            n += 1
        else:
            out[t] += 10
            if t == 1:
                break  # of the loop around
    else:
        out[t] += 1000
    out[t] += 100 * place_of(t, a)


@cuda.jit(device=True)
def summed(a, b):
    return a + b


@cuda.jit(device=True)
def over_the_block(a, b):
    shared = cuda.shared.array(4, float32)
    shared[cuda.threadIdx.x] = a
    cuda.syncthreads()
    return shared[3 - cuda.threadIdx.x] + b


@cuda.jit(device=True)
def value_of(function, x, dtype, more=1):
    one = cuda.local.array(1, dtype)
    one[0] = function(x, more)
    return dtype(one[0] + 0.5)


@cuda.jit
def passes_functions_and_types(out):
    out[cuda.threadIdx.x] = value_of(summed, cuda.threadIdx.x, dtype=int32)
    out[cuda.threadIdx.x] += value_of(over_the_block, cuda.threadIdx.x, float32, more=2)


@cuda.jit(device=True)
def doubled(x):
    return 2 * x


@cuda.jit(device=True)
def applied(function, x):
    return function(x)


@cuda.jit(device=True)
def counted(a, size, dtype, operation, key):
    t = cuda.threadIdx.x
    s = cuda.shared.array(size, dtype)
    s[t] = 0
    cuda.syncthreads()
    operation(s, key(a[t]) % size, 1)
    cuda.syncthreads()
    a[t] = s[t]


@cuda.jit
def passes_an_atomic_and_a_size(a):
    counted(a, 8, int32, cuda.atomic.add, doubled)
    i = cuda.grid(1)
    a[i] = applied(doubled, a[i]) + applied(abs, -a[i])


def pruned(operation: Any, flag: bool) -> Any:
    """A kernel whose branches on captured constants hold what could not be compiled."""
    if flag:
        number = 3

    @cuda.jit
    def kernel(a):
        if flag:
            a[0] = number
        if operation is not None:
            operation(a)
        a[2] = 5 if operation != None else 4  # noqa: E711 - as the program has it

    return kernel


@cuda.jit(device=True)
def sets_one(a):
    a[1] = 1


@cuda.jit
def bits_and_neighbours(bits, near):
    bits[0] = bits[0].bit_count()
    near[0] = math.nextafter(near[0], 2.0)


@cuda.jit(device=True)
def scaled(value, factor=2, offset=HALF):
    return value * factor + offset


@cuda.jit
def default_values(x, out, power=3, shift=0.25):
    i = cuda.grid(1)
    out[i] = scaled(x[i]) * power + scaled(x[i], offset=1) + shift


@cuda.jit
def functions_inside(x, out):
    near = cuda.shared.array(8, float32)
    i = cuda.grid(1)
    n = x.size

    def around(j):
        if j >= n:
            return x[j - n]
        return x[j]

    square = lambda v: v * v  # noqa: E731

    def squared_around(j):
        value = around(j)
        return square(value)

    near[i] = squared_around(i + 2)
    cuda.syncthreads()

    def from_a_neighbour(j):
        value = near[j]
        cuda.syncthreads()
        return value

    out[i] = from_a_neighbour(7 - i)
    n = 4  # the functions read n when they are called
    out[i] += 100 * around(i % 4 + 3)


def plus_one(value):
    return value + 1


@njit
def tripled(value):
    return 3 * value


marked, jitted = cuda.jit(device=True)(plus_one), cuda.jit(device=True)(tripled)
minus, twice = cuda.jit(device=True)(lambda value: value - 1), cuda.jit(device=True)(lambda value: value * 2)


@cuda.jit
def decorated_afterwards(x, out):
    i = cuda.grid(1)
    out[i] = marked(x[i]) + 10 * jitted(x[i]) + 100 * minus(x[i]) + 1000 * twice(x[i])


CASES = (np.arange(3.0), np.arange(5), np.float32([[1, 2], [3, 4]])[::-1])


@cuda.jit
def unrolled(pairs, out):
    i = 0
    for each in numba.literal_unroll(CASES):
        out[i] = np.sum(each)
        i += 1
    for value in numba.literal_unroll(pairs):
        doubled = value * 2
        cuda.syncthreads()
        out[i] = doubled
        i += 1
    for k, (j, w) in numba.literal_unroll(((7, (0, 1.5)), (8, (1, 2)))):
        out[i] = w + j + k
        i += 1


@cuda.jit
def unrolled_items_are_read_first(a, out):
    other = 2.0
    for each in numba.literal_unroll((a[0], other, a[1], 1)):
        out[0] += each
        other = a[0] = a[1] = 100.0


@cuda.jit
def arguments_by_name(out, counts):
    i = cuda.grid(ndim=1)
    out[i] = cuda.shfl_sync(value=i * 2, src_lane=3, mask=0xFFFFFFFF)
    out[i] += cuda.shfl_down_sync(0xFFFFFFFF, i, delta=1)
    out[i] += cuda.shfl_xor_sync(0xFFFFFFFF, i, lane_mask=1)
    out[i] += cuda.popc(cuda.ballot_sync(predicate=i < 5, mask=0xFFFFFFFF))
    cuda.syncwarp(mask=0xFFFFFFFF)
    out[i] += cuda.syncthreads_count(predicate=i < 7) * cuda.gridsize(ndim=1)
    cuda.atomic.add(counts, val=2, idx=0)
    cuda.atomic.max(ary=counts, idx=1, val=i + 1)


@cuda.jit
def hints_for_caches(a, table, out):
    i = cuda.grid(1)
    total = cuda.ldca(a, i) + cuda.ldcg(a, i) + cuda.ldcs(a, i)
    total += cuda.ldlu(array=a, i=i) + cuda.ldcv(table, (i, 1))
    cuda.stcg(out, (0, i), total)
    cuda.stcs(out, (1, i), cuda.shfl_down_sync(0xFFFFFFFF, total, 1))
    cuda.stwb(out, value=i, i=(2, i))
    cuda.stwt(out, (3, i), out[2, i] + 1)


X, LANES = np.arange(8.0), np.arange(32)
LATE = [j - 4 if j >= 4 else j for j in (i % 4 + 3 for i in range(8))]
TABLE = np.arange(64).reshape(32, 2)
TOTAL = 4 * LANES + TABLE[:, 1]
NAMED = 6 + np.minimum(LANES + 1, 31) + (LANES ^ 1) + 5 + 7 * 32
KEYS = np.array([0, 1, 1, 3, 3, 3, 4, 7], np.int32)

EXAMPLES = {
    "declared_in_both_branches": fixed(declared_in_both_branches, 4, (np.zeros(4),), {0: [1] * 4}),
    "declared_alike_in_both_branches": fixed(declared_alike_in_both_branches, 4, (np.zeros(4),), {0: [1] * 4}),
    "takes_turns": fixed(takes_turns, 4, (np.arange(4.0),), {0: [3, 0, 1, 2]}),
    "divided_dynamic_memory": fixed(divided_dynamic_memory, 1, (np.zeros(2),), {0: [3.5, 1]}, dynamic_bytes=8),
    "loops_with_else": fixed(loops_with_else, 4, (np.arange(3.0), np.zeros(4)), {1: [1033, 112, 1231, 900]}),
    "passes_functions_and_types": fixed(passes_functions_and_types, 4, (np.zeros(4),), {0: [6.5] * 4}),
    "passes_an_atomic_and_a_size": fixed(passes_an_atomic_and_a_size, 8, (KEYS,), {0: [6, 0, 6, 0, 0, 0, 12, 0]}),
    "pruned": fixed(pruned(None, False), 1, (np.zeros(3),), {0: [0, 0, 4]}),
    "not_pruned": fixed(pruned(sets_one, False), 1, (np.zeros(3),), {0: [0, 1, 5]}),
    "bits_and_neighbours": fixed(
        bits_and_neighbours,
        1,
        (np.array([0b1011], np.uint32), np.ones(1)),
        {0: [3], 1: [math.nextafter(1.0, 2.0)]},
    ),
    "default_values": fixed(default_values, 8, (X, poisoned(8, float)), {1: (2 * X + 0.5) * 3 + 2 * X + 1.25}),
    "default_values_given": fixed(default_values, 8, (X, poisoned(8, float), 5), {1: (2 * X + 0.5) * 5 + 2 * X + 1.25}),
    "functions_inside": fixed(functions_inside, 8, (X, np.zeros(8)), {1: (np.roll(X, -2) ** 2)[::-1] + 100 * X[LATE]}),
    "decorated_afterwards": fixed(decorated_afterwards, 8, (X, np.zeros(8)), {1: 2131 * X - 99}),
    "unrolled": fixed(unrolled, 1, ((np.float32(1.5), 3), np.zeros(7)), {1: [3, 10, 10, 3, 6, 8.5, 11]}),
    "unrolled_items_are_read_first": fixed(
        unrolled_items_are_read_first, 1, (np.array([4.0, 8.0]), np.zeros(1)), {0: [100, 100], 1: [15]}
    ),
    "arguments_by_name": fixed(
        arguments_by_name, 32, (np.zeros(32, np.int64), np.zeros(2, np.int64)), {0: NAMED, 1: [64, 32]}
    ),
    "hints_for_caches": fixed(
        hints_for_caches,
        32,
        (LANES, TABLE, np.zeros((4, 32), np.int64)),
        {2: [TOTAL, [*TOTAL[1:], TOTAL[-1]], LANES, LANES + 1]},
    ),
}
