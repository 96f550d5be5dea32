"""The products of a training step with 4 x 4 numbers to a thread: for batches and layers that are large enough.

    FORWARD[side]            out = activate(xW + b)
    BACKWARD[side]           out = (grad Wᵀ) · mask · slope
    FORWARD_PARTIAL[side]    xW in parts                                       with one number a thread: fused.py
    BACKWARD_PARTIAL[side]   grad Wᵀ in parts, and combine_back: the sum of these parts · mask · slope
    FORWARD_BYTES[side]      the same of images of bytes, picked by number
    UPDATE[side]             dW = xᵀ dz, db, and the optimizer's step          with one number a thread: update.py

A kernel with one number a thread reads two numbers of shared memory for a multiply-add; here eight serve sixteen. What
they share is in blocked_tiles.py; side is that of a tile, 32 or 64. Blocks have THREADS threads.
"""

from __future__ import annotations

from typing import Any

from numba import int32, uint32

from ..backend import cuda
from .activations import activate, back, named
from .blocked_tiles import BYTES, MOVED, SIDES, STRAIGHT, THREADS, TURNED, blocked
from .fused import POSITION, SLOT, STEP
from .optimizers import ADAM, COUNT, SGD
from .optimizers import update as optimizer_update
from .update import ONLY_GRADIENTS


def make_partial(side: int, weights_lie: str) -> Any:
    """xW in parts: parts[s] = x[:, part s of k] W[part s of k, :]. Grid: (column tiles, row tiles, parts).

    weights_lie: STRAIGHT for W (K, columns); TURNED for its transpose, so that this is the way back
    """
    shared = blocked(side, TURNED, weights_lie)
    product, number, tile_rows, pitch = shared.product, shared.number, shared.rows, shared.pitch
    shift, count, depth = side.bit_length() - 1, side * side, MOVED * THREADS // side

    def partial_blocked(x, weights, parts):
        # x is (rows, K), weights (K, columns) or (columns, K), parts (splits, rows, columns)
        tiles = cuda.shared.array((tile_rows, pitch), x.dtype, alignment=16)
        staged_a = cuda.local.array(4, x.dtype)
        staged_b = cuda.local.array(4, x.dtype)
        sums = cuda.local.array((4, 4), x.dtype)
        left = cuda.local.array(4, x.dtype)
        right = cuda.local.array(4, x.dtype)
        row0 = int32(cuda.blockIdx.y * side)
        column0 = int32(cuda.blockIdx.x * side)
        split = cuda.blockIdx.z
        k0, end = part_of(split, parts.shape[0], x.shape[1], depth)
        product(x, x, x, weights, tiles, staged_a, staged_b, sums, left, right, row0, column0, k0, end)
        e = cuda.threadIdx.x
        while e < count:
            row = row0 + (e >> shift)
            column = column0 + (e & (side - 1))
            if row < x.shape[0] and column < parts.shape[2]:
                parts[split, row, column] = number(tiles, e >> shift, e & (side - 1))
            e += THREADS

    return named(f"{'forward' if weights_lie == STRAIGHT else 'backward'}_partial_blocked", partial_blocked)


@cuda.jit(device=True)
def part_of(split, splits, inner, depth):
    """Where in k the part begins, and where it ends: whole tiles, but for the last part."""
    length = (inner + splits * depth - 1) // (splits * depth) * depth
    k0 = split * length
    return int32(min(k0, inner)), int32(min(k0 + length, inner))


