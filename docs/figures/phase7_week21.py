"""Week 21: a row of a panel is a piece of a row of the image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from convolution_example import IMAGE
from matplotlib.figure import Figure
from style import BLUE, GREEN, INK, ORANGE, QUIET, RULE, SAND, SKY, WIDTH, arrow, canvas, grid, text

PADDING, KERNEL = 1, 3


def panel() -> Figure:
    """The matrix of columns of a 4 x 4 image with a border, for two rows of outputs; and where one row comes from."""
    drawn, axes = canvas(4.3)
    text(axes, WIDTH / 2, 4.2, "A row of the columns is a piece of a row of the image", size=11, va="top")
    bordered = np.pad(IMAGE, PADDING)
    windows = np.lib.stride_tricks.sliding_window_view(bordered, (KERNEL, KERNEL))
    columns = windows.reshape(16, KERNEL * KERNEL).T[:, :8]
    k = 5  # u = 1, v = 2
    u, v = divmod(k, KERNEL)
    side = 0.3
    border = {(i, j): ("none", RULE) for i in range(6) for j in range(6) if i in (0, 5) or j in (0, 5)}
    runs = {(u, v + j): (SAND, ORANGE) for j in range(4)} | {(u + 1, v + j): (SKY, BLUE) for j in range(4)}
    text(axes, 0.95, 3.55, "image and border", INK, 10)
    numbers = [[f"{value:g}" for value in row] for row in bordered]
    grid(axes, 0.06, 3.4, numbers, side, border | runs, 9)
    text(axes, 4.0, 3.55, "rows k = 0 to 8, of outputs 0 to 7", INK, 10)
    rows = [[f"{value:g}" for value in row] for row in columns]
    fills = {(k, j): (SAND, ORANGE) if j < 4 else (SKY, BLUE) for j in range(8)}
    grid(axes, 2.8, 3.4, rows, side, fills, 9)
    for row in range(KERNEL * KERNEL):
        text(axes, 2.62, 3.4 - (row + 0.5) * side, str(row), ORANGE if row == k else QUIET, 9)
    right = 0.06 + 6 * side + 0.04
    level = 3.4 - (k + 0.5) * side
    arrow(axes, (right, 3.4 - (u + 0.5) * side), (2.5, level + 0.06), ORANGE)
    arrow(axes, (right, 3.4 - (u + 1.5) * side), (2.5, level - 0.06), BLUE)
    place = "k = 5 is place (1, 2)\nof the window:\nu = k // 3, v = k % 3"
    text(axes, 0.06, 1.32, place, GREEN, 9.5, ha="left", va="top")
    words = "orange: the run of the first row of outputs; blue: that of the second.\nThe last 0 of each lies outside."
    text(axes, WIDTH / 2, 0.28, words, QUIET, 9.5)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {"week21-panel": panel}
