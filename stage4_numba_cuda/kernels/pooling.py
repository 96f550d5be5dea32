"""Pooling: each window of an image becomes one number; and back, without atomics.

    max_pool             the largest number of each window, and where it stood
    max_backward_plane   its gradient where the windows are not known: one thread a plane, a number after the other
    max_backward         and where they are: each number of the image looks into the windows that it lies in
    average_pool, average_backward
                         the mean of each window; the way back as in max_backward

The obvious way back gives a thread to each number of grad_output, which adds it to its place. Windows that overlap
then meet in one place, which takes atomics, and those add in another order every time. A thread for each number of the
image needs none: it adds up what belongs to it, in the order of the windows.

Images are (planes, rows, columns), with a plane for each channel of each image. Threads stride over lines, along x
over the columns of a line: launch.over_lines. The activation that stands before or after a pool in a network can be
part of it (activations.activate and back); 0 is none.
"""

from ..backend import cuda
from .activations import activate, back


@cuda.jit
def max_pool(x, window_rows, window_columns, stride_rows, stride_columns, activation, output, indices):
    """output (planes, R, C) = activate(the largest of each window of x), indices = its place, counted row by row.

    The first of equal numbers wins. A NaN is larger than all, and of several the last wins: as in PyTorch.
    """
    rows = output.shape[1]
    columns = output.shape[2]
    width = x.shape[2]
    line = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while line < output.shape[0] * rows:
        plane = line // rows
        row = line - plane * rows
        top = row * stride_rows
        column = cuda.threadIdx.x
        while column < columns:
            left = column * stride_columns
            best = x[plane, top, left]
            place = top * width + left
            i = top
            while i < top + window_rows:
                j = left
                while j < left + window_columns:
                    value = x[plane, i, j]
                    if value > best or value != value:
                        best = value
                        place = i * width + j
                    j += 1
                i += 1
            output[plane, row, column] = activate(activation, best)
            indices[plane, row, column] = place
            column += cuda.blockDim.x
        line += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit
def max_backward_plane(grad_output, indices, grad_input):
    """grad_input (planes, H, W) from grad_output and indices, (planes, places); one thread a plane, grid-stride."""
    width = grad_input.shape[2]
    plane = cuda.grid(1)
    while plane < grad_input.shape[0]:
        row = 0
        while row < grad_input.shape[1]:
            column = 0
            while column < width:
                grad_input[plane, row, column] = 0
                column += 1
            row += 1
        i = 0
        while i < grad_output.shape[1]:
            place = indices[plane, i]
            row = place // width
            grad_input[plane, row, place - row * width] += grad_output[plane, i]
            i += 1
        plane += cuda.gridsize(1)


@cuda.jit(device=True)
def first_window(place, size, stride):
    """The first window, along one axis, in which this place lies."""
    return 0 if place < size else (place - size) // stride + 1


@cuda.jit
def max_backward(
    grad_output, output, after, indices, x, before,
    window_rows, window_columns, stride_rows, stride_columns, grad_input,
):  # fmt: skip
    """grad_input (planes, H, W) = the sum of grad_output (planes, R, C) over the windows that each number has won.

    after: the activation that made `output` of the largest numbers; before: the one that made x, which only it reads
    """
    height = grad_input.shape[1]
    width = grad_input.shape[2]
    line = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while line < grad_input.shape[0] * height:
        plane = line // height
        row = line - plane * height
        last_row = min(row // stride_rows, output.shape[1] - 1)
        first_row = first_window(row, window_rows, stride_rows)
        column = cuda.threadIdx.x
        while column < width:
            last_column = min(column // stride_columns, output.shape[2] - 1)
            first_column = first_window(column, window_columns, stride_columns)
            total = grad_output.dtype.type(0)
            i = first_row
            while i <= last_row:
                j = first_column
                while j <= last_column:
                    if indices[plane, i, j] == row * width + column:
                        total += back(after, grad_output[plane, i, j], output[plane, i, j])
                    j += 1
                i += 1
            if before != 0:
                total = back(before, total, x[plane, row, column])
            grad_input[plane, row, column] = total
            column += cuda.blockDim.x
        line += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit
def average_pool(x, window_rows, window_columns, stride_rows, stride_columns, output):
    """output (planes, R, C) = the mean of each window of x (planes, H, W)."""
    rows = output.shape[1]
    columns = output.shape[2]
    count = x.dtype.type(window_rows * window_columns)
    line = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while line < output.shape[0] * rows:
        plane = line // rows
        row = line - plane * rows
        column = cuda.threadIdx.x
        while column < columns:
            total = x.dtype.type(0)
            i = row * stride_rows
            while i < row * stride_rows + window_rows:
                j = column * stride_columns
                while j < column * stride_columns + window_columns:
                    total += x[plane, i, j]
                    j += 1
                i += 1
            output[plane, row, column] = total / count
            column += cuda.blockDim.x
        line += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit
def average_backward(grad_output, window_rows, window_columns, stride_rows, stride_columns, grad_input):
    """grad_input (planes, H, W): each number gets its share of each window that it lies in."""
    height = grad_input.shape[1]
    width = grad_input.shape[2]
    count = grad_output.dtype.type(window_rows * window_columns)
    line = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    while line < grad_input.shape[0] * height:
        plane = line // height
        row = line - plane * height
        last_row = min(row // stride_rows, grad_output.shape[1] - 1)
        first_row = first_window(row, window_rows, stride_rows)
        column = cuda.threadIdx.x
        while column < width:
            last_column = min(column // stride_columns, grad_output.shape[2] - 1)
            total = grad_output.dtype.type(0)
            i = first_row
            while i <= last_row:
                j = first_window(column, window_columns, stride_columns)
                while j <= last_column:
                    total += grad_output[plane, i, j] / count
                    j += 1
                i += 1
            grad_input[plane, row, column] = total
            column += cuda.blockDim.x
        line += cuda.gridDim.x * cuda.blockDim.y
