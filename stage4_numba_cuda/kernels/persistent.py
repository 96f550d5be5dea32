"""Many training steps in one launch, for a network with one hidden layer: blocks meet at barriers across the grid.

Between two launches a block's shared memory is lost. Here a block lives as long as the run: it owns a tile of the first
layer's weights, K_TILE inputs by H_TILE neurons, and keeps it in shared memory from the first step to the last. A step
has three parts, and all blocks meet twice:

    1  every block multiplies its slice of the batch with its tile: parts[slice] of xW
       barrier: all parts are there
    2  a row of the batch a block: sum of the parts, bias, activation, dropout; last layer, loss, slopes of both layers
       barrier: all slopes are there
    3  every block: dW of its tile, from the slice of the batch that still lies in its shared memory, and the
       optimizer's step; a hidden neuron a block: dW and step of the last layer

Nothing of part 1 of the next step depends on part 3 of another block, so two barriers are enough: the tile is the
block's own, and the last layer's weights and all biases are read behind the next barrier.

The barrier is `ptx.meet`, ours: cooperative groups' sync() has no end to its waiting, and ours gives up after
ptx.PATIENCE and tells the host. On the emulator it is cuda.cg.this_grid().sync().

A batch goes through in pieces of `chunk` rows. Where it is a single piece, part 3 finds x as part 1 left it.
"""

from numba import float32, uint64

from ..backend import cuda
from .activations import activate, back
from .dropout import mask_key, mask_value
from .head import HEAD_LANES, HINGE, SOFTMAX_CE, elementwise_loss, hinge, softmax_cross_entropy
from .optimizers import COUNT
from .optimizers import update as optimizer_update
from .ptx import meet
from .update import ONLY_GRADIENTS

THREADS, WARPS = 256, 8
K_TILE, H_TILE = 64, 16
"""A block's tile of the first layer's weights: inputs, neurons."""

ACROSS = THREADS // K_TILE
"""Numbers of one row of the tile that a thread moves: ACROSS threads share a row."""

HIDDEN_MOST = 512
"""Hidden neurons: their outputs for one row of the batch lie in shared memory twice, with dropout and without."""

SHADES = 256
"""Values of a byte."""

NO_MASK, GIVEN, DRAWN = range(3)
"""Dropout: none, a mask that is an argument, or masks drawn from the count of steps."""


@cuda.jit(device=True)
def from_byte(values, shades, sample, k):
    return shades[values[sample, k]]


@cuda.jit(device=True)
def from_number(values, shades, sample, k):
    return type(shades[0])(values[sample, k])


@cuda.jit(device=True)
def keep(masked, mask, key, row, unit, columns, threshold, scale):
    """The factor of dropout: 0 or 1 / (1 - rate)."""
    if masked == GIVEN:
        return mask[row, unit]
    return mask_value(key, uint64(row * columns + unit), threshold, scale)


