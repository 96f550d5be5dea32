"""Many values to few: trees in shared memory, shuffles, both together, and a loss."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32

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


@cuda.jit
def largest_and_place(x, out, place):
    """The largest value of each block and the first index that has it; two shared arrays, one barrier a step."""
    values = cuda.shared.array(BLOCK, float32)
    places = cuda.shared.array(BLOCK, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    values[t] = x[i] if i < x.size else float32(-math.inf)
    places[t] = i
    cuda.syncthreads()
    half = BLOCK // 2
    while half:
        if t < half:
            other = values[t + half]
            if other > values[t] or (other == values[t] and places[t + half] < places[t]):
                values[t] = other
                places[t] = places[t + half]
        cuda.syncthreads()
        half >>= 1
    if t == 0:
        out[cuda.blockIdx.x] = values[0]
        place[cuda.blockIdx.x] = places[0]


@cuda.jit
def softmax_cross_entropy(logits, labels, loss, grad_logits):
    """One warp a row, several rows a block: the loss, and dL/dlogits of the mean over the rows."""
    lane = cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    rows, classes = logits.shape
    if row >= rows:  # a whole warp at a time
        return
    largest = float32(-math.inf)
    for j in range(lane, classes, 32):
        largest = max(largest, logits[row, j])
    offset = 16
    while offset > 0:
        largest = max(largest, cuda.shfl_xor_sync(EVERY_LANE, largest, offset))
        offset >>= 1
    total = float32(0)
    for j in range(lane, classes, 32):
        total += math.exp(logits[row, j] - largest)
    total = warp_sum(total)
    label = labels[row]
    if lane == 0:
        loss[row] = math.log(total) + largest - logits[row, label]
    for j in range(lane, classes, 32):
        probability = math.exp(logits[row, j] - largest) / total
        grad_logits[row, j] = (probability - (float32(1) if j == label else float32(0))) / float32(rows)


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


def _largest_and_place(size: int, generator: np.random.Generator) -> Launch:
    x = np.round(normal(generator, size))  # with ties
    rows = _padded(x, -np.inf)
    blocks = len(rows)
    expected = {1: rows.max(axis=1), 2: rows.argmax(axis=1) + np.arange(blocks) * BLOCK}
    return Launch(blocks, BLOCK, (x, poisoned(blocks), poisoned(blocks, np.int32)), expected)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _softmax_cross_entropy(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    rows, classes = size
    logits = 3 * normal(generator, *size)
    labels = generator.integers(0, classes, rows).astype(np.int32)
    probabilities = _softmax(logits)
    gradient = probabilities.copy()
    gradient[np.arange(rows), labels] -= 1
    expected = {2: -np.log(probabilities[np.arange(rows), labels]), 3: gradient / rows}
    return Launch(blocks_for(rows, 4), (32, 4), (logits, labels, poisoned(rows), poisoned(size)), expected)


SHAPES = ((1, 1), (5, 10), (33, 65), (3, 301))

EXAMPLES = {
    "sum_tree_dynamic": Example(sum_tree_dynamic, _sum_tree, SIZES, STEP_SIZES),
    "sum_block": Example(sum_block, _sum_all, SIZES, STEP_SIZES),
    "largest_and_place": Example(largest_and_place, _largest_and_place, SIZES, STEP_SIZES),
    "softmax_cross_entropy": Example(softmax_cross_entropy, _softmax_cross_entropy, SHAPES, SHAPES[:2]),
}
