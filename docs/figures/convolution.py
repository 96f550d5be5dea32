"""The guide to convolution, forward: the window's walk, padding and stride, channels, pooling, a residual block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from convolution_example import BIAS, IMAGE, KERNEL, OUTPUT, PLANE, SUMS
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
    PINK,
    QUIET,
    RULE,
    SAND,
    SKY,
    WIDTH,
    arrow,
    box,
    canvas,
    grid,
    minus,
    text,
)

SEEN, WEIGHT, RESULT, SLOPE = (SKY, BLUE), (MINT, GREEN), (GROUND, PINK), (SAND, ORANGE)
"""Fill and edge of what a window sees, of a kernel's numbers, of what is computed at this step, of derivatives."""


def numbers(values: Any) -> list[list[str]]:
    """A matrix as words."""
    return [[minus(float(value) + 0.0) for value in row] for row in values]  # + 0.0: a zero without a sign


def window(row: int, column: int, size: int = 3) -> dict[tuple[int, int], tuple[str, str]]:
    """The fills of a window whose upper left corner is at (row, column)."""
    return {(row + i, column + j): SEEN for i in range(size) for j in range(size)}


def in_brackets(value: float) -> str:
    """A factor of a sum: brackets around what is negative."""
    return f"({minus(value)})" if value < 0 else minus(value)


def walk() -> Figure:
    """The window at its four places: what it sees, the nine products, and the number that they give."""
    side, pitch, top = 0.32, 1.42, 5.62
    drawn, axes = canvas(6.95)
    text(axes, WIDTH / 2, 6.77, "A 3 x 3 kernel walks over a 4 x 4 image: 4 places, 4 numbers", size=11)
    grid(axes, 1.0, 6.55, numbers(KERNEL), 0.26, {(i, j): WEIGHT for i in range(3) for j in range(3)}, 9)
    text(axes, 0.9, 6.17, "kernel W", GREEN, 9.5, ha="right")
    text(axes, 1.95, 6.28, "Each product is a number of the image times the weight", QUIET, 9, ha="left")
    text(axes, 1.95, 6.06, f"that lies on it. The bias b = {minus(BIAS)} is added to every sum.", QUIET, 9, ha="left")
    for place, (row, column) in enumerate(np.ndindex(2, 2)):
        at = top - place * pitch
        grid(axes, 0.3, at, numbers(IMAGE), side, window(row, column), 9.5)
        text(axes, 0.17, at - 2 * side, str(place + 1), QUIET, 11)
        for i in range(3):
            factors = [f"{minus(IMAGE[row + i, column + j])} · {in_brackets(KERNEL[i, j])}" for j in range(3)]
            line = ("   " if i == 0 else "+ ") + "  +  ".join(factors)
            text(axes, 1.78, at - 0.12 - i * 0.29, line, size=9.5, ha="left")
        total = f"= {minus(SUMS[row, column])},   and with b:  {minus(OUTPUT[row, column])}"
        text(axes, 1.78, at - 1.08, total, size=9.5, ha="left", weight="bold")
        known = [[OUTPUT[r, s] if (r, s) <= (row, column) else None for s in range(2)] for r in range(2)]
        words = [["" if value is None else minus(value) for value in each] for each in known]
        grid(axes, 4.62, at - 0.2, words, 0.42, {(row, column): RESULT})
        arrow(axes, (4.2, at - 0.62), (4.52, at - 0.62))
    return drawn


def axis() -> Figure:
    """One axis of four pixels with three settings of padding and stride: how many places a window of three has."""
    settings = [(0, 1), (1, 1), (1, 2), (0, 2)]
    drawn, axes = canvas(4.75)
    text(axes, WIDTH / 2, 4.57, "Padding and stride decide how many places a window has", size=11)
    side, bottom = 0.4, 0.05
    for number, (padding, stride) in enumerate(settings):
        y = 4.0 - number * 1.1
        length = 4 + 2 * padding
        places = (length - 3) // stride + 1
        left = 0.2 + (1 - padding) * side
        used = (places - 1) * stride + 3
        for i in range(length):
            image = padding <= i < 4 + padding
            fill, edge = SEEN if image else (GROUND, RULE)
            if i >= used:
                fill, edge = GROUND, ORANGE
            box(axes, left + i * side, y, side - 0.05, 0.3, fill, edge)
            words = str(i - padding + 1) if image else "0"
            text(axes, left + i * side + side / 2 - 0.025, y + 0.15, words, INK if image else QUIET, 9)
        for place in range(places):
            start = left + place * stride * side
            low = y - 0.1 - place * 0.105
            axes.plot([start + 0.02, start + 3 * side - 0.07], [low, low], color=GREEN, linewidth=3.2)
        text(axes, 2.85, y + 0.22, f"padding {padding}, stride {stride}", size=10, ha="left")
        sum_of = f"(4 + 2 · {padding} \u2212 3) // {stride} + 1 = {places}"
        text(axes, 2.85, y - 0.02, sum_of, GREEN, 10, ha="left")
        left_over = "the last pixel is in no window" if used < length and not padding else ""
        left_over = "the last zero is in no window" if used < length and padding else left_over
        same = "as many places as pixels: the size is kept" if places == 4 else ""
        text(axes, 2.85, y - 0.25, left_over or same, ORANGE if left_over else QUIET, 9, ha="left")
    text(
        axes,
        0.2,
        bottom + 0.1,
        "blue: the image;  0: padding;  green bars: the places of the window",
        QUIET,
        9,
        ha="left",
    )
    return drawn


