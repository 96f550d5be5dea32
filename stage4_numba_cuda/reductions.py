"""Sums of many numbers, on the device, as a training step needs them.

    column_sums    a bias gradient is the sum of grad_output over the batch
    total          a loss is the sum of the rows' losses

The kernels, slowest first, are the ladders in kernels/sums.py; the functions without a rung's name take the one that
suits the backend. Every rung that they take adds in an order that depends on the shape alone, so that two runs give
the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import launch
from .arrays import Array, as_matrix, empty, on_device, output_like, zeros
from .backend import BACKEND
from .kernels import sums


def column_sums(matrix: Any, out: Array | None = None) -> Array:
    """The sum over the rows: matrix (rows, columns) -> (columns,), float32 or float64. Same as numpy.sum(axis=0).

    out: a device array to write to; a new one where it is None
    Raises ValueError where matrix is no matrix, or where out does not fit or overlaps it.
    """
    matrix = as_matrix("column_sums: matrix", matrix)
    out = output_like("column_sums", out, matrix.shape[1:], matrix.dtype, matrix=matrix)
    launch_column_sums(matrix, out)
    return out


def total(vector: Array) -> float:
    """The sum of a device vector (size,), float32 or float64, read back to the host.

    Raises TypeError where it is not on the device, ValueError where it is no vector.
    """
    if not on_device(vector):
        raise TypeError(f"total: vector is a {type(vector).__name__}, expected a device array; see asarray")
    if vector.ndim != 1:
        raise ValueError(f"total: vector is {vector.shape}, expected 1 dimension")
    out = empty((1,), vector.dtype)
    launch_total(vector, out)
    return float(out.copy_to_host()[0])


def columns_by_thread(matrix: Array, out: Array) -> None:
    """One thread a column."""
    sums.columns_by_thread[launch.elementwise(out.size)](matrix, out)


def columns_by_atomics(matrix: Array, out: Array) -> None:
    """Pieces of the columns, added to `out` by atomics: not the same bits twice."""
    rows, columns = matrix.shape
    out.copy_to_device(zeros(out.shape, out.dtype))
    grid = launch.divided(columns, launch.WARP), launch.divided(rows, sums.PIECE)
    sums.columns_by_atomics[grid, launch.WARP](matrix, out)


def columns_by_block(matrix: Array, out: Array, stream: Any = 0) -> None:
    """A block of 512 threads for 32 columns."""
    sums.columns_by_block[launch.divided(out.size, sums.LANES), (sums.LANES, sums.WARPS), stream](matrix, out)


def total_by_thread(vector: Array, out: Array) -> None:
    """One thread."""
    sums.total_by_thread[1, 1](vector, out)


def total_by_tree(vector: Array, out: Array) -> None:
    """One block, a tree in shared memory."""
    sums.total_by_tree[1, sums.BLOCK](vector, out)


def total_by_warps(vector: Array, out: Array) -> None:
    """One block, shuffles. Not on Numba's simulator, which has none."""
    sums.total_by_warps[1, sums.BLOCK](vector, out)


COLUMN_SUMS_LADDER: dict[str, Callable[[Array, Array], None]] = {
    "thread": columns_by_thread,
    "atomics": columns_by_atomics,
    "block": columns_by_block,
}
"""Each (matrix (rows, columns), out (columns,)), unchecked."""

TOTAL_LADDER: dict[str, Callable[[Array, Array], None]] = {
    "thread": total_by_thread,
    "tree": total_by_tree,
    "warps": total_by_warps,
}
"""Each (vector (size,), out (1,)), unchecked; nothing is read back."""

launch_column_sums = columns_by_block
"""What `column_sums` launches; the training step, which has checked everything already, calls it directly."""

launch_total = TOTAL_LADDER["warps" if BACKEND.name == "gpu" else "tree"]
"""What `total` launches. The simulator has no shuffles, and on the emulator a shuffle costs more than a barrier."""
