"""Convolution on the GPU, the first rungs, and the gradients by their definition.

    naive        one thread for each output                  a number of the image is read from memory kh kw O times
    halo_tile    a block keeps 16 x 16 places of one image   and here O / 4 times, but for the halo: the numbers
                 with all that their windows touch           around the tile, which its neighbours read, too

The gradients: dL/dx gathers, for each number of the image, what the windows over it have sent back. So each thread
writes its own number, and there are no atomics. dL/dweights is a sum over all places of all images. It is cut into
parts, so that there are threads enough, and the parts are added in a fixed order.

The result is what PyTorch calls convolution: out[n, o, r, s] = bias[o] + the sum over c, i, j of weights[o, c, i, j] *
padded[n, c, r * down + i, s * right + j]. `down` and `right` are the strides, `top` and `left` the padding.
"""

from __future__ import annotations

from ..backend import cuda

LANES, ADDERS = 32, 8
"""Numbers of a block that adds up parts, and threads for each of them."""

TILE = 16
"""Rows and columns of the outputs that a block of halo_tile computes: one for each of its threads, and for each kernel
of a group."""

GROUP = 4
"""Kernels that a block of halo_tile has in its hands: a number of the image, once read, serves so many."""

SPAN = 40
"""Rows and columns of the image that fit into the shared memory of halo_tile."""

PITCH = SPAN + 1
"""Numbers from one of these rows to the next: one more, so that a column lies in different banks."""

MOST_TAPS = 128
"""Numbers of a kernel in one channel that fit beside it."""


@cuda.jit
def naive(x, weights, bias, down, right, top, left, out):
    """The definition. x (N, C, H, W), weights (O, C, kh, kw), bias (O,), out (N, O, H', W'). Grid-stride."""
    rows, columns = out.shape[2], out.shape[3]
    index = cuda.grid(1)
    while index < out.size:
        s = index % columns
        r = index // columns % rows
        o = index // (columns * rows) % out.shape[1]
        n = index // (columns * rows * out.shape[1])
        total = bias[o]
        c = 0
        while c < weights.shape[1]:
            i = 0
            while i < weights.shape[2]:
                h = r * down + i - top
                j = 0
                while j < weights.shape[3]:
                    w = s * right + j - left
                    if h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]:
                        total += weights[o, c, i, j] * x[n, c, h, w]
                    j += 1
                i += 1
            c += 1
        out[n, o, r, s] = total
        index += cuda.gridsize(1)


@cuda.jit(device=True)
def fill_halo(image, x, n, c, row, column, height, width):
    """image[:height, :width] = what of channel c of image n begins at (row, column), zeros beyond its edges; row and
    column may be negative. Blocks of (TILE, TILE) threads, x along the columns: a thread copies every TILE-th number of
    every TILE-th row."""
    i = cuda.threadIdx.y
    while i < height:
        h = row + i
        j = cuda.threadIdx.x
        while j < width:
            w = column + j
            inside = h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]
            image[i, j] = x[n, c, h, w] if inside else x.dtype.type(0)
            j += TILE
        i += TILE


