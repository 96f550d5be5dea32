"""Floating-point operations and bytes of every operation of a training step, counted from the shapes.

One multiply-add is two operations; an exponential, a logarithm, a root and a comparison are one each. Of bytes, every
operand is read once and every result written once, whatever a cache or an algorithm makes of it. So both are what the
definition needs: Winograd's convolution multiplies less, and its GFLOP/s may be above the machine's peak.

N is the batch, (C, H, W) an image that comes in, (O, P, Q) one that goes out, (R, S) a window, n the numbers of the
whole batch that come in, m those that go out, p the parameters. Bytes are in numbers of 4 (float32) or 8 (float64).

    operation               floating-point operations          numbers read and written
    conv forward            2 m C R S + m (bias)               n + O C R S + O + m
    conv dW, db             2 m C R S + m                      n + m + O C R S + O
    conv dW, db, dx         4 m C R S + m                      2 n + m + 2 O C R S + O
    dense forward           2 N in out + N out (bias)          n + in out + out + m
    dense dW, db            2 N in out + N out                 n + m + in out + out
    dense dW, db, dx        4 N in out + N out                 2 n + m + 2 in out + out
    max pool forward        m (R S − 1) comparisons            n + m, and m indices
    max pool backward       m additions                        m + n, and m indices
    average pool forward    m R S (a sum and a factor)         n + m
    average pool backward   m + m R S                          m + n
    batch norm forward      8 n: sum 1; − mean, square, sum 3; n + m + 2 C (gamma, beta)
                            normalise, scale, shift 4          + 4 C (running mean and variance, before and after)
    batch norm backward     9 n: normalised x 2; the sums of   2 n + m + 3 C (gamma; dgamma, dbeta)
                            g and of g times it 3; dx 4
    activations, losses     a number of operations for each    2 n; back: 3 n (2 n for identity)
      and optimizers        number: operation_table.py         SGD p: 3 p
    dropout                 n                                  3 n, the mask among them
    residual addition       n                                  3 n
    flatten, arrange        0                                  2 n where the numbers are moved, else 0

Operations for a channel or a row only once, such as the root of a variance, are left out. A batch norm's figures are
those of training. What is fused reads and writes its intermediate result not at all.
"""

from __future__ import annotations

import math

from shared.bench.kinds.operation_table import (
    LABEL_BYTES,
    LOSS_BYTES,
    LOSS_FLOPS,
    OPTIMIZER_ARRAYS,
    OPTIMIZER_FLOPS,
    Work,
    dense_work,
)
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, MaxPool, Placed, Residual
from shared.names import ACTIVATION_FLOPS, LABEL_LOSSES
from shared.windows import pair

INDEX_BYTES = 8
"""Of the indices of a maximum pool, which are 64-bit integers; stage 3's whole step keeps them as numbers."""


def forward(placed: Placed, batch: int, itemsize: int, *, index_bytes: int = INDEX_BYTES, moves: bool = True) -> Work:
    """The work of a layer on its way forward. moves: whether a Flatten moves its numbers"""
    layer, n, m = placed.layer, *_numbers(placed, batch)
    if isinstance(layer, Dense):
        return dense_work(batch, placed.input_shape[0], placed.output_shape[0], itemsize)["forward"]
    if isinstance(layer, Conv):
        weights, filters = _weights(placed, layer)
        return Work(2 * m * weights // filters + m, itemsize * (n + weights + filters + m))
    if isinstance(layer, MaxPool):
        return Work(m * (_window(layer) - 1), itemsize * (n + m) + index_bytes * m)
    if isinstance(layer, AveragePool):
        return Work(m * _window(layer), itemsize * (n + m))
    if isinstance(layer, BatchNorm):
        return Work(8 * n, itemsize * (n + m + 6 * placed.input_shape[0]))
    if isinstance(layer, Activate):
        return activation(layer.name, n, itemsize)[0]
    if isinstance(layer, Dropout | Residual):
        return Work(n, 3 * itemsize * n)
    return Work(0, 2 * itemsize * n if moves else 0)


def backward(
    placed: Placed,
    batch: int,
    itemsize: int,
    *,
    needs_grad_input: bool = True,
    index_bytes: int = INDEX_BYTES,
    moves: bool = True,
) -> Work:
    """The work of a layer on its way back. needs_grad_input: as `Dense.backward` takes it"""
    layer, n, m = placed.layer, *_numbers(placed, batch)
    if isinstance(layer, Dense):
        return dense_work(batch, placed.input_shape[0], placed.output_shape[0], itemsize, needs_grad_input)["backward"]
    if isinstance(layer, Conv):
        weights, filters = _weights(placed, layer)
        product = 2 * m * weights // filters
        into_x = n + weights if needs_grad_input else 0
        return Work((2 if needs_grad_input else 1) * product + m, itemsize * (n + m + weights + filters + into_x))
    if isinstance(layer, MaxPool):
        return Work(m, itemsize * (n + m) + index_bytes * m)
    if isinstance(layer, AveragePool):
        return Work(m + m * _window(layer), itemsize * (n + m))
    if isinstance(layer, BatchNorm):
        return Work(9 * n, itemsize * (2 * n + m + 3 * placed.input_shape[0]))
    if isinstance(layer, Activate):
        return activation(layer.name, n, itemsize)[1]
    return forward(placed, batch, itemsize, moves=moves)


def activation(name: str, numbers: int, itemsize: int) -> tuple[Work, Work]:
    """(forward, backward) of an activation of so many numbers."""
    there, back = ACTIVATION_FLOPS[name]
    read = 1 if name == "identity" else 2  # the gradient, and z or the output
    return Work(there * numbers, 2 * itemsize * numbers), Work(back * numbers, (read + 1) * itemsize * numbers)


def loss(name: str, batch: int, columns: int, itemsize: int) -> tuple[Work, Work, Work]:
    """(the loss, its gradient, both at once) of outputs (batch, columns)."""
    numbers = batch * columns
    targets = LABEL_BYTES * batch if name in LABEL_LOSSES else itemsize * numbers
    there, back = LOSS_FLOPS[name]
    alone = Work(there * numbers, itemsize * numbers + targets + LOSS_BYTES)
    gradient = Work(back * numbers, 2 * itemsize * numbers + targets)
    # At once, softmax is worked out a single time for both.
    both = back if name == "softmax_cross_entropy" else there + back
    return alone, gradient, Work(both * numbers, gradient.bytes + LOSS_BYTES)


def update(optimizer: str, parameters: int, itemsize: int) -> Work:
    """The work of an optimizer's step on so many parameters."""
    return Work(OPTIMIZER_FLOPS[optimizer] * parameters, OPTIMIZER_ARRAYS[optimizer] * parameters * itemsize)


def fused(main: Work, second: Work, in_pass: bool) -> Work:
    """Two operations in one. in_pass: whether the second one reads and writes no memory of its own"""
    return Work(main.flops + second.flops, main.bytes + (0 if in_pass else second.bytes))


def _numbers(each: Placed, batch: int) -> tuple[int, int]:
    return batch * math.prod(each.input_shape), batch * math.prod(each.output_shape)


def _weights(each: Placed, layer: Conv) -> tuple[int, int]:
    """How many weights, and how many filters."""
    rows, columns = pair("size", layer.size, 1)
    return layer.out_channels * each.input_shape[0] * rows * columns, layer.out_channels


def _window(layer: MaxPool | AveragePool) -> int:
    return math.prod(pair("size", layer.size, 1))
