"""A mini-batch by index, picked on the device from data that lies there as it came: images as bytes, labels as int32.

    gather_bytes      x[r, c] = images[order[position + r], c] / 255
    gather_rows       x[r, c] = values[order[position + r], c]
    gather_labels     y[r] = labels[order[position + r]]
    gather_targets    the same label as a row of numbers: one-hot, or 0 and 1 where there is one column

Only the epoch's order crosses over from the host, 4 bytes a sample where x itself would be 3,136. The position is
read from memory, so that a captured CUDA graph can pick a new batch at every replay. Threads along x go along the
columns: a warp reads 32 neighbouring pixels of one image, whichever image it is.

x and y may have fewer rows than the other batches, for the last one of an epoch; position + rows must not go past the
end of order.
"""

import numpy as np
from numba import float32

from ..backend import cuda

EXACT, REST = np.float32(1 / 256), np.float32(1 / 65_280)


@cuda.jit(device=True)
def shade(byte):
    """byte / 255 in float32, to the last bit, without a division, for which a GPU takes some ten instructions.

    1 / 255 is 1 / 256 + 1 / 65280. The first product is exact, and of the second, which is 255 times smaller, the
    rounding is lost in that of the sum.
    """
    return float32(byte) * EXACT + float32(byte) * REST


@cuda.jit
def gather_bytes(images, order, position, x):
    """images (n, features) uint8, order (any,) int32, position (1,) int64, x (rows, features).

    Divided in float32 in either dtype, as the data set is made on the host, then converted.
    """
    rows, features = x.shape
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        image = order[position[0] + row]
        column = first_column
        while column < features:
            x[row, column] = x.dtype.type(shade(images[image, column]))
            column += column_step
        row += row_step


@cuda.jit
def gather_rows(values, order, position, x):
    """values (n, features) float32; the others as above. x may be float64."""
    rows, features = x.shape
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        sample = order[position[0] + row]
        column = first_column
        while column < features:
            x[row, column] = values[sample, column]
            column += column_step
        row += row_step


@cuda.jit
def gather_labels(labels, order, position, y):
    """labels (n,) int32, y (rows,) int32."""
    row = cuda.grid(1)
    while row < y.size:
        y[row] = labels[order[position[0] + row]]
        row += cuda.gridsize(1)


@cuda.jit
def gather_targets(labels, order, position, targets):
    """labels (n,) int32, targets (rows, classes): 1 at the label and 0 elsewhere; with one column, the label itself."""
    rows, classes = targets.shape
    one = targets.dtype.type(1)
    zero = targets.dtype.type(0)
    first_column, row = cuda.grid(2)
    column_step, row_step = cuda.gridsize(2)
    while row < rows:
        label = labels[order[position[0] + row]]
        column = first_column
        while column < classes:
            if classes == 1:
                targets[row, column] = targets.dtype.type(label)
            else:
                targets[row, column] = one if column == label else zero
            column += column_step
        row += row_step