def make_forward_bytes(side: int) -> Any:
    """`forward_partial` of a batch picked from images of bytes, pixel / 255. What it leaves behind: see fused.py."""
    shared = blocked(side, BYTES, STRAIGHT)
    product, number, tile_rows, pitch = shared.product, shared.number, shared.rows, shared.pitch
    shift, count, depth, down = side.bit_length() - 1, side * side, MOVED * THREADS // side, side // 32

    @cuda.jit
    def forward_bytes_blocked(images, labels, order, counters, schedule, numbers, weights, x, y, parts):
        # images (n, K) uint8, labels (n,), order (n,): batch row r is image order[counters[POSITION] + r]
        tiles = cuda.shared.array((tile_rows, pitch), x.dtype, alignment=16)
        staged_a = cuda.local.array(4, x.dtype)
        staged_b = cuda.local.array(4, x.dtype)
        sums = cuda.local.array((4, 4), x.dtype)
        left = cuda.local.array(4, x.dtype)
        right = cuda.local.array(4, x.dtype)
        at = cuda.local.array(down, int32)
        row0 = int32(cuda.blockIdx.y * side)
        column0 = int32(cuda.blockIdx.x * side)
        split = cuda.blockIdx.z
        for part in range(down):
            row = row0 + int32(cuda.threadIdx.x >> 3) + int32(part * 32)
            # Past the edge the last row once more: its products are computed, and nobody keeps them.
            at[part] = order[counters[POSITION] + min(row, int32(x.shape[0] - 1))]
        k0, end = part_of(split, parts.shape[0], x.shape[1], depth)
        product(images, at, x, weights, tiles, staged_a, staged_b, sums, left, right, row0, column0, k0, end)
        e = cuda.threadIdx.x
        while e < count:
            row = row0 + (e >> shift)
            column = column0 + (e & (side - 1))
            if row < x.shape[0] and column < weights.shape[1]:
                parts[split, row, column] = number(tiles, e >> shift, e & (side - 1))
            e += THREADS
        # Not before the product, which would wait for it.
        if cuda.blockIdx.x == 0 and split == 0:
            for part in range(down):
                row = row0 + int32(cuda.threadIdx.x >> 3) + int32(part * 32)
                if row < x.shape[0] and cuda.threadIdx.x & 7 == 0:
                    # Every block of this band of rows knows them; one of them writes.
                    y[row] = labels[at[part]]
            if cuda.blockIdx.y == 0 and cuda.threadIdx.x < numbers.size:
                numbers[cuda.threadIdx.x] = schedule[counters[SLOT], cuda.threadIdx.x]

    return forward_bytes_blocked


def make_forward(side: int) -> Any:
    """The kernel (x, weights, bias, activation, out): out = activate(xW + b)."""
    shared = blocked(side, TURNED, STRAIGHT)
    product, number, tile_rows, pitch = shared.product, shared.number, shared.rows, shared.pitch
    shift, count = side.bit_length() - 1, side * side

    @cuda.jit
    def forward_blocked(x, weights, bias, activation, out):
        tiles = cuda.shared.array((tile_rows, pitch), x.dtype, alignment=16)
        staged_a = cuda.local.array(4, x.dtype)
        staged_b = cuda.local.array(4, x.dtype)
        sums = cuda.local.array((4, 4), x.dtype)
        left = cuda.local.array(4, x.dtype)
        right = cuda.local.array(4, x.dtype)
        row0 = int32(cuda.blockIdx.y * side)
        column0 = int32(cuda.blockIdx.x * side)
        end = int32(x.shape[1])
        product(x, x, x, weights, tiles, staged_a, staged_b, sums, left, right, row0, column0, int32(0), end)
        e = cuda.threadIdx.x
        column = column0 + (e & (side - 1))  # of all of this thread's numbers
        added = bias[min(column, out.shape[1] - 1)]
        while e < count:
            row = row0 + (e >> shift)
            if row < out.shape[0] and column < out.shape[1]:
                out[row, column] = activate(activation, number(tiles, e >> shift, e & (side - 1)) + added)
            e += THREADS

    return forward_blocked


