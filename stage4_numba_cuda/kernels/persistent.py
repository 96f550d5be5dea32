"""Many training steps in one launch, for a network with one hidden layer: blocks meet at barriers across the grid.

Between two launches a block's shared memory is lost. Here a block does not end before the launch's last step. It owns a
tile of the first layer's weights, which stays in shared memory from the first step to the last. What the optimizer
remembers for the tile stays in registers. A step has three parts, and all blocks meet twice:

    1  every block multiplies its slice of the batch with its tile: parts[slice] of xW
       barrier: all parts are there
    2  one or two rows of the batch a block: sum of the parts, bias, activation, dropout; last layer, loss, slopes
       barrier: all slopes are there
    3  every block: dW of its tile, from the slice of the batch that still lies in its shared memory, and the
       optimizer's step; the other gradients, which are sums over the batch, by 16 threads each, and their step

Nothing of part 1 of the next step depends on part 3 of another block, so two barriers are enough: the tile is the
block's own, and the last layer's weights and all biases are read behind the next barrier.

A small step has little arithmetic, so it is slow only where it waits, for other blocks or for memory. Therefore loads
are started several at a time and early: those of the next slice before this one is multiplied, that of a row's label
before the barrier, those of the last layer's weights together with the parts, and those of what the optimizer moves
together with its gradient.

The barrier is `ptx.meet`, ours: cooperative groups' sync() has no end to its waiting, and ours gives up after
ptx.PATIENCE and tells the host. On the emulator it is cuda.cg.this_grid().sync().

A batch goes through in pieces of `chunk` rows. Where it is a single piece, part 3 finds x as part 1 left it.
"""

from numba import int32, uint32, uint64

from ..backend import cuda
from .activations import activate, back
from .dropout import mask_key, mask_value
from .head import HEAD_LANES, HINGE, SOFTMAX_CE, elementwise_loss, hinge, softmax_cross_entropy
from .optimizers import COUNT
from .optimizers import update as optimizer_update
from .persistent_sums import AT_ONCE, put_back, sums_over_batch, take_out
from .persistent_tile import (
    FULL,
    H_TILE,
    K_TILE,
    PAD,
    PITCH,
    THREADS,
    W_PITCH,
    WIDE,
    after,
    first_of_row,
    gradient,
    join_gradient,
    make_tile,
    put_row,
)
from .ptx import BEFORE, meet
from .update import ONLY_GRADIENTS

WARPS = THREADS // 32

LINES = {64: 2, 32: 1, 16: 1}
"""By chunk: rows of the batch that a block has at the same time in part 2, and that share its threads."""

SPLITS = 16
"""Parts whose loads a thread starts before it uses the first: more than 784-128-10 has."""

HIDDEN_MOST = 512
"""Hidden neurons: their outputs for a row of the batch lie in shared memory."""

STAGED = {64: 2048, 32: 256, 16: 256}
"""By chunk: so many weights of the last layer are kept in shared memory in part 2. Where there are more of them, they
are read from memory: each chunk leaves that much of the 48 KB that a block has."""

NO_MASK, GIVEN, DRAWN = range(3)
"""Dropout: none, a mask that is an argument, or masks drawn from the count of steps."""


@cuda.jit(device=True)
def keep(masked, mask, key, row, unit, columns, threshold, scale):
    """The factor of dropout: 0 or 1 / (1 - rate)."""
    if masked == GIVEN:
        return mask[row, unit]
    return mask_value(key, uint64(row * columns + unit), threshold, scale)


@cuda.jit(device=True)
def sum_of_parts(parts, slices, apart, at, loaded):
    """The sum over s < slices of parts[s * apart + at]; SPLITS loads are started before the first is used."""
    total = parts.dtype.type(0)
    place, step = uint64(at), uint64(apart)
    split = int32(0)
    while split < slices:
        for i in range(SPLITS):
            loaded[i] = parts.dtype.type(0)
            if int32(split + i) < slices:
                loaded[i] = parts[place]
            place += step
        for i in range(SPLITS):
            total += loaded[i]
        split = int32(split + SPLITS)
    return total


@cuda.jit(device=True)
def logit_of(inputs, line, weights, c, columns, classes):
    """This lane's share of a row's product with column c of the last layer's weights, which lie flat."""
    total = inputs.dtype.type(0)
    unit = int32(cuda.threadIdx.x % 32)
    while unit < columns:
        total += inputs[uint32(line), uint32(unit)] * weights[uint32(unit * classes + c)]
        unit = int32(unit + 32)
    return total


