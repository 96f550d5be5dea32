"""Many values to few: trees in shared memory, and shuffles with atomics."""

from __future__ import annotations

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

BLOCK = 128
EVERY_LANE = 0xFFFFFFFF
SIZES = (1, 97, 128, 1009)
STEP_SIZES = (1, 97)


@cuda.jit
def sum_tree_dynamic(x, out):
    """One partial sum a block, in memory whose size the launch says."""
    values = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    values[t] = 0
    if i < x.size:
        values[t] = x[i]
    cuda.syncthreads()
    stride = 1
    while stride < cuda.blockDim.x:
        if t % (2 * stride) == 0:
            values[t] += values[t + stride]
        stride *= 2
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = values[0]


@cuda.jit(device=True)
def warp_sum(value):
    """Every lane gets the sum over its warp."""
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(EVERY_LANE, value, offset)
    return value


@cuda.jit
def sum_block(x, out):
    """Two levels: shuffles in each warp, then shuffles in the first warp over the warps' sums."""
    partial = cuda.shared.array(32, float32)
    i = cuda.grid(1)
    lane = cuda.threadIdx.x % 32
    warp = cuda.threadIdx.x // 32
    value = float32(0)
    if i < x.size:
        value = x[i]
    value = warp_sum(value)
    if lane == 0:
        partial[warp] = value
    cuda.syncthreads()
    if warp == 0:
        warps = cuda.blockDim.x // 32
        value = partial[lane] if lane < warps else float32(0)
        value = warp_sum(value)
        if lane == 0:
            cuda.atomic.add(out, 0, value)


def _padded(x: np.ndarray, value: float) -> np.ndarray:
    """x in float64 as rows of BLOCK, filled up with `value`."""
    blocks = blocks_for(x.size, BLOCK)
    rows = np.full(blocks * BLOCK, value, np.float64)
    rows[: x.size] = x
    return rows.reshape(blocks, BLOCK)


def _sum_tree(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    rows = _padded(x, 0)
    return Launch(len(rows), BLOCK, (x, poisoned(len(rows))), {1: rows.sum(axis=1)}, dynamic_bytes=4 * BLOCK)


def _sum_all(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    return Launch(
        blocks_for(size, BLOCK), BLOCK, (x, np.zeros(1, np.float32)), {1: x.sum(dtype=np.float64, keepdims=True)}
    )


EXAMPLES = {
    "sum_tree_dynamic": Example(sum_tree_dynamic, _sum_tree, SIZES, STEP_SIZES),
    "sum_block": Example(sum_block, _sum_all, SIZES, STEP_SIZES),
}
