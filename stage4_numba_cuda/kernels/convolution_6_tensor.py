"""Implicit GEMM on tensor cores: the numbers are rounded on their way into shared memory, and a warp multiplies.

    correlate(precision, spread)      the forward pass, and dL/dx
    correlate_weights(precision)      dL/dweights and dL/dbias, in parts

What is gathered, by which thread, is as in convolution_4_blocked.py with tiles of 64 x 64; rounding, and how a warp
multiplies, as in matmul_5_tensor.py. Eight warps stand 4 x 2, and each computes 16 x 32 numbers. Products and sums are
float32, so a result is off by what rounding the factors does: up to 2⁻¹¹ (tf32) or 2⁻⁸ (bf16) of each factor. dL/dbias
is a sum of slopes that are not rounded. Needs compute capability 8.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .blocked_tiles import MOVED, STRAIGHT, THREADS, TURNED, mover
from .convolution_4_blocked import taker, weights_taker
from .convolution_gather import COLUMN, OFFSET, PLACES, ROW, ROW_STEP, ROWS, end, gatherer, result_at
from .ptx import multiply_bf16, multiply_tf32, to_bf16, to_tf32

SIDE = 64
DEPTH = MOVED * THREADS // SIDE
DOWN = SIDE // 32
TILES = 2 * DEPTH
"""Rows of the two tiles of an operand."""

FORMATS = {"tf32": (to_tf32, multiply_tf32, 8, 8), "bf16": (to_bf16, multiply_bf16, 16, 4)}
"""How a number is rounded, a warp's product, how many k it takes, and how many numbers a row of a tile is longer than
SIDE, so that what a warp reads lies in 32 banks."""


@cache
def warps(precision: str) -> tuple[Any, Any, Any]:
    """The device functions place() -> a warp's first row and column of the block's numbers, round_all(staged), and
    multiply(tiles_a, tiles_b, sums, base, y, x), which adds the products of one tile to a thread's (4, 4) numbers."""
    rounded, product, step, _ = FORMATS[precision]
    twice = DEPTH // step

    @cuda.jit(device=True)
    def place():
        warp = int32(cuda.threadIdx.x >> 5)
        return int32((warp >> 1) * 16), int32((warp & 1) * 32)

    @cuda.jit(device=True)
    def round_all(staged):
        for part in range(MOVED):
            staged[part] = rounded(staged[part])

    @cuda.jit(device=True)
    def strip(tiles_a, tiles_b, sums, k, y, x):
        for n in range(4):
            sums[n, 0], sums[n, 1], sums[n, 2], sums[n, 3] = product(
                tiles_a, tiles_b, k, y, x + n * 8, sums[n, 0], sums[n, 1], sums[n, 2], sums[n, 3]
            )

    @cuda.jit(device=True)
    def multiply(tiles_a, tiles_b, sums, base, y, x):
        strip(tiles_a, tiles_b, sums, base, y, x)
        if twice == 2:
            strip(tiles_a, tiles_b, sums, base + step, y, x)

    return place, round_all, multiply