@cuda.jit(device=True)
def grad_of(slopes, line, weights, unit, classes):
    """The slopes of a row's logits times a row of the last layer's weights."""
    total = slopes.dtype.type(0)
    c = int32(0)
    while c < classes:
        total += slopes[uint32(line), uint32(c)] * weights[uint32(unit * classes + c)]
        c = int32(c + 1)
    return total


def make_persistent(chunk, as_bytes):
    """The kernel. chunk: rows of the batch at a time: 16, 32 or 64; as_bytes: values are bytes, to divide by 255."""
    sample_of, ask, put, first_of_patch, multiply, join = make_tile(chunk, as_bytes)
    asked_each = K_TILE * chunk // THREADS
    slopes_each = H_TILE * chunk // THREADS
    pitch = chunk + PAD
    w_pitch = W_PITCH[chunk]
    room = STAGED[chunk]
    staged_each = room // THREADS
    most_lines = LINES[chunk]
    units = THREADS // most_lines

    @cuda.jit(device=True)
    def bring(grad, columns, r0, rows, h0, down):
        """down[i] = this thread's slopes of the block's columns, in rows r0 to r0 + chunk; 0 past an edge."""
        column = int32(h0 + cuda.threadIdx.x % H_TILE)
        r = int32(r0 + cuda.threadIdx.x // H_TILE)
        place, step = uint64(r * columns + column), uint64(columns * (THREADS // H_TILE))
        for i in range(slopes_each):
            down[i] = grad.dtype.type(0)
            if r < rows and column < columns:
                down[i] = grad[place]
            place += step
            r = int32(r + THREADS // H_TILE)

    @cuda.jit
    def persistent(
        values, labels, targets, own_targets, order, first, steps, batch, activation, loss, kind, schedule,
        mask, masked, seed, steps_before, threshold, scale,
        weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a, grad_weights_a, grad_bias_a,
        weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
        parts, inputs_b, grad_hidden, grad_logits, row_losses, meetings,
    ):  # fmt: skip
        # values (n, K) uint8 or float, labels (n,), order (n,): row r of step s is order[first + s * batch + r]
        # targets (batch, classes): made here from the labels where own_targets is 1; schedule (steps, COUNT)
        # weights_a (K * H,), weights_b (H * classes,), and what the optimizer keeps for each, flat
        # parts (slices * pieces * chunk * H as whole tiles,), inputs_b, grad_hidden (batch * H,), grad_logits (batch *
        # classes,): between the parts of a step; row_losses (steps, batch); meetings (3,) int32: as ptx.meet has them
        # The block's memory, and the place of its tile and of each thread in it
        x_tile = cuda.shared.array((K_TILE, pitch), parts.dtype, alignment=16)
        w_tile = cuda.shared.array((K_TILE, w_pitch), parts.dtype, alignment=16)
        d_tile = cuda.shared.array((chunk, PITCH), parts.dtype, alignment=16)
        dropped = cuda.shared.array((most_lines, HIDDEN_MOST), parts.dtype)
        table = cuda.shared.array(room, parts.dtype)
        table_bias = cuda.shared.array(HEAD_LANES, parts.dtype)
        logits = cuda.shared.array((most_lines, HEAD_LANES), parts.dtype)
        slopes = cuda.shared.array((most_lines, HEAD_LANES), parts.dtype)
        numbers = cuda.shared.array(COUNT, parts.dtype)
        asked = cuda.local.array(asked_each, values.dtype)
        sums = cuda.local.array((WIDE, WIDE), parts.dtype)
        loaded = cuda.local.array(SPLITS, parts.dtype)
        staged = cuda.local.array(staged_each, parts.dtype)
        down = cuda.local.array(slopes_each, parts.dtype)
        own = cuda.local.array(WIDE, parts.dtype)
        own_first = cuda.local.array(WIDE, parts.dtype)
        own_second = cuda.local.array(WIDE, parts.dtype)
        one = cuda.local.array(1, parts.dtype)
        one_first = cuda.local.array(1, parts.dtype)
        one_second = cuda.local.array(1, parts.dtype)
        left = cuda.local.array(AT_ONCE, parts.dtype)
        right = cuda.local.array(AT_ONCE, parts.dtype)
        t = int32(cuda.threadIdx.x)
        block = int32(cuda.blockIdx.x)
        blocks = int32(cuda.gridDim.x)
        rows = int32(batch)
        features = int32(values.shape[1])
        columns = int32(bias_a.size)
        classes = int32(bias_b.size)
        zero = parts.dtype.type(0)
        groups = int32(uint32(columns + H_TILE - 1) // uint32(H_TILE))
        part = int32(uint32(block) // uint32(groups))
        k0 = int32(part * K_TILE)
        h0 = int32((block - part * groups) * H_TILE)
        pieces = int32(uint32(rows + chunk - 1) // uint32(chunk))
        across = int32(groups * H_TILE)
        apart = int32(pieces * chunk * across)  # from a number of one part to the same of the next
        slices = int32(uint32(features + K_TILE - 1) // uint32(K_TILE))
        line = int32(t // units)
        place = int32(t % units)
        k, column = first_of_row()
        patch_row, patch_column = first_of_patch()
        is_staged = columns * classes <= room
        target = int32(meetings[BEFORE])  # the launch before has written it, and ended before this one began

        # Before the first step: the tile's weights into registers and shared memory, the first samples asked for
        for i in range(WIDE):
            own[i] = zero
            if k0 + k < features and h0 + column + i < columns:
                at = int32((k0 + k) * columns + h0 + column + i)
                take_out(kind, weights_a, w_first_a, w_second_a, at, own, own_first, own_second, i)
        put_row(w_tile, k, column, own)
        ask(values, sample_of(order, first, rows, steps, 0, 0), k0, asked)
        next_step, next_fetch = after(int32(0), int32(0), pieces)
        sample = sample_of(order, first, rows, steps, next_step, next_fetch)
        cuda.syncthreads()

        step = int32(0)
        while step < steps:
            start = first + step * batch
            number = schedule[uint32(step), uint32(min(t, COUNT - 1))]
            whose = order[start + min(block + line * blocks, rows - 1)]

            # 1: this block's part of xW
            piece = int32(0)
            while piece < pieces:
                put(asked, x_tile)
                cuda.syncthreads()
                ask(values, sample, k0, asked)
                next_step, next_fetch = after(next_step, next_fetch, pieces)
                sample = sample_of(order, first, rows, steps, next_step, next_fetch)
                multiply(x_tile, w_tile, sums)
                own_row = join(sums)
                if own_row < WIDE:
                    row = (part * pieces + piece) * chunk + patch_row + own_row
                    at = int32(row * across + h0 + patch_column)
                    for j in range(WIDE):
                        parts[uint32(at + j)] = sums[0, j]
                piece = int32(piece + 1)
                if piece < pieces:
                    cuda.syncthreads()
            # Not before part 1's barriers: until then a thread may still read the numbers of the step before.
            if t < COUNT:
                numbers[t] = number
            label = labels[whose]
            target = int32(target + blocks)
            if not meet(meetings, target):
                return

            # 2: rows of the batch, `most_lines` at a time
            # 2a: the last layer's weights are asked for, while the first layer's outputs are added up
            key = mask_key(uint64(seed), uint64(steps_before + step), uint64(0)) if masked == DRAWN else uint64(0)
            if is_staged:
                for i in range(staged_each):
                    staged[i] = zero
                    if t + i * THREADS < columns * classes:
                        staged[i] = weights_b[uint32(t + i * THREADS)]
            last_bias = bias_b[uint32(min(t, classes - 1))]
            row0 = block
            while row0 < rows:
                row = int32(row0 + line * blocks)
                lines = most_lines if row0 + blocks < rows else 1
                # 2b: the hidden layer's outputs
                # A line past the batch's end passes over the loops alone: every thread has to reach the syncthreads().
                unit = place
                while row < rows and unit < columns:
                    bias = bias_a[uint32(unit)]
                    z = sum_of_parts(parts, slices, apart, row * across + unit, loaded)
                    value = activate(activation, z + bias)
                    if masked != NO_MASK:
                        grad_hidden[uint32(row * columns + unit)] = value  # the output waits in its gradient's place
                        value *= keep(masked, mask, key, row, unit, columns, threshold, scale)
                    dropped[uint32(line), uint32(unit)] = value
                    inputs_b[uint32(row * columns + unit)] = value
                    unit = int32(unit + units)
                # In the first round only: nobody changes the last layer's weights within part 2.
                if row0 == block:
                    if is_staged:
                        for i in range(staged_each):
                            table[t + i * THREADS] = staged[i]
                    if t < classes:
                        table_bias[t] = last_bias
                if own_targets == 1 and row < rows and place < classes:
                    hit = parts.dtype.type(1)
                    targets[row, place] = parts.dtype.type(label) if classes == 1 else (hit if place == label else zero)
                cuda.syncthreads()
                # 2c: the logits, a warp for each
                item = int32(t // 32)
                while item < lines * classes:
                    of = int32(1) if item >= classes else int32(0)
                    c = int32(item - of * classes)
                    if is_staged:
                        logit = logit_of(dropped, of, table, c, columns, classes)
                    else:
                        logit = logit_of(dropped, of, weights_b, c, columns, classes)
                    for offset in (16, 8, 4, 2, 1):
                        logit += cuda.shfl_xor_sync(FULL, logit, offset)
                    if t % 32 == 0:
                        logits[of, c] = logit + table_bias[c]
                    item = int32(item + WARPS)
                cuda.syncthreads()
                # 2d: the loss of each row, and its slopes
                if row < rows and place < classes:
                    if loss == SOFTMAX_CE:
                        slope = softmax_cross_entropy(logits, line, place, classes, rows, label, row_losses, step, row)
                    elif loss == HINGE:
                        slope = hinge(logits, line, place, classes, rows, label, row_losses, step, row)
                    else:
                        slope = elementwise_loss(
                            loss, logits, line, place, classes, rows, targets, row_losses, step, row
                        )
                    slopes[line, place] = slope
                    grad_logits[uint32(row * classes + place)] = slope
                cuda.syncthreads()
                # 2e: the slopes of the hidden layer
                unit = place
                while row < rows and unit < columns:
                    if is_staged:
                        grad = grad_of(slopes, line, table, unit, classes)
                    else:
                        grad = grad_of(slopes, line, weights_b, unit, classes)
                    output = dropped[uint32(line), uint32(unit)]
                    if masked != NO_MASK:
                        output = grad_hidden[uint32(row * columns + unit)]
                        grad *= keep(masked, mask, key, row, unit, columns, threshold, scale)
                    grad_hidden[uint32(row * columns + unit)] = back(activation, grad, output)
                    unit = int32(unit + units)
                row0 = int32(row0 + most_lines * blocks)
                if row0 < rows:
                    label = labels[order[start + min(row0 + line * blocks, rows - 1)]]
            target = int32(target + blocks)
            if not meet(meetings, target):
                return

            # 3a: the sums over the batch, and the tile's own gradient
            bring(grad_hidden, columns, 0, rows, h0, down)
            sums_over_batch(
                kind, numbers, rows, inputs_b, grad_hidden, grad_logits,
                weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
                bias_a, b_first_a, b_second_a, grad_bias_a, one, one_first, one_second, left, right,
            )  # fmt: skip
            for i in range(WIDE):
                for j in range(WIDE):
                    sums[i, j] = zero
            piece = int32(0)
            while piece < pieces:
                # A single piece still lies in x_tile: part 1 brought nothing else after it.
                if pieces > 1:
                    put(asked, x_tile)
                    ask(values, sample, k0, asked)
                    next_step, next_fetch = after(next_step, next_fetch, pieces)
                    sample = sample_of(order, first, rows, steps, next_step, next_fetch)
                for i in range(slopes_each):
                    d_tile[t // H_TILE + i * (THREADS // H_TILE), t % H_TILE] = down[i]
                cuda.syncthreads()
                piece = int32(piece + 1)
                if piece < pieces:
                    bring(grad_hidden, columns, piece * chunk, rows, h0, down)
                gradient(x_tile, d_tile, chunk, sums)
                cuda.syncthreads()
            # 3b: the optimizer's step on the tile, whose weights the next step multiplies
            join_gradient(sums)
            for i in range(WIDE):
                if k0 + k < features and h0 + column + i < columns:
                    if kind == ONLY_GRADIENTS:
                        grad_weights_a[k0 + k, h0 + column + i] = sums[0, i]
                    else:
                        optimizer_update(kind, own, own_first, own_second, i, sums[0, i], numbers)
            put_row(w_tile, k, column, own)
            step = int32(step + 1)

        # After the last step: the weights go back to memory
        for i in range(WIDE):
            if kind != ONLY_GRADIENTS and k0 + k < features and h0 + column + i < columns:
                at = int32((k0 + k) * columns + h0 + column + i)
                put_back(kind, weights_a, w_first_a, w_second_a, at, own, own_first, own_second, i)
        if block == 0 and t == 0:  # all blocks have read it: they have met since
            meetings[BEFORE] = target

    return persistent


CHUNKS = (64, 32, 16)
PERSISTENT = {(chunk, as_bytes): make_persistent(chunk, as_bytes) for chunk in CHUNKS for as_bytes in (False, True)}
