"""Weeks 6 to 8: a matrix in memory, walks through it, a tile in registers."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from style import (
    BLUE,
    GREEN,
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
    grid,
    text,
)


def row_major() -> Figure:
    """A matrix, and the line of memory that it is."""
    drawn, axes = canvas(2.75)
    side = 0.44
    rows = [[f"{i},{j}" for j in range(4)] for i in range(3)]
    tints = [(SKY, BLUE), (SAND, ORANGE), (MINT, GREEN)]
    grid(axes, 1.85, 2.45, rows, side, {(i, j): tints[i] for i in range(3) for j in range(4)}, 9)
    text(axes, 2.7, 2.6, "what you think of: 3 rows, 4 columns", QUIET, 9.5)
    small = 0.44
    grid(
        axes,
        0.16,
        0.82,
        [[f"{i},{j}" for i in range(3) for j in range(4)]],
        small,
        {(0, i * 4 + j): tints[i] for i in range(3) for j in range(4)},
        9,
    )
    text(axes, 2.8, 0.95, "what C has: 12 numbers in a line", QUIET, 9.5)
    for place in range(12):
        text(axes, 0.16 + (place + 0.5) * small - 0.02, 0.27, str(place), QUIET, 9)
    text(axes, 0.16 + 6.5 * small - 0.02, 0.07, "1 $\\cdot$ 4 + 2", ORANGE, 10)
    text(axes, 3.9, 1.8, "row i, column j:\nvalues[i * columns + j]", INK, 10, ha="left")
    return drawn


def walks() -> Figure:
    """The inner loop's walk over b, in the order ijk and in the order ikj, with the cache lines that it touches."""
    drawn, axes = canvas(2.95)
    side, rows, columns, line = 0.19, 8, 12, 4
    for left, title, walked in (
        (0.2, "ijk: down a column", [(i, 1) for i in range(rows)]),
        (3.1, "ikj: along a row", [(1, j) for j in range(rows)]),
    ):
        fetched = {(i, j // line) for i, j in walked}
        text(axes, left + columns * side / 2, 2.78, title, size=10.5)
        for i in range(rows):
            for j in range(columns):
                used = (i, j) in walked
                near = (i, j // line) in fetched
                fill, edge = (ORANGE, ORANGE) if used else (SAND, SAND) if near else (PANEL, PANEL)
                gap = 0.05 if j % line == line - 1 else 0.02
                box(axes, left + j * side, 2.4 - i * side, side - gap, side - 0.04, fill, edge)
        words = f"{len(walked)} numbers used,\n{len(fetched)} lines of {line} fetched"
        text(axes, left + columns * side / 2, 0.72, words, INK, 10)
    box(axes, 0.35, 0.14, 0.17, 0.15, ORANGE, ORANGE)
    text(axes, 0.6, 0.21, "read by the inner loop", QUIET, 9.5, ha="left")
    box(axes, 2.75, 0.14, 0.17, 0.15, SAND, SAND)
    text(axes, 3.0, 0.21, "came along in the same line", QUIET, 9.5, ha="left")
    return drawn


def register_tile() -> Figure:
    """The micro-kernel: a column of a, a row of b, and the tile of c that stays in registers."""
    drawn, axes = canvas(3.3)
    side = 0.24
    tile_rows, lanes, depth, at = 4, 8, 6, 2
    left, top = 2.2, 1.25
    for i in range(tile_rows):
        for k in range(depth):
            chosen = (SKY, BLUE) if k == at else (PANEL, RULE)
            box(axes, left - 0.25 - (depth - k) * side, top - (i + 1) * side, side - 0.03, side - 0.03, *chosen)
    for k in range(depth):
        for j in range(lanes):
            chosen = (SAND, ORANGE) if k == at else (PANEL, RULE)
            box(axes, left + j * side, top + 0.25 + (depth - 1 - k) * side, side - 0.03, side - 0.03, *chosen)
    for i in range(tile_rows):
        for j in range(lanes):
            box(axes, left + j * side, top - (i + 1) * side, side - 0.03, side - 0.03, MINT, GREEN)
    text(axes, 0.12, 1.75, "a: one number a row\nfor each k", BLUE, 9.5, ha="left")
    text(axes, 4.2, 2.2, "b: one row\nfor each k", ORANGE, 9.5, ha="left")
    text(axes, 4.2, 0.77, "a tile of c:\nstays in registers\nuntil k is done", GREEN, 9.5, ha="left")
    words = f"each k: {tile_rows} + {lanes} numbers loaded, {tile_rows} $\\cdot$ {lanes} multiply-adds"
    text(axes, 2.8, 0.1, words, INK, 10)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week06-row-major": row_major,
    "week07-walks": walks,
    "week08-tile": register_tile,
}
