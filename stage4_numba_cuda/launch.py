"""The number of blocks, and of threads in a block, for every launch.

elementwise     one thread for each number, at most MOST_BLOCKS blocks; the kernel's loop takes care of the rest
warp_per_row    one warp for each row
tiles           one block for each tile of the result
over_matrix     a warp along the columns and 8 rows a block, for a kernel that strides both ways
over_lines      as many threads along a line as it is long, for lines that may be short: rows of images, or whole planes
"""

from __future__ import annotations

WARP = 32
THREADS = 256
"""Threads of a block, where nothing speaks for another number: eight warps, which divides every device's limits."""

MOST_BLOCKS = 1024
"""Enough to fill the largest GPU several times over (132 multiprocessors of 8 such blocks on an H100)."""

EMULATED_LINES = 8
"""Lines of a block on the emulator: few, so that every core gets some."""

MOST_DOWN = 65_535
"""Blocks along y or z of a grid, on every device (CUDA programming guide, table of technical specifications)."""


def divided(count: int, size: int) -> int:
    """How many pieces of this size cover `count`: the quotient, rounded up."""
    return -(-count // size)


def elementwise(count: int) -> tuple[int, int]:
    """(blocks, threads) for a grid-stride kernel over `count` numbers."""
    return min(divided(count, THREADS), MOST_BLOCKS), THREADS


def warp_per_row(rows: int, warps: int = 4) -> tuple[int, tuple[int, int]]:
    """(blocks, (32, warps)): row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x."""
    return divided(rows, warps), (WARP, warps)


def tiles(rows: int, columns: int, tile_rows: int, tile_columns: int) -> tuple[int, int]:
    """Blocks of a two-dimensional grid, x along the columns, one for each tile.

    Raises ValueError where a device could not launch so many: it numbers at most MOST_DOWN blocks along y.
    """
    if divided(rows, tile_rows) > MOST_DOWN:
        raise ValueError(
            f"a result of {rows:,} rows has more than {MOST_DOWN:,} tiles of {tile_rows} rows, which is the most that "
            "a grid can have along y; work on it in pieces"
        )
    return divided(columns, tile_columns), divided(rows, tile_rows)


def over_matrix(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """(blocks, threads) for a kernel that strides along both directions: a warp along the columns, 8 rows a block."""
    across, down = tiles(rows, columns, 8, WARP)
    return (across, min(down, MOST_BLOCKS)), (WARP, 8)


def over_lines(lines: int, columns: int, emulated: bool = False) -> tuple[int, tuple[int, int]]:
    """(blocks, threads) for a kernel that strides over lines, and with threadIdx.x along each of them.

    A line gets the power of two of threads that covers it, at most a block's.
    emulated: whether a CPU runs them, where one thread walks along a line fastest
    """
    lanes = 1 if emulated else min(THREADS, 1 << (columns - 1).bit_length())
    rows = EMULATED_LINES if emulated else THREADS // lanes
    return min(divided(lines, rows), MOST_BLOCKS), (lanes, rows)
