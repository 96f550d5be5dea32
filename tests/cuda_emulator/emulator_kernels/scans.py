"""Prefix sums, sorting and histograms: barriers in loops, atomics on shared memory, every atomic."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

BLOCK = 128
EVERY_LANE = 0xFFFFFFFF
SIZES = (1, 97, 128, 1009)
STEP_SIZES = (1, 97)


@cuda.jit
def scan_shuffle(x, out):
    """Warps scan by shuffles, the first warp scans the warps' sums, every warp adds what lies before it."""
    sums = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    lane = t & 31
    warp = t >> 5
    value = x[i] if i < x.size else int32(0)
    offset = 1
    while offset < 32:
        left = cuda.shfl_up_sync(EVERY_LANE, value, offset)
        if lane >= offset:
            value += left
        offset *= 2
    if lane == 31:
        sums[warp] = value
    cuda.syncthreads()
    if warp == 0:
        total = sums[lane] if lane < cuda.blockDim.x // 32 else int32(0)
        offset = 1
        while offset < 32:
            left = cuda.shfl_up_sync(EVERY_LANE, total, offset)
            if lane >= offset:
                total += left
            offset *= 2
        sums[lane] = total
    cuda.syncthreads()
    if warp > 0:
        value += sums[warp - 1]
    if i < x.size:
        out[i] = value


@cuda.jit
def bitonic_sort(x):
    """Sorts each block's BLOCK values: barriers in two nested loops."""
    values = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    base = cuda.blockIdx.x * BLOCK
    values[t] = x[base + t]
    cuda.syncthreads()
    length = 2
    while length <= BLOCK:
        distance = length // 2
        while distance > 0:
            other = t ^ distance
            if other > t:
                ascending = (t & length) == 0
                if (values[t] > values[other]) == ascending:
                    values[t], values[other] = values[other], values[t]
            cuda.syncthreads()
            distance //= 2
        length *= 2
    x[base + t] = values[t]


BINS = 37


@cuda.jit
def histogram(data, counts):
    """Each block counts in shared memory, then adds its counts to everyone's."""
    local = cuda.shared.array(BINS, int32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        local[b] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < data.size:
        cuda.atomic.add(local, data[i], 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, local[b])


@cuda.jit
def every_atomic(x, whole, unsigned, real):
    """Each atomic once; the results do not depend on the order of the threads."""
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        cuda.atomic.add(whole, 0, value)
        cuda.atomic.sub(whole, 1, value)
        cuda.atomic.max(whole, 2, value)
        cuda.atomic.min(whole, 3, value)
        cuda.atomic.and_(whole, 4, value)
        cuda.atomic.or_(whole, 5, value)
        cuda.atomic.xor(whole, 6, value)
        if cuda.atomic.cas(whole, 7, -1, 5) == -1:  # one thread in the grid sees the old value
            cuda.atomic.exch(whole, 8, 77)
        cuda.atomic.inc(unsigned, 0, 6)
        cuda.atomic.dec(unsigned, 1, 6)
        cuda.atomic.add(real, (0, 1), float32(1))
        cuda.atomic.max(real, (0, 0), float32(value))  # leaves a NaN alone
        cuda.atomic.nanmax(real, (2, 0), float32(value))  # takes it for missing
        cuda.atomic.nanmin(real, (2, 1), float32(value))
        cuda.atomic.max(real, (1, 0), float32(value))
        cuda.atomic.min(real, (1, 1), float32(value))


def _by_block(x: np.ndarray) -> np.ndarray:
    """Inclusive prefix sums that start anew every BLOCK values."""
    parts = [x[start : start + BLOCK] for start in range(0, x.size, BLOCK)]
    return np.concatenate([np.cumsum(part) for part in parts])


def _scan_shuffle(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(-99, 100, size, dtype=np.int32)
    return Launch(blocks_for(size, BLOCK), BLOCK, (x, poisoned(size, np.int32)), {1: _by_block(x)})


def _bitonic_sort(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size * BLOCK)
    expected = np.sort(x.reshape(size, BLOCK), axis=1).ravel().astype(np.float64)
    return Launch(size, BLOCK, (x,), {0: expected}, dynamic_bytes=0)


def _histogram(size: int, generator: np.random.Generator) -> Launch:
    data = generator.integers(0, BINS, size)
    return Launch(3, 64, (data, np.zeros(BINS, np.int64)), {1: np.bincount(data, minlength=BINS)})


def _every_atomic(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(-1000, 1000, size, dtype=np.int32)
    whole = np.array([3, 3, -(2**20), 2**20, -1, 0, 0, -1, 0], np.int32)
    unsigned = np.array([0, 0], np.uint32)
    real = np.array([[np.nan, 0.5], [-np.inf, np.inf], [np.nan, np.nan]], np.float32)
    expected_whole = np.array(
        [
            3 + x.sum(),
            3 - x.sum(),
            x.max(),
            x.min(),
            np.bitwise_and.reduce(x),
            np.bitwise_or.reduce(x),
            np.bitwise_xor.reduce(x),
            5,
            77,
        ]
    )
    # inc counts 0..6 and starts over; dec counts 6..0 and starts over
    expected_unsigned = np.array([size % 7, (-size) % 7])
    expected_real = np.array([[np.nan, 0.5 + size], [x.max(), x.min()], [x.max(), x.min()]], np.float64)
    expected = {1: expected_whole, 2: expected_unsigned, 3: expected_real}
    return Launch(blocks_for(size, 64), 64, (x, whole, unsigned, real), expected)


EXAMPLES = {
    "scan_shuffle": Example(scan_shuffle, _scan_shuffle, SIZES, STEP_SIZES),
    "bitonic_sort": Example(bitonic_sort, _bitonic_sort, (1, 3), (1,)),
    "histogram": Example(histogram, _histogram, SIZES, STEP_SIZES),
    "every_atomic": Example(every_atomic, _every_atomic, SIZES, STEP_SIZES),
}
