"""The guide to convolution, on the ways to compute it: im2col as a matrix, and Winograd's tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convolution import RESULT, SEEN, SLOPE, WEIGHT, numbers, window
from convolution_example import COLUMNS, IMAGE, IMAGE_TILE, KERNEL, KERNEL_TILE, PRODUCTS, SUMS, WINOGRAD
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import BLUE, GREEN, GROUND, INK, ORANGE, PANEL, PINK, QUIET, WIDTH, arrow, canvas, grid, text


def im2col() -> Figure:
    """The image as columns of windows: the kernel is one row, and the convolution one product of matrices."""
    drawn, axes = canvas(4.85)
    text(
        axes,
        WIDTH / 2,
        4.75,
        "im2col: every window becomes a column, and the convolution a product",
        size=10.5,
        va="top",
    )
    side = 0.33
    text(axes, 0.88, 4.2, "image", BLUE, 10)
    chosen = dict.fromkeys(window(0, 1), SEEN)
    grid(axes, 0.25, 4.05, numbers(IMAGE), side, chosen | {(1, 1): (SLOPE[0], SEEN[1])}, 9.5)
    arrow(axes, (1.7, 3.4), (3.4, 3.4), BLUE)
    text(axes, 2.55, 3.62, "window 2", BLUE, 9)
    text(axes, 2.55, 3.2, "row by row", BLUE, 9)
    text(axes, 4.24, 4.2, "columns (9, 4)", INK, 10)
    fills: dict[tuple[int, int], Any] = {(k, 1): SEEN for k in range(9)}
    for place in range(4):
        r, s = divmod(place, 2)
        key = ((1 - r) * 3 + (1 - s), place)  # where x[1, 1] lies in the window at (r, s)
        fills[key] = (SLOPE[0], SEEN[1] if place == 1 else SLOPE[1])
    grid(axes, 3.58, 4.05, numbers(COLUMNS), side, fills, 9.5)
    text(
        axes,
        1.6,
        2.15,
        "x[1, 1] = 3, orange, is in\nall four windows: it stands\nin the matrix four times.\n16 numbers became 36.",
        QUIET,
        9,
    )
    text(axes, 1.75, 1.32, "kernel as a row (1, 9)", GREEN, 10)
    grid(axes, 0.25, 1.17, numbers(KERNEL.reshape(1, 9)), side, {(0, k): WEIGHT for k in range(9)}, 9.5)
    text(axes, 3.39, 0.98, "·", INK, 13)
    arrow(axes, (4.22, 1.04), (4.22, 0.78))
    grid(axes, 3.58, 0.72, numbers(SUMS.reshape(1, 4)), side, {(0, 1): RESULT}, 9.5)
    text(axes, 3.45, 0.53, "=", INK, 12)
    text(axes, 1.75, 0.55, "the sums of the four windows (1, 4)", INK, 9.5)
    text(
        axes,
        WIDTH / 2,
        0.13,
        "With O kernels there are O rows; with C channels, each column has 9 · C numbers.",
        QUIET,
        9,
    )
    return drawn


def winograd() -> Figure:
    """F(2 x 2, 3 x 3) on the example: both transforms, sixteen products, and the transform back."""
    drawn, axes = canvas(6.85)
    text(axes, WIDTH / 2, 6.75, "Winograd: 16 products give the four sums that took 36", size=11, va="top")
    side = 0.42
    cells = [(i, j) for i in range(4) for j in range(4)]
    steps: list[tuple[str, Any, str, Any, str, str, Any]] = [
        ("image tile d", IMAGE, "Bᵀ d B", IMAGE_TILE, "additions only", "D", SEEN),
        ("kernel g", KERNEL, "G g Gᵀ", KERNEL_TILE, "once a kernel", "K", WEIGHT),
        ("D · K, number by number", PRODUCTS, "Aᵀ M A", WINOGRAD, "additions only", "the four sums", RESULT),
    ]
    for number, (before, values, formula, after, says, name, look) in enumerate(steps):
        top = 6.2 - number * 2.1
        edge = look[1] if number < 2 else INK
        shift = (4 - len(values)) * side / 2
        fills = dict.fromkeys(cells, look if number < 2 else (PANEL, ORANGE))
        text(axes, 1.04, top + 0.13 - shift, before if number < 2 else "M: 16 products D · K", edge, 10)
        grid(axes, 0.22 + shift, top - shift, numbers(values), side, fills, 9)
        middle = top - 2 * side
        arrow(axes, (2.05, middle), (3.55, middle), edge)
        text(axes, 2.8, middle + 0.18, formula, edge, 10.5)
        text(axes, 2.8, middle - 0.18, says, QUIET, 9)
        shift = (4 - len(after)) * side / 2
        text(axes, 4.48, top + 0.13 - shift, name, edge, 10)
        grid(axes, 3.66 + shift, top - shift, numbers(after), side, dict.fromkeys(cells, look), 9)
    text(
        axes,
        WIDTH / 2,
        0.1,
        "Only the 16 products in the middle multiply a number of the image with a weight.",
        QUIET,
        9,
    )
    return drawn


def tiles() -> Figure:
    """How the tiles of F(2 x 2, 3 x 3) overlap on a 6 x 6 image, and what either size of tile saves."""
    drawn, axes = canvas(3.75)
    text(
        axes, WIDTH / 2, 3.65, "Tiles of the image overlap by two; their outputs lie side by side", size=10.5, va="top"
    )
    side = 0.33
    colours = [BLUE, ORANGE, GREEN, PINK]
    text(axes, 1.24, 3.2, "image 6 x 6: 4 tiles of 4 x 4", QUIET, 9.5)
    grid(axes, 0.25, 3.05, [[""] * 6] * 6, side)
    for number, colour in enumerate(colours):
        row, column = divmod(number, 2)
        inset = 0.018 * number - 0.02
        corner = 0.25 + 2 * column * side + inset, 3.05 - (2 * row + 4) * side + inset
        length = 4 * side - 0.04 - 2 * inset
        axes.add_patch(Rectangle(corner, length, length, facecolor="none", edgecolor=colour, linewidth=1.8))
    arrow(axes, (2.4, 2.06), (2.95, 2.06))
    text(axes, 3.75, 2.9, "output 4 x 4", QUIET, 9.5)
    fills = {(i, j): (GROUND, colours[i // 2 * 2 + j // 2]) for i in range(4) for j in range(4)}
    grid(axes, 3.1, 2.72, [[""] * 4] * 4, side, fills)
    columns = (0.2, 1.75, 2.65, 3.5, 4.75)
    heads = ("", "reads", "gives", "products", "window by window")
    lines = [("F(2x2, 3x3)", 2), ("F(4x4, 3x3)", 4)]
    for x, word in zip(columns, heads, strict=True):
        text(axes, x, 0.75, word, QUIET, 9, ha="left" if x == columns[0] else "center")
    for y, (name, outputs) in zip((0.5, 0.25), lines, strict=True):
        size = outputs + 2
        few, many = size**2, 9 * outputs**2
        words = (name, f"{size} x {size}", f"{outputs} x {outputs}", f"{few}", f"{many}, {many / few:g} times")
        for x, word in zip(columns, words, strict=True):
            text(axes, x, y, word, INK, 9.5, ha="left" if x == columns[0] else "center")
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "convolution-im2col": im2col,
    "convolution-winograd": winograd,
    "convolution-tiles": tiles,
}
