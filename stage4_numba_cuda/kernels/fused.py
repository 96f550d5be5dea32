"""A whole training step in three kernels, for a network with one hidden layer.

    forward_partial    xW of the first layer, cut along k so that many blocks share the work of a small batch
    head               sums the parts, bias, activation; last layer, loss, and the slopes of both layers
    update             dW = xᵀ dz and db of two layers, and the optimizer's step in the same breath

At batch 64 a 784-128-10 step is 26 million floating-point operations: less than a microsecond of an H100's arithmetic.
What it waits for is launches and memory, so the fewer kernels, the better. Between two kernels every block has
finished; inside one, blocks cannot wait for each other: that is where the cuts have to be.

Deeper networks repeat `forward_partial` with `combine` behind it, and backward_fused of the matmul room.
"""

import math

from numba import float32

from ..backend import cuda
from .activations import activate, back
from .optimizers import update as optimizer_update

TILE_GPU, TILE_CPU = 16, 32
"""A GPU wants many small blocks for such small matrices; the emulator wants few long loops."""

HEAD_ROWS, HEAD_LANES = 8, 32
"""A block of `head`: so many rows of the batch, and a lane for each class."""

MSE, SOFTMAX_CE, SIGMOID_CE, HINGE = 0, 1, 2, 3
"""In the order of shared.contract.LOSSES."""

ONLY_GRADIENTS = -1
"""In place of the optimizer's kind: write the gradients and move nothing."""

POSITION, STEP, SLOT = 0, 1, 2
"""What `counters` holds: the batch's first place in the epoch's order, steps taken, steps since the last reading."""


