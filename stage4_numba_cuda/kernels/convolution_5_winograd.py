"""Winograd's F(2x2, 3x3): 16 multiplications for four outputs of a 3x3 kernel in place of 36.

    transform_weights    U = G w Gᵀ, 16 numbers for each kernel in each channel
    transform_images     V = Bᵀ d B, 16 numbers for each tile of 4 x 4 numbers of the image in each channel
    finish               Aᵀ M A, 2 x 2 outputs for each tile, with the bias and the activation

Between them, for each of the 16 numbers, a product of matrices sums over the channels: M[t] = U[t] (O, C) @ V[t]
(C, tiles). U lies as one matrix (O, 16 channels), V as (16 channels, tiles), each part filled up with zeros to whole
tiles of the product. So the 16 are the parts of one product that is cut along what it sums over, and `forward_partial`
of a training step computes all in one launch.

The transforms are those of shared/checks/winograd.py, where they are derived from the points 0, 1, -1 and infinity, and
where stands how much more they round than the plain sum. An infinite or NaN number of the image spoils the tile's four
outputs, also those whose windows do not hold it.
"""

from __future__ import annotations

from ..backend import cuda
from .activations import activate

KERNEL = 3
OUTPUTS = 2
"""Rows and columns of the outputs of a tile."""

POINTS = 16


@cuda.jit(device=True)
def by_g(w0, w1, w2):
    """G (4, 3) times a column of a kernel."""
    half = type(w0)(0.5)
    return w0, half * (w0 + w1 + w2), half * (w0 - w1 + w2), w2


@cuda.jit(device=True)
def by_b(d0, d1, d2, d3):
    """Bᵀ (4, 4) times a column of a tile."""
    return d0 - d2, d1 + d2, d2 - d1, d3 - d1


@cuda.jit(device=True)
def by_a(m0, m1, m2, m3):
    """Aᵀ (2, 4) times a column of the products."""
    return m0 + m1 + m2, m1 - m2 + m3


@cuda.jit
def transform_weights(weights, u):
    """u (O, 16 padded channels) from weights (O, C, 3, 3). A thread for each filter and padded channel, grid-stride."""
    padded = u.shape[1] // POINTS
    rows = cuda.local.array((4, 3), weights.dtype)
    index = cuda.grid(1)
    while index < u.shape[0] * padded:
        o = index // padded
        c = index - o * padded
        for j in range(3):
            if c < weights.shape[1]:
                rows[0, j], rows[1, j], rows[2, j], rows[3, j] = by_g(
                    weights[o, c, 0, j], weights[o, c, 1, j], weights[o, c, 2, j]
                )
            else:
                for i in range(4):
                    rows[i, j] = weights.dtype.type(0)
        for i in range(4):
            at = i * 4 * padded + c
            u[o, at], u[o, at + padded], u[o, at + 2 * padded], u[o, at + 3 * padded] = by_g(
                rows[i, 0], rows[i, 1], rows[i, 2]
            )
        index += cuda.gridsize(1)


@cuda.jit
def transform_images(x, top, left, down, across, v):
    """v (16 padded channels, tiles) from x (N, C, H, W), down x across tiles an image. Grid: x over the tiles, y
    strides over the padded channels."""
    padded = v.shape[0] // POINTS
    tile = cuda.grid(1)
    rows = cuda.local.array((4, 4), x.dtype)
    if tile < v.shape[1]:
        n = tile // (down * across)
        within = tile - n * (down * across)
        h0 = within // across * OUTPUTS - top
        w0 = within % across * OUTPUTS - left
        c = cuda.blockIdx.y
        while c < padded:
            for i in range(4):
                for j in range(4):
                    h = h0 + i
                    w = w0 + j
                    inside = c < x.shape[1] and h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]
                    rows[i, j] = x[n, c, h, w] if inside else x.dtype.type(0)
            for j in range(4):
                rows[0, j], rows[1, j], rows[2, j], rows[3, j] = by_b(rows[0, j], rows[1, j], rows[2, j], rows[3, j])
            for i in range(4):
                at = i * 4 * padded + c
                v[at, tile], v[at + padded, tile], v[at + 2 * padded, tile], v[at + 3 * padded, tile] = by_b(
                    rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
                )
            c += cuda.gridDim.y


@cuda.jit
def finish(m, bias, activation, down, across, out):
    """out (N, O, H', W') from m (16, O, tiles). Grid: x over the tiles, y strides over the filters."""
    tile = cuda.grid(1)
    columns = cuda.local.array((2, 4), m.dtype)
    if tile < m.shape[2]:
        n = tile // (down * across)
        within = tile - n * (down * across)
        r0 = within // across * OUTPUTS
        s0 = within % across * OUTPUTS
        o = cuda.blockIdx.y
        while o < m.shape[1]:
            for j in range(4):
                columns[0, j], columns[1, j] = by_a(
                    m[j, o, tile], m[4 + j, o, tile], m[8 + j, o, tile], m[12 + j, o, tile]
                )
            for i in range(2):
                first, second = by_a(columns[i, 0], columns[i, 1], columns[i, 2], columns[i, 3])
                if r0 + i < out.shape[2]:
                    out[n, o, r0 + i, s0] = activate(activation, first + bias[o])
                    if s0 + 1 < out.shape[3]:
                        out[n, o, r0 + i, s0 + 1] = activate(activation, second + bias[o])
            o += cuda.gridDim.y
