"""Convolution as a product of matrices that are never written down: implicit GEMM, one number to a thread.

im2col writes every window of the image into a column of a matrix, kh kw times as many numbers as the image has, and
reads them again for the product. Here the columns exist only as tiles in shared memory: a tile is gathered from the
image while it is filled, as convolution_gather.py says.

    correlate            out = end(weights @ columns): the forward pass, and dL/dx
    correlate_weights    dL/dweights = grad_output @ columnsᵀ, summed over all places of all images, in parts
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
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

LANES = 32
"""Places of a block, along threadIdx.x, and products of its sums that it has in shared memory at a time."""

FIRST, FIRST_ROW, FIRST_COLUMN, RESULT = range(4)
"""The rows of `places` in shared memory: what `find` and `result_at` say of each of the block's places."""


@cache
def noter(spread: bool) -> Any:
    """The device function note(places, lane, place, count, numbers): notes in places[:, lane] where that place lies."""
    find, _ = gatherer(spread)

    @cuda.jit(device=True)
    def note(places, lane, place, count, numbers):
        places[FIRST, lane], places[FIRST_ROW, lane], places[FIRST_COLUMN, lane] = find(place, count, numbers)
        places[RESULT, lane] = result_at(place, numbers)

    return note


@cuda.jit(device=True)
def fill_weights(tile_w, weights, channel, start, taps, numbers):
    """tile_w = the weights of the block's channels for LANES products from `start` on; each thread copies one, and a
    zero where there is no such channel or product. channel: the thread's own"""
    x = cuda.threadIdx.x
    inside = channel < numbers[ROWS] and taps[ROW, start + x] > NEVER
    at = channel * numbers[ROW_STEP] + taps[WEIGHT, start + x]
    tile_w[cuda.threadIdx.y, x] = weights[at] if inside else weights.dtype.type(0)


@cache
def correlate(spread: bool) -> Any:
    """The kernel (image, weights, ending, more, activation, taps, numbers, out) for blocks of (LANES, channels)
    threads, 8 or 16 channels, on a CPU 32, too. image, weights, more, out: vectors. Grid: (tiles of all places, tiles
    of the channels).

    ending, more: what is done with a sum before it is written, see `end`
    """
    note, gather = noter(spread), gatherer(spread)[1]

    @cuda.jit
    def correlate_tile(image, weights, ending, more, activation, taps, numbers, out):
        """out = end(weights @ columns): a thread has one place, along x, and one channel, along y. The tile of the
        columns is gathered from the image, LANES products at a time; taps and numbers: see convolution_gather.py."""
        tile_w = cuda.shared.array((LANES, LANES), image.dtype)
        tile_x = cuda.shared.array((LANES, LANES), image.dtype)
        places = cuda.shared.array((4, LANES), int32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        channels = cuda.blockDim.y
        count = out.size // numbers[ROWS]
        height, width = numbers[HEIGHT], numbers[WIDTH]
        every_row, every_column = numbers[EVERY_ROW], numbers[EVERY_COLUMN]
        place = cuda.blockIdx.x * LANES + x
        channel = cuda.blockIdx.y * channels + y
        if y == 0:
            note(places, x, place, count, numbers)
        cuda.syncthreads()
        total = image.dtype.type(0)
        start = 0
        while start < taps.shape[1]:
            fill_weights(tile_w, weights, channel, start, taps, numbers)
            first, row, column = places[FIRST, x], places[FIRST_ROW, x], places[FIRST_COLUMN, x]
            i = y
            while i < LANES:
                tap = start + i
                tile_x[i, x] = gather(
                    image, first + taps[OFFSET, tap], row + taps[ROW, tap], column + taps[COLUMN, tap],
                    height, width, every_row, every_column,
                )  # fmt: skip
                i += channels
            cuda.syncthreads()
            for i in range(LANES):
                k = uint32(i)  # an index that may be negative is tested, and counts from the end
                total += tile_w[y, k] * tile_x[k, x]
            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
            start += LANES
        if channel < numbers[ROWS] and place < count:
            at = places[RESULT, x] + channel * numbers[PLACES]
            out[at] = end(total, ending, more, activation, channel, at)

    return correlate_tile


def make_correlate_weights() -> Any:
    """The kernel (grad, image, taps, numbers, parts) for the same blocks; taps and numbers are those of the forward
    pass. parts[part] = dL/dweights and, behind it, dL/dbias of that part of all places: (parts, O C kh kw + O). grad,
    image: vectors. Grid: (tiles of the taps, tiles of the channels, parts)."""
    note, gather = noter(False), gatherer(False)[1]

    @cuda.jit
    def correlate_weights(grad, image, taps, numbers, parts):
        tile_g = cuda.shared.array((LANES, LANES), image.dtype)
        tile_x = cuda.shared.array((LANES, LANES), image.dtype)
        places = cuda.shared.array((4, LANES), int32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        channels = cuda.blockDim.y
        tap = cuda.blockIdx.x * LANES + x
        channel = cuda.blockIdx.y * channels + y
        part = cuda.blockIdx.z
        count = grad.size // numbers[ROWS]
        height, width = numbers[HEIGHT], numbers[WIDTH]
        offset, row, column = taps[OFFSET, tap], taps[ROW, tap], taps[COLUMN, tap]
        terms = parts.shape[1] // numbers[ROWS] - 1
        length = (count + parts.shape[0] * LANES - 1) // (parts.shape[0] * LANES) * LANES
        start = part * length
        limit = min(start + length, count)
        total = image.dtype.type(0)
        of_bias = image.dtype.type(0)
        while start < limit:
            if y == 0:
                note(places, x, start + x, limit, numbers)
            cuda.syncthreads()
            inside = channel < numbers[ROWS] and start + x < limit
            at = places[RESULT, x] + channel * numbers[PLACES]
            slope = grad[at] if inside else image.dtype.type(0)
            of_bias += slope
            tile_g[y, x] = slope
            i = y
            while i < LANES:
                tile_x[i, x] = gather(
                    image, places[FIRST, i] + offset, places[FIRST_ROW, i] + row, places[FIRST_COLUMN, i] + column,
                    height, width, 1, 1,
                )  # fmt: skip
                i += channels
            cuda.syncthreads()
            for i in range(LANES):
                k = uint32(i)
                total += tile_g[y, k] * tile_x[k, x]
            cuda.syncthreads()
            start += LANES
        if channel < numbers[ROWS] and tap < terms:
            parts[part, channel * terms + tap] = total
        tile_g[y, x] = of_bias
        cuda.syncthreads()
        if x == 0 and cuda.blockIdx.x == 0 and channel < numbers[ROWS]:
            for lane in range(1, LANES):
                of_bias += tile_g[y, lane]
            parts[part, numbers[ROWS] * terms + channel] = of_bias

    return correlate_weights


correlate_weights = make_correlate_weights()
