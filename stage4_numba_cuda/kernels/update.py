"""The end of a step in one kernel: weight gradients, bias gradients, and the optimizer's step on both.

A block owns a tile of the weights. When its sum over the batch is complete, the gradient is in a register of the very
thread that may change the weight: it never goes to memory, and neither weights nor gradients are read again for the
optimizer.
"""

from ..backend import cuda
from .fused import POSITION, SLOT, STEP, TILE_CPU, TILE_GPU
from .optimizers import update as optimizer_update

ONLY_GRADIENTS = -1
"""In place of the optimizer's kind: write the gradients and move nothing."""


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


UPDATE = {tile: make_update(tile) for tile in (TILE_GPU, TILE_CPU)}