def make_forward_partial(tile):
    """xW in parts: parts[s] = x[:, part s of k] W[part s of k, :]. Grid: (column tiles, row tiles, parts)."""

    @cuda.jit
    def forward_partial(x, weights, parts):
        # x is (rows, K), weights (K, columns), parts (splits, rows, columns)
        x_tile = cuda.shared.array((tile, tile), x.dtype)
        w_tile = cuda.shared.array((tile, tile), x.dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column = cuda.blockIdx.x * tile + tx
        row = cuda.blockIdx.y * tile + ty
        split = cuda.blockIdx.z
        length = (x.shape[1] + parts.shape[0] * tile - 1) // (parts.shape[0] * tile) * tile
        k0 = split * length
        end = min(k0 + length, x.shape[1])
        zero = x.dtype.type(0)
        total = zero
        while k0 < end:
            x_tile[ty, tx] = x[row, k0 + tx] if row < x.shape[0] and k0 + tx < end else zero
            w_tile[ty, tx] = weights[k0 + ty, column] if k0 + ty < end and column < weights.shape[1] else zero
            cuda.syncthreads()
            for k in range(tile):
                total += x_tile[ty, k] * w_tile[k, tx]
            cuda.syncthreads()
            k0 += tile
        if row < x.shape[0] and column < weights.shape[1]:
            parts[split, row, column] = total

    return forward_partial


def make_forward_bytes(tile):
    """`forward_partial` of a batch picked from images that lie on the device as bytes, pixel / 255.

    Its first column of blocks also leaves the batch behind for `update`: x as numbers, y as labels; and the first of
    all puts this step's row of the optimizer's schedule where the other kernels look for it.
    """

    @cuda.jit
    def forward_bytes(images, labels, order, counters, schedule, numbers, weights, x, y, parts):
        # images (n, K) uint8, labels (n,), order (n,): batch row r is image order[counters[POSITION] + r]
        x_tile = cuda.shared.array((tile, tile), x.dtype)
        w_tile = cuda.shared.array((tile, tile), x.dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column = cuda.blockIdx.x * tile + tx
        row = cuda.blockIdx.y * tile + ty
        split = cuda.blockIdx.z
        length = (x.shape[1] + parts.shape[0] * tile - 1) // (parts.shape[0] * tile) * tile
        k0 = split * length
        end = min(k0 + length, x.shape[1])
        zero = x.dtype.type(0)
        total = zero
        image = 0
        if row < x.shape[0]:
            image = order[counters[POSITION] + row]
        if cuda.blockIdx.x == 0 and split == 0:
            if tx == 0 and row < x.shape[0]:
                y[row] = labels[image]
            if cuda.blockIdx.y == 0 and ty == 0 and tx < numbers.size:
                numbers[tx] = schedule[counters[SLOT], tx]
        while k0 < end:
            pixel = zero
            if row < x.shape[0] and k0 + tx < end:
                # through float32 in either dtype: as the data set is made on the host
                pixel = x.dtype.type(float32(images[image, k0 + tx]) / float32(255))
                if cuda.blockIdx.x == 0:
                    x[row, k0 + tx] = pixel
            x_tile[ty, tx] = pixel
            w_tile[ty, tx] = weights[k0 + ty, column] if k0 + ty < end and column < weights.shape[1] else zero
            cuda.syncthreads()
            for k in range(tile):
                total += x_tile[ty, k] * w_tile[k, tx]
            cuda.syncthreads()
            k0 += tile
        if row < x.shape[0] and column < weights.shape[1]:
            parts[split, row, column] = total

    return forward_bytes


@cuda.jit
def combine(activation, parts, bias, output, dropped, mask, masked):
    """output = activate(sum of the parts + bias), dropped = output * mask where there is one; one thread a number."""
    columns = output.shape[1]
    count = output.shape[0] * columns
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < count:
        row = i // columns
        column = i - row * columns
        z = parts[0, row, column]
        split = 1
        while split < parts.shape[0]:
            z += parts[split, row, column]
            split += 1
        value = activate(activation, z + bias[column])
        output[row, column] = value
        if masked:
            dropped[row, column] = value * mask[row, column]
        i += step


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
        if j != label and not margin <= 0:  # so that NaN counts
            total += margin
            within += one
        j += 1
    count = type(one)(rows) * type(one)(classes)
    if lane == 0:
        row_losses[slot, row] = total / count
    if lane == label:
        return -within / count
    margin = one - logits[local, label] + logits[local, lane]
    if not margin <= 0:
        return one / count
    return one - one


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


def make_update(tile):
    """dW = xᵀ dz, db = column sums of dz and the optimizer's step for two layers, in one launch.

    Blocks 0 … blocks_a - 1 have a tile of the first layer's weights each, the others one of the second's. Weights and
    what the optimizer keeps for them are flat.
    """

    @cuda.jit(device=True)
    def layer_update(
        block, kind, x, grad, weights, w_first, w_second, bias, b_first, b_second, grad_weights, grad_bias, numbers
    ):
        x_tile = cuda.shared.array((tile, tile), x.dtype)
        g_tile = cuda.shared.array((tile, tile), x.dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        features = x.shape[1]
        columns = grad.shape[1]
        across = (columns + tile - 1) // tile
        row0 = block // across * tile
        column0 = block % across * tile
        zero = x.dtype.type(0)
        total = zero
        bias_total = zero
        r0 = 0
        while r0 < x.shape[0]:
            r = r0 + ty
            x_tile[ty, tx] = x[r, row0 + tx] if r < x.shape[0] and row0 + tx < features else zero
            g_tile[ty, tx] = grad[r, column0 + tx] if r < x.shape[0] and column0 + tx < columns else zero
            cuda.syncthreads()
            for k in range(tile):
                total += x_tile[k, ty] * g_tile[k, tx]
            if row0 == 0 and ty == 0:
                for k in range(tile):
                    bias_total += g_tile[k, tx]
            cuda.syncthreads()
            r0 += tile
        row = row0 + ty
        column = column0 + tx
        if row < features and column < columns:
            if kind == ONLY_GRADIENTS:
                grad_weights[row, column] = total
            else:
                optimizer_update(kind, weights, w_first, w_second, row * columns + column, total, numbers)
        if row == 0 and column < columns:
            if kind == ONLY_GRADIENTS:
                grad_bias[column] = bias_total
            else:
                optimizer_update(kind, bias, b_first, b_second, column, bias_total, numbers)

    @cuda.jit
    def update(
        kind, numbers, counters, advance, blocks_a,
        x_a, grad_a, weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a, grad_weights_a, grad_bias_a,
        x_b, grad_b, weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
    ):  # fmt: skip
        # advance: the batch's rows where the counters are to move on to the next batch, else 0
        block = cuda.blockIdx.x
        if block < blocks_a:
            layer_update(
                block, kind, x_a, grad_a, weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a,
                grad_weights_a, grad_bias_a, numbers,
            )  # fmt: skip
        else:
            layer_update(
                block - blocks_a, kind, x_b, grad_b, weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b,
                grad_weights_b, grad_bias_b, numbers,
            )  # fmt: skip
        if advance > 0 and block == 0 and cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
            counters[POSITION] += advance
            counters[STEP] += 1
            counters[SLOT] += 1

    return update


FORWARD_PARTIAL = {tile: make_forward_partial(tile) for tile in (TILE_GPU, TILE_CPU)}
FORWARD_BYTES = {tile: make_forward_bytes(tile) for tile in (TILE_GPU, TILE_CPU)}
UPDATE = {tile: make_update(tile) for tile in (TILE_GPU, TILE_CPU)}
