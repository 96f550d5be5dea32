"""Matrix multiplication on the GPU, the last rung on ordinary cores, and what a layer does with its product.

    warp_tiled    a warp's threads stand 4 x 8       its 16 x 32 numbers, four times, need the fewest words of the tiles
                  two tiles of each operand          the next is on its way while the last is multiplied: one barrier
                  bias, activation and mask          on the sums in their registers, before they are first written

A block of 256 threads computes 128 x 128 numbers, each thread 8 x 8 as 2 x 2 blocks of 4 x 4. depth, the length of K in
shared memory at a time, is 16 in float32 and 8 in float64, whose numbers are twice as long: two tiles of each operand
must fit into 48 KB.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32

from ..backend import cuda
from .activations import activate, back
from .matmul_tiles import SIDE, mover, outer_products, two_blocks, writer
from .ptx import load4, store4

GAP = SIDE // 2
PITCH = SIDE + 4
"""Four words more a row than it needs: what is stored turned meets two banks' worth of neighbours and not four."""


def depth_of(dtype: str) -> int:
    """The length of K in shared memory at a time."""
    return 16 if dtype == "float32" else 8


@cache
def multiply(form: str, vector: bool, dtype: str) -> Any:
    """The kernel (a, b, c): c = the product of that form.

    vector: whether memory may be read 128 bits at a time: rows of a multiple of four numbers, 16-byte addresses
    """
    product, write = _product(form, vector, depth_of(dtype)), writer(vector, GAP)
    rows, parts = 2 * depth_of(dtype), depth_of(dtype) // 8

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(a, b, c):
        tiles_a = cuda.shared.array((rows, PITCH), a.dtype, alignment=16)
        tiles_b = cuda.shared.array((rows, PITCH), a.dtype, alignment=16)
        staged_a = cuda.local.array((parts, 4), a.dtype)
        staged_b = cuda.local.array((parts, 4), a.dtype)
        sums = cuda.local.array((8, 8), a.dtype)
        left = cuda.local.array(8, a.dtype)
        right = cuda.local.array(8, a.dtype)
        product(a, b, tiles_a, tiles_b, staged_a, staged_b, sums, left, right)
        row, column = corner()
        for i in range(8):
            target = row + (i & 3) + (i >> 2) * GAP
            if target < c.shape[0]:
                write(c, target, column, sums, i)

    return kernel


@cache
def forward(vector: bool, dtype: str, activation: int) -> Any:
    """The kernel (x, weights, bias, out): out = activate(xW + b). The activation is a constant of the kernel: a choice
    at run time, unrolled for 64 numbers, would be five times the code."""
    product, write = _product("nn", vector, depth_of(dtype)), writer(vector, GAP)
    rows, parts = 2 * depth_of(dtype), depth_of(dtype) // 8

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(x, weights, bias, out):
        tiles_a = cuda.shared.array((rows, PITCH), x.dtype, alignment=16)
        tiles_b = cuda.shared.array((rows, PITCH), x.dtype, alignment=16)
        staged_a = cuda.local.array((parts, 4), x.dtype)
        staged_b = cuda.local.array((parts, 4), x.dtype)
        sums = cuda.local.array((8, 8), x.dtype)
        left = cuda.local.array(8, x.dtype)
        right = cuda.local.array(8, x.dtype)
        product(x, weights, tiles_a, tiles_b, staged_a, staged_b, sums, left, right)
        row, column = corner()
        for j in range(8):
            right[j] = bias[min(column + (j & 3) + (j >> 2) * GAP, bias.size - 1)]
        for i in range(8):
            target = row + (i & 3) + (i >> 2) * GAP
            if target < out.shape[0]:
                for j in range(8):
                    sums[i, j] = activate(activation, sums[i, j] + right[j])
                write(out, target, column, sums, i)

    return kernel


