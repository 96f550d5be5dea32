"""Convolution as one product of matrices, after the windows were written into the columns of one of them.

    columns    the numbers that each window meets, one window a column: (C kh kw, places)
    finish     the product (O, places) into images, with the bias and the activation

Between the two stands weights (O, C kh kw) @ columns, by the best kernel of the matmul ladder. The price is memory:
each number of the image is written kh kw times and read again for the product. convolution_3_implicit.py saves that.
"""

from __future__ import annotations

from ..backend import cuda
from .activations import activate
from .convolution_gather import COLUMN, HEIGHT, OFFSET, PLACES, ROW, WIDTH, gatherer

find, gather = gatherer(False)


@cuda.jit
def columns(image, taps, numbers, out):
    """out (products of a sum, places) from image (numbers,); taps and numbers: the tables of the forward pass.
    Grid: x over the places, y strides over the products. So neighbouring threads write neighbours, and read
    neighbours where the stride is 1."""
    place = cuda.grid(1)
    if place < out.shape[1]:
        first, row, column = find(place, out.shape[1], numbers)
        tap = cuda.blockIdx.y
        while tap < out.shape[0]:
            at = first + taps[OFFSET, tap]
            out[tap, place] = gather(
                image, at, row + taps[ROW, tap], column + taps[COLUMN, tap], numbers[HEIGHT], numbers[WIDTH], 1, 1
            )
            tap += cuda.gridDim.y


@cuda.jit
def finish(sums, bias, activation, numbers, out):
    """out (numbers of the images,) = activate(sums + bias), sums (O, places of all images). Grid: x over the places, y
    strides over the channels."""
    place = cuda.grid(1)
    if place < sums.shape[1]:
        n = place // numbers[PLACES]
        first = n * sums.shape[0] * numbers[PLACES] + place - n * numbers[PLACES]
        channel = cuda.blockIdx.y
        while channel < sums.shape[0]:
            out[first + channel * numbers[PLACES]] = activate(activation, sums[channel, place] + bias[channel])
            channel += cuda.gridDim.y
