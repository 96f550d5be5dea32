"""Week 23: a block's tile with its halo, and how often the numbers of an image are fetched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import BLUE, GREEN, INK, MINT, ORANGE, PANEL, PINK, QUIET, RULE, SAND, SKY, box, canvas, text

SIDE, TILE, REACH = 12, 4, 1
"""Rows of the image, rows of a block's tile, and how far a window of 3 x 3 reaches beyond it."""


def halo() -> Figure:
    """Left: what the block in the middle copies. Right: how many of the nine blocks copy each number."""
    drawn, axes = canvas(3.55)
    side, top = 0.2, 3.05
    first = TILE - REACH
    last = 2 * TILE + REACH

    def place(left: float, i: int, j: int, fill: str, edge: str = RULE) -> None:
        box(axes, left + j * side, top - (i + 1) * side, side - 0.02, side - 0.02, fill, edge)

    left = 0.15
    for i, j in np.ndindex(SIDE, SIDE):
        inside = first <= i < last and first <= j < last
        own = TILE <= i < 2 * TILE, TILE <= j < 2 * TILE
        fill, edge = (PANEL, RULE) if not inside else ((MINT, GREEN), (SAND, ORANGE), (SKY, PINK))[2 - sum(own)]
        place(left, i, j, fill, edge)
    text(axes, left + SIDE * side / 2, 3.3, "a block copies more than its own", size=10)
    for row, (fill, edge, words) in enumerate(
        ((MINT, GREEN, "own: 16"), (SAND, ORANGE, "sides: 16"), (SKY, PINK, "corners: 4"))
    ):
        box(axes, 0.17 + row * 0.82, 0.38, 0.1, 0.14, fill, edge)
        text(axes, 0.32 + row * 0.82, 0.45, words, INK, 9, ha="left")

    left = 3.05
    counts = np.zeros((SIDE, SIDE), int)
    for r, s in np.ndindex(SIDE // TILE, SIDE // TILE):
        rows = slice(max(0, r * TILE - REACH), (r + 1) * TILE + REACH)
        counts[rows, max(0, s * TILE - REACH) : (s + 1) * TILE + REACH] += 1
    for i, j in np.ndindex(SIDE, SIDE):
        count = int(counts[i, j])
        place(left, i, j, {1: PANEL, 2: SAND, 4: SKY}[count])
        text(axes, left + (j + 0.5) * side - 0.01, top - (i + 0.5) * side - 0.01, str(count), INK, 9)
    for border in range(0, SIDE + 1, TILE):
        axes.plot([left + border * side - 0.01] * 2, [top, top - SIDE * side], color=BLUE, linewidth=1)
        axes.plot([left - 0.01, left + SIDE * side], [top - border * side + 0.01] * 2, color=BLUE, linewidth=1)
    axes.add_patch(Rectangle((left - 0.01, top - SIDE * side), SIDE * side, SIDE * side, fill=False, edgecolor=BLUE))
    text(axes, left + SIDE * side / 2, 3.3, "so numbers at a border are copied again", size=10)
    words = f"{counts.sum()} copies of {counts.size} numbers; every output by itself reads 9 for each"
    text(axes, 2.8, 0.14, words, QUIET, 9.5)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {"week23-halo": halo}