def plane(axes: Any, x: float, y: float, side: float, look: tuple[str, str], cells: int, depth: int) -> None:
    """A small image, its lower left corner at (x, y), ruled into cells. depth: 0 for the plane in front."""
    fill, edge = look
    axes.add_patch(Rectangle((x, y), side, side, facecolor=fill, edgecolor=edge, linewidth=1.1, zorder=5 - depth))
    for i in range(1, cells):
        at = i * side / cells
        for line in (([x + at, x + at], [y, y + side]), ([x, x + side], [y + at, y + at])):
            axes.plot(*line, color=edge, linewidth=0.4, zorder=5.1 - depth)


def channels() -> Figure:
    """An image of 2 channels, 3 kernels of 2 channels each, an output of 3 channels."""
    drawn, axes = canvas(4.15)
    text(
        axes,
        WIDTH / 2,
        3.97,
        "A kernel has a slice for each input channel,\nand makes one output channel",
        size=10.5,
        va="top",
    )
    shift, looks = 0.16, ((PANEL, QUIET), WEIGHT, (PANEL, QUIET))
    for c in range(2):
        plane(axes, 0.2 + c * shift, 1.2 + c * shift, 1.12, SEEN, 4, c)
    text(axes, 0.84, 2.75, "image\n2 x 4 x 4", BLUE, 10)
    for o, look in enumerate(looks):
        y = 2.85 - o * 0.98
        for c in range(2):
            plane(axes, 2.4 + c * shift, y - 0.3 + c * shift, 0.6, look, 3, c)
        arrow(axes, (1.7, 1.86), (2.32, y + 0.08), look[1])
        arrow(axes, (3.25, y + 0.08), (4.13 + o * 0.2, 1.36 + (2 - o) * 0.38), look[1])
        text(axes, 2.78, y - 0.43, f"kernel {o}, bias {o}", look[1], 9)
        plane(axes, 4.2 + o * 0.2, 1.15 + (2 - o) * 0.38, 0.62, look, 2, o)
    text(axes, 4.75, 2.85, "output\n3 x 2 x 2", INK, 10)
    text(axes, 4.7, 0.78, "each output channel\nis a sum over both\ninput channels", QUIET, 9)
    count = 3 * 2 * 3 * 3 + 3
    text(axes, WIDTH / 2, 0.12, f"weights (3, 2, 3, 3) and bias (3,): 3 · 2 · 3 · 3 + 3 = {count} parameters", QUIET, 9)
    return drawn


def first_maxima() -> list[tuple[int, int]]:
    """Where the maximum of each 2 x 2 window of PLANE is; of equal numbers the first one, row by row."""
    found = []
    for r, s in np.ndindex(2, 2):
        i, j = divmod(int(np.argmax(PLANE[2 * r : 2 * r + 2, 2 * s : 2 * s + 2])), 2)
        found.append((2 * r + i, 2 * s + j))
    return found


POOL_SLOPES = np.array([[0.5, -1.0], [2.0, 1.0]])


def pooled_slopes() -> Any:
    """POOL_SLOPES at the places of the maxima, 0 elsewhere."""
    back = np.zeros(PLANE.shape)
    for place, slope in zip(first_maxima(), POOL_SLOPES.reshape(-1), strict=True):
        back[place] = slope
    return back


