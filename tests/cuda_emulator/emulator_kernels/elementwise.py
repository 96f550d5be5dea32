"""One thread, one element (or a few): guards, strides, integer types, mathematics, records."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import float32, int64, uint32

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import Example, Launch, blocks_for, normal, poisoned

SIZES = (1, 31, 257, 1009)
STEP_SIZES = (1, 31)


@cuda.jit
def add_guarded(a, b, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    out[i] = a[i] + b[i]


@cuda.jit
def add_grid_stride(a, b, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] + b[i]


@cuda.jit
def integer_types(small, byte, word, out):
    """What signed, unsigned, narrow and wide integers do to each other: Numba's rules, on a device as on a CPU."""
    i = cuda.grid(1)
    if i < small.size:
        out[i, 0] = small[i] * word[i]
        out[i, 1] = small[i] // 7 + small[i] % 7 * 1000
        out[i, 2] = (byte[i] << 3) ^ (byte[i] >> 1)
        out[i, 3] = ~small[i] & 0xFF
        out[i, 4] = int64(uint32(word[i] * -3))
        out[i, 5] = -small[i] if small[i] < 0 else small[i]
        out[i, 6] = abs(small[i]) + min(small[i], word[i]) - max(int64(byte[i]), 100)


@cuda.jit
def store_narrow(x, out8, out16):
    """A store converts to the array's type: what does not fit wraps."""
    i = cuda.grid(1)
    if i < x.size:
        out8[i] = x[i]
        out16[i] = x[i]


@cuda.jit
def mathematics(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = math.sin(v) * math.cos(v) + math.tan(v / float32(4))
        out[i, 1] = math.exp(-v * v) + math.log1p(abs(v)) + math.expm1(v)
        out[i, 2] = math.atan2(v, float32(2)) + math.hypot(v, float32(1))
        out[i, 3] = math.floor(v) + math.ceil(v) + math.fmod(v, float32(0.75))
        out[i, 4] = math.erf(v) + math.tanh(v) + math.copysign(float32(1), v)
        out[i, 5] = float32(1) if math.isnan(v) or math.isinf(v) else abs(v) ** float32(1.5)


@cuda.jit
def move_particles(particles, seconds):
    """An array of records: a struct with named fields on the device."""
    i = cuda.grid(1)
    if i < particles.size:
        particles[i].x += particles[i].speed * seconds
        particles[i].moves += 1


PARTICLE = np.dtype([("x", np.float64), ("speed", np.float32), ("moves", np.int32)], align=True)


def _add(block: int, blocks: int | None = None) -> Callable[[int, np.random.Generator], Launch]:
    def launch(size: int, generator: np.random.Generator) -> Launch:
        a, b = normal(generator, size), normal(generator, size)
        grid = blocks or blocks_for(size, block)
        return Launch(grid, block, (a, b, poisoned(size)), {2: a.astype(np.float64) + b})

    return launch


def _integer_types(size: int, generator: np.random.Generator) -> Launch:
    small = generator.integers(-127, 128, size, dtype=np.int8)
    byte = generator.integers(0, 256, size, dtype=np.uint8)
    word = generator.integers(-(2**31), 2**31, size, dtype=np.int32)
    s, b, w = (array.astype(np.int64) for array in (small, byte, word))
    columns = (
        s * w,
        s // 7 + s % 7 * 1000,
        (b << 3) ^ (b >> 1),
        ~s & 0xFF,
        (w * -3) % 2**32,
        np.abs(s),
        np.abs(s) + np.minimum(s, w) - np.maximum(b, 100),
    )
    out = poisoned((size, len(columns)), np.int64)
    return Launch(blocks_for(size, 32), 32, (small, byte, word, out), {3: np.stack(columns, axis=1)})


def _store_narrow(size: int, generator: np.random.Generator) -> Launch:
    x = generator.integers(-100_000, 100_000, size, dtype=np.int64)
    arguments = (x, poisoned(size, np.int8), poisoned(size, np.uint16))
    return Launch(blocks_for(size, 32), 32, arguments, {1: x.astype(np.int8), 2: x.astype(np.uint16)})


def _mathematics(size: int, generator: np.random.Generator) -> Launch:
    x = normal(generator, size)
    v = x.astype(np.float64)
    error_function = np.array([math.erf(value) for value in v])
    columns = (
        np.sin(v) * np.cos(v) + np.tan(v / 4),
        np.exp(-v * v) + np.log1p(np.abs(v)) + np.expm1(v),
        np.arctan2(v, 2) + np.hypot(v, 1),
        np.floor(v) + np.ceil(v) + np.fmod(v, 0.75),
        error_function + np.tanh(v) + np.copysign(1, v),
        np.abs(v) ** 1.5,
    )
    arguments = (x, poisoned((size, len(columns))))
    return Launch(blocks_for(size, 32), 32, arguments, {1: np.stack(columns, axis=1)})


def _move_particles(size: int, generator: np.random.Generator) -> Launch:
    particles = np.zeros(size, PARTICLE)
    particles["x"] = generator.standard_normal(size)
    particles["speed"] = normal(generator, size)
    expected = particles.copy()
    expected["x"] += particles["speed"] * 2.0
    expected["moves"] = 1
    return Launch(blocks_for(size, 32), 32, (particles, 2.0), {0: expected})


EXAMPLES = {
    "add_guarded": Example(add_guarded, _add(128), SIZES, STEP_SIZES),
    "add_grid_stride": Example(add_grid_stride, _add(64, blocks=3), SIZES, STEP_SIZES),
    "integer_types": Example(integer_types, _integer_types, SIZES),
    "store_narrow": Example(store_narrow, _store_narrow, SIZES),
    "mathematics": Example(mathematics, _mathematics, SIZES, STEP_SIZES),
    "move_particles": Example(move_particles, _move_particles, SIZES, STEP_SIZES),
}