@cache
def correlate(precision: str, spread: bool) -> Any:
    """The kernel (image, weights, ending, more, activation, taps, numbers, out) of convolution_4_blocked.py."""
    find, _ = gatherer(spread)
    take, put_weights, put_image = taker(SIDE, spread), mover(SIDE, TURNED).put, mover(SIDE, STRAIGHT).put
    place_of_warp, round_all, multiply = warps(precision)
    pitch = SIDE + FORMATS[precision][3]

    @cuda.jit
    def correlate_tensor(image, weights, ending, more, activation, taps, numbers, out):
        tiles_w = cuda.shared.array((TILES, pitch), image.dtype, alignment=16)
        tiles_x = cuda.shared.array((TILES, pitch), image.dtype, alignment=16)
        staged_w = cuda.local.array(MOVED, image.dtype)
        staged_x = cuda.local.array(MOVED, image.dtype)
        sums = cuda.local.array((4, 4), image.dtype)
        rows = cuda.local.array(DOWN, int32)
        for i in range(4):
            for j in range(4):
                sums[i, j] = image.dtype.type(0)
        channel0 = int32(cuda.blockIdx.y * SIDE)
        place0 = int32(cuda.blockIdx.x * SIDE)
        for part in range(DOWN):
            channel = min(channel0 + int32(cuda.threadIdx.x >> 3) + int32(part * 32), numbers[ROWS] - int32(1))
            rows[part] = int32(channel * numbers[ROW_STEP])
        count = int32(out.size // numbers[ROWS])
        first, row, column = find(int32(place0 + (cuda.threadIdx.x & (SIDE - 1))), count, numbers)
        inner = int32(taps.shape[1])
        y, x = place_of_warp()
        take(staged_w, staged_x, image, weights, taps, numbers, int32(0), rows, first, row, column)
        round_all(staged_w)
        round_all(staged_x)
        base = int32(0)
        put_weights(tiles_w, base, staged_w)
        put_image(tiles_x, base, staged_x)
        cuda.syncthreads()
        start = int32(DEPTH)
        while start < inner:
            take(staged_w, staged_x, image, weights, taps, numbers, start, rows, first, row, column)
            multiply(tiles_w, tiles_x, sums, base, y, x)
            base = int32(DEPTH) - base
            round_all(staged_w)
            round_all(staged_x)
            put_weights(tiles_w, base, staged_w)
            put_image(tiles_x, base, staged_x)
            cuda.syncthreads()
            start += int32(DEPTH)
        multiply(tiles_w, tiles_x, sums, base, y, x)
        # A thread has two neighbours of row g and two of row g + 8 in each 16 x 8 numbers.
        lane = int32(cuda.threadIdx.x & 31)
        for n in range(4):
            for i in range(4):
                channel = int32(channel0 + y + (lane >> 2) + (i >> 1) * 8)
                place = int32(place0 + x + n * 8 + (lane & 3) * 2 + (i & 1))
                if channel < numbers[ROWS] and place < count:
                    at = uint32(result_at(place, numbers) + channel * numbers[PLACES])
                    out[at] = end(sums[n, i], ending, more, activation, channel, at)

    return correlate_tensor


@cache
def correlate_weights(precision: str) -> Any:
    """The kernel (grad, image, taps, numbers, parts) of convolution_4_blocked.py."""
    take, put = weights_taker(SIDE), mover(SIDE, TURNED).put
    place_of_warp, round_all, multiply = warps(precision)
    pitch = SIDE + FORMATS[precision][3]

    @cuda.jit
    def correlate_weights_tensor(grad, image, taps, numbers, parts):
        tiles_g = cuda.shared.array((TILES, pitch), image.dtype, alignment=16)
        tiles_x = cuda.shared.array((TILES, pitch), image.dtype, alignment=16)
        staged_g = cuda.local.array(MOVED, image.dtype)
        staged_x = cuda.local.array(MOVED, image.dtype)
        sums = cuda.local.array((4, 4), image.dtype)
        rows = cuda.local.array(DOWN, int32)
        taps_here = cuda.local.array((DOWN, 3), int32)
        of_bias = cuda.local.array(DOWN, image.dtype)
        for i in range(4):
            for j in range(4):
                sums[i, j] = image.dtype.type(0)
        # 1: the channels and taps whose numbers this thread moves, and this block's part of the places
        terms = int32(parts.shape[1] // numbers[ROWS] - 1)
        channel0 = int32(cuda.blockIdx.y * SIDE)
        tap0 = int32(cuda.blockIdx.x * SIDE)
        for i in range(DOWN):
            line = int32(cuda.threadIdx.x >> 3) + int32(i * 32)
            rows[i] = int32(min(channel0 + line, numbers[ROWS] - int32(1)) * numbers[PLACES])
            tap = min(tap0 + line, terms - int32(1))
            taps_here[i, 0] = taps[OFFSET, tap]
            taps_here[i, 1] = taps[ROW, tap]
            taps_here[i, 2] = taps[COLUMN, tap]
            of_bias[i] = image.dtype.type(0)
        count = int32(grad.size // numbers[ROWS])
        length = int32((count + parts.shape[0] * DEPTH - 1) // (parts.shape[0] * DEPTH) * DEPTH)
        start = int32(min(cuda.blockIdx.z * length, count))
        limit = int32(min(start + length, count))
        # 2: the products of its slopes and images, and on the way the slopes' sums
        y, x = place_of_warp()
        base = int32(0)  # which half of the tiles' rows is being filled: 0 or DEPTH
        while start < limit:
            take(staged_g, staged_x, grad, image, numbers, start, limit, rows, taps_here)
            for part in range(MOVED):
                of_bias[part % DOWN] += staged_g[part]
            round_all(staged_g)
            round_all(staged_x)
            put(tiles_g, base, staged_g)
            put(tiles_x, base, staged_x)
            cuda.syncthreads()
            multiply(tiles_g, tiles_x, sums, base, y, x)
            base = int32(DEPTH) - base  # the next tile fills the other half: nobody waits for those who still multiply
            start += int32(DEPTH)
        # 3: the sums into this part
        lane = int32(cuda.threadIdx.x & 31)
        for n in range(4):
            for i in range(4):
                channel = int32(channel0 + y + (lane >> 2) + (i >> 1) * 8)
                tap = int32(tap0 + x + n * 8 + (lane & 3) * 2 + (i & 1))
                if channel < numbers[ROWS] and tap < terms:
                    parts[cuda.blockIdx.z, channel * terms + tap] = sums[n, i]
        # 4: the bias. Of each channel's slopes, eight threads have moved an eighth each.
        cuda.syncthreads()
        for i in range(DOWN):
            tiles_g[(cuda.threadIdx.x & 7), (cuda.threadIdx.x >> 3) + i * 32] = of_bias[i]
        cuda.syncthreads()
        channel = channel0 + cuda.threadIdx.x
        if cuda.blockIdx.x == 0 and cuda.threadIdx.x < SIDE and channel < numbers[ROWS]:
            total = tiles_g[0, cuda.threadIdx.x]
            for thread in range(1, 8):
                total += tiles_g[thread, cuda.threadIdx.x]
            parts[cuda.blockIdx.z, numbers[ROWS] * terms + channel] = total

    return correlate_weights_tensor
