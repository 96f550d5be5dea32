"""Matrix multiplication on the GPU, the last rung on ordinary cores, and what a layer does with its product.

    warp_tiled    a warp's threads stand 4 x 8      they need half as many words of the tiles as 2 x 16 would
                  two tiles of each operand         the next is on its way while the last is multiplied; one barrier
                  bias, activation and mask         on the sums in their registers, before they are first written

A block of 256 threads computes 128 x 128 numbers, each thread 8 x 8 as 2 x 2 blocks of 4 x 4. In float32 with wide
loads a thread has 128 registers and a block 17 KB of shared memory, so that two blocks share a multiprocessor. Compiled
for compute capability 8.0 and 9.0, 87 to 90 % of the inner loop's instructions are multiply-adds. Nothing is spilled.

Eight rows of k at a time and not sixteen: with sixteen, the numbers on their way would need eight registers more, and
either some of the sums would be spilled to memory or one block would have the multiprocessor for itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import int32

from ..backend import cuda
from .activations import activate, back
from .matmul_tiles import SIDE, inside, mover, outer_products, two_blocks, writer
from .ptx import load4, store4

GAP = SIDE // 2
"""From a thread's first four rows or columns to its others."""

DEPTH = 8
"""How much of K a tile holds."""

ROWS = 2 * DEPTH
"""Two tiles, one above the other: rows 0 … 7 are read while rows 8 … 15 are written, and the other way round."""

PITCH = SIDE + 4
"""Four numbers more a row than are needed: what is stored turned goes to different banks."""


@cache
def multiply(form: str, vector: bool, dtype: str) -> Any:
    """The kernel (a, b, c): c = the product of that form.

    vector: whether memory may be read 128 bits at a time: rows of a multiple of four numbers, 16-byte addresses
    """
    product, write = _product(form, vector), writer(vector, GAP)

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(a, b, c):
        tiles_a = cuda.shared.array((ROWS, PITCH), a.dtype, alignment=16)
        tiles_b = cuda.shared.array((ROWS, PITCH), a.dtype, alignment=16)
        staged_a = cuda.local.array((1, 4), a.dtype)
        staged_b = cuda.local.array((1, 4), a.dtype)
        at_a = cuda.local.array(2, int32)
        at_b = cuda.local.array(2, int32)
        sums = cuda.local.array((8, 8), a.dtype)
        left = cuda.local.array(8, a.dtype)
        right = cuda.local.array(8, a.dtype)
        product(a, b, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right)
        row, column = corner()
        for i in range(8):
            target = int32(row + (i & 3) + (i >> 2) * GAP)  # half the registers of an int64, of which none is left
            if target < c.shape[0]:
                write(c, target, column, sums, i)

    return kernel


@cache
def forward(vector: bool, dtype: str, activation: int) -> Any:
    """The kernel (x, weights, bias, out): out = activate(xW + b). The activation is a constant of the kernel: a choice
    at run time, unrolled for 64 numbers, would be five times the code."""
    product = _product("nn", vector)

    if vector:

        @cuda.jit(device=True)
        def four(out, bias, row, column, sums, i, j):
            if column < out.shape[1]:
                store4(
                    out,
                    row,
                    column,
                    activate(activation, sums[i, j] + bias[column]),
                    activate(activation, sums[i, j + 1] + bias[column + 1]),
                    activate(activation, sums[i, j + 2] + bias[column + 2]),
                    activate(activation, sums[i, j + 3] + bias[column + 3]),
                )
    else:

        @cuda.jit(device=True)
        def four(out, bias, row, column, sums, i, j):
            for lane in range(4):
                x = column + lane
                if x < out.shape[1]:
                    out[row, x] = activate(activation, sums[i, j + lane] + bias[x])

    @cuda.jit(device=True)
    def finish(out, bias, row, column, sums, i):
        target = row + (i & 3) + (i >> 2) * GAP
        if target < out.shape[0]:
            four(out, bias, target, column, sums, i, 0)
            four(out, bias, target, column + GAP, sums, i, 4)

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(x, weights, bias, out):
        tiles_a = cuda.shared.array((ROWS, PITCH), x.dtype, alignment=16)
        tiles_b = cuda.shared.array((ROWS, PITCH), x.dtype, alignment=16)
        staged_a = cuda.local.array((1, 4), x.dtype)
        staged_b = cuda.local.array((1, 4), x.dtype)
        at_a = cuda.local.array(2, int32)
        at_b = cuda.local.array(2, int32)
        sums = cuda.local.array((8, 8), x.dtype)
        left = cuda.local.array(8, x.dtype)
        right = cuda.local.array(8, x.dtype)
        product(x, weights, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right)
        row, column = corner()
        # No loop, as for eight rows of k: 64 times tanh in float64 is too much for the compiler to unroll.
        finish(out, bias, row, column, sums, 0)
        finish(out, bias, row, column, sums, 1)
        finish(out, bias, row, column, sums, 2)
        finish(out, bias, row, column, sums, 3)
        finish(out, bias, row, column, sums, 4)
        finish(out, bias, row, column, sums, 5)
        finish(out, bias, row, column, sums, 6)
        finish(out, bias, row, column, sums, 7)

    return kernel


