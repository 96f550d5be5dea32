"""The two roofs of a GPU: multiply-adds with nothing to fetch, and numbers fetched with next to nothing to compute.

    multiply_add    every thread keeps CHAINS sums in registers, none of which waits for another
    triad           b + s c -> a over arrays of any size: one multiply-add for three numbers moved (STREAM)

The functions here only launch; `shared.bench.kinds.machine` times them. On the emulator the numbers come out right
and the times mean nothing. Import this module only where a stage runs on a GPU, or to test it: it makes kernels for the
backend of stage 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.contract import STAGES, Array, load_part

arrays, launch = (load_part(STAGES[3], name) for name in ("arrays", "launch"))
cuda = load_part(STAGES[3], "backend").cuda

CHAINS = 8
"""More than enough: a multiply-add takes four cycles or so, and a scheduler has more than one warp to choose from."""

UNROLLED = 16
"""Multiply-adds of each chain in one turn of the loop. The compiler writes them out, because counting turns takes time,
too."""

ROUNDS = 256
BLOCKS_EACH, THREADS = 8, 256
"""Eight blocks of 256 threads are the 2,048 threads that a multiprocessor holds at most."""


@cuda.jit
def multiply_add(rounds: Any, numbers: Any, sums: Any) -> None:
    """x = x * numbers[0] + numbers[1], `rounds` times UNROLLED for each of CHAINS x; sums (threads,) as numbers' dtype.

    The two numbers come from memory, so that the compiler cannot work out the result.
    """
    i = cuda.grid(1)
    half, one = numbers[0], numbers[1]
    a, b, c, d = one, half, one + one, half + half
    e, f, g, h = a + half, b + half, c + half, d + half
    turn = 0
    while turn < rounds:
        for _ in range(UNROLLED):
            a = a * half + one
            b = b * half + one
            c = c * half + one
            d = d * half + one
            e = e * half + one
            f = f * half + one
            g = g * half + one
            h = h * half + one
        turn += 1
    if i < sums.size:
        sums[i] = a + b + c + d + e + f + g + h


@cuda.jit
def triad_kernel(b: Any, c: Any, scale: Any, a: Any) -> None:
    """a = b + scale c, (n,) all. Grid-stride: neighbouring threads on neighbouring numbers, any grid covers any n."""
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < a.size:
        a[i] = b[i] + scale * c[i]
        i += step


def peak(dtype: str, rounds: int = ROUNDS, blocks: int | None = None) -> Callable[[], float]:
    """A call that launches multiply_add, waits for nothing, and returns the floating-point operations it asked for.

    blocks: None for as many as the device holds at once
    """
    blocks = blocks or BLOCKS_EACH * cuda.get_current_device().MULTIPROCESSOR_COUNT
    threads = blocks * THREADS
    numbers, sums = arrays.asarray([0.5, 1.0], dtype), arrays.asarray(np.zeros(threads), dtype)
    configured, turns = multiply_add[blocks, THREADS], np.int64(rounds)

    def call() -> float:
        configured(turns, numbers, sums)
        return 2.0 * CHAINS * UNROLLED * threads * rounds

    return call


def triad(b: Array, c: Array, scale: float, out: Array) -> Array:
    """Launch out = b + scale c and wait for nothing: device arrays (n,) of one dtype. Returns out."""
    triad_kernel[launch.elementwise(b.size)](b, c, b.dtype.type(scale), out)
    return out
