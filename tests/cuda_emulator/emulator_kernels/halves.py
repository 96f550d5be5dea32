"""float16: each operation is rounded to half precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from cuda_emulator import cuda
from tests.cuda_emulator.emulator_kernels.example import fixed, poisoned


@cuda.jit
def arithmetic(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0] = a[i] + b[i]
        out[i, 1] = a[i] - b[i]
        out[i, 2] = a[i] * b[i]
        out[i, 3] = a[i] / b[i]
        out[i, 4] = -a[i]
        out[i, 5] = abs(b[i])
        out[i, 6] = math.sqrt(a[i])
        out[i, 7] = math.floor(a[i])
        out[i, 8] = (a[i] + b[i]) * a[i]


def results(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What `arithmetic` gives, from NumPy."""
    with np.errstate(all="ignore"):
        columns = (a + b, a - b, a * b, a / b, -a, abs(b), np.sqrt(a), np.floor(a), (a + b) * a)
    return np.stack(columns, axis=1)


@cuda.jit
def reduced(x, factor, out):
    """Shared and local arrays, and variables that are kept over barriers."""
    shared = cuda.shared.array(32, types.float16)
    own = cuda.local.array(1, np.float16)
    t = cuda.threadIdx.x
    own[0] = x[t]
    kept = x[t] * factor
    shared[t] = own[0]
    cuda.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    out[t] = shared[0] + kept


@cuda.jit("void(float16[:], float16, float16, float16, boolean[:])")
def functions(out, a, b, c, compared):
    out[0] = cuda.fp16.hadd(a, b)
    out[1] = cuda.fp16.hfma(a, b, c)
    out[2] = cuda.fp16.hmul(a, 2.5)
    out[3] = cuda.fp16.hmax(a, b)
    out[4] = cuda.fp16.hmin(a, b)
    out[5] = cuda.fp16.hsin(a)
    out[6] = cuda.fp16.hrsqrt(a)
    out[7] = cuda.fp16.hexp10(a)
    out[8] = math.cos(a)
    compared[0] = cuda.fp16.hlt(a, b)
    compared[1] = cuda.fp16.hne(a, b)
    compared[2] = cuda.fp16.heq(a, b)
    compared[3] = a < b and b != c


@cuda.jit
def without_half(x, out):
    """Functions that have no float16 compute in float32, as on a device."""
    out[0] = math.tan(x[0])
    out[1] = math.erf(x[0])


def _called(b: np.float16, largest: np.float16, compared: list[bool]) -> tuple[tuple[Any, ...], dict[int, Any]]:
    a, c = np.float16(1.3), np.float16(0.01)
    fused, wide = np.float16(float(a) * float(b) + float(c)), np.float32(a)
    out = [a + b, fused, a * np.float16(2.5), largest, a, np.sin(wide), 1 / np.sqrt(wide), 10**wide, np.cos(wide)]
    arguments = (poisoned(9, np.float16), a, b, c, np.zeros(4, bool))
    return arguments, {0: np.array(out, np.float16), 4: compared}


RANDOM = [np.random.default_rng(seed).normal(size=64).astype(np.float16) for seed in (1, 2)]
HALVES = (np.arange(32) / 7).astype(np.float16)
FACTOR, THIRD = np.float16(1.3), np.full(1, 0.3, np.float16)
TREE = HALVES.copy()
for _step in (16, 8, 4, 2, 1):
    TREE[:_step] += TREE[_step : 2 * _step]

EXAMPLES = {
    "arithmetic": fixed(arithmetic, 32, (*RANDOM, poisoned((64, 9), np.float16)), {2: results(*RANDOM)}, grid=2),
    "reduced": fixed(reduced, 32, (HALVES, FACTOR, poisoned(32, np.float16)), {2: TREE[0] + HALVES * FACTOR}),
    "functions": fixed(
        functions, 1, *_called(np.float16(2.7), np.float16(2.7), [True, True, False, True]), tolerance=1e-3
    ),
    "functions_of_nan": fixed(
        functions, 1, *_called(np.float16(math.nan), np.float16(1.3), [False] * 4), tolerance=1e-3
    ),
    "without_half": fixed(
        without_half,
        1,
        (THIRD, poisoned(2)),
        {1: [math.tan(THIRD[0]), math.erf(THIRD[0])]},
        tolerance=1e-6,
    ),
}
