"""What the 32 lanes of a warp do together: votes, matches, shuffles in branches, and the bit operations they need."""

from __future__ import annotations

import numpy as np
from numba import int32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

EVERY_LANE = 0xFFFFFFFF
SIZES = (1, 33, 257, 1000)
STEP_SIZES = (1, 33)


@cuda.jit
def count_keys(keys, counts):
    """A histogram with one atomic for all lanes of a warp that have the same key."""
    i = cuda.grid(1)
    key = keys[i] if i < keys.size else int32(-1)
    same = cuda.match_any_sync(EVERY_LANE, key)
    first = cuda.ffs(same) - 1
    if key >= 0 and cuda.laneid == first:
        cuda.atomic.add(counts, key, cuda.popc(same))


@cuda.jit
def votes(x, out):
    """all, any, eq and match_all over each warp, and the votes of the block; whole blocks only."""
    i = cuda.grid(1)
    positive = x[i] > 0
    out[i, 0] = cuda.all_sync(EVERY_LANE, positive)
    out[i, 1] = cuda.any_sync(EVERY_LANE, positive)
    out[i, 2] = cuda.eq_sync(EVERY_LANE, positive)
    out[i, 3] = cuda.syncthreads_and(int32(positive))  # numba-cuda takes no bool here
    out[i, 4] = cuda.syncthreads_or(int32(positive))
    out[i, 5] = cuda.syncthreads_count(int32(positive))
    mask, same = cuda.match_all_sync(EVERY_LANE, int32(positive))
    out[i, 6] = cuda.popc(mask) + same


@cuda.jit
def shuffles(x, out):
    """Each shuffle by itself; where the source lies outside the warp, a lane keeps its own value."""
    i = cuda.grid(1)
    lane = cuda.laneid
    value = x[i]
    out[i, 0] = cuda.shfl_sync(EVERY_LANE, value, (lane * 7 + 3) % 32)
    out[i, 1] = cuda.shfl_up_sync(EVERY_LANE, value, 3)
    out[i, 2] = cuda.shfl_down_sync(EVERY_LANE, value, 5)
    out[i, 3] = cuda.shfl_xor_sync(EVERY_LANE, value, 17)


@cuda.jit
def half_warps(x, out):
    """Two halves of each warp in two branches, each with its own mask."""
    i = cuda.grid(1)
    value = x[i]
    if cuda.laneid < 16:
        for offset in (8, 4, 2, 1):
            value += cuda.shfl_xor_sync(0x0000FFFF, value, offset)
    else:
        value = max(value, cuda.shfl_xor_sync(0xFFFF0000, value, 1))
    cuda.syncwarp()
    out[i] = value


@cuda.jit
def filter_active(x, out, length):
    """The lanes that are in the branch share one atomic: activemask names them."""
    i = cuda.grid(1)
    if i < x.size and x[i] > 0:
        active = cuda.activemask()
        first = cuda.ffs(active) - 1
        start = 0
        if cuda.laneid == first:
            start = cuda.atomic.add(length, 0, cuda.popc(active))
        start = cuda.shfl_sync(active, start, first)
        out[start + cuda.popc(active & cuda.lanemask_lt())] = x[i]


@cuda.jit
def bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        out[i, 0] = cuda.popc(value)
        out[i, 1] = cuda.clz(value)
        out[i, 2] = cuda.ffs(value)
        out[i, 3] = cuda.brev(value)
        out[i, 4] = cuda.selp(value > 1000, 1, 2)


def _count_keys(size: int, generator: np.random.Generator) -> Launch:
    keys = generator.integers(0, 5, size, dtype=np.int32)
    return Launch(blocks_for(size, 64), 64, (keys, np.zeros(5, np.int32)), {1: np.bincount(keys, minlength=5)})


def _votes(size: int, generator: np.random.Generator) -> Launch:
    x = np.ones((size, 2, 32), np.float32)
    x[0, 0] = -1
    x[-1, -1, generator.integers(32)] = -1
    yes = x > 0
    by_warp = np.stack([yes.all(axis=2), yes.any(axis=2), yes.all(axis=2) | ~yes.any(axis=2)], axis=-1)
    by_block = np.stack([yes.all(axis=(1, 2)), yes.any(axis=(1, 2)), yes.sum(axis=(1, 2))], axis=-1)
    expected = np.zeros((*x.shape, 7), np.int64)
    expected[..., :3] = by_warp[:, :, None, :]
    expected[..., 3:6] = by_block[:, None, None, :]
    expected[..., 6] = 33 * by_warp[:, :, None, 2]
    return Launch(size, 64, (x.ravel(), poisoned((x.size, 7), np.int32)), {1: expected.reshape(-1, 7)})


def _shuffles(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, 64 * size)
    lane = np.arange(32)
    sources = (
        (lane * 7 + 3) % 32,
        np.where(lane >= 3, lane - 3, lane),
        np.where(lane < 27, lane + 5, lane),
        lane ^ 17,
    )
    warps = x.reshape(-1, 32)
    expected = np.stack([warps[:, source].ravel() for source in sources], axis=1).astype(np.float64)
    return Launch(size, 64, (x, poisoned((x.size, 4))), {1: expected})


def _half_warps(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, 64 * size)
    warps = x.reshape(-1, 32).astype(np.float64)
    expected = warps.copy()
    expected[:, :16] = warps[:, :16].sum(axis=1, keepdims=True)
    expected[:, 16:] = np.maximum(warps, warps[:, np.arange(32) ^ 1])[:, 16:]
    return Launch(size, 64, (x, poisoned(x.size)), {1: expected.ravel()})


def _filter_active(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    kept = x[x > 0]
    arguments = (x, poisoned(kept.size), np.zeros(1, np.int32))
    return Launch(blocks_for(size, 64), 64, arguments, {1: kept, 2: np.array([kept.size])}, sorted=(1,))


def _bits(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(0, 2**32, size, dtype=np.uint32)
    x[0] = 0
    texts = [format(value, "032b") for value in x.tolist()]
    columns = (
        [text.count("1") for text in texts],
        [(text + "1").index("1") for text in texts],
        [(text[::-1] + "1").index("1") + 1 if "1" in text else 0 for text in texts],
        [int(text[::-1], 2) for text in texts],
        np.where(x > 1000, 1, 2),
    )
    out = poisoned((size, len(columns)), np.int64)
    return Launch(blocks_for(size, 32), 32, (x, out), {1: np.stack([np.array(c, np.int64) for c in columns], axis=1)})


BLOCKS = (1, 2, 5)

EXAMPLES = {
    "count_keys": Example(count_keys, _count_keys, SIZES, STEP_SIZES),
    "votes": Example(votes, _votes, BLOCKS, BLOCKS[:1]),
    "shuffles": Example(shuffles, _shuffles, BLOCKS, BLOCKS[:1]),
    "half_warps": Example(half_warps, _half_warps, BLOCKS, BLOCKS[:1]),
    "filter_active": Example(filter_active, _filter_active, SIZES, STEP_SIZES),
    "bits": Example(bits, _bits, SIZES, STEP_SIZES),
}
