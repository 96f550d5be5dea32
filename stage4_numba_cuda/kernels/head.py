"""The middle of a step in one kernel: from the last hidden layer's products to the loss and the slopes on both sides.

A row of the batch needs all its classes before its softmax, and its softmax before any slope. With at most 32 classes
a row fits in a block, so what would be five kernels (bias and activation, product, loss and gradient, product back,
slope) can wait at barriers instead of at the ends of launches.
"""

import math

from numba import int32, uint32

from ..backend import cuda
from .activations import activate, back
from .fused import SLOT

HEAD_GPU, HEAD_CPU = 4, 8
"""Rows of the batch that a block computes. A GPU wants many blocks for a small batch; the emulator wants few."""

HEAD_LANES, HEAD_WARPS = 32, 8
"""Threads of a block: a lane for each class, and warps that share the hidden features."""

MSE, SOFTMAX_CE, SIGMOID_CE, HINGE = 0, 1, 2, 3
"""In the order of shared.contract.LOSSES."""


def make_head(block_rows, in_flight):
    """The kernel for blocks of HEAD_LANES x HEAD_WARPS threads, with so many rows of the batch each.

    in_flight: loads that a thread starts before it uses the first number; together they take about as long as one
    """
    across = HEAD_LANES * HEAD_WARPS // block_rows  # threads that fetch one row
    chunk = 2048 // block_rows  # hidden features that lie in shared memory at a time
    most = max(block_rows, in_flight)

    @cuda.jit
    def head(
        activation, loss, parts, hidden_bias, hidden, dropped, mask, masked,
        weights, bias, labels, targets, grad_logits, grad_hidden, row_losses, counters,
    ):  # fmt: skip
        # parts (splits, rows, H), hidden_bias (H,), hidden, dropped, mask (rows, H); weights (H, classes <= 32), bias
        # labels (rows,) and targets (rows, classes), of which the loss uses one
        # written: hidden, dropped; grad_logits (rows, classes), grad_hidden (rows, H): dL/dz of both layers;
        # row_losses[slot, row], whose sum over the rows is the loss
        # The block's memory, and its rows
        inputs = cuda.shared.array((block_rows, chunk), hidden.dtype)  # of the last layer
        sums = cuda.shared.array((HEAD_WARPS, block_rows, HEAD_LANES), hidden.dtype)
        logits = cuda.shared.array((block_rows, HEAD_LANES), hidden.dtype)
        slopes = cuda.shared.array((block_rows, HEAD_LANES), hidden.dtype)
        fetched = cuda.local.array(most, hidden.dtype)
        totals = cuda.local.array(block_rows, hidden.dtype)
        # 32 bits, and unsigned where they index: what may be negative is tested, and counts from the end.
        lane = int32(cuda.threadIdx.x)
        warp = int32(cuda.threadIdx.y)
        thread = int32(warp * HEAD_LANES + lane)
        row0 = int32(cuda.blockIdx.x * block_rows)
        rows = int32(hidden.shape[0])
        features = int32(hidden.shape[1])
        classes = int32(weights.shape[1])
        splits = int32(parts.shape[0])
        zero = hidden.dtype.type(0)

        # What the loss needs is fetched here, so that it is there when the logits are.
        row = int32(row0 + warp)
        inside = warp < block_rows and row < rows and lane < classes
        slot = counters[SLOT]
        logit = bias[lane] if inside else zero
        label = labels[row] if inside else 0  # also for a loss that has none, whose labels are there, too

        # 1: the hidden layer's outputs, a chunk at a time, and this warp's share of the logits from them
        for r in range(block_rows):
            totals[r] = zero
        local = int32(thread // across)
        row = int32(row0 + local)
        source = uint32(min(row, rows - int32(1)))
        k0 = int32(0)
        while k0 < features:
            count = min(int32(chunk), int32(features - k0))
            k = int32(thread % across)
            while k < count:  # z; past the last feature the same one again, which nobody reads
                for i in range(in_flight):
                    fetched[i] = hidden_bias[uint32(min(k0 + k + int32(i * across), features - int32(1)))]
                split = int32(0)
                while split < splits:
                    for i in range(in_flight):
                        column = uint32(min(k0 + k + int32(i * across), features - int32(1)))
                        fetched[i] += parts[uint32(split), source, column]
                    split += int32(1)
                for i in range(in_flight):
                    inputs[uint32(local), uint32(k + int32(i * across))] = fetched[i]
                k += int32(in_flight * across)
            k = int32(thread % across)
            while k < count and row < rows:
                value = activate(activation, inputs[uint32(local), uint32(k)])
                hidden[uint32(row), uint32(k0 + k)] = value
                if masked:
                    value *= mask[uint32(row), uint32(k0 + k)]
                    dropped[uint32(row), uint32(k0 + k)] = value
                inputs[uint32(local), uint32(k)] = value
                k += int32(across)
            cuda.syncthreads()
            k = warp
            while k < count and lane < classes:
                weight = weights[uint32(k0 + k), uint32(lane)]
                for r in range(block_rows):
                    totals[r] += inputs[uint32(r), uint32(k)] * weight
                k += int32(HEAD_WARPS)
            cuda.syncthreads()
            k0 += int32(chunk)
        for r in range(block_rows):
            sums[uint32(warp), uint32(r), uint32(lane)] = totals[r]
        cuda.syncthreads()

        # 2: the logits, the loss of each row, and its slopes
        row = int32(row0 + warp)
        if inside:
            for part in range(HEAD_WARPS):
                logit += sums[uint32(part), uint32(warp), uint32(lane)]
            logits[uint32(warp), uint32(lane)] = logit
        cuda.syncthreads()
        gradient = zero
        if inside:
            if loss == SOFTMAX_CE:
                gradient = softmax_cross_entropy(logits, warp, lane, classes, rows, label, row_losses, slot, row)
            elif loss == HINGE:
                gradient = hinge(logits, warp, lane, classes, rows, label, row_losses, slot, row)
            else:
                gradient = elementwise_loss(loss, logits, warp, lane, classes, rows, targets, row_losses, slot, row)
            grad_logits[row, lane] = gradient
        if warp < block_rows:
            slopes[warp, lane] = gradient
        cuda.syncthreads()

        # 3: the slopes of the hidden layer, a column to a thread
        k = thread
        while k < features:
            for r in range(block_rows):
                fetched[r] = hidden[uint32(min(row0 + int32(r), rows - int32(1))), uint32(k)]
                totals[r] = zero
            j = int32(0)
            while j < classes:
                weight = weights[uint32(k), uint32(j)]
                for r in range(block_rows):
                    totals[r] += slopes[uint32(r), uint32(j)] * weight
                j += int32(1)
            for r in range(block_rows):
                row = int32(row0 + int32(r))
                if row < rows:
                    grad = totals[r]
                    if masked:
                        grad *= mask[uint32(row), uint32(k)]
                    grad_hidden[uint32(row), uint32(k)] = back(activation, grad, fetched[r])
            k += int32(HEAD_LANES * HEAD_WARPS)

    return head


@cuda.jit(device=True)
def softmax_cross_entropy(logits, local, lane, classes, rows, label, row_losses, slot, row):
    """(softmax - one_hot) / batch for one class.

    The first lane writes the row's loss, log(sum exp(z - m)) - (z_y - m) with m the largest z: finite for any finite z.
    """
    largest = logits[local, 0]
    j = 1
    while j < classes:
        largest = max(largest, logits[local, j])
        j += 1
    total = math.exp(logits[local, 0] - largest)
    j = 1
    while j < classes:
        total += math.exp(logits[local, j] - largest)
        j += 1
    batch = type(total)(rows)
    if lane == 0:
        row_losses[slot, row] = (math.log(total) - (logits[local, label] - largest)) / batch
    probability = math.exp(logits[local, lane] - largest) / total
    if lane == label:
        probability -= type(total)(1)
    return probability / batch


@cuda.jit(device=True)
def hinge(logits, local, lane, classes, rows, label, row_losses, slot, row):
    """Multi-class margin loss: +1 for a wrong class within the margin of 1, minus their number for the right one."""
    one = type(logits[local, lane])(1)
    total = one - one
    within = one - one
    j = 0
    while j < classes:
        margin = one - logits[local, label] + logits[local, j]
        if j != label and not margin <= 0:  # so that a NaN shows in the loss
            total += margin
        if j != label and margin > 0:
            within += one
        j += 1
    count = type(one)(rows) * type(one)(classes)
    if lane == 0:
        row_losses[slot, row] = total / count
    if lane == label:
        return -within / count
    margin = one - logits[local, label] + logits[local, lane]
    return (one if margin > 0 else one - one) / count


@cuda.jit(device=True)
def elementwise_loss(loss, logits, local, lane, classes, rows, targets, row_losses, slot, row):
    """Mean squared error or sigmoid cross-entropy: the mean over all elements, and each element's own slope."""
    z = logits[local, lane]
    one = type(z)(1)
    count = type(z)(rows) * type(z)(classes)
    if lane == 0:
        total = one - one
        j = 0
        while j < classes:
            other = logits[local, j]
            target = targets[row, j]
            if loss == MSE:
                total += (other - target) * (other - target)
            else:
                total += max(other, type(z)(0)) - other * target + math.log1p(math.exp(-abs(other)))
            j += 1
        row_losses[slot, row] = total / count
    if loss == MSE:
        return type(z)(2) * (z - targets[row, lane]) / count
    small = math.exp(-abs(z))
    sigmoid = (one if z >= 0 else small) / (one + small)
    return (sigmoid - targets[row, lane]) / count


HEAD = {HEAD_GPU: make_head(HEAD_GPU, 4), HEAD_CPU: make_head(HEAD_CPU, 1)}