def make_persistent(chunk, as_bytes):
    """The kernel. chunk: rows of the batch at a time: 16, 32 or 64; as_bytes: values are bytes, to divide by 255."""
    rows_each = chunk * H_TILE // THREADS  # rows of xW that a thread computes, of one column
    lanes = THREADS // chunk  # threads that fetch one row of the batch
    in_flight = min(8, K_TILE // lanes)  # numbers that a thread asks for before it waits
    pitch = chunk + 4  # a multiple of 16 bytes, and the threads that write a row's numbers meet different banks
    value_of = from_byte if as_bytes else from_number

    @cuda.jit(device=True)
    def fetch(values, order, start, rows, k0, x_tile, shades):
        """x_tile[k, r] = input k0 + k of row `start` + r of the batch; 0 past an edge."""
        t = cuda.threadIdx.x
        r = t // lanes
        sample = 0
        if r < rows:
            sample = order[start + r]
        k = t % lanes
        while k < K_TILE:
            for _ in range(in_flight):
                value = type(shades[0])(0)
                if r < rows and k0 + k < values.shape[1]:
                    value = value_of(values, shades, sample, k0 + k)
                x_tile[k, r] = value
                k += lanes

    @cuda.jit
    def persistent(
        values, labels, targets, own_targets, order, first, steps, rows, activation, loss, kind, schedule,
        mask, masked, seed, steps_before, threshold, scale,
        weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a, grad_weights_a, grad_bias_a,
        weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
        parts, inputs_b, grad_hidden, grad_logits, row_losses, meetings,
    ):  # fmt: skip
        # values (n, K) uint8 or float, labels (n,), order (n,): row r of step s is order[first + s * rows + r]
        # targets (rows, classes): made here from the labels where own_targets is 1; schedule (steps, COUNT)
        # weights_a (K * H,), weights_b (H * classes,), and what the optimizer keeps for each, flat
        # parts (slices, rows, H); inputs_b, grad_hidden (rows, H); grad_logits (rows, classes): between the parts of a
        # step; row_losses (steps, rows); meetings (2,) int32: arrivals at barriers, and whether one took too long
        x_tile = cuda.shared.array((K_TILE, pitch), parts.dtype, alignment=16)
        w_tile = cuda.shared.array((K_TILE, H_TILE), parts.dtype, alignment=16)
        d_tile = cuda.shared.array((chunk, H_TILE), parts.dtype, alignment=16)
        outputs = cuda.shared.array(HIDDEN_MOST, parts.dtype)
        dropped = cuda.shared.array(HIDDEN_MOST, parts.dtype)
        shades = cuda.shared.array(SHADES, parts.dtype)
        logits = cuda.shared.array((1, HEAD_LANES), parts.dtype)
        slopes = cuda.shared.array(HEAD_LANES, parts.dtype)
        numbers = cuda.shared.array(COUNT, parts.dtype)
        totals = cuda.local.array(rows_each, parts.dtype)
        changes = cuda.local.array(ACROSS, parts.dtype)
        t = cuda.threadIdx.x
        lane = t % 32
        warp = t // 32
        block = cuda.blockIdx.x
        blocks = cuda.gridDim.x
        features = values.shape[1]
        columns = parts.shape[2]
        classes = bias_b.size
        zero = parts.dtype.type(0)
        groups = (columns + H_TILE - 1) // H_TILE
        part = block // groups
        k0 = part * K_TILE
        h0 = block % groups * H_TILE
        pieces = (rows + chunk - 1) // chunk
        tile_row = t // ACROSS  # of the tile, in part 3
        tile_column = t % ACROSS * (H_TILE // ACROSS)
        column = t % H_TILE  # of xW, in part 1
        row0 = t // H_TILE * rows_each
        target = 0

        if t < SHADES:
            shades[t] = parts.dtype.type(float32(t) / float32(255))  # as the data set is made on the host
        for i in range(K_TILE * H_TILE // THREADS):
            k = t // H_TILE + i * (THREADS // H_TILE)
            inside = k0 + k < features and h0 + column < columns
            w_tile[k, column] = weights_a[(k0 + k) * columns + h0 + column] if inside else zero
        cuda.syncthreads()

        step = 0
        while step < steps:
            start = first + step * rows
            if t < COUNT:
                numbers[t] = schedule[step, t]

            # 1: this block's part of xW
            piece = 0
            while piece < pieces:
                r0 = piece * chunk
                fetch(values, order, start + r0, min(chunk, rows - r0), k0, x_tile, shades)
                cuda.syncthreads()
                for i in range(rows_each):
                    totals[i] = zero
                k = 0
                while k < K_TILE:  # not range, which would be unrolled whole and take all registers
                    weight = w_tile[k, column]
                    for i in range(rows_each):
                        totals[i] += x_tile[k, row0 + i] * weight
                    k += 1
                for i in range(rows_each):
                    if r0 + row0 + i < rows and h0 + column < columns:
                        parts[part, r0 + row0 + i, h0 + column] = totals[i]
                cuda.syncthreads()
                piece += 1
            target += blocks
            if not meet(meetings, target):
                return

            # 2: rows of the batch, one at a time
            key = mask_key(uint64(seed), uint64(steps_before + step), uint64(0))
            row = block
            while row < rows:
                unit = t
                while unit < columns:
                    z = parts[0, row, unit]
                    split = 1
                    while split < parts.shape[0]:
                        z += parts[split, row, unit]
                        split += 1
                    value = activate(activation, z + bias_a[unit])
                    outputs[unit] = value
                    if masked != NO_MASK:
                        value *= keep(masked, mask, key, row, unit, columns, threshold, scale)
                    dropped[unit] = value
                    inputs_b[row, unit] = value
                    unit += THREADS
                label = labels[order[start + row]]
                if own_targets == 1 and t < classes:
                    one = parts.dtype.type(1)
                    targets[row, t] = parts.dtype.type(label) if classes == 1 else (one if t == label else zero)
                cuda.syncthreads()
                c0 = 0
                while c0 < classes:
                    c = c0 + warp
                    logit = zero
                    if c < classes:
                        unit = lane
                        while unit < columns:
                            logit += dropped[unit] * weights_b[unit * classes + c]
                            unit += 32
                    for offset in (16, 8, 4, 2, 1):
                        logit += cuda.shfl_down_sync(0xFFFFFFFF, logit, offset)
                    if lane == 0 and c < classes:
                        logits[0, c] = logit + bias_b[c]
                    c0 += WARPS
                cuda.syncthreads()
                if t < classes:
                    if loss == SOFTMAX_CE:
                        slope = softmax_cross_entropy(logits, 0, t, classes, rows, label, row_losses, step, row)
                    elif loss == HINGE:
                        slope = hinge(logits, 0, t, classes, rows, label, row_losses, step, row)
                    else:
                        slope = elementwise_loss(loss, logits, 0, t, classes, rows, targets, row_losses, step, row)
                    slopes[t] = slope
                    grad_logits[row, t] = slope
                cuda.syncthreads()
                unit = t
                while unit < columns:
                    grad = zero
                    c = 0
                    while c < classes:
                        grad += slopes[c] * weights_b[unit * classes + c]
                        c += 1
                    if masked != NO_MASK:
                        grad *= keep(masked, mask, key, row, unit, columns, threshold, scale)
                    grad_hidden[row, unit] = back(activation, grad, outputs[unit])
                    unit += THREADS
                cuda.syncthreads()
                row += blocks
            target += blocks
            if not meet(meetings, target):
                return

            # 3: the tile's own gradient and step
            for i in range(H_TILE // ACROSS):
                changes[i] = zero
            change = zero
            piece = 0
            while piece < pieces:
                r0 = piece * chunk
                if pieces > 1:
                    fetch(values, order, start + r0, min(chunk, rows - r0), k0, x_tile, shades)
                for i in range(rows_each):
                    r = t // H_TILE + i * (THREADS // H_TILE)
                    inside = r0 + r < rows and h0 + column < columns
                    d_tile[r, column] = grad_hidden[r0 + r, h0 + column] if inside else zero
                cuda.syncthreads()
                r = 0
                while r < chunk:
                    x = x_tile[tile_row, r]
                    for i in range(H_TILE // ACROSS):
                        changes[i] += x * d_tile[r, tile_column + i]
                    r += 1
                if part == 0 and t < H_TILE:
                    r = 0
                    while r < chunk:
                        change += d_tile[r, t]
                        r += 1
                cuda.syncthreads()
                piece += 1
            for i in range(H_TILE // ACROSS):
                if k0 + tile_row < features and h0 + tile_column + i < columns:
                    if kind == ONLY_GRADIENTS:
                        grad_weights_a[k0 + tile_row, h0 + tile_column + i] = changes[i]
                    else:
                        # Each array from this weight on, so that it has the number 0 in all of them.
                        at = (k0 + tile_row) * columns + h0 + tile_column + i
                        optimizer_update(
                            kind,
                            w_tile[tile_row, tile_column + i :],
                            w_first_a[at:],
                            w_second_a[at:],
                            0,
                            changes[i],
                            numbers,
                        )
            if part == 0 and t < H_TILE and h0 + t < columns:
                if kind == ONLY_GRADIENTS:
                    grad_bias_a[h0 + t] = change
                else:
                    optimizer_update(kind, bias_a, b_first_a, b_second_a, h0 + t, change, numbers)

            # and the last layer's: a hidden neuron a block, a class a warp; behind them its bias
            unit = block
            while unit <= columns:
                c0 = 0
                while c0 < classes:
                    c = c0 + warp
                    total = zero
                    if c < classes:
                        r = lane
                        while r < rows:
                            if unit < columns:
                                total += inputs_b[r, unit] * grad_logits[r, c]
                            else:
                                total += grad_logits[r, c]
                            r += 32
                    for offset in (16, 8, 4, 2, 1):
                        total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
                    if lane == 0 and c < classes:
                        if unit < columns and kind == ONLY_GRADIENTS:
                            grad_weights_b[unit, c] = total
                        elif unit < columns:
                            optimizer_update(kind, weights_b, w_first_b, w_second_b, unit * classes + c, total, numbers)
                        elif kind == ONLY_GRADIENTS:
                            grad_bias_b[c] = total
                        else:
                            optimizer_update(kind, bias_b, b_first_b, b_second_b, c, total, numbers)
                    c0 += WARPS
                unit += blocks
            cuda.syncthreads()
            step += 1

        if kind != ONLY_GRADIENTS:
            for i in range(K_TILE * H_TILE // THREADS):
                k = t // H_TILE + i * (THREADS // H_TILE)
                if k0 + k < features and h0 + column < columns:
                    weights_a[(k0 + k) * columns + h0 + column] = w_tile[k, column]

    return persistent


CHUNKS = (64, 32, 16)
PERSISTENT = {(chunk, as_bytes): make_persistent(chunk, as_bytes) for chunk in CHUNKS for as_bytes in (False, True)}
