"""A mini-batch of images that lie on the device as bytes, whatever numbers the host made of the bytes.

A data set of images has at most 256 different numbers: pixel / 255, or those brought to mean 0 and deviation 1. So a
table of these numbers and a byte for each pixel say the same as the numbers, exactly, in a quarter of the memory.

    gather_table    x[r, c] = table[images[order[position + r], c]]
    gather_moved    the same with each image turned and shifted, as `moved` of shared/data/augmentation.py does it
    between         the number at a place between four pixels
"""

import math

from numba import float64, int32, uint32

from ..backend import cuda

COS, SIN, DOWN, RIGHT = range(4)
"""What `changes` holds for each image: cosine and sine of its angle, and whole pixels."""


@cuda.jit
def gather_table(images, table, order, position, x):
    """images (n, features) uint8, table (256,), order (any,) int32, position (1,) int64, x (rows, features).

    Threads along both directions of x, grid-stride; x and table have one dtype.
    """
    rows, features = x.shape
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        image = order[position[0] + row]
        column = first_column
        while column < features:
            x[row, column] = table[images[image, column]]
            column += column_step
        row += row_step


@cuda.jit(device=True)
def pixel(images, table, background, image, plane, row, column, height, width):
    """The number at this place of an image; background outside of it. plane: where its channel begins"""
    if row < 0 or row >= height or column < 0 or column >= width:
        return background
    return table[images[image, plane + row * width + column]]


@cuda.jit(device=True)
def between(images, table, background, image, plane, from_row, from_column, height, width):
    """The number at a place between four pixels of an image, each in proportion to its nearness.

    from_row, from_column: float64; places beyond the frame of background around the image count as on the frame
    """
    from_row = min(max(from_row, -1.0), float64(height))
    from_column = min(max(from_column, -1.0), float64(width))
    above = min(int32(math.floor(from_row)), int32(height - 1))
    left = min(int32(math.floor(from_column)), int32(width - 1))
    one = table.dtype.type(1)
    along = table.dtype.type(from_row - float64(above))
    across = table.dtype.type(from_column - float64(left))
    p = pixel(images, table, background, image, plane, above, left, height, width)
    q = pixel(images, table, background, image, plane, above, left + 1, height, width)
    upper = p * (one - across) + q * across
    p = pixel(images, table, background, image, plane, above + 1, left, height, width)
    q = pixel(images, table, background, image, plane, above + 1, left + 1, height, width)
    lower = p * (one - across) + q * across
    return upper * (one - along) + lower * along


@cuda.jit
def gather_moved(images, table, background, order, position, changes, height, width, x):
    """x (rows, channels height width) of the images turned around their centre and shifted; between four pixels.

    table (256,), background: of x's dtype; changes (n, 4) float64, because places are found in it on the host, too
    height, width: int32, of the images. Threads as in `gather_table`.
    """
    rows, features = x.shape
    middle_row = (height - 1) / 2.0
    middle_column = (width - 1) / 2.0
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        image = order[position[0] + row]
        cos = changes[image, COS]
        sin = changes[image, SIN]
        at = first_column
        while at < features:
            line = int32(uint32(at) // uint32(width))
            to_row = int32(uint32(line) % uint32(height))
            plane = int32((line - to_row) * width)
            y = float64(to_row) - middle_row - changes[image, DOWN]
            z = float64(at - line * width) - middle_column - changes[image, RIGHT]
            from_row = cos * y + sin * z + middle_row
            from_column = cos * z - sin * y + middle_column
            x[row, at] = between(images, table, background, image, plane, from_row, from_column, height, width)
            at += column_step
        row += row_step
