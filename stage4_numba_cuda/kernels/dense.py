"""What a dense layer needs beside its products: the bias, and dropout's mask.

One thread for each number, grid-stride: any grid covers any size.
"""

from ..backend import cuda


@cuda.jit
def add_bias(z, bias):
    """z[row, column] += bias[column], z as (rows, columns)."""
    columns = z.shape[1]
    count = z.shape[0] * columns
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < count:
        row = i // columns
        column = i - row * columns
        z[row, column] += bias[column]
        i += step


@cuda.jit
def multiply(a, mask, out):
    """out = a * mask, element by element, all of them flat; out may be a."""
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < a.size:
        out[i] = a[i] * mask[i]
        i += step
