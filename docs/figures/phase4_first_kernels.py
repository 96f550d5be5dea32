"""Weeks 9 to 11: the grid-stride loop, sectors of memory, tiles of a product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import (
    BLUE,
    GREEN,
    GROUND,
    INK,
    MINT,
    ORANGE,
    PANEL,
    QUIET,
    RULE,
    SAND,
    SKY,
    box,
    canvas,
    cells,
    text,
)


def grid_stride() -> Figure:
    """Three blocks of four threads go over 22 numbers in two laps; the last two threads have nothing left to do."""
    drawn, axes = canvas(3.0)
    side, size, blocks, threads = 0.44, 22, 3, 4
    step = blocks * threads
    tints = [(SKY, BLUE), (SAND, ORANGE), (MINT, GREEN)]
    left = 0.16
    for block in range(blocks):
        fill, edge = tints[block]
        from_left = left + block * threads * side
        text(axes, from_left + threads * side / 2, 2.86, f"block {block}", edge, 10)
        for thread in range(threads):
            box(axes, from_left + thread * side, 2.3, side - 0.04, side - 0.04, fill, edge)
            text(axes, from_left + (thread + 0.5) * side - 0.02, 2.5, str(thread), size=10)
    text(axes, 2.8, 2.12, "cuda.grid(1) = blockIdx.x * blockDim.x + threadIdx.x", QUIET, 9.5)
    for lap in range(2):
        bottom = 1.2 - lap * 0.72
        text(axes, 2.8, bottom + 0.53, "first lap: i" if lap == 0 else f"second lap: i + {step}", QUIET, 9.5)
        for thread in range(step):
            number = lap * step + thread
            there = number < size
            fill, edge = tints[thread // threads] if there else (GROUND, RULE)
            box(axes, left + thread * side, bottom, side - 0.04, side - 0.04, fill, edge)
            text(axes, left + (thread + 0.5) * side - 0.02, bottom + 0.2, str(number), INK if there else QUIET, 10)
    text(axes, 2.8, 0.18, f"{size} numbers, {step} threads: at {size} and {size + 1} the loop has ended", INK, 10)
    return drawn


WORD, SECTOR, LANES = 4, 32, 32
"""Bytes of a float32, bytes of a sector, threads of a warp."""


def sectors() -> Figure:
    """What a warp asks of a 32 by 32 matrix of float32, and what memory sends, down a column and along a row."""
    drawn, axes = canvas(3.35)
    side, top, share = 0.07, 2.9, SECTOR // WORD
    for left, title, asked in (
        (0.35, "lane i reads row i: down a column", [(lane, 12) for lane in range(LANES)]),
        (3.05, "lane i reads column i: along a row", [(12, lane) for lane in range(LANES)]),
    ):
        sent = {(row, column // share) for row, column in asked}
        text(axes, left + LANES * side / 2, 3.1, title, size=10)
        axes.add_patch(
            Rectangle((left, top - LANES * side), LANES * side, LANES * side, facecolor=PANEL, edgecolor=RULE)
        )
        came = [(row, sector * share + word) for row, sector in sent for word in range(share)]
        cells(axes, left, top, came, side, SAND)
        cells(axes, left, top, asked, side, ORANGE)
        for border in range(share, LANES, share):
            axes.plot([left + border * side] * 2, [top, top - LANES * side], color=RULE, linewidth=0.7)
        used = len(asked) * WORD / (len(sent) * SECTOR)
        words = f"{len(sent)} sectors, {len(sent) * SECTOR:,} bytes,\n{used:.1%} of them used".replace(".0%", "%")
        text(axes, left + LANES * side / 2, 0.4, words.replace("%", " %"), INK, 10)
    text(axes, 2.8, 0.08, "between two lines: sectors of 8 numbers", QUIET, 9.5)
    return drawn


def tiles() -> Figure:
    """One block's tile of c, and the tiles of a and b that it goes through; the last ones reach over the edge."""
    drawn, axes = canvas(4.3)
    tile, inner, rows, columns = 0.44, 4.72, 3, 3  # inner: K as a multiple of the tile
    left, top = 2.95, 1.5
    whole = int(np.ceil(inner))
    a_left, b_top = left - 0.3 - whole * tile, top + 0.25 + whole * tile
    for i in range(rows):
        for j in range(columns):
            mine = (i, j) == (1, 1)
            box(
                axes,
                left + j * tile,
                top - (i + 1) * tile,
                tile - 0.04,
                tile - 0.04,
                *((MINT, GREEN) if mine else (PANEL, RULE)),
            )
    for k in range(whole):
        now = k == 1
        for i in range(rows):
            fill, edge = (SKY, BLUE) if i == 1 and now else (SKY, RULE) if i == 1 else (PANEL, RULE)
            box(axes, a_left + k * tile, top - (i + 1) * tile, tile - 0.04, tile - 0.04, fill, edge)
        for j in range(columns):
            fill, edge = (SAND, ORANGE) if j == 1 and now else (SAND, RULE) if j == 1 else (PANEL, RULE)
            box(axes, left + j * tile, b_top - (k + 1) * tile, tile - 0.04, tile - 0.04, fill, edge)
        text(axes, a_left + (k + 0.5) * tile - 0.02, top - 1.5 * tile - 0.02, str(k), size=10)
        text(axes, left + 1.5 * tile - 0.02, b_top - (k + 0.5) * tile - 0.02, str(k), size=10)
    edge_x, edge_y = a_left + inner * tile - 0.02, b_top - inner * tile + 0.02
    axes.plot([edge_x] * 2, [top + 0.08, top - rows * tile - 0.06], color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.plot(
        [left - 0.06, left + columns * tile + 0.06], [edge_y] * 2, color=INK, linewidth=1.2, linestyle=(0, (3, 2))
    )
    text(axes, edge_x - 0.08, top + 0.17, "a ends here", QUIET, 9.5, ha="right")
    text(axes, left + columns * tile + 0.12, edge_y, "b ends here", QUIET, 9.5, ha="left")
    text(axes, a_left - 0.09, top - 1.5 * tile, "a", BLUE, 12, ha="right")
    text(axes, left + 1.5 * tile, b_top + 0.13, "b", ORANGE, 12)
    text(axes, left + columns * tile + 0.12, top - 1.5 * tile, "c: one block's\ntile", GREEN, 10, ha="left")
    text(
        axes,
        0.15,
        3.35,
        "round 1: the block copies\ntile 1 of a and tile 1 of b,\nwaits, multiplies, waits",
        INK,
        10,
        ha="left",
    )
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week09-grid-stride": grid_stride,
    "week10-sectors": sectors,
    "week11-tiles": tiles,
}
