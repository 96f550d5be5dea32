"""One thread, one element (or a few): guards, strides, optimizer updates, integer and 8-bit data, records."""

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
def add_while_stride(a, b, out):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    step = cuda.blockDim.x * cuda.gridDim.x
    while i < len(out):
        out[i] = a[i] + b[i]
        i += step


@cuda.jit
def sgd_momentum(parameter, gradient, velocity, learning_rate, momentum):
    i = cuda.grid(1)
    if i < parameter.size:
        velocity[i] = momentum * velocity[i] - learning_rate * gradient[i]
        parameter[i] += velocity[i]


@cuda.jit
def adam(parameter, gradient, mean, square, learning_rate, beta1, beta2, epsilon, step):
    i = cuda.grid(1)
    if i < parameter.size:
        g = gradient[i]
        mean[i] = beta1 * mean[i] + (float32(1) - beta1) * g
        square[i] = beta2 * square[i] + (float32(1) - beta2) * g * g
        mean_hat = mean[i] / (float32(1) - beta1**step)
        square_hat = square[i] / (float32(1) - beta2**step)
        parameter[i] -= learning_rate * mean_hat / (math.sqrt(square_hat) + epsilon)


@cuda.jit
def normalise_pixels(pixels, mean, deviation, out):
    """uint8 images (N, D) to float32 with the data's mean and standard deviation."""
    i = cuda.grid(1)
    rows, columns = pixels.shape
    if i < rows * columns:
        row = i // columns
        column = i - row * columns
        out[row, column] = (float32(pixels[row, column]) / float32(255) - mean) / deviation


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


def _sgd_momentum(size: int, generator: np.random.Generator) -> Launch:
    parameter, gradient, velocity = (normal(generator, size) for _ in range(3))
    rate, momentum = np.float32(0.05), np.float32(0.9)
    new = 0.9 * velocity.astype(np.float64) - 0.05 * gradient
    arguments = (parameter, gradient, velocity, rate, momentum)
    return Launch(blocks_for(size, 128), 128, arguments, {0: parameter + new, 2: new})


def _adam(size: int, generator: np.random.Generator) -> Launch:
    parameter, gradient, mean = (normal(generator, size) for _ in range(3))
    square = np.abs(normal(generator, size))
    new_mean = 0.9 * mean.astype(np.float64) + 0.1 * gradient
    new_square = 0.999 * square.astype(np.float64) + 0.001 * gradient.astype(np.float64) ** 2
    change = 0.01 * (new_mean / (1 - 0.9**3)) / (np.sqrt(new_square / (1 - 0.999**3)) + 1e-8)
    settings = tuple(np.float32(value) for value in (0.01, 0.9, 0.999, 1e-8))
    arguments = (parameter, gradient, mean, square, *settings, 3)
    return Launch(blocks_for(size, 64), 64, arguments, {0: parameter - change, 2: new_mean, 3: new_square})


def _normalise_pixels(size: tuple[int, int], generator: np.random.Generator) -> Launch:
    pixels = generator.integers(0, 256, size, dtype=np.uint8)
    expected = (pixels / 255.0 - 0.1307) / 0.3081
    arguments = (pixels, np.float32(0.1307), np.float32(0.3081), poisoned(size))
    return Launch(blocks_for(pixels.size, 96), 96, arguments, {3: expected})


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


PIXEL_SIZES = ((1, 1), (3, 7), (13, 784))

EXAMPLES = {
    "add_guarded": Example(add_guarded, _add(128), SIZES, STEP_SIZES),
    "add_grid_stride": Example(add_grid_stride, _add(64, blocks=3), SIZES, STEP_SIZES),
    "add_while_stride": Example(add_while_stride, _add(96, blocks=2), SIZES, STEP_SIZES),
    "sgd_momentum": Example(sgd_momentum, _sgd_momentum, SIZES, STEP_SIZES),
    "adam": Example(adam, _adam, SIZES, STEP_SIZES),
    "normalise_pixels": Example(normalise_pixels, _normalise_pixels, PIXEL_SIZES, PIXEL_SIZES[:2]),
    "integer_types": Example(integer_types, _integer_types, SIZES),
    "store_narrow": Example(store_narrow, _store_narrow, SIZES),
    "mathematics": Example(mathematics, _mathematics, SIZES, STEP_SIZES),
    "move_particles": Example(move_particles, _move_particles, SIZES, STEP_SIZES),
}