@cache
def backward(vector: bool, dtype: str, activation: int, masked: bool) -> Any:
    """The kernel (grad, weights, output, mask, out): out = (grad Wᵀ) · mask, back through what gave `output`.

    Where not masked, `mask` is not read.
    """
    product = _product("nt", vector, depth_of(dtype))
    rows, parts = 2 * depth_of(dtype), depth_of(dtype) // 8

    if vector:

        @cuda.jit(device=True)
        def finish(out, output, mask, row, column, sums, i, j):
            if column < out.shape[1]:
                v0, v1, v2, v3 = sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3]
                if masked:
                    m0, m1, m2, m3 = load4(mask, row, column)
                    v0, v1, v2, v3 = v0 * m0, v1 * m1, v2 * m2, v3 * m3
                o0, o1, o2, o3 = load4(output, row, column)
                store4(
                    out,
                    row,
                    column,
                    back(activation, v0, o0),
                    back(activation, v1, o1),
                    back(activation, v2, o2),
                    back(activation, v3, o3),
                )
    else:

        @cuda.jit(device=True)
        def finish(out, output, mask, row, column, sums, i, j):
            for following in range(4):
                x = column + following
                if x < out.shape[1]:
                    number = sums[i, j + following]
                    if masked:
                        number *= mask[row, x]
                    out[row, x] = back(activation, number, output[row, x])

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(grad, weights, output, mask, out):
        tiles_a = cuda.shared.array((rows, PITCH), grad.dtype, alignment=16)
        tiles_b = cuda.shared.array((rows, PITCH), grad.dtype, alignment=16)
        staged_a = cuda.local.array((parts, 4), grad.dtype)
        staged_b = cuda.local.array((parts, 4), grad.dtype)
        sums = cuda.local.array((8, 8), grad.dtype)
        left = cuda.local.array(8, grad.dtype)
        right = cuda.local.array(8, grad.dtype)
        product(grad, weights, tiles_a, tiles_b, staged_a, staged_b, sums, left, right)
        row, column = corner()
        for i in range(8):
            target = row + (i & 3) + (i >> 2) * GAP
            if target < out.shape[0]:
                finish(out, output, mask, target, column, sums, i, 0)
                finish(out, output, mask, target, column + GAP, sums, i, 4)

    return kernel


@cuda.jit(device=True)
def inside():
    """This thread's first row and column within the block's: eight warps 4 x 2, and 4 x 8 threads in each."""
    warp = cuda.threadIdx.x >> 5
    lane = cuda.threadIdx.x & 31
    return (warp >> 1) * 16 + (lane >> 3) * 4, (warp & 1) * 32 + (lane & 7) * 4


@cuda.jit(device=True)
def corner():
    """This thread's first row and column of the result."""
    y, x = inside()
    return cuda.blockIdx.y * SIDE + y, cuda.blockIdx.x * SIDE + x


def _product(form: str, vector: bool, depth: int) -> Any:
    """The device function that leaves a thread's 8 x 8 numbers of the product in `sums`."""
    a_tiles, b_tiles = mover(form != "tn", vector, depth), mover(form == "nt", vector, depth)
    place_a, first_a, load_a, unload_a = a_tiles.place, a_tiles.first, a_tiles.load, a_tiles.unload
    place_b, first_b, load_b, unload_b = b_tiles.place, b_tiles.first, b_tiles.load, b_tiles.unload
    eight = outer_products(GAP)
    inner = 0 if form == "tn" else 1

    @cuda.jit(device=True)
    def multiply_tile(tiles_a, tiles_b, sums, left, right, base, y, x):
        eight(tiles_a, tiles_b, sums, left, right, base, y, x)
        if depth == 16:
            eight(tiles_a, tiles_b, sums, left, right, base + 8, y, x)

    @cuda.jit(device=True)
    def product(a, b, tiles_a, tiles_b, staged_a, staged_b, sums, left, right):
        for i in range(8):
            for j in range(8):
                sums[i, j] = a.dtype.type(0)
        y, x = inside()
        row = cuda.blockIdx.y * SIDE
        column = cuda.blockIdx.x * SIDE
        count = int32(a.shape[inner])
        start = int32((count - 1) & (depth - 1)) + int32(1)  # what is over when K is cut into tiles, or a whole one
        i_a, k_a = place_a()
        i_b, k_b = place_b()
        first_a(staged_a, a, row + i_a, k_a, start)
        first_b(staged_b, b, column + i_b, k_b, start)
        unload_a(tiles_a, i_a, k_a, staged_a)
        unload_b(tiles_b, i_b, k_b, staged_b)
        cuda.syncthreads()
        base = int32(0)  # which half of the tiles' rows is being multiplied: 0 or depth
        while start <= count:  # once more than there are tiles to fetch: the last is multiplied when nothing is left
            if start < count:
                load_a(staged_a, a, row + i_a, start + k_a)
                load_b(staged_b, b, column + i_b, start + k_b)
            multiply_tile(tiles_a, tiles_b, sums, left, right, base, y, x)
            base = int32(depth) - base
            if start < count:
                unload_a(tiles_a, i_a, base + k_a, staged_a)
                unload_b(tiles_b, i_b, base + k_b, staged_b)
            cuda.syncthreads()
            start += int32(depth)

    return product
