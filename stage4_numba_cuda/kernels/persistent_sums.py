"""The gradients of the persistent kernel that belong to no tile: sums over the batch, and the optimizer's step on them.

    dW2[u, c] = sum over r of inputs_b[r, u] * grad_logits[r, c]
    db2[c]    = sum over r of grad_logits[r, c]
    db1[u]    = sum over r of grad_hidden[r, u]

All these sums have one numbering, and are dealt out to all blocks; SUMMED threads compute one together. A thread starts
the loads of AT_ONCE rows, and of the parameter that the optimizer moves, before it needs the first of these numbers.
"""

from numba import int32, uint32, uint64

from ..backend import cuda
from .optimizers import ADAM, SGD
from .optimizers import update as optimizer_update
from .persistent_tile import FULL, THREADS
from .update import ONLY_GRADIENTS

SUMMED = 16
"""Threads that compute one sum together."""

AT_ONCE = 8
"""Rows whose loads each of these threads starts before it uses the first."""

OF_A_BLOCK = THREADS // SUMMED
"""Sums that a block computes at the same time."""


@cuda.jit(device=True)
def take_out(kind, parameters, first, second, at, own, own_first, own_second, i):
    """own[i] = parameters[at], and what the optimizer keeps for it. It has other arrays only where it needs them."""
    own[i] = parameters[uint32(at)]
    if kind > SGD:
        own_first[i] = first[uint32(at)]
    if kind == ADAM:
        own_second[i] = second[uint32(at)]


@cuda.jit(device=True)
def put_back(kind, parameters, first, second, at, own, own_first, own_second, i):
    """The way back of take_out."""
    parameters[uint32(at)] = own[i]
    if kind > SGD:
        first[uint32(at)] = own_first[i]
    if kind == ADAM:
        second[uint32(at)] = own_second[i]


@cuda.jit(device=True)
def load_column(matrix, columns, column, first, rows, loaded):
    """loaded[n] = matrix[first + n * SUMMED, column], 0 past the end of its rows; matrix (rows * columns,)."""
    place, step = uint64(first * columns + column), uint64(SUMMED * columns)
    for n in range(AT_ONCE):
        loaded[n] = matrix.dtype.type(0)
        if int32(first + n * SUMMED) < rows:
            loaded[n] = matrix[place]
        place += step


@cuda.jit(device=True)
def sums_over_batch(
    kind, numbers, rows, inputs_b, grad_hidden, grad_logits,
    weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
    bias_a, b_first_a, b_second_a, grad_bias_a, one, one_first, one_second, left, right,
):  # fmt: skip
    """Every block calls it. Local arrays: one, one_first and one_second of one number, left and right of AT_ONCE."""
    columns = int32(bias_a.size)
    classes = int32(bias_b.size)
    of_weights = int32(columns * classes)
    of_head = int32(of_weights + classes)
    everything = int32(of_head + columns)
    first = int32(cuda.blockIdx.x * OF_A_BLOCK)  # whole warps go round, since they shuffle
    while first < everything:
        which = int32(first + cuda.threadIdx.x // SUMMED)
        unit = int32(uint32(which) // uint32(classes))
        c = int32(which - unit * classes)
        moves = cuda.threadIdx.x % SUMMED == 0 and which < everything
        if moves:
            if which < of_weights:
                take_out(kind, weights_b, w_first_b, w_second_b, which, one, one_first, one_second, 0)
            elif which < of_head:
                take_out(kind, bias_b, b_first_b, b_second_b, c, one, one_first, one_second, 0)
            else:
                take_out(kind, bias_a, b_first_a, b_second_a, which - of_head, one, one_first, one_second, 0)
        total = numbers.dtype.type(0)
        r = int32(cuda.threadIdx.x % SUMMED)
        while r < rows:
            for n in range(AT_ONCE):
                left[n] = numbers.dtype.type(1)
                right[n] = numbers.dtype.type(0)
            if which < of_weights:
                load_column(inputs_b, columns, unit, r, rows, left)
            if which < of_head:
                load_column(grad_logits, classes, c, r, rows, right)
            elif which < everything:
                load_column(grad_hidden, columns, which - of_head, r, rows, right)
            for n in range(AT_ONCE):
                total += left[n] * right[n]
            r = int32(r + AT_ONCE * SUMMED)
        for offset in (8, 4, 2, 1):
            total += cuda.shfl_xor_sync(FULL, total, offset)
        if moves:
            if kind != ONLY_GRADIENTS:
                optimizer_update(kind, one, one_first, one_second, 0, total, numbers)
                if which < of_weights:
                    put_back(kind, weights_b, w_first_b, w_second_b, which, one, one_first, one_second, 0)
                elif which < of_head:
                    put_back(kind, bias_b, b_first_b, b_second_b, c, one, one_first, one_second, 0)
                else:
                    put_back(kind, bias_a, b_first_a, b_second_a, which - of_head, one, one_first, one_second, 0)
            elif which < of_weights:
                grad_weights_b[unit, c] = total
            elif which < of_head:
                grad_bias_b[c] = total
            else:
                grad_bias_a[which - of_head] = total
        first = int32(first + cuda.gridDim.x * OF_A_BLOCK)
