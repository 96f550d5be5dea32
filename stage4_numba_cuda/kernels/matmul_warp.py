"""warp"""
from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from ..backend import cuda
from .activations import activate, back
from .ptx import load4, store4

SIDE = 128
THREADS = 256
PAD = 4


def operand(turned: bool, vector: bool, depth: int) -> SimpleNamespace:
    lanes = depth // 4
    reach = THREADS // lanes if turned else 0

    @cuda.jit(device=True)
    def clamped(i, size):
        return min(i, size - (4 if vector and not turned else 1))

    if turned:

        @cuda.jit(device=True)
        def place(thread, part):
            return thread // lanes + part * (THREADS // lanes), thread % lanes * 4

        @cuda.jit(device=True)
        def put(tile, base, i, k, v0, v1, v2, v3):
            tile[base + k, i] = v0
            tile[base + k + 1, i] = v1
            tile[base + k + 2, i] = v2
            tile[base + k + 3, i] = v3

        if vector:

            @cuda.jit(device=True)
            def fetch(source, i, k):
                return load4(source, min(i, source.shape[0] - 1), k)
        else:

            @cuda.jit(device=True)
            def fetch(source, i, k):
                i = min(i, source.shape[0] - 1)
                return source[i, k], source[i, k + 1], source[i, k + 2], source[i, k + 3]

        @cuda.jit(device=True)
        def fetch_some(source, i, k, limit):
            i = min(i, source.shape[0] - 1)
            zero = source.dtype.type(0)
            return (
                source[i, k] if k < limit else zero,
                source[i, k + 1] if k + 1 < limit else zero,
                source[i, k + 2] if k + 2 < limit else zero,
                source[i, k + 3] if k + 3 < limit else zero,
            )

    else:

        @cuda.jit(device=True)
        def place(thread, part):
            return thread % 32 * 4, thread // 32 + part * 8

        @cuda.jit(device=True)
        def put(tile, base, i, k, v0, v1, v2, v3):
            store4(tile, base + k, i, v0, v1, v2, v3)

        if vector:

            @cuda.jit(device=True)
            def fetch(source, i, k):
                return load4(source, k, min(i, source.shape[1] - 4))
        else:

            @cuda.jit(device=True)
            def fetch(source, i, k):
                last = source.shape[1] - 1
                return source[k, min(i, last)], source[k, min(i + 1, last)], source[k, min(i + 2, last)], source[k, min(i + 3, last)]

        @cuda.jit(device=True)
        def fetch_some(source, i, k, limit):
            last = source.shape[1] - 1
            zero = source.dtype.type(0)
            if k < limit:
                return source[k, min(i, last)], source[k, min(i + 1, last)], source[k, min(i + 2, last)], source[k, min(i + 3, last)]
            return zero, zero, zero, zero

    return SimpleNamespace(place=place, fetch=fetch, fetch_some=fetch_some, put=put)


