"""A whole training step in three kernels, for a network with one hidden layer.

    forward_partial    xW of the first layer, cut along k so that many blocks share the work of a small batch
    head               sums the parts, bias, activation; last layer, loss, and the slopes of both layers   head.py
    update             dW = xᵀ dz and db of two layers, and the optimizer's step in the same kernel        update.py

At batch 64 a 784-128-10 step is 26 million floating-point operations: less than a microsecond of an H100's arithmetic.
What it waits for is launches and memory, so the fewer kernels, the better. Between two kernels every block has
finished; inside these kernels blocks do not wait for each other (those of persistent.py do). So a cut is needed where a
block needs what other blocks have computed.

Deeper networks repeat `forward_partial` with `combine` behind it, and backward_fused of the matmul room, or, where that
would have few blocks, `backward_partial` and `combine_back` of blocked.py. Here is the way forward.
"""

from ..backend import cuda
from .activations import activate
from .gather import shade

TILE_GPU, TILE_CPU = 16, 32
"""A GPU wants many small blocks for such small matrices; the emulator wants few long loops."""

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
                pixel = x.dtype.type(shade(images[image, k0 + tx]))
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


FORWARD_PARTIAL = {tile: make_forward_partial(tile) for tile in (TILE_GPU, TILE_CPU)}
FORWARD_BYTES = {tile: make_forward_bytes(tile) for tile in (TILE_GPU, TILE_CPU)}
