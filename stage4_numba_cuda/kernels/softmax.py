"""Softmax of every row, and its derivative, slowest rung first.

    thread    one thread a row                    neighbouring threads read a whole row apart: no two share a sector
    warp      32 threads a row, side by side      a warp reads whole sectors, and adds up through registers (shuffles)
    block     256 threads a row                   fills a multiprocessor even when rows are few and long

All subtract the row's largest number first. That changes nothing (it cancels) and keeps exp from overflowing. The
largest may pass over a NaN, but the sum of exponentials cannot: one NaN makes its whole row NaN.

A row is read three times: for the largest, for the sum of the exponentials, which are written where the result will
be, and to divide by the sum. Each thread touches its own columns only, so output may be z itself.
"""

import math

from ..backend import cuda

WHOLE_WARP = 0xFFFFFFFF
"""The mask of a shuffle in which all 32 lanes of the warp take part."""

WARP = 32

BLOCK = 256
"""Threads of the block rung: a power of two, for the tree."""


@cuda.jit
def softmax_thread(z, output):
    """output = softmax of every row of z; both are (rows, columns), and output may be z itself.

    A thread takes a row, and any grid every row.
    """
    row = cuda.grid(1)
    rows, columns = z.shape
    while row < rows:
        largest = z[row, 0]
        j = 1
        while j < columns:
            largest = z[row, j] if z[row, j] > largest else largest
            j += 1
        total = z.dtype.type(0)
        j = 0
        while j < columns:
            exponential = math.exp(z[row, j] - largest)
            output[row, j] = exponential
            total += exponential
            j += 1
        j = 0
        while j < columns:
            output[row, j] /= total
            j += 1
        row += cuda.gridsize(1)


@cuda.jit
def softmax_thread_backward(grad_output, output, grad_z):
    """grad_z = (grad_output - the row's sum of grad_output * output) * output; a thread takes a row."""
    row = cuda.grid(1)
    rows, columns = output.shape
    while row < rows:
        weighted = output.dtype.type(0)
        j = 0
        while j < columns:
            weighted += grad_output[row, j] * output[row, j]
            j += 1
        j = 0
        while j < columns:
            grad_z[row, j] = (grad_output[row, j] - weighted) * output[row, j]
            j += 1
        row += cuda.gridsize(1)


@cuda.jit(device=True)
def warp_largest(value):
    """The largest value of all 32 lanes, in every lane: each asks a lane 16 away, then 8, 4, 2 and 1."""
    offset = WARP // 2
    while offset > 0:
        other = cuda.shfl_xor_sync(WHOLE_WARP, value, offset)
        value = other if other > value else value
        offset //= 2
    return value


@cuda.jit(device=True)
def warp_sum(value):
    """The sum of `value` over all 32 lanes, in every lane and in value's own type: five additions a lane."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(WHOLE_WARP, value, offset)
        offset //= 2
    return value


@cuda.jit
def softmax_warp(z, output):
    """The same, a warp for each row; output may be z itself.

    Blocks of (32, warps): threadIdx.x is the lane and threadIdx.y the warp, so a warp's lanes share their row.
    """
    lane = cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    rows, columns = z.shape
    while row < rows:
        largest = z[row, 0]
        j = lane
        while j < columns:
            largest = z[row, j] if z[row, j] > largest else largest
            j += WARP
        largest = warp_largest(largest)
        total = z.dtype.type(0)
        j = lane
        while j < columns:
            exponential = math.exp(z[row, j] - largest)
            output[row, j] = exponential
            total += exponential
            j += WARP
        total = warp_sum(total)
        j = lane
        while j < columns:
            output[row, j] /= total
            j += WARP
        row += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit
def softmax_warp_backward(grad_output, output, grad_z):
    """grad_z = (grad_output - the row's sum of grad_output * output) * output; all are (rows, columns).

    A warp takes a row: a block is 32 threads wide (threadIdx.x is the lane), and each threadIdx.y has a row of its own.
    Each number of grad_z is written once and not read, unless grad_z is grad_output, which it may be.
    """
    lane = cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    rows, columns = output.shape
    while row < rows:
        weighted = output.dtype.type(0)
        j = lane
        while j < columns:
            weighted += grad_output[row, j] * output[row, j]
            j += WARP
        weighted = warp_sum(weighted)
        j = lane
        while j < columns:
            grad_z[row, j] = (grad_output[row, j] - weighted) * output[row, j]
            j += WARP
        row += cuda.gridDim.x * cuda.blockDim.y


@cuda.jit(device=True)
def block_largest(value, partial):
    """The largest value of the block, in every thread. partial: shared, one number for each thread."""
    thread = cuda.threadIdx.x
    partial[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half and partial[thread + half] > partial[thread]:
            partial[thread] = partial[thread + half]
        cuda.syncthreads()
        half //= 2
    largest = partial[0]
    cuda.syncthreads()  # until all have read it: the next use of partial overwrites it
    return largest


@cuda.jit(device=True)
def block_sum(value, partial):
    """The sum over the block, in every thread: a tree of 8 levels, not 255 additions one after the other."""
    thread = cuda.threadIdx.x
    partial[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            partial[thread] += partial[thread + half]
        cuda.syncthreads()
        half //= 2
    total = partial[0]
    cuda.syncthreads()
    return total


@cuda.jit
def softmax_block(z, output):
    partial = cuda.shared.array(BLOCK, z.dtype)
    row = cuda.blockIdx.x
    rows, columns = z.shape
    while row < rows:
        largest = z[row, 0]
        j = cuda.threadIdx.x
        while j < columns:
            largest = z[row, j] if z[row, j] > largest else largest
            j += BLOCK
        largest = block_largest(largest, partial)
        total = z.dtype.type(0)
        j = cuda.threadIdx.x
        while j < columns:
            exponential = math.exp(z[row, j] - largest)
            output[row, j] = exponential
            total += exponential
            j += BLOCK
        total = block_sum(total, partial)
        j = cuda.threadIdx.x
        while j < columns:
            output[row, j] /= total
            j += BLOCK
        row += cuda.gridDim.x


@cuda.jit
def softmax_block_backward(grad_output, output, grad_z):
    partial = cuda.shared.array(BLOCK, output.dtype)
    row = cuda.blockIdx.x
    rows, columns = output.shape
    while row < rows:
        weighted = output.dtype.type(0)
        j = cuda.threadIdx.x
        while j < columns:
            weighted += grad_output[row, j] * output[row, j]
            j += BLOCK
        weighted = block_sum(weighted, partial)
        j = cuda.threadIdx.x
        while j < columns:
            grad_z[row, j] = (grad_output[row, j] - weighted) * output[row, j]
            j += BLOCK
        row += cuda.gridDim.x
