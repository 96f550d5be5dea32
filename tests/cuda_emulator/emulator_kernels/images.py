"""Two and three dimensions: halo tiles, transposition, constant memory, complex numbers, blocks of 3-D threads."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

TILE = 16
LARGEST_FILTER = 5
HALO_TILE = TILE + LARGEST_FILTER - 1


@cuda.jit
def conv2d(image, weights, out):
    """Valid cross-correlation: a block loads its tile and the halo around it, then every thread computes one output."""
    tile = cuda.shared.array((HALO_TILE, HALO_TILE), float32)
    column, row = cuda.grid(2)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    height, width = image.shape
    first_row = cuda.blockIdx.y * cuda.blockDim.y
    first_column = cuda.blockIdx.x * cuda.blockDim.x
    for r in range(y, cuda.blockDim.y + weights.shape[0] - 1, cuda.blockDim.y):
        for c in range(x, cuda.blockDim.x + weights.shape[1] - 1, cuda.blockDim.x):
            if first_row + r < height and first_column + c < width:
                tile[r, c] = image[first_row + r, first_column + c]
            else:
                tile[r, c] = 0
    cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        total = float32(0)
        for i in range(weights.shape[0]):
            for j in range(weights.shape[1]):
                total += tile[y + i, x + j] * weights[i, j]
        out[row, column] = total


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
def median_3x3(image, out):
    """Sorts nine neighbours in a local array."""
    values = cuda.local.array(9, float32)
    column, row = cuda.grid(2)
    height, width = image.shape
    if row < 1 or column < 1 or row >= height - 1 or column >= width - 1:
        if row < height and column < width:
            out[row, column] = image[row, column]
        return
    count = 0
    for i in range(-1, 2):
        for j in range(-1, 2):
            value = image[row + i, column + j]
            place = count
            while place > 0 and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
            count += 1
    out[row, column] = values[4]


@cuda.jit(device=True)
def escape_time(c, limit):
    """How many steps z = z * z + c takes to leave the circle of radius 2."""
    z = complex(0, 0)
    for step in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return step
    return limit


@cuda.jit
def mandelbrot(left, top, pixel, limit, out):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = escape_time(complex(left + column * pixel, top - row * pixel), limit)


@cuda.jit
def rotate_phases(x, out):
    """Arrays of complex numbers."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i].conjugate() * 1j + abs(x[i])


@cuda.jit
def heat_step(now, after):
    """A 7-point stencil on 3-D blocks; the border stays."""
    x, y, z = cuda.grid(3)
    depth, height, width = now.shape
    if x >= width or y >= height or z >= depth:
        return
    inside = 0 < x < width - 1 and 0 < y < height - 1 and 0 < z < depth - 1
    middle = now[z, y, x]
    if inside:
        around = now[z - 1, y, x] + now[z + 1, y, x] + now[z, y - 1, x] + now[z, y + 1, x]
        around += now[z, y, x - 1] + now[z, y, x + 1]
        middle += float32(0.1) * (around - float32(6) * middle)
    after[z, y, x] = middle


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


@cuda.jit
def planes(out):
    """A barrier in a 3-D block: each thread reads what its neighbour one plane up wrote."""
    cube = cuda.shared.array((4, 3, 2), int32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    z = cuda.threadIdx.z
    cube[z, y, x] = z * 100 + y * 10 + x
    cuda.syncthreads()
    out[cuda.blockIdx.x, z, y, x] = cube[(z + 1) % 4, y, x]


def _conv2d(size: tuple[int, int, int], generator: np.random.Generator) -> Launch:
    height, width, side = size
    image, weights = normal(generator, height, width), normal(generator, side, side)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (side, side))
    expected = np.einsum("ijkl,kl->ij", windows, weights)
    grid = (blocks_for(expected.shape[1], TILE), blocks_for(expected.shape[0], TILE))
    return Launch(grid, (TILE, TILE), (image, weights, poisoned(expected.shape)), {2: expected})


