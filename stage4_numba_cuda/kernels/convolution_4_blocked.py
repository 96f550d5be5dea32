"""Implicit GEMM with 4 x 4 numbers to a thread: the kernels that convolve on a GPU.

    correlate(side, spread)      out = end(weights @ columns): the forward pass, and dL/dx
    correlate_weights(side)      dL/dweights and dL/dbias, in parts

The passes are those of convolution_3_implicit.py, with one number to a thread: there, two numbers of shared memory are
read for a multiply-add; here eight serve sixteen. A block computes side x side numbers, 32 or 64,
as blocked_tiles.py does it: two tiles of each operand, of which one is multiplied while the next one is gathered.

In `correlate` a thread always gathers for the same place, and what is to be known of it stays in registers: the tables
are read for the products only, the same number for a whole warp. In `correlate_weights` it is the other way round: a
thread gathers for the same products, and finds the places anew for each tile.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .blocked_tiles import GROUPS, MOVED, SIDES, STRAIGHT, THREADS, TURNED, mover, multiplier
from .convolution_gather import (
    COLUMN,
    EVERY_COLUMN,
    EVERY_ROW,
    HEIGHT,
    NEVER,
    OFFSET,
    PLACES,
    ROW,
    ROW_STEP,
    ROWS,
    WEIGHT,
    WIDTH,
    end,
    gatherer,
    result_at,
)


@cache
def adder(side: int) -> Any:
    """The device function number(tiles, i, j): that number of the product which `leave` of blocked_tiles has left."""
    groups = GROUPS[side]

    @cuda.jit(device=True)
    def number(tiles, i, j):
        value = tiles[uint32(i), uint32(j)]
        for group in range(1, groups):
            value += tiles[uint32(group * side + i), uint32(j)]
        return value

    return number


@cache
def taker(side: int, spread: bool) -> Any:
    """The device function take of `correlate`: a thread's numbers of both tiles, from product k0 on, into registers."""
    _, gather = gatherer(spread)
    down, further, shift = side // 32, THREADS // side, side.bit_length() - 1

    @cuda.jit(device=True)
    def take(staged_w, staged_x, image, weights, taps, numbers, k0, rows, first, row, column):
        for part in range(MOVED):
            tap = uint32(k0 + int32(cuda.threadIdx.x & 7) + int32(part // down * 8))
            at = uint32(rows[part % down] + taps[WEIGHT, tap])
            staged_w[part] = weights[at] if taps[ROW, tap] > NEVER else image.dtype.type(0)
        for part in range(MOVED):
            tap = uint32(k0 + int32(cuda.threadIdx.x >> shift) + int32(part * further))
            staged_x[part] = gather(
                image,
                int32(first + taps[OFFSET, tap]),
                int32(row + taps[ROW, tap]),
                int32(column + taps[COLUMN, tap]),
                numbers[HEIGHT],
                numbers[WIDTH],
                numbers[EVERY_ROW],
                numbers[EVERY_COLUMN],
            )

    return take


@cache
def weights_taker(side: int) -> Any:
    """The device function take of `correlate_weights`."""
    find, gather = gatherer(False)
    down = side // 32

    @cuda.jit(device=True)
    def take(staged_g, staged_x, grad, image, numbers, place0, limit, rows, taps_here):
        """A thread's numbers of both operands: for MOVED / down places, and for each `down` channels and products."""
        for group in range(MOVED // down):
            place = int32(place0 + int32(cuda.threadIdx.x & 7) + int32(group * 8))
            first, row, column = find(place, limit, numbers)
            result = result_at(place, numbers)
            for i in range(down):
                part = group * down + i
                staged_g[part] = grad[uint32(result + rows[i])] if place < limit else grad.dtype.type(0)
                staged_x[part] = gather(
                    image,
                    int32(first + taps_here[i, 0]),
                    int32(row + taps_here[i, 1]),
                    int32(column + taps_here[i, 2]),
                    numbers[HEIGHT],
                    numbers[WIDTH],
                    1,
                    1,
                )

    return take


@cache
def correlate(side: int, spread: bool) -> Any:
    """The kernel (image, weights, ending, more, activation, taps, numbers, out), as in convolution_3_implicit.py, for
    blocks of THREADS threads. Grid: (tiles of all places, tiles of the channels)."""
    find, _ = gatherer(spread)
    multiply, leave = multiplier(side)
    take = taker(side, spread)
    put_weights, put_image, number = mover(side, TURNED).put, mover(side, STRAIGHT).put, adder(side)
    depth, down, shift = MOVED * THREADS // side, side // 32, side.bit_length() - 1
    tile_rows, pitch, count_of_tile = 4 * depth, side + 4, side * side

    @cuda.jit
    def correlate_blocked(image, weights, ending, more, activation, taps, numbers, out):
        tiles = cuda.shared.array((tile_rows, pitch), image.dtype, alignment=16)
        staged_w = cuda.local.array(4, image.dtype)
        staged_x = cuda.local.array(4, image.dtype)
        sums = cuda.local.array((4, 4), image.dtype)
        left = cuda.local.array(4, image.dtype)
        right = cuda.local.array(4, image.dtype)
        rows = cuda.local.array(down, int32)
        for i in range(4):
            for j in range(4):
                sums[i, j] = image.dtype.type(0)
        channel0 = int32(cuda.blockIdx.y * side)
        for part in range(down):
            # Beyond the last channel its weights are read again: what comes of it is not stored.
            channel = min(channel0 + int32(cuda.threadIdx.x >> 3) + int32(part * 32), numbers[ROWS] - int32(1))
            rows[part] = int32(channel * numbers[ROW_STEP])
        count = int32(out.size // numbers[ROWS])
        place = int32(cuda.blockIdx.x * side + (cuda.threadIdx.x & (side - 1)))
        first, row, column = find(place, count, numbers)
        inner = int32(taps.shape[1])
        take(staged_w, staged_x, image, weights, taps, numbers, int32(0), rows, first, row, column)
        base = int32(0)  # which half of the tiles' rows is being multiplied: 0 or depth
        put_weights(tiles, base, staged_w)
        put_image(tiles, base + 2 * depth, staged_x)
        cuda.syncthreads()
        start = int32(depth)
        while start < inner:
            take(staged_w, staged_x, image, weights, taps, numbers, start, rows, first, row, column)
            multiply(tiles, sums, left, right, base)
            base = int32(depth) - base
            put_weights(tiles, base, staged_w)
            put_image(tiles, base + 2 * depth, staged_x)
            cuda.syncthreads()
            start += int32(depth)
        multiply(tiles, sums, left, right, base)
        cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
        leave(tiles, sums)
        cuda.syncthreads()
        # Neighbouring threads write neighbouring places, and each thread those of its own place.
        result = result_at(place, numbers)
        e = int32(cuda.threadIdx.x)
        while e < count_of_tile:
            channel = int32(channel0 + (e >> shift))
            if channel < numbers[ROWS] and place < count:
                at = uint32(result + channel * numbers[PLACES])
                total = number(tiles, e >> shift, e & (side - 1))
                out[at] = end(total, ending, more, activation, channel, at)
            e += int32(THREADS)

    return correlate_blocked


@cache
def correlate_weights(side: int) -> Any:
    """The kernel (grad, image, taps, numbers, parts), as in convolution_3_implicit.py, for blocks of THREADS threads.
    Grid: (tiles of the taps, tiles of the channels, parts)."""
    multiply, leave = multiplier(side)
    take = weights_taker(side)
    put, number = mover(side, TURNED).put, adder(side)
    depth, down, shift = MOVED * THREADS // side, side // 32, side.bit_length() - 1
    tile_rows, pitch, count_of_tile = 4 * depth, side + 4, side * side

    @cuda.jit
    def correlate_weights_blocked(grad, image, taps, numbers, parts):
        tiles = cuda.shared.array((tile_rows, pitch), image.dtype, alignment=16)
        staged_g = cuda.local.array(4, image.dtype)
        staged_x = cuda.local.array(4, image.dtype)
        sums = cuda.local.array((4, 4), image.dtype)
        left = cuda.local.array(4, image.dtype)
        right = cuda.local.array(4, image.dtype)
        rows = cuda.local.array(down, int32)
        taps_here = cuda.local.array((down, 3), int32)
        of_bias = cuda.local.array(down, image.dtype)
        for i in range(4):
            for j in range(4):
                sums[i, j] = image.dtype.type(0)
        # 1: the channels and taps whose numbers this thread moves, and this block's part of the places
        terms = int32(parts.shape[1] // numbers[ROWS] - 1)
        channel0 = int32(cuda.blockIdx.y * side)
        tap0 = int32(cuda.blockIdx.x * side)
        for i in range(down):
            y = int32(cuda.threadIdx.x >> 3) + int32(i * 32)
            rows[i] = int32(min(channel0 + y, numbers[ROWS] - int32(1)) * numbers[PLACES])
            tap = min(tap0 + y, terms - int32(1))
            taps_here[i, 0] = taps[OFFSET, tap]
            taps_here[i, 1] = taps[ROW, tap]
            taps_here[i, 2] = taps[COLUMN, tap]
            of_bias[i] = image.dtype.type(0)
        count = int32(grad.size // numbers[ROWS])
        length = int32((count + parts.shape[0] * depth - 1) // (parts.shape[0] * depth) * depth)
        start = int32(min(cuda.blockIdx.z * length, count))
        limit = int32(min(start + length, count))
        # 2: the products of its slopes and images, and on the way the slopes' sums
        take(staged_g, staged_x, grad, image, numbers, start, limit, rows, taps_here)
        base = int32(0)
        put(tiles, base, staged_g)
        put(tiles, base + 2 * depth, staged_x)
        for part in range(MOVED):
            of_bias[part % down] += staged_g[part]
        cuda.syncthreads()
        start += int32(depth)
        while start < limit:
            take(staged_g, staged_x, grad, image, numbers, start, limit, rows, taps_here)
            multiply(tiles, sums, left, right, base)
            base = int32(depth) - base
            put(tiles, base, staged_g)
            put(tiles, base + 2 * depth, staged_x)
            for part in range(MOVED):
                of_bias[part % down] += staged_g[part]
            cuda.syncthreads()
            start += int32(depth)
        multiply(tiles, sums, left, right, base)
        cuda.syncthreads()
        leave(tiles, sums)
        cuda.syncthreads()
        # 3: the sums into this part
        e = int32(cuda.threadIdx.x)
        while e < count_of_tile:
            channel = int32(channel0 + (e >> shift))
            tap = int32(tap0 + (e & (side - 1)))
            if channel < numbers[ROWS] and tap < terms:
                parts[cuda.blockIdx.z, channel * terms + tap] = number(tiles, e >> shift, e & (side - 1))
            e += int32(THREADS)
        # 4: the bias. Of each channel's slopes, eight threads have moved an eighth each.
        cuda.syncthreads()
        for i in range(down):
            tiles[(cuda.threadIdx.x & 7), (cuda.threadIdx.x >> 3) + i * 32] = of_bias[i]
        cuda.syncthreads()
        channel = channel0 + cuda.threadIdx.x
        if cuda.blockIdx.x == 0 and cuda.threadIdx.x < side and channel < numbers[ROWS]:
            total = tiles[0, cuda.threadIdx.x]
            for thread in range(1, 8):
                total += tiles[thread, cuda.threadIdx.x]
            parts[cuda.blockIdx.z, numbers[ROWS] * terms + channel] = total

    return correlate_weights_blocked


CORRELATE_WEIGHTS = {side: correlate_weights(side) for side in SIDES}