def make_backward(side: int) -> Any:
    """The kernel (grad, weights, output, activation, mask, masked, out): out = (grad Wᵀ) · mask · slope(output), with
    `mask` read only where masked is 1."""
    shared = blocked(side, TURNED, TURNED)
    product, number, tile_rows, pitch = shared.product, shared.number, shared.rows, shared.pitch
    shift, count = side.bit_length() - 1, side * side

    @cuda.jit
    def backward_blocked(grad, weights, output, activation, mask, masked, out):
        tiles = cuda.shared.array((tile_rows, pitch), grad.dtype, alignment=16)
        staged_a = cuda.local.array(4, grad.dtype)
        staged_b = cuda.local.array(4, grad.dtype)
        sums = cuda.local.array((4, 4), grad.dtype)
        left = cuda.local.array(4, grad.dtype)
        right = cuda.local.array(4, grad.dtype)
        row0 = int32(cuda.blockIdx.y * side)
        column0 = int32(cuda.blockIdx.x * side)
        end = int32(grad.shape[1])
        product(grad, grad, grad, weights, tiles, staged_a, staged_b, sums, left, right, row0, column0, int32(0), end)
        e = int32(cuda.threadIdx.x)
        column = int32(column0 + (e & (side - 1)))  # of all of this thread's numbers
        read = uint32(min(column, int32(out.shape[1] - 1)))
        while e < count:
            # Four at a time are asked for before the first is needed: a store behind a load would wait for it.
            for part in range(4):
                row = uint32(min(row0 + int32((e + part * THREADS) >> shift), int32(out.shape[0] - 1)))
                left[part] = output[row, read]
                right[part] = mask[row, read] if masked else grad.dtype.type(1)
            for part in range(4):
                i = int32((e + part * THREADS) >> shift)
                row = int32(row0 + i)
                if row < out.shape[0] and column < out.shape[1]:
                    value = number(tiles, i, e & (side - 1)) * right[part]
                    out[uint32(row), uint32(column)] = back(activation, value, left[part])
            e += int32(4 * THREADS)

    return backward_blocked


@cuda.jit
def combine_back(activation, parts, output, mask, masked, out):
    """out = sum of the parts * mask * slope(output), `mask` read only where masked is 1; one thread a number."""
    columns = out.shape[1]
    count = out.shape[0] * columns
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < count:
        row = i // columns
        column = i - row * columns
        grad = parts[0, row, column]
        split = 1
        while split < parts.shape[0]:
            grad += parts[split, row, column]
            split += 1
        if masked:
            grad *= mask[row, column]
        out[row, column] = back(activation, grad, output[row, column])
        i += step


