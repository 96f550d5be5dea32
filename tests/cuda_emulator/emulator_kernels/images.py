"""Two and three dimensions: transposition, constant memory, complex arrays, blocks of 3-D threads."""

from __future__ import annotations

import numpy as np
from numba import float32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

ROWS_AT_ONCE = 8
SIDE = 32
PADDED = SIDE + 1


@cuda.jit
def transpose(source, target):
    """32 x 32 tiles by 32 x 8 threads; the padding column keeps a column of the tile in different banks."""
    tile = cuda.shared.array((SIDE, PADDED), float32)
    x = cuda.blockIdx.x * SIDE + cuda.threadIdx.x
    y = cuda.blockIdx.y * SIDE + cuda.threadIdx.y
    for down in range(0, SIDE, ROWS_AT_ONCE):
        if y + down < source.shape[0] and x < source.shape[1]:
            tile[cuda.threadIdx.y + down, cuda.threadIdx.x] = source[y + down, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * SIDE + cuda.threadIdx.x
    y = cuda.blockIdx.x * SIDE + cuda.threadIdx.y
    for down in range(0, SIDE, ROWS_AT_ONCE):
        if y + down < target.shape[0] and x < target.shape[1]:
            target[y + down, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + down]


SMOOTHING = np.array([1, 4, 6, 4, 1], np.float32) / 16


@cuda.jit
def smooth(x, out):
    """A filter in constant memory; beyond the ends the nearest value counts."""
    weights = cuda.const.array_like(SMOOTHING)
    i = cuda.grid(1)
    if i < x.size:
        total = float32(0)
        for j in range(weights.size):
            at = min(max(i + j - 2, 0), x.size - 1)
            total += weights[j] * x[at]
        out[i] = total


@cuda.jit
def rotate_phases(x, out):
    """Arrays of complex numbers."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i].conjugate() * 1j + abs(x[i])


@cuda.jit
def who_am_i(out):
    """Every index of every thread, in a 3-D grid of 3-D blocks."""
    x, y, z = cuda.grid(3)
    step_x, step_y, step_z = cuda.gridsize(3)
    thread = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    block = (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x
    out[z, y, x, 0] = thread
    out[z, y, x, 1] = block
    out[z, y, x, 2] = step_x * 10000 + step_y * 100 + step_z
    out[z, y, x, 3] = cuda.laneid


def _transpose(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    source = normal(generator, *size)
    grid = (blocks_for(size[1], SIDE), blocks_for(size[0], SIDE))
    return Launch(grid, (SIDE, ROWS_AT_ONCE), (source, poisoned(size[::-1])), {1: source.T.astype(np.float64)})


def _smooth(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    near = np.clip(np.arange(size)[:, None] + np.arange(-2, 3), 0, size - 1)
    return Launch(blocks_for(size, 64), 64, (x, poisoned(size)), {1: x.astype(np.float64)[near] @ SMOOTHING})


def _rotate_phases(size: int, generator: np.random.Generator) -> Launch:
    x = (normal(generator, size) + 1j * normal(generator, size)).astype(np.complex64)
    wide = x.astype(np.complex128)
    arguments = (x, poisoned(size, np.complex64))
    return Launch(blocks_for(size, 32), 32, arguments, {1: wide.conj() * 1j + np.abs(wide)})


def _who_am_i(size: int, generator: np.random.Generator) -> Launch:
    grid, block = (3, 2, size), (5, 3, 4)
    whole = tuple(blocks * threads for blocks, threads in zip(grid, block, strict=True))
    z, y, x = np.indices(whole[::-1])
    thread = (z % 4 * 3 + y % 3) * 5 + x % 5
    place = (z // 4 * 2 + y // 3) * 3 + x // 5
    steps = np.full_like(x, whole[0] * 10000 + whole[1] * 100 + whole[2])
    expected = np.stack([thread, place, steps, thread % 32], axis=-1)
    return Launch(grid, block, (poisoned(expected.shape, np.int32),), {0: expected})


SHAPES = ((1, 1), (7, 5), (33, 65), (64, 31))

EXAMPLES = {
    "transpose": Example(transpose, _transpose, SHAPES, SHAPES[:2]),
    "smooth": Example(smooth, _smooth, (1, 2, 65, 1009), (1, 2)),
    "rotate_phases": Example(rotate_phases, _rotate_phases, (1, 31, 257), (1, 31)),
    "who_am_i": Example(who_am_i, _who_am_i, (1, 2), (1,)),
}
