"""The middle of a step in one kernel: from the last hidden layer's products to the loss and the slopes on both sides.

A row of the batch needs all its classes before its softmax, and its softmax before any slope. With at most 32 classes
a row fits in a block, so what would be five kernels (bias and activation, product, loss and gradient, product back,
slope) can wait at barriers instead of at the ends of launches.
"""

import math

from ..backend import cuda
from .activations import activate, back
from .fused import SLOT

HEAD_ROWS, HEAD_LANES = 8, 32
"""A block: so many rows of the batch, and a lane for each class."""

MSE, SOFTMAX_CE, SIGMOID_CE, HINGE = 0, 1, 2, 3
"""In the order of shared.contract.LOSSES."""


@cuda.jit
def head(
    activation, loss, parts, hidden_bias, hidden, dropped, mask, masked,
    weights, bias, labels, targets, grad_logits, grad_hidden, row_losses, counters,
):  # fmt: skip
    """From the last hidden layer's products to the loss and the slopes, HEAD_ROWS rows of the batch a block.

    parts (splits, rows, H), hidden_bias (H,), hidden, dropped, mask (rows, H); weights (H, classes <= 32), bias
    labels (rows,) or targets (rows, classes), whichever the loss reads
    written: hidden, dropped; grad_logits (rows, classes), grad_hidden (rows, H): dL/dz of both layers;
    row_losses[slot, row], whose sum over the rows is the loss
    """
    h_tile = cuda.shared.array((HEAD_ROWS, HEAD_LANES), hidden.dtype)
    w_tile = cuda.shared.array((HEAD_LANES, HEAD_LANES), hidden.dtype)
    logits = cuda.shared.array((HEAD_ROWS, HEAD_LANES), hidden.dtype)
    slopes = cuda.shared.array((HEAD_ROWS, HEAD_LANES), hidden.dtype)
    lane = cuda.threadIdx.x
    local = cuda.threadIdx.y
    row = cuda.blockIdx.x * HEAD_ROWS + local
    rows = hidden.shape[0]
    features = hidden.shape[1]
    classes = weights.shape[1]
    zero = hidden.dtype.type(0)

    logit = zero
    k0 = 0
    while k0 < features:
        k = k0 + lane
        value = zero
        if row < rows and k < features:
            z = parts[0, row, k]
            split = 1
            while split < parts.shape[0]:
                z += parts[split, row, k]
                split += 1
            value = activate(activation, z + hidden_bias[k])
            hidden[row, k] = value
            if masked:
                value *= mask[row, k]
                dropped[row, k] = value
        h_tile[local, lane] = value
        for part in range(HEAD_LANES // HEAD_ROWS):
            k = local + part * HEAD_ROWS
            w_tile[k, lane] = weights[k0 + k, lane] if k0 + k < features and lane < classes else zero
        cuda.syncthreads()
        for i in range(HEAD_LANES):
            logit += h_tile[local, i] * w_tile[i, lane]
        cuda.syncthreads()
        k0 += HEAD_LANES

    inside = row < rows and lane < classes
    if inside:
        logit += bias[lane]
    logits[local, lane] = logit
    cuda.syncthreads()

    gradient = zero
    slot = counters[SLOT]
    if inside:
        if loss == SOFTMAX_CE:
            gradient = softmax_cross_entropy(logits, local, lane, classes, rows, labels[row], row_losses, slot, row)
        elif loss == HINGE:
            gradient = hinge(logits, local, lane, classes, rows, labels[row], row_losses, slot, row)
        else:
            gradient = elementwise_loss(loss, logits, local, lane, classes, rows, targets, row_losses, slot, row)
        grad_logits[row, lane] = gradient
    slopes[local, lane] = gradient
    cuda.syncthreads()

    k = lane
    while k < features:
        if row < rows:
            grad = zero
            j = 0
            while j < classes:
                grad += slopes[local, j] * weights[k, j]
                j += 1
            if masked:
                grad *= mask[row, k]
            grad_hidden[row, k] = back(activation, grad, hidden[row, k])
        k += HEAD_LANES


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