@cache
def warp_tiled(form: str, vector: bool, depth: int, activation: int = 0):
    one, two = operand(form != "tn", vector, depth), operand(form == "nt", vector, depth)
    place_a, fetch_a, some_a, put_a = one.place, one.fetch, one.fetch_some, one.put
    place_b, fetch_b, some_b, put_b = two.place, two.fetch, two.fetch_some, two.put
    inner = 0 if form == "tn" else 1
    parts = depth // 8
    stages = 2 * depth
    pitch = SIDE + PAD

    @cuda.jit(device=True)
    def step(tiles_a, tiles_b, acc, k, y, x):
        left = cuda.local.array(8, tiles_a.dtype)
        right = cuda.local.array(8, tiles_a.dtype)
        left[0], left[1], left[2], left[3] = load4(tiles_a, k, y)
        left[4], left[5], left[6], left[7] = load4(tiles_a, k, y + 64)
        right[0], right[1], right[2], right[3] = load4(tiles_b, k, x)
        right[4], right[5], right[6], right[7] = load4(tiles_b, k, x + 64)
        for i in range(8):
            for j in range(8):
                acc[i, j] += left[i] * right[j]

    @cuda.jit(device=True)
    def eight(tiles_a, tiles_b, acc, k, y, x):
        step(tiles_a, tiles_b, acc, k, y, x)
        step(tiles_a, tiles_b, acc, k + 1, y, x)
        step(tiles_a, tiles_b, acc, k + 2, y, x)
        step(tiles_a, tiles_b, acc, k + 3, y, x)
        step(tiles_a, tiles_b, acc, k + 4, y, x)
        step(tiles_a, tiles_b, acc, k + 5, y, x)
        step(tiles_a, tiles_b, acc, k + 6, y, x)
        step(tiles_a, tiles_b, acc, k + 7, y, x)

    @cuda.jit(device=True)
    def stage(tiles_a, tiles_b, acc, base, y, x):
        eight(tiles_a, tiles_b, acc, base, y, x)
        if depth == 16:
            eight(tiles_a, tiles_b, acc, base + 8, y, x)

    @cuda.jit(device=True)
    def product(a, b, tiles_a, tiles_b, acc, y, x):
        staged_a = cuda.local.array((parts, 4), a.dtype)
        staged_b = cuda.local.array((parts, 4), a.dtype)
        for i in range(8):
            for j in range(8):
                acc[i, j] = a.dtype.type(0)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y * SIDE
        column = cuda.blockIdx.x * SIDE
        count = a.shape[inner]
        start = count % depth
        if start == 0:
            start = depth
        for part in range(parts):
            i, k = place_a(thread, part)
            v0, v1, v2, v3 = some_a(a, row + i, k, start)
            put_a(tiles_a, 0, i, k, v0, v1, v2, v3)
            i, k = place_b(thread, part)
            v0, v1, v2, v3 = some_b(b, column + i, k, start)
            put_b(tiles_b, 0, i, k, v0, v1, v2, v3)
        cuda.syncthreads()
        base = 0
        while start < count:
            for part in range(parts):
                i, k = place_a(thread, part)
                v0, v1, v2, v3 = fetch_a(a, row + i, start + k)
                staged_a[part, 0] = v0
                staged_a[part, 1] = v1
                staged_a[part, 2] = v2
                staged_a[part, 3] = v3
                i, k = place_b(thread, part)
                v0, v1, v2, v3 = fetch_b(b, column + i, start + k)
                staged_b[part, 0] = v0
                staged_b[part, 1] = v1
                staged_b[part, 2] = v2
                staged_b[part, 3] = v3
            stage(tiles_a, tiles_b, acc, base, y, x)
            base = depth - base
            for part in range(parts):
                i, k = place_a(thread, part)
                put_a(tiles_a, base, i, k, staged_a[part, 0], staged_a[part, 1], staged_a[part, 2], staged_a[part, 3])
                i, k = place_b(thread, part)
                put_b(tiles_b, base, i, k, staged_b[part, 0], staged_b[part, 1], staged_b[part, 2], staged_b[part, 3])
            cuda.syncthreads()
            start += depth
        stage(tiles_a, tiles_b, acc, base, y, x)

    @cuda.jit(device=True)
    def put_row(c, row, column, v0, v1, v2, v3):
        if vector:
            if column < c.shape[1]:
                store4(c, row, column, v0, v1, v2, v3)
        else:
            if column < c.shape[1]:
                c[row, column] = v0
            if column + 1 < c.shape[1]:
                c[row, column + 1] = v1
            if column + 2 < c.shape[1]:
                c[row, column + 2] = v2
            if column + 3 < c.shape[1]:
                c[row, column + 3] = v3

    @cuda.jit
    def multiply(a, b, c):
        tiles_a = cuda.shared.array((stages, pitch), a.dtype, alignment=16)
        tiles_b = cuda.shared.array((stages, pitch), a.dtype, alignment=16)
        acc = cuda.local.array((8, 8), a.dtype)
        warp = cuda.threadIdx.x // 32
        lane = cuda.threadIdx.x % 32
        y = warp // 2 * 16 + lane // 8 * 4
        x = warp % 2 * 32 + lane % 8 * 4
        product(a, b, tiles_a, tiles_b, acc, y, x)
        row = cuda.blockIdx.y * SIDE + y
        column = cuda.blockIdx.x * SIDE + x
        for i in range(8):
            r = row + i % 4 + i // 4 * 64
            if r < c.shape[0]:
                put_row(c, r, column, acc[i, 0], acc[i, 1], acc[i, 2], acc[i, 3])
                put_row(c, r, column + 64, acc[i, 4], acc[i, 5], acc[i, 6], acc[i, 7])

    return SimpleNamespace(multiply=multiply)