def pooling() -> Figure:
    """Max pooling forward, with the index of each maximum, and its gradient back to the same places."""
    drawn, axes = canvas(5.2)
    text(
        axes,
        WIDTH / 2,
        5.12,
        "Max pooling keeps one number of each window;\nthe gradient goes back to it alone",
        size=10.5,
        va="top",
    )
    side, places = 0.44, first_maxima()
    fills = dict.fromkeys(places, SEEN)
    text(axes, 1.3, 4.5, "image", BLUE, 10)
    grid(axes, 0.42, 4.36, numbers(PLANE), side, fills)
    axes.plot([0.42 + 2 * side - 0.02] * 2, [4.4, 4.32 - 4 * side], color=INK, linewidth=1.4)
    axes.plot([0.38, 0.42 + 4 * side], [4.36 - 2 * side + 0.02] * 2, color=INK, linewidth=1.4)
    arrow(axes, (2.35, 3.48), (2.75, 3.48), BLUE)
    best = np.array([PLANE[place] for place in places]).reshape(2, 2)
    text(axes, 3.3, 4.06, "output", INK, 10)
    grid(axes, 2.88, 3.92, numbers(best), side, dict.fromkeys(np.ndindex(2, 2), SEEN))
    text(axes, 4.55, 4.06, "index in the image", INK, 10)
    grid(axes, 4.13, 3.92, [[4 * r + s for r, s in places[:2]], [4 * r + s for r, s in places[2:]]], side)
    text(axes, 2.88, 2.88, "Of equal numbers the first one wins.", QUIET, 9, ha="left")
    text(axes, 2.88, 2.68, "Index 10: row 2, column 2, from 0.", QUIET, 9, ha="left")
    text(axes, 3.3, 1.84, "dL/doutput", ORANGE, 10)
    grid(axes, 2.88, 1.7, numbers(POOL_SLOPES), side, dict.fromkeys(np.ndindex(2, 2), SLOPE))
    arrow(axes, (2.75, 1.26), (2.35, 1.26), ORANGE)
    text(axes, 1.3, 2.28, "dL/dimage", ORANGE, 10)
    grid(axes, 0.42, 2.14, numbers(pooled_slopes()), side, dict.fromkeys(places, SLOPE))
    text(axes, 3.93, 1.26, "Twelve of the sixteen\nnumbers had no effect:\ntheir derivative is 0.", QUIET, 9, ha="left")
    return drawn


def residual() -> Figure:
    """A residual block: the value through the layers and past them, the gradient back on the same two ways."""
    drawn, axes = canvas(3.95)
    text(
        axes,
        WIDTH / 2,
        3.85,
        "A residual block has two ways:\nforward for the image, back for its gradient",
        size=10.5,
        va="top",
    )
    wide, gap, left, split, join, start, end = 0.54, 0.14, 1.06, 0.82, 4.56, 0.55, 4.9
    right = left + 5 * wide + 4 * gap

    def way(bottom: float, colour: str, backward: bool) -> None:
        middle, over = bottom + 0.2, bottom + 0.72
        stations = [start, split, left, *(left + i * (wide + gap) for i in range(1, 5)), join, end]
        for i, name in enumerate(["conv", "norm", "ReLU", "conv", "norm"]):
            box(axes, left + i * (wide + gap), bottom, wide, 0.4, PANEL, RULE)
            text(axes, left + i * (wide + gap) + wide / 2, middle, name, size=9)
        inner = [(station - gap, station) for station in stations[3:7]]
        for a, b in [(start, split), (split, left), *inner, (right, join), (join, end)]:
            arrow(axes, *(((b, middle), (a, middle)) if backward else ((a, middle), (b, middle))), colour)
        axes.plot([split, split, join, join], [middle, over, over, middle], color=colour, linewidth=1.4)
        summed = split if backward else join
        arrow(axes, (summed, over), (summed, middle + 0.09), colour)
        axes.plot([summed], [middle], "o", markersize=13, color=GROUND, markeredgecolor=colour, zorder=4)
        text(axes, summed, middle, "+", colour, 12, zorder=5)

    way(2.2, BLUE, backward=False)
    text(axes, 0.4, 2.4, "x", size=11)
    text(axes, 5.25, 2.4, "F(x) + x", size=9.5)
    text(axes, 2.7, 3.06, "x itself, not changed", BLUE, 9)
    text(axes, 2.7, 2.04, "F(x): what the layers make of x", BLUE, 9)
    way(0.65, ORANGE, backward=True)
    text(axes, 0.28, 0.85, "dL/dx", size=9)
    text(axes, 5.08, 0.85, "g", size=11)
    text(axes, 2.7, 1.51, "g itself, not changed", ORANGE, 9)
    text(axes, 2.7, 0.49, "g through the layers, backwards", ORANGE, 9)
    text(axes, WIDTH / 2, 0.14, "dL/dx is the sum of both: g arrives whole, whatever the layers add to it", QUIET, 9)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "convolution-walk": walk,
    "convolution-axis": axis,
    "convolution-channels": channels,
    "convolution-pooling": pooling,
    "convolution-residual": residual,
}
