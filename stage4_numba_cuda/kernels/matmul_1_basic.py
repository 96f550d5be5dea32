"""Matrix multiplication on the GPU, the first rungs: one thread for each number of the result, slowest first.

    naive        the definition, threadIdx.x down the rows          a warp reads 32 rows at once: one number a sector
    coalesced    the same, threadIdx.x along the columns            a warp reads whole sectors, and a's number once
    tiled_16     a block shares 16 x 16 tiles of a and b            each number is fetched K / 16 times less often
    tiled_32     the same with 32 x 32                              half as many fetches again, half as many barriers

Of the inner loop's instructions, compiled for compute capability 8.0 and 9.0 and float32, these are multiply-adds: 13 %
in the first two, 15 % and 22 % with tiles (27 % as nt). The rest are reads, and arithmetic with addresses.

nn is ab, tn is aᵀb and nt is abᵀ. No transpose is ever written to memory: a tile is turned around while it is copied
into shared memory, and from there on the three are one kernel.
"""

from __future__ import annotations

from types import SimpleNamespace

from numba import int32, uint32

from ..backend import cuda
from .activations import activate, back


@cuda.jit
def naive(a, b, c):
    """c = ab, one thread an output; neighbouring threads are rows apart. Grid: x down the rows, y along the columns."""
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = a.dtype.type(0)
        k = 0
        while k < a.shape[1]:
            total += a[row, k] * b[k, column]
            k += 1
        c[row, column] = total


@cuda.jit
def coalesced(a, b, c):
    """c = ab, one thread an output; neighbouring threads are neighbours. Grid: x along the columns, y down the rows."""
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = a.dtype.type(0)
        k = 0
        while k < a.shape[1]:
            total += a[row, k] * b[k, column]
            k += 1
        c[row, column] = total


@cuda.jit(device=True)
def fill(tile, source, row, column):
    """tile = what of `source` begins at (row, column), zeros beyond its edge; each thread copies one number."""
    y = cuda.threadIdx.y
    x = cuda.threadIdx.x
    inside = row + y < source.shape[0] and column + x < source.shape[1]
    tile[y, x] = source[row + y, column + x] if inside else source.dtype.type(0)


@cuda.jit(device=True)
def fill_transposed(tile, source, row, column):
    """The same of sourceᵀ. Read along the rows of `source`, so that a warp reads whole sectors; turned on writing."""
    y = cuda.threadIdx.y
    x = cuda.threadIdx.x
    inside = column + y < source.shape[0] and row + x < source.shape[1]
    tile[x, y] = source[column + y, row + x] if inside else source.dtype.type(0)


def tiled(tile: int, form: str) -> SimpleNamespace:
    """The kernels of one tile size and form, for blocks of tile x tile threads, x along the columns of the result.

    form: "nn", "tn" or "nt"
    multiply(a, b, c): c = the product
    forward(x, weights, bias, activation, out): out = activate(xW + b), the sum still in its register
    backward(grad, weights, output, activation, mask, masked, out): out = (grad Wᵀ) · mask · slope(output), with `mask`
    read only where masked is 1
    """
    fill_a = fill_transposed if form == "tn" else fill
    fill_b = fill_transposed if form == "nt" else fill
    inner = 0 if form == "tn" else 1  # the axis of a that is summed over
    # A tile that is turned around is written down its columns: one number more a row, and they lie in different banks.
    pitch_a = tile + 1 if form == "tn" else tile
    pitch_b = tile + 1 if form == "nt" else tile

    @cuda.jit(device=True)
    def product(a, b, tile_a, tile_b):
        """This thread's number of the product."""
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * int32(tile)
        column = cuda.blockIdx.x * int32(tile)
        total = a.dtype.type(0)
        start = int32(0)
        while start < a.shape[inner]:
            fill_a(tile_a, a, row, start)
            fill_b(tile_b, b, start, column)
            cuda.syncthreads()
            for i in range(tile):
                k = uint32(i)  # an index that may be negative is tested, and counts from the end: two more instructions
                total += tile_a[y, k] * tile_b[k, x]
            cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
            start += int32(tile)
        return total

    @cuda.jit
    def multiply(a, b, c):
        tile_a = cuda.shared.array((tile, pitch_a), a.dtype)
        tile_b = cuda.shared.array((tile, pitch_b), a.dtype)
        column, row = cuda.grid(2)
        total = product(a, b, tile_a, tile_b)
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    @cuda.jit
    def forward(x, weights, bias, activation, out):
        """out = activation(x weights + bias), each number written once; `activate` applies the activation."""
        tile_a = cuda.shared.array((tile, pitch_a), x.dtype)
        tile_b = cuda.shared.array((tile, pitch_b), x.dtype)
        column, row = cuda.grid(2)
        total = product(x, weights, tile_a, tile_b)
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = activate(activation, total + bias[column])

    @cuda.jit
    def backward(grad, weights, output, activation, mask, masked, out):
        tile_a = cuda.shared.array((tile, pitch_a), grad.dtype)
        tile_b = cuda.shared.array((tile, pitch_b), grad.dtype)
        column, row = cuda.grid(2)
        total = product(grad, weights, tile_a, tile_b)
        if row < out.shape[0] and column < out.shape[1]:
            if masked:
                total *= mask[row, column]
            out[row, column] = back(activation, total, output[row, column])

    return SimpleNamespace(tile=tile, multiply=multiply, forward=forward, backward=backward)