@cache
def backward(vector: bool, dtype: str, activation: int, masked: bool) -> Any:
    """The kernel (grad, weights, output, mask, out): out = (grad Wᵀ) · mask, back through what gave `output`.

    Where not masked, `mask` is not read.
    """
    product = _product("nt", vector)

    if vector:

        @cuda.jit(device=True)
        def four(out, output, mask, row, column, sums, i, j):
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
        def four(out, output, mask, row, column, sums, i, j):
            for lane in range(4):
                x = column + lane
                if x < out.shape[1]:
                    number = sums[i, j + lane]
                    if masked:
                        number *= mask[row, x]
                    out[row, x] = back(activation, number, output[row, x])

    @cuda.jit(**two_blocks(vector, dtype))
    def kernel(grad, weights, output, mask, out):
        tiles_a = cuda.shared.array((ROWS, PITCH), grad.dtype, alignment=16)
        tiles_b = cuda.shared.array((ROWS, PITCH), grad.dtype, alignment=16)
        staged_a = cuda.local.array((1, 4), grad.dtype)
        staged_b = cuda.local.array((1, 4), grad.dtype)
        at_a = cuda.local.array(2, int32)
        at_b = cuda.local.array(2, int32)
        sums = cuda.local.array((8, 8), grad.dtype)
        left = cuda.local.array(8, grad.dtype)
        right = cuda.local.array(8, grad.dtype)
        product(grad, weights, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right)
        row, column = corner()
        for i in range(8):
            target = row + (i & 3) + (i >> 2) * GAP
            if target < out.shape[0]:
                four(out, output, mask, target, column, sums, i, 0)
                four(out, output, mask, target, column + GAP, sums, i, 4)

    return kernel


@cuda.jit(device=True)
def corner():
    """This thread's first row and column of the result."""
    y, x = inside()
    return cuda.blockIdx.y * SIDE + y, cuda.blockIdx.x * SIDE + x


def _product(form: str, vector: bool) -> Any:
    """The device function that leaves a thread's 8 x 8 numbers of the product in `sums`."""
    a_tiles, b_tiles = mover(form != "tn", vector, DEPTH), mover(form == "nt", vector, DEPTH)
    place_a, first_a, aim_a, load_a, unload_a = a_tiles
    place_b, first_b, aim_b, load_b, unload_b = b_tiles
    eight = outer_products(GAP)
    inner = 0 if form == "tn" else 1

    @cuda.jit(device=True)
    def product(a, b, tiles_a, tiles_b, staged_a, staged_b, at_a, at_b, sums, left, right):
        for i in range(8):
            for j in range(8):
                sums[i, j] = a.dtype.type(0)
        y, x = inside()
        row = cuda.blockIdx.y * SIDE
        column = cuda.blockIdx.x * SIDE
        count = int32(a.shape[inner])
        start = int32((count - 1) & (DEPTH - 1)) + int32(1)  # what is over when K is cut into tiles, or a whole one
        i_a, k_a = place_a()
        i_b, k_b = place_b()
        first_a(staged_a, a, row + i_a, k_a, start)
        first_b(staged_b, b, column + i_b, k_b, start)
        unload_a(tiles_a, i_a, k_a, staged_a)
        unload_b(tiles_b, i_b, k_b, staged_b)
        cuda.syncthreads()
        base = int32(0)  # which half of the tiles' rows is being multiplied: 0 or DEPTH
        aim_a(at_a, a, row + i_a, start + k_a)
        aim_b(at_b, b, column + i_b, start + k_b)
        while start < count:
            load_a(staged_a, a, at_a)
            load_b(staged_b, b, at_b)
            eight(tiles_a, tiles_b, sums, left, right, base, y, x)
            base = int32(DEPTH) - base
            unload_a(tiles_a, i_a, base + k_a, staged_a)
            unload_b(tiles_b, i_b, base + k_b, staged_b)
            cuda.syncthreads()
            start += int32(DEPTH)
        # Always so. But behind a branch the compiler does not begin what follows while all registers are taken; without
        # one it does, and spills some.
        if count > 0:
            eight(tiles_a, tiles_b, sums, left, right, base, y, x)

    return product
