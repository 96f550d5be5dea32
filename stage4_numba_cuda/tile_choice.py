"""The choice of a product's tile: the tile with which the busiest multiprocessor finishes first.

A product's blocks are handed out evenly, so the busiest multiprocessor computes ceil(blocks / multiprocessors) of them,
one after the other or side by side, and the product takes about

    time = ceil(blocks / multiprocessors) * rows * columns of a tile / speed of its kernel

A large tile's kernel is faster, since its numbers serve more products. But 1024 x 1024 numbers are 32 tiles of
128 x 256, and of 132 multiprocessors 100 would have nothing to do; tiles of 64 x 128 are 128. At 2048 x 2048 there are
128 of the large ones: they go round once, and nearly all multiprocessors are busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from . import launch
from .backend import BACKEND, cuda


class Candidate(NamedTuple):
    """A kernel: rows x columns of the result that a block computes, and its speed when all multiprocessors are busy."""

    rows: int
    columns: int
    speed: float
    dtypes: tuple[str, ...] = ("float32", "float64")


CANDIDATES = {
    "wide_tile": Candidate(128, 256, 0.925, ("float32",)),
    "warp_tiled": Candidate(128, 128, 0.865),
    "small_tile": Candidate(64, 128, 0.864),
    "narrow_tile": Candidate(64, 64, 0.763),
    "blocked_64": Candidate(64, 64, 0.632),
    "blocked_32": Candidate(32, 32, 0.5),
    "tiled_32": Candidate(32, 32, 0.137),
    "tiled_16": Candidate(16, 16, 0.134),
    "tf32": Candidate(128, 128, 2.13, ("float32",)),
    "bf16": Candidate(128, 128, 2.42, ("float32",)),
}
"""In the order of their size: of two that take as long, the larger reads less memory. tf32 and bf16 are the first rung
of tensor_cores.py, which nothing chooses unless factors may be rounded.

speed: share of cuBLAS in float32, of warp_tiled, tiled_32, tiled_16, tf32 and bf16 at 4096, of kernels with the
others' tiles at 2048, where the blocks fill the device (NVIDIA H100, 2026-11-22). Not measured yet, and assumed:
blocked_32, and all in float64.
"""

FITTED = ("wide_tile", "small_tile", "narrow_tile")
"""What the ladder's last rung chooses from."""

PRODUCTS = (*FITTED, "tiled_32", "tiled_16")
"""What a product chooses from."""

BLOCKED = {"blocked_64": 64, "blocked_32": 32}
"""The kernels of kernels/blocked.py, and the sides of their tiles."""

FUSED = ("warp_tiled", *BLOCKED, "tiled_16")
"""What a product with more behind it chooses from, where there is enough to compute."""

LITTLE = 100_000
"""Multiply-adds of a product for each multiprocessor up to which a step keeps its kernels with one number a thread:
they have more blocks, and such a product waits for memory and launches. An estimate, not measured yet: on an H100 the
first product of 784-128-10 is below it up to a batch of 128."""

ASSUMED = 132
"""Multiprocessors, where there is no device: those of an H100."""


@cache
def multiprocessors() -> int:
    """Of the device; 0 where the CPU takes its place."""
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) if BACKEND.name == "gpu" else 0


@cache
def fastest(rows: int, columns: int, dtype: str, count: int | None = None, among: Sequence[str] = PRODUCTS) -> str:
    """The name of the candidate for a result of (rows, columns).

    count: the device's multiprocessors; None: those of this device, or ASSUMED
    among: names of CANDIDATES, of which at least one knows the dtype

    >>> fastest(1024, 1024, "float32", 132), fastest(2048, 2048, "float32", 132)
    ('small_tile', 'wide_tile')
    """
    count = count or multiprocessors() or ASSUMED
    able = [name for name in among if dtype in CANDIDATES[name].dtypes]
    launchable = [name for name in able if launch.divided(rows, CANDIDATES[name].rows) <= launch.MOST_DOWN]
    return min(launchable or able, key=lambda name: busiest(CANDIDATES[name], rows, columns, count))


def is_little(rows: int, columns: int, inner: int, count: int | None = None) -> bool:
    """Whether the sum over `inner` for (rows, columns) numbers is no work for register tiles. True where there is no
    device. Batches between two multiples of 16 are judged as the larger one, as their memory is."""
    count = count or multiprocessors()
    return launch.divided(rows, 16) * 16 * columns * inner <= LITTLE * count if count else True


def blocked_side(rows: int, columns: int, inner: int, count: int | None = None) -> int:
    """The side of the register tile for such a product of a training step; 0 for one number a thread."""
    if is_little(rows, columns, inner, count):
        return 0
    return BLOCKED[fastest(rows, columns, "float32", count, tuple(BLOCKED))]


def busiest(tile: Candidate, rows: int, columns: int, count: int) -> float:
    """How long the busiest of `count` multiprocessors computes, in numbers of the result at the speed of cuBLAS."""
    blocks = launch.divided(rows, tile.rows) * launch.divided(columns, tile.columns)
    return launch.divided(blocks, count) * tile.rows * tile.columns / tile.speed