def make_update(side: int) -> Any:
    """dW = xᵀ dz, db = column sums of dz and the optimizer's step for two layers, in one launch; as in update.py."""
    shared = blocked(side, STRAIGHT, STRAIGHT)
    product, number, tile_rows, pitch = shared.product, shared.number, shared.rows, shared.pitch
    shift, count, movers = side.bit_length() - 1, side * side, THREADS // side

    @cuda.jit(device=True)
    def layer_update(
        tiles,
        block,
        kind,
        x,
        grad,
        weights,
        w_first,
        w_second,
        bias,
        b_first,
        b_second,
        grad_weights,
        grad_bias,
        numbers,
    ):
        staged_a = cuda.local.array(4, x.dtype)
        staged_b = cuda.local.array(4, x.dtype)
        sums = cuda.local.array((4, 4), x.dtype)
        left = cuda.local.array(4, x.dtype)
        right = cuda.local.array(4, x.dtype)
        own = cuda.local.array(COUNT, x.dtype)
        if kind != ONLY_GRADIENTS:  # once: behind every store the compiler would read them again
            for i in range(COUNT):
                own[i] = numbers[i]
        # 1: this block's tile of the weights' gradient, xᵀ dz
        columns = int32(grad.shape[1])
        across = (columns + side - 1) // side
        row0 = int32(block // across * side)
        column0 = int32(block % across * side)
        end = int32(x.shape[0])
        moved = product(x, x, x, grad, tiles, staged_a, staged_b, sums, left, right, row0, column0, int32(0), end)
        # 2: the optimizer's step on the tile's weights
        e = int32(cuda.threadIdx.x)
        column = int32(column0 + (e & (side - 1)))  # of all of this thread's numbers
        while e < count:
            # Four at a time are asked for before the first is changed, for a change waits for its parameter. Nobody
            # reads in another's place, as elsewhere past an edge: that one may be changing it.
            if kind != ONLY_GRADIENTS:
                for part in range(4):
                    row = int32(row0 + int32((e + part * THREADS) >> shift))
                    if row < x.shape[1] and column < columns:
                        at = uint32(row * columns + column)
                        staged_a[part] = weights[at]
                        if kind != SGD:
                            left[part] = w_first[at]
                        if kind == ADAM:
                            right[part] = w_second[at]
            for part in range(4):
                i = int32((e + part * THREADS) >> shift)
                row = int32(row0 + i)
                if row < x.shape[1] and column < columns:
                    total = number(tiles, i, e & (side - 1))
                    if kind == ONLY_GRADIENTS:
                        grad_weights[uint32(row), uint32(column)] = total
                    else:
                        optimizer_update(kind, staged_a, left, right, part, total, own)
                        at = uint32(row * columns + column)
                        weights[at] = staged_a[part]
                        if kind != SGD:
                            w_first[at] = left[part]
                        if kind == ADAM:
                            w_second[at] = right[part]
            e += int32(4 * THREADS)
        # 3: the bias. The threads whose numbers of dz are those of one column: each summed its own, of all tiles.
        cuda.syncthreads()
        tiles[cuda.threadIdx.x >> shift, cuda.threadIdx.x & (side - 1)] = moved
        cuda.syncthreads()
        column = int32(column0 + cuda.threadIdx.x)
        # All blocks of a column of tiles have summed the same numbers of dz; the first one moves the bias.
        if row0 == 0 and cuda.threadIdx.x < side and column < columns:
            total = tiles[0, cuda.threadIdx.x]
            for thread in range(1, movers):
                total += tiles[thread, cuda.threadIdx.x]
            if kind == ONLY_GRADIENTS:
                grad_bias[column] = total
            else:
                optimizer_update(kind, bias, b_first, b_second, column, total, own)

    @cuda.jit
    def update_blocked(
        kind, numbers, counters, advance, blocks_a,
        x_a, grad_a, weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a, grad_weights_a, grad_bias_a,
        x_b, grad_b, weights_b, w_first_b, w_second_b, bias_b, b_first_b, b_second_b, grad_weights_b, grad_bias_b,
    ):  # fmt: skip
        # advance: the batch's rows where the counters are to move on to the next batch, else 0
        tiles = cuda.shared.array((tile_rows, pitch), x_a.dtype, alignment=16)
        block = cuda.blockIdx.x
        if block < blocks_a:
            layer_update(
                tiles, block, kind, x_a, grad_a, weights_a, w_first_a, w_second_a, bias_a, b_first_a, b_second_a,
                grad_weights_a, grad_bias_a, numbers,
            )  # fmt: skip
        else:
            layer_update(
                tiles, block - blocks_a, kind, x_b, grad_b, weights_b, w_first_b, w_second_b, bias_b,
                b_first_b, b_second_b, grad_weights_b, grad_bias_b, numbers,
            )  # fmt: skip
        # No block of this launch reads the counters, so it does not matter when they move.
        if advance > 0 and block == 0 and cuda.threadIdx.x == 0:
            counters[POSITION] += advance
            counters[STEP] += 1
            counters[SLOT] += 1

    return update_blocked


FORWARD_PARTIAL = {side: make_partial(side, STRAIGHT) for side in SIDES}
BACKWARD_PARTIAL = {side: make_partial(side, TURNED) for side in SIDES}
FORWARD_BYTES = {side: make_forward_bytes(side) for side in SIDES}
FORWARD = {side: make_forward(side) for side in SIDES}
BACKWARD = {side: make_backward(side) for side in SIDES}
UPDATE = {side: make_update(side) for side in SIDES}