@cuda.jit(device=True)
def fill_group(kernels, weights, first, c):
    """kernels[g] = the numbers of kernel first + g in channel c, row after row, for a group of kernels."""
    kw = weights.shape[3]
    taps = weights.shape[2] * kw
    index = cuda.threadIdx.y * TILE + cuda.threadIdx.x
    while index < GROUP * taps:
        g = index // taps
        tap = index - g * taps
        # Beyond the last kernel its numbers are read again: what comes of it is not stored.
        kernels[g, tap] = weights[min(first + g, weights.shape[0] - 1), c, tap // kw, tap % kw]
        index += TILE * TILE


@cuda.jit
def halo_tile(x, weights, bias, down, right, top, left, out):
    """The same through shared memory. Blocks of (TILE, TILE) threads, x along the columns of the output; grid: (tiles
    of all images, groups of kernels). Needs (TILE - 1) * stride + window <= SPAN both ways, kh kw <= MOST_TAPS."""
    image = cuda.shared.array((SPAN, PITCH), x.dtype)
    kernels = cuda.shared.array((GROUP, MOST_TAPS), x.dtype)
    sums = cuda.local.array(GROUP, x.dtype)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    kh, kw = weights.shape[2], weights.shape[3]
    across = (out.shape[3] + TILE - 1) // TILE
    tiles = across * ((out.shape[2] + TILE - 1) // TILE)
    n = cuda.blockIdx.x // tiles
    tile = cuda.blockIdx.x - n * tiles
    r0 = tile // across * TILE
    s0 = tile % across * TILE
    first = cuda.blockIdx.y * GROUP
    for g in range(GROUP):
        sums[g] = x.dtype.type(0)
    c = 0
    while c < weights.shape[1]:
        height, width = (TILE - 1) * down + kh, (TILE - 1) * right + kw
        fill_halo(image, x, n, c, r0 * down - top, s0 * right - left, height, width)
        fill_group(kernels, weights, first, c)
        cuda.syncthreads()
        i = 0
        while i < kh:
            j = 0
            while j < kw:
                number = image[ty * down + i, tx * right + j]
                for g in range(GROUP):
                    sums[g] += kernels[g, i * kw + j] * number
                j += 1
            i += 1
        cuda.syncthreads()  # nobody may overwrite a tile that another thread still reads
        c += 1
    r = r0 + ty
    s = s0 + tx
    if r < out.shape[2] and s < out.shape[3]:
        for g in range(GROUP):
            if first + g < out.shape[1]:
                out[n, first + g, r, s] = sums[g] + bias[first + g]


@cuda.jit
def grad_input(grad, weights, down, right, top, left, out):
    """dL/dx by one thread for each of its numbers: grad (N, O, H', W'), weights (O, C, kh, kw), out (N, C, H, W).
    Grid-stride.

    Place (r, s) of the output met (h, w) with number (i, j) of the kernel where r * down + i = h + top and
    s * right + j = w + left.
    """
    rows, columns = out.shape[2], out.shape[3]
    index = cuda.grid(1)
    while index < out.size:
        w = index % columns
        h = index // columns % rows
        c = index // (columns * rows) % out.shape[1]
        n = index // (columns * rows * out.shape[1])
        total = grad.dtype.type(0)
        o = 0
        while o < weights.shape[0]:
            i = (h + top) % down  # the others are no multiple of the stride away
            while i < weights.shape[2]:
                r = (h + top - i) // down
                j = (w + left) % right
                while j < weights.shape[3]:
                    s = (w + left - j) // right
                    if r >= 0 and r < grad.shape[2] and s >= 0 and s < grad.shape[3]:
                        total += weights[o, c, i, j] * grad[n, o, r, s]
                    j += right
                i += down
            o += 1
        out[n, c, h, w] = total
        index += cuda.gridsize(1)


@cuda.jit
def grad_weights_parts(grad, x, down, right, top, left, grad_weights, parts):
    """parts[part] = dL/dweights and, behind it, dL/dbias of that part of the batch: (parts, weights.size + O).
    Grid: (blocks over the numbers, parts).

    grad_weights: (O, C, kh, kw), looked at for its shape only
    """
    channels, kh, kw = grad_weights.shape[1], grad_weights.shape[2], grad_weights.shape[3]
    part = cuda.blockIdx.y
    size = (grad.shape[0] + parts.shape[0] - 1) // parts.shape[0]
    index = cuda.grid(1)
    if index < parts.shape[1]:
        of_bias = index >= grad_weights.size
        j = index % kw
        i = index // kw % kh
        c = index // (kw * kh) % channels
        o = index - grad_weights.size if of_bias else index // (kw * kh * channels)
        total = grad.dtype.type(0)
        n = part * size
        while n < min((part + 1) * size, grad.shape[0]):
            r = 0
            while r < grad.shape[2]:
                h = r * down + i - top
                s = 0
                while s < grad.shape[3]:
                    w = s * right + j - left
                    if of_bias:
                        total += grad[n, o, r, s]
                    elif h >= 0 and h < x.shape[2] and w >= 0 and w < x.shape[3]:
                        total += grad[n, o, r, s] * x[n, c, h, w]
                    s += 1
                r += 1
            n += 1
        parts[part, index] = total


@cuda.jit
def add_parts(parts, grad_weights, grad_bias):
    """The parts added up in a fixed order: parts (parts, weights + O) into vectors of weights and of O. Blocks of
    (LANES, ADDERS) threads, one for each LANES numbers: each thread adds every ADDERS-th part, a tree the rest."""
    partial = cuda.shared.array((ADDERS, LANES), parts.dtype)
    lane = cuda.threadIdx.x
    adder = cuda.threadIdx.y
    index = cuda.blockIdx.x * LANES + lane
    total = parts.dtype.type(0)
    if index < parts.shape[1]:
        part = adder
        while part < parts.shape[0]:
            total += parts[part, index]
            part += ADDERS
    partial[adder, lane] = total
    cuda.syncthreads()
    half = ADDERS // 2
    while half > 0:
        if adder < half:
            partial[adder, lane] += partial[adder + half, lane]
        cuda.syncthreads()
        half //= 2
    if adder == 0 and index < parts.shape[1]:
        if index < grad_weights.size:
            grad_weights[index] = partial[0, lane]
        else:
            grad_bias[index - grad_weights.size] = partial[0, lane]
