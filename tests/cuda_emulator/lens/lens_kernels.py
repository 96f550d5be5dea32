"""Small kernels whose memory behaviour is in every textbook, for the lens's tests; and a launch that is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_emulator import cuda
from cuda_emulator.lens.analysis import analyse
from cuda_emulator.lens.profile import Profile
from cuda_emulator.runtime.tracing import trace_launch

WEIGHTS = np.arange(64, dtype=np.float32)
ZERO = np.float32(0)


def looked_at(kernel: Any, grid: Any, block: Any, *arguments: Any, dynamic_bytes: int = 0) -> Profile:
    """The analysis of a launch, all blocks traced."""
    count = int(np.prod(grid))
    return analyse(trace_launch(kernel, grid, block, arguments, dynamic_bytes, blocks=count))


@cuda.jit
def walk(singles, doubles, bytes_, shorts, pairs, out, stride, offset):  # type: ignore[no-untyped-def]
    """Each thread reads one element of every type, `stride` elements from its neighbour's."""
    i = cuda.grid(1)
    at = offset + i * stride
    out[i] = singles[at] + doubles[at] + bytes_[at] + shorts[at] + pairs[at].real


@cuda.jit
def planes(a, fortran, points, coordinates, cube, out):  # type: ignore[no-untyped-def]
    """A warp along a row, along a column, and along lists of points stored in two ways."""
    i = cuda.grid(1)
    total = a[3, i] + a[i, 3] + fortran[3, i] + fortran[i, 3] + a[i, i] + a[i // 8, i % 8]
    total += points[i, 0] + points[i, 1] + coordinates[0, i] + coordinates[1, i]
    total += cube[0, 0, i] + cube[0, i, 0] + cube[i, 0, 0]
    out[i] = total


@cuda.jit
def banks(out, stride):  # type: ignore[no-untyped-def]
    """A block of one warp: each thread reads one element of shared memory, `stride` from its neighbour's."""
    singles = cuda.shared.array(1056, np.float32)
    doubles = cuda.shared.array(1056, np.float64)
    small = cuda.shared.array(1056, np.int8)
    i = cuda.threadIdx.x
    for k in range(i, 1056, 32):
        singles[k] = 1.0
        doubles[k] = 1.0
        small[k] = 1
    cuda.syncthreads()
    out[i] = singles[i * stride] + doubles[i * stride] + small[i * stride] + singles[i // 16 + stride]


@cuda.jit
def transposes(a, naive, tiled, padded):  # type: ignore[no-untyped-def]
    """The three transposes of the CUDA samples, one after the other, in blocks of 32 x 32."""
    tile = cuda.shared.array((32, 32), np.float32)
    wide = cuda.shared.array((32, 33), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    naive[column, row] = a[row, column]
    tile[ty, tx] = a[row, column]
    wide[ty, tx] = a[row, column]
    cuda.syncthreads()
    new_row = cuda.blockIdx.x * 32 + ty
    new_column = cuda.blockIdx.y * 32 + tx
    tiled[new_row, new_column] = tile[tx, ty]
    padded[new_row, new_column] = wide[tx, ty]


@cuda.jit
def naive_matmul(a, b, c):  # type: ignore[no-untyped-def]
    """One thread per output."""
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = ZERO
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def tiled_matmul(tile: int, first: bool = True, second: bool = True) -> Any:
    """The tiled product; without its first barrier, or its second, it is wrong."""

    @cuda.jit
    def tiled(a, b, c):  # type: ignore[no-untyped-def]
        tile_a = cuda.shared.array((tile, tile), np.float32)
        tile_b = cuda.shared.array((tile, tile), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = ZERO
        for start in range(0, a.shape[1], tile):
            tile_a[ty, tx] = a[row, start + tx]
            tile_b[ty, tx] = b[start + ty, column]
            if first:
                cuda.syncthreads()
            for k in range(tile):
                total += tile_a[ty, k] * tile_b[k, tx]
            if second:
                cuda.syncthreads()
        c[row, column] = total

    return tiled


@cuda.jit
def flow(x, out, n):  # type: ignore[no-untyped-def]
    """Branches that divide warps, and branches that do not."""
    i = cuda.grid(1)
    if i >= n:
        return
    if i % 2 == 0:
        out[i] = x[i]
    if i < 32:
        out[i] = 1.0
    total = ZERO
    for k in range(i % 4):
        total += x[i + k]
    for k in range(3):
        total += x[k]
    out[i] = total


@cuda.jit
def warps(counts, values, out):  # type: ignore[no-untyped-def]
    """Atomics on one address and on many, a shuffle, a vote, a syncwarp."""
    i = cuda.grid(1)
    cuda.atomic.add(counts, 0, 1)
    cuda.atomic.add(values, i, 1)
    other = cuda.shfl_down_sync(0xFFFFFFFF, i, 1)
    if cuda.any_sync(0xFFFFFFFF, other > 3):
        cuda.syncwarp()
    cuda.syncthreads()
    out[i] = other


@cuda.jit
def spaces(x, out):  # type: ignore[no-untyped-def]
    """Constant, dynamic shared and local memory; a grid-stride loop."""
    weights = cuda.const.array_like(WEIGHTS)
    buffer = cuda.shared.array(0, np.float32)
    mine = cuda.local.array(4, np.float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    buffer[t] = weights[3] + weights[t % 32]
    mine[0] = buffer[t]
    total = mine[0]
    while i < x.size:
        total += x[i]
        i += cuda.gridsize(1)
    out[cuda.grid(1)] = total
