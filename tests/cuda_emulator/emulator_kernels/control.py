"""Returns, breaks and continues around barriers, and device functions, some of which synchronise."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

BLOCK = 64
EVERY_LANE = 0xFFFFFFFF
SIZES = (1, 63, 64, 301)
STEP_SIZES = (1, 63)


@cuda.jit
def return_between_barriers(x, out):
    """Half of the threads leave at every step, after the barrier that everyone reached."""
    values = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    values[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if t >= half:
            return
        values[t] += values[t + half]
        cuda.syncthreads()
        half //= 2
    out[cuda.blockIdx.x] = values[0]


@cuda.jit
def break_at_barrier(x, out):
    """A loop without an end that the whole block leaves together: the flag lies in shared memory."""
    flag = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    steps = 0
    while True:
        if t == 0:
            flag[0] = 1 if steps >= x[cuda.blockIdx.x] else 0
        cuda.syncthreads()
        if flag[0] == 1:
            break
        steps += 1
        cuda.syncthreads()
    out[cuda.grid(1)] = steps


@cuda.jit
def threads_part_ways(x, limit, out):
    """Each thread leaves and skips on its own inside a loop that meets at a barrier."""
    values = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    count = 0
    for row in range(x.shape[0]):
        values[t] = x[row, t]
        cuda.syncthreads()
        running = float32(0)
        for j in range(BLOCK):
            if j == t:
                continue
            running += abs(values[j])
            if running > limit:
                break
            count += 1
        cuda.syncthreads()
    out[t] = count


@cuda.jit
def barrier_in_uniform_branch(x, mode, out):
    """A barrier in a branch that the whole block takes, or does not."""
    values = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = x[i] if i < x.size else float32(0)
    if mode == 1:
        values[t] = value
        cuda.syncthreads()
        value = values[BLOCK - 1 - t]
    elif mode == 2 and cuda.blockIdx.x % 2 == 0:
        values[BLOCK - 1 - t] = value
        cuda.syncthreads()
        value = values[t] * float32(2)
    if i < out.size:
        out[i] = value


@cuda.jit(device=True)
def clamp_index(i, length):
    """A device function with several returns."""
    if i < 0:
        return 0
    if i >= length:
        return length - 1
    return i


@cuda.jit(device=True, inline="always")
def weight(i, j):
    return float32(1) / float32(1 + abs(i - j))


@cuda.jit(device=True)
def at(x, i):
    """A device function that calls another."""
    return x[clamp_index(i, x.size)]


@cuda.jit(device=True)
def low_and_high(a, b):
    """A device function that returns a tuple."""
    if a < b:
        return a, b
    return b, a


@cuda.jit
def call_device_functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        total = float32(0)
        for j in range(i - 2, i + 3):
            total += weight(i, j) * at(x, j)
        low, high = low_and_high(x[i], total)
        out[i] = high - low


@cuda.jit(device=True)
def block_sum(value, scratch):
    """Synchronises: every thread of the block must call it. All of them get the sum."""
    t = cuda.threadIdx.x
    cuda.syncthreads()
    scratch[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            scratch[t] += scratch[t + half]
        cuda.syncthreads()
        half //= 2
    return scratch[0]


@cuda.jit
def standardise_rows(x, out):
    """Subtracts the mean and divides by the deviation: the same synchronising function twice."""
    scratch = cuda.shared.array(BLOCK, float32)
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    columns = x.shape[1]
    inside = t < columns
    value = x[row, t] if inside else float32(0)
    mean = block_sum(value, scratch) / float32(columns)
    centred = value - mean if inside else float32(0)
    variance = block_sum(centred * centred, scratch) / float32(columns)
    if inside:
        out[row, t] = centred / (variance + float32(1e-5)) ** float32(0.5)


def _return_between_barriers(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    blocks = blocks_for(size, BLOCK)
    rows = np.zeros(blocks * BLOCK)
    rows[:size] = x
    return Launch(blocks, BLOCK, (x, poisoned(blocks)), {1: rows.reshape(blocks, BLOCK).sum(axis=1)})


def _break_at_barrier(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(0, 9, size)
    return Launch(size, BLOCK, (x, poisoned(size * BLOCK, np.int64)), {1: np.repeat(x, BLOCK)})


def _threads_part_ways(size: int, generator: np.random.Generator) -> Launch:
    # whole numbers: the running sums are exact, whatever their order
    x = generator.integers(-9, 10, (size, BLOCK)).astype(np.float32)
    count = np.zeros(BLOCK, np.int64)
    for t in range(BLOCK):
        running = np.cumsum(np.abs(np.delete(x, t, axis=1)), axis=1)
        count[t] = np.sum(running <= 100)
    return Launch(1, BLOCK, (x, np.float32(100), poisoned(BLOCK, np.int64)), {2: count})


def _barrier_in_uniform_branch(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    blocks, mode = size
    x = normal(generator, blocks * BLOCK)
    rows = x.reshape(blocks, BLOCK).astype(np.float64)
    if mode == 1:
        rows = rows[:, ::-1]
    if mode == 2:
        rows = rows.copy()
        rows[::2] = 2 * rows[::2, ::-1]
    return Launch(blocks, BLOCK, (x, mode, poisoned(x.size)), {2: rows.ravel()})


def _call_device_functions(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    near = np.clip(np.arange(size)[:, None] + np.arange(-2, 3), 0, size - 1)
    total = x.astype(np.float64)[near] @ (1 / (1 + np.abs(np.arange(-2.0, 3.0))))
    return Launch(blocks_for(size, 64), 64, (x, poisoned(size)), {1: np.abs(total - x)})


def _standardise_rows(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    x = normal(generator, *size)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return Launch(size[0], BLOCK, (x, poisoned(size)), {1: expected})


BRANCHES = ((1, 1), (3, 2), (2, 0), (3, 1))

EXAMPLES = {
    "return_between_barriers": Example(return_between_barriers, _return_between_barriers, SIZES, STEP_SIZES),
    "break_at_barrier": Example(break_at_barrier, _break_at_barrier, (1, 7), (1,)),
    "threads_part_ways": Example(threads_part_ways, _threads_part_ways, (1, 13), (1,)),
    "barrier_in_uniform_branch": Example(barrier_in_uniform_branch, _barrier_in_uniform_branch, BRANCHES, BRANCHES[:2]),
    "call_device_functions": Example(call_device_functions, _call_device_functions, SIZES, STEP_SIZES),
    "standardise_rows": Example(standardise_rows, _standardise_rows, ((1, 1), (7, 50), (3, 64)), ((7, 50),)),
}
