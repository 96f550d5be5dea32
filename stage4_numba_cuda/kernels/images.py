"""A mini-batch of images that lie on the device as bytes, whatever numbers the host made of the bytes.

A data set of images has at most 256 different numbers: pixel / 255, or those brought to mean 0 and deviation 1. So a
table of these numbers and a byte for each pixel say the same as the numbers, exactly, in a quarter of the memory.

    gather_table    x[r, c] = table[images[order[position + r], c]]
"""

from ..backend import cuda


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
