"""Convolution as a product of matrices that are never written down: implicit GEMM, one number to a thread.

im2col writes every window of the image into a column of a matrix, kh kw times as many numbers as the image has, and
reads them again for the product. Here the columns exist only as tiles in shared memory: a tile is gathered from the
image while it is filled. `taps` says where: product k of each sum meets the number that lies taps[OFFSET, k] further
than the window's first number.

    correlate            out = activate(weights @ columns + bias): the forward pass; and with the kernels turned by half
                         a turn and grad_output as the image, dL/dx
    correlate_weights    dL/dweights = grad_output @ columnsᵀ, summed over all places of all images, in parts

Both passes of `correlate` differ only in what the tables hold; geometry.py makes them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .activations import activate, back

LANES = 32
"""Places of a block, along threadIdx.x, and products of its sums that it has in shared memory at a time."""

WEIGHT, OFFSET, ROW, COLUMN = range(4)
"""The rows of `taps`: where the weight lies from the first of its row, where the number of the image lies from the
window's first, and how many rows and columns below and right of it."""

NEVER = -(2**30)
"""The row of a tap that there is not: it fills up the last tile. And the first row of a place that there is not."""

ROWS, ROW_STEP, PLACES, ACROSS, DOWN, RIGHT, TOP, LEFT, HEIGHT, WIDTH, IMAGE, EVERY_ROW, EVERY_COLUMN = range(13)
"""What `numbers` holds: the channels of the result, and how far apart their weights are; the places of one image in the
result, and in one of its rows; place (r, s) has its first number in row r DOWN + TOP and column s RIGHT + LEFT of the
image, which is HEIGHT x WIDTH and has IMAGE numbers in all channels. EVERY_…: see `gatherer`."""

FIRST, FIRST_ROW, FIRST_COLUMN, RESULT = range(4)
"""The rows of `places` in shared memory: where the window's first number lies, its row and its column (either may be
outside the image), and where the result of channel 0 lies."""


@cache
def gatherer(spread: bool) -> tuple[Any, Any]:
    """The device functions find and gather.

    find(places, lane, place, count, numbers): notes in places[:, lane] where that place of all images lies
    gather(image, places, lane, taps, k, numbers): the number of the image that product k meets there; 0 outside

    spread: whether the image stands for a larger one that has EVERY_ROW - 1 empty rows between any two, and columns
    likewise: so does grad_output in dL/dx where the stride is not 1
    """

    @cuda.jit(device=True)
    def find(places, lane, place, count, numbers):
        n = place // numbers[PLACES]
        within = place - n * numbers[PLACES]
        r = within // numbers[ACROSS]
        row = r * numbers[DOWN] + numbers[TOP]
        column = (within - r * numbers[ACROSS]) * numbers[RIGHT] + numbers[LEFT]
        places[FIRST, lane] = n * numbers[IMAGE] + (0 if spread else row * numbers[WIDTH] + column)
        places[FIRST_ROW, lane] = row if place < count else NEVER
        places[FIRST_COLUMN, lane] = column
        places[RESULT, lane] = n * numbers[ROWS] * numbers[PLACES] + within

    @cuda.jit(device=True)
    def gather(image, first, row, column, height, width, every_row, every_column):
        inside = row >= 0 and column >= 0
        if spread:
            inside = inside and row % every_row == 0 and column % every_column == 0
            row //= every_row
            column //= every_column
            first += row * width + column
        inside = inside and row < height and column < width
        return image[first] if inside else image.dtype.type(0)

    return find, gather


FORWARD, BACKWARD, THROUGH = range(3)
"""The endings of a sum: bias and activation; nothing, a number of dL/dx as it is; the way back through the activation
that made x, so that the number becomes dL/dz of the layer below."""


@cuda.jit(device=True)
def end(total, ending, more, activation, channel, at):
    """What is written in place of a sum. more: for FORWARD the bias, for THROUGH x itself, as a vector."""
    if ending == FORWARD:
        return activate(activation, total + more[channel])
    if ending == THROUGH:
        return back(activation, total, more[at])
    return total


@cache
def correlate(spread: bool) -> Any:
    """The kernel (image, weights, ending, more, activation, taps, numbers, out) for blocks of (LANES, channels)
    threads, 8, 16 or 32 channels. image, weights, more, out: vectors. Grid: (tiles of all places, tiles of the
    channels).

    ending, more: what is done with a sum before it is written, see `end`
    """
    find, gather = gatherer(spread)

    @cuda.jit
    def correlate_tile(image, weights, ending, more, activation, taps, numbers, out):
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
            find(places, x, place, count, numbers)
        cuda.syncthreads()
        total = image.dtype.type(0)
        start = 0
        while start < taps.shape[1]:
            inside = channel < numbers[ROWS] and taps[ROW, start + x] > NEVER
            at = channel * numbers[ROW_STEP] + taps[WEIGHT, start + x]
            tile_w[y, x] = weights[at] if inside else image.dtype.type(0)
            first = places[FIRST, x]
            row = places[FIRST_ROW, x]
            column = places[FIRST_COLUMN, x]
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
    find, gather = gatherer(False)

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
        end = min(start + length, count)
        total = image.dtype.type(0)
        of_bias = image.dtype.type(0)
        while start < end:
            if y == 0:
                find(places, x, start + x, end, numbers)
            cuda.syncthreads()
            inside = channel < numbers[ROWS] and start + x < end
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


CORRELATE_WEIGHTS = make_correlate_weights()
