"""Python inside kernels: what Numba understands besides arithmetic, and the options of @cuda.jit."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, int32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

SIZES = (1, 31, 257)
STEP_SIZES = (1, 31)
POWERS = (1, 3, 9)
SCALE = 4  # frozen when the kernel is compiled, like every global


@cuda.jit((float64[:, ::1], float64[:, ::1]), fastmath=True)
def with_type_tuple(x, out):
    column, row = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        out[row, column] = math.exp(x[row, column])


@cuda.jit
def rows_as_views(x, out):
    """A row is an array of its own; for goes over it, and enumerate counts."""
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    row = x[i]
    total = float32(0)
    for value in row:
        total += value
    largest = 0
    for j, value in enumerate(row):
        if value > row[largest]:
            largest = j
    tail = x[i, 1:]
    out[i, 0] = total
    out[i, 1] = largest
    out[i, 2] = tail.shape[0]
    out[i, 3] = x[i, -1]


@cuda.jit
def loops_and_tuples(x, out):
    """Ranges that count down, tuples of constants, chained comparisons, swaps, pass, nested min and max."""
    i = cuda.grid(1)
    if not (0 <= i < x.size):
        return
    total = 0
    for j in range(10, 0, -3):
        total += j
    for power in POWERS:
        total = total * 2 + power
    a, b = x[i], 7
    a, b = b, a
    if a == b:
        pass
    elif a > b or (b > 100 and not a < 0):
        total -= 1
    shape = (total, a)
    out[i] = min(max(shape[0], b), 500) + shape[1] * len(shape) + SCALE * POWERS[-1]


@cuda.jit
def precedence(x, y, out):
    """Division, floor division, remainder and powers, of both signs."""
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = x[i] / y[i]
        out[i, 1] = x[i] // y[i]
        out[i, 2] = x[i] % y[i]
        out[i, 3] = x[i] ** 2 - -(y[i] ** 3)
        out[i, 4] = round(x[i] / y[i]) + int(x[i] / 2)
        quotient, remainder = divmod(x[i], y[i])
        out[i, 5] = quotient * y[i] + remainder


@cuda.jit
def other_layouts(columns_first, every_third, out):
    """Arrays that are Fortran-ordered, or views with a stride."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = every_third[i] - columns_first[i, 1]


@cuda.jit
def one_number(x, out):
    """A 0-d array and an array of one element as results."""
    if cuda.grid(1) == 0:
        total = 0.0
        for i in range(x.size):
            total += x[i]
        out[()] = total


@cuda.jit
def flags(x, out):
    """Booleans as arguments, in arrays and in shared memory."""
    seen = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    yes = i < x.size and x[i]
    seen[t] = yes
    cuda.syncthreads()
    if i < x.size:
        out[i] = not seen[t] and (bool(seen[t ^ 1]) or t == 0)


def _with_type_tuple(size: int, generator: np.random.Generator) -> Launch:
    x = generator.standard_normal((size, 3))
    return Launch((1, blocks_for(size, 8)), (4, 8), (x, poisoned(x.shape, np.float64)), {1: np.exp(x)})


def _rows_as_views(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size, 5)
    wide = x.astype(np.float64)
    expected = np.stack([wide.sum(axis=1), wide.argmax(axis=1), np.full(size, 4), wide[:, -1]], axis=1)
    return Launch(blocks_for(size, 32), 32, (x, poisoned((size, 4))), {1: expected})


def _loops_and_tuples(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(0, 200, size)
    base = 10 + 7 + 4 + 1
    for power in POWERS:
        base = base * 2 + power
    total = np.where((x != 7) & ((x < 7) | (x > 100)), base - 1, base)
    expected = np.minimum(np.maximum(total, x), 500) + 7 * 2 + 4 * 9
    return Launch(blocks_for(size, 32), 32, (x, poisoned(size, np.int64)), {1: expected})


def _precedence(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(-50, 50, size)
    y = generator.integers(1, 9, size) * generator.choice([-1, 1], size)
    columns = (x / y, x // y, x % y, x**2 + y**3, np.round(x / y) + np.trunc(x / 2), x)
    arguments = (x, y, poisoned((size, len(columns)), np.float64))
    return Launch(blocks_for(size, 32), 32, arguments, {2: np.stack(columns, axis=1).astype(np.float64)})


def _other_layouts(size: int, generator: np.random.Generator) -> Launch:
    columns_first = np.asfortranarray(normal(generator, size, 3))
    every_third = normal(generator, 3 * size)[::3]
    expected = every_third.astype(np.float64) - columns_first[:, 1]
    return Launch(blocks_for(size, 32), 32, (columns_first, every_third, poisoned(size)), {2: expected})


def _one_number(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    return Launch(2, 32, (x, np.array(np.nan)), {1: np.array(x.sum(dtype=np.float64))})


def _flags(size: int, generator: np.random.Generator) -> Launch:
    x = generator.random(size) < 0.5
    blocks = blocks_for(size, 32)
    seen = np.zeros(32 * blocks, bool)
    seen[:size] = x
    place = np.arange(32 * blocks)
    expected = ~seen & (seen[place ^ 1] | (place % 32 == 0))
    return Launch(blocks, 32, (x, np.ones(size, bool)), {1: expected[:size]})


EXAMPLES = {
    "with_type_tuple": Example(with_type_tuple, _with_type_tuple, SIZES, STEP_SIZES),
    "rows_as_views": Example(rows_as_views, _rows_as_views, SIZES, STEP_SIZES),
    "loops_and_tuples": Example(loops_and_tuples, _loops_and_tuples, SIZES, STEP_SIZES),
    "precedence": Example(precedence, _precedence, SIZES, STEP_SIZES),
    "other_layouts": Example(other_layouts, _other_layouts, SIZES, STEP_SIZES),
    "one_number": Example(one_number, _one_number, SIZES, STEP_SIZES),
    "flags": Example(flags, _flags, SIZES, STEP_SIZES),
}