def _transpose(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    source = normal(generator, *size)
    grid = (blocks_for(size[1], SIDE), blocks_for(size[0], SIDE))
    return Launch(grid, (SIDE, ROWS_AT_ONCE), (source, poisoned(size[::-1])), {1: source.T.astype(np.float64)})


def _smooth(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    near = np.clip(np.arange(size)[:, None] + np.arange(-2, 3), 0, size - 1)
    return Launch(blocks_for(size, 64), 64, (x, poisoned(size)), {1: x.astype(np.float64)[near] @ SMOOTHING})


def _median_3x3(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    image = normal(generator, *size)
    expected = image.astype(np.float64)
    if min(size) >= 3:
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
        expected[1:-1, 1:-1] = np.median(windows, axis=(2, 3))
    grid = (blocks_for(size[1], 8), blocks_for(size[0], 8))
    return Launch(grid, (8, 8), (image, poisoned(size)), {1: expected})


def _mandelbrot(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    limit, pixel = 25, 3.0 / max(size)
    expected = np.full(size, limit)
    for row, column in np.ndindex(size):
        c = complex(-2.0 + column * pixel, 1.5 - row * pixel)
        z = 0j
        for step in range(limit):
            z = z * z + c
            if z.real * z.real + z.imag * z.imag >= 4:
                expected[row, column] = step
                break
    grid = (blocks_for(size[1], 8), blocks_for(size[0], 4))
    return Launch(grid, (8, 4), (-2.0, 1.5, pixel, limit, poisoned(size, np.int32)), {4: expected})


def _rotate_phases(size: int, generator: np.random.Generator) -> Launch:
    x = (normal(generator, size) + 1j * normal(generator, size)).astype(np.complex64)
    wide = x.astype(np.complex128)
    arguments = (x, poisoned(size, np.complex64))
    return Launch(blocks_for(size, 32), 32, arguments, {1: wide.conj() * 1j + np.abs(wide)})


def _heat_step(size: tuple[int, int, int], generator: np.random.Generator) -> Launch:
    now = normal(generator, *size)
    old = now.astype(np.float64)
    expected = old.copy()
    if min(size) >= 3:
        around = old[:-2, 1:-1, 1:-1] + old[2:, 1:-1, 1:-1] + old[1:-1, :-2, 1:-1] + old[1:-1, 2:, 1:-1]
        around += old[1:-1, 1:-1, :-2] + old[1:-1, 1:-1, 2:]
        expected[1:-1, 1:-1, 1:-1] += 0.1 * (around - 6 * old[1:-1, 1:-1, 1:-1])
    block = (8, 4, 2)
    grid = tuple(blocks_for(extent, side) for extent, side in zip(size[::-1], block, strict=True))
    return Launch(grid, block, (now, poisoned(size)), {1: expected})


def _who_am_i(size: int, generator: np.random.Generator) -> Launch:
    grid, block = (3, 2, size), (5, 3, 4)
    whole = tuple(blocks * threads for blocks, threads in zip(grid, block, strict=True))
    z, y, x = np.indices(whole[::-1])
    thread = (z % 4 * 3 + y % 3) * 5 + x % 5
    place = (z // 4 * 2 + y // 3) * 3 + x // 5
    steps = np.full_like(x, whole[0] * 10000 + whole[1] * 100 + whole[2])
    expected = np.stack([thread, place, steps, thread % 32], axis=-1)
    return Launch(grid, block, (poisoned(expected.shape, np.int32),), {0: expected})


def _planes(size: int, generator: np.random.Generator) -> Launch:
    z, y, x = np.indices((4, 3, 2))
    expected = np.broadcast_to((z + 1) % 4 * 100 + y * 10 + x, (size, 4, 3, 2)).copy()
    return Launch(size, (2, 3, 4), (poisoned(expected.shape, np.int32),), {0: expected})


SHAPES = ((1, 1), (7, 5), (33, 65), (64, 31))
VOLUMES = ((1, 1, 1), (3, 5, 7), (5, 11, 17))

EXAMPLES = {
    "conv2d": Example(conv2d, _conv2d, ((3, 3, 3), (5, 7, 2), (23, 37, 5)), ((3, 3, 3), (5, 7, 2))),
    "transpose": Example(transpose, _transpose, SHAPES, SHAPES[:2]),
    "smooth": Example(smooth, _smooth, (1, 2, 65, 1009), (1, 2)),
    "median_3x3": Example(median_3x3, _median_3x3, SHAPES, SHAPES[:2]),
    "mandelbrot": Example(mandelbrot, _mandelbrot, SHAPES, SHAPES[:2]),
    "rotate_phases": Example(rotate_phases, _rotate_phases, (1, 31, 257), (1, 31)),
    "heat_step": Example(heat_step, _heat_step, VOLUMES, VOLUMES[:2]),
    "who_am_i": Example(who_am_i, _who_am_i, (1, 2), (1,)),
    "planes": Example(planes, _planes, (1, 3), (1,)),
}
