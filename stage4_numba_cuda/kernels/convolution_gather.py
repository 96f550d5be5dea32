"""Where the numbers of a convolution lie in the image, for the kernels that treat it as a product of matrices.

Product k of each sum meets the number that lies taps[OFFSET, k] further than the window's first, taps[ROW, k] rows and
taps[COLUMN, k] columns from it; outside the image there are zeros. That is the same for all windows, and geometry.py
has written it down before. Where a window begins follows from its place; `numbers` has what is to be known for that.

The two passes over images differ only in these tables: the forward pass gathers from x; and dL/dx is gathered from
grad_output, by kernels that are turned by half a turn.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .activations import activate, back

WEIGHT, OFFSET, ROW, COLUMN = range(4)
"""The rows of `taps`: where the weight lies from the first of its row, where the number of the image lies from the
window's first, and how many rows and columns below and right of it."""

NEVER = -(2**30)
"""The row of a tap that there is not: it fills up the last tile. And the first row of a place that there is not."""

ROWS, ROW_STEP, PLACES, ACROSS, DOWN, RIGHT, TOP, LEFT, HEIGHT, WIDTH, IMAGE, EVERY_ROW, EVERY_COLUMN = range(13)
"""What `numbers` holds: the channels of the result, and how far apart their weights are; the places of one image in the
result, and in one of its rows; place (r, s) has its first number in row r DOWN + TOP and column s RIGHT + LEFT of the
image, which is HEIGHT x WIDTH and has IMAGE numbers in all channels. EVERY_…: see `gatherer`."""

FORWARD, BACKWARD, THROUGH = range(3)
"""The endings of a sum: bias and activation; nothing, a number of dL/dx as it is; the way back through the activation
that made x, so that the number becomes dL/dz of the layer below."""


@cache
def gatherer(spread: bool) -> tuple[Any, Any]:
    """The device functions find and gather.

    find(place, count, numbers): (first, row, column) of the window at that place of all images: where its first number
    lies in the image, whose row and column may be outside of it. The row is NEVER from place `count` on
    gather(image, first, row, column, height, width, every_row, every_column): the number there; 0 outside

    spread: whether the image stands for a larger one that has every_row - 1 empty rows between any two, and columns
    likewise: so does grad_output in dL/dx where the stride is not 1
    """

    @cuda.jit(device=True)
    def find(place, count, numbers):
        n = int32(uint32(place) // uint32(numbers[PLACES]))
        within = int32(place - n * numbers[PLACES])
        r = int32(uint32(within) // uint32(numbers[ACROSS]))
        row = int32(r * numbers[DOWN] + numbers[TOP])
        column = int32((within - r * numbers[ACROSS]) * numbers[RIGHT] + numbers[LEFT])
        first = int32(n * numbers[IMAGE] + (0 if spread else row * numbers[WIDTH] + column))
        return first, row if place < count else int32(NEVER), column

    @cuda.jit(device=True)
    def gather(image, first, row, column, height, width, every_row, every_column):
        if spread:
            inside = row >= 0 and column >= 0
            down = int32(row // every_row)
            right = int32(column // every_column)
            inside = inside and down * every_row == row and right * every_column == column
            inside = inside and down < height and right < width
            at = uint32(first + down * width + right)
        else:
            # A row above the first becomes, without a sign, a number far beyond the last.
            inside = uint32(row) < uint32(height) and uint32(column) < uint32(width)
            at = uint32(first)
        return image[at] if inside else image.dtype.type(0)

    return find, gather


@cuda.jit(device=True)
def result_at(place, numbers):
    """Where the result of that place of all images lies in channel 0; channel c has it c * numbers[PLACES] further."""
    n = int32(uint32(place) // uint32(numbers[PLACES]))
    return int32(n * (numbers[ROWS] - int32(1)) * numbers[PLACES] + place)


@cuda.jit(device=True)
def end(total, ending, more, activation, channel, at):
    """What is written in place of a sum. more: for FORWARD the bias, for THROUGH x itself, as a vector."""
    if ending == FORWARD:
        return activate(activation, total + more[channel])
    if ending == THROUGH:
        return back(activation, total, more[at])
    return total
