"""A program for test_rungs.py: a product in tiles and the softmax of a block, whole or without a barrier.

Arguments: "matmul:0" or "softmax:3", a file of kernels and the barrier to leave out: which call of syncthreads in its
source, from 1, or 0 for none. It prints a line of JSON for each kernel: its name, the barrier, and in how many orders
of the threads the result was wrong.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stage4_numba_cuda.backend import cuda
from stage4_numba_cuda.kernels import matmul_1_basic, softmax

SEEDS = 4
M, K, N = 33, 35, 18  # no multiples of a tile, and more than one of 16 x 16 along each
ROWS, COLUMNS = 5, 300  # more rows than blocks, more columns than threads

random = np.random.default_rng(0)
A, B = (random.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N)))
Z = 60 * random.standard_normal((ROWS, COLUMNS)).astype(np.float32)  # exp is infinite unless the largest is subtracted
EXPONENTIALS = np.exp(Z.astype(np.float64) - Z.max(axis=1, keepdims=True))
SOFTMAX = EXPONENTIALS / EXPONENTIALS.sum(axis=1, keepdims=True)
G = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
SLOPE = (G - (G * SOFTMAX).sum(axis=1, keepdims=True)) * SOFTMAX


def product(kernel: Any, grid: tuple[int, int], tile: int) -> Callable[[], float]:
    """A run of a kernel of matmul_1_basic; how far its result is from the right one."""

    def run() -> float:
        out = cuda.device_array((M, N), np.float32)
        kernel[grid, (tile, tile)](cuda.to_device(A), cuda.to_device(B), out)
        return float(np.abs(out.copy_to_host() - A.astype(np.float64) @ B).max())

    return run


def rows(kernel: Any, given: list[np.ndarray], expected: np.ndarray) -> Callable[[], float]:
    """The same of a kernel of softmax: two blocks for all rows."""

    def run() -> float:
        out = cuda.device_array((ROWS, COLUMNS), np.float32)
        kernel[2, softmax.BLOCK](*(cuda.to_device(np.float32(array)) for array in given), out)
        return float(np.abs(out.copy_to_host() - expected).max())

    return run


def wrong(run: Callable[[], float]) -> int:
    """In how many orders the result is off by more than rounding, or NaN."""
    found = 0
    for seed in range(SEEDS):
        os.environ["MACHINE_SEED"] = str(seed)
        found += not run() < 1e-4
    return found


def without(module: Any, barrier: int) -> dict[str, Any]:
    """The names of a module whose source lacks that barrier; all of them with 0."""
    parts = Path(module.__file__).read_text().split("cuda.syncthreads()")
    for number in range(1, len(parts)):
        parts[number] = ("None" if number == barrier else "cuda.syncthreads()") + parts[number]
    names = dict(vars(module))
    exec(compile("".join(parts), module.__file__, "exec"), names)
    return names


def runs(file: str, barrier: int) -> dict[str, Callable[[], float]]:
    """The kernels of a file that have this barrier, or of all of it with 0."""
    if file == "softmax":
        names = without(softmax, barrier)
        made = {"softmax_block": rows(names["softmax_block"], [Z], SOFTMAX)}
        if barrier not in (1, 2, 3):  # those of block_largest
            made["softmax_block_backward"] = rows(names["softmax_block_backward"], [G, SOFTMAX], SLOPE)
        return made
    names = without(matmul_1_basic, barrier)
    return {"tiled_16": product(names["tiled"](16, "nn").multiply, (2, 3), 16)}


def main() -> None:
    for argument in sys.argv[1:]:
        file, _, barrier = argument.partition(":")
        for name, run in runs(file, int(barrier)).items():
            print(json.dumps([name, int(barrier), wrong(run)]))


if __name__ == "__main__":
    main()
