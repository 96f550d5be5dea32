"""The guide to convolution, backward: the gradients of the weights and of the image are convolutions themselves."""

from __future__ import annotations

from collections.abc import Callable

from convolution import RESULT, SEEN, SLOPE, WEIGHT, in_brackets, numbers, window
from convolution_example import GRAD_INPUT, GRAD_WEIGHTS, IMAGE, KERNEL, SLOPES, flipped, padded
from matplotlib.figure import Figure
from style import GREEN, GROUND, INK, ORANGE, QUIET, RULE, WIDTH, arrow, canvas, grid, minus, text


def of_weights() -> Figure:
    """dL/dW: the derivatives of the output walk over the image; two of the nine places."""
    drawn, axes = canvas(4.75)
    text(axes, WIDTH / 2, 4.65, "The gradient of the weights: dL/dy walks over the image", size=11, va="top")
    text(axes, 0.95, 4.1, "g = dL/dy", ORANGE, 9.5, ha="right")
    slopes = {(i, j): SLOPE for i in range(2) for j in range(2)}
    grid(axes, 1.05, 4.28, numbers(SLOPES), 0.3, slopes, 9)
    says = "The weight W[i, j] met x[r + i, s + j] when y[r, s]\nwas made. So shift g by (i, j), multiply and add."
    text(axes, 1.85, 4.12, says, QUIET, 9, ha="left")
    side = 0.36
    for number, (i, j) in enumerate([(0, 0), (2, 1)]):
        top = 3.4 - number * 1.72
        grid(axes, 0.3, top, numbers(IMAGE), side, window(i, j, 2), 9.5)
        for r in range(2):
            factors = [f"{minus(IMAGE[i + r, j + s])} · {in_brackets(SLOPES[r, s])}" for s in range(2)]
            text(
                axes,
                1.92,
                top - 0.3 - r * 0.29,
                ("   " if r == 0 else "+ ") + "  +  ".join(factors),
                size=9.5,
                ha="left",
            )
        text(axes, 1.92, top - 0.96, f"= {minus(GRAD_WEIGHTS[i, j])}", size=9.5, ha="left", weight="bold")
        arrow(axes, (3.62, top - 0.6), (3.95, top - 0.6))
        words = numbers(GRAD_WEIGHTS)
        fills = dict.fromkeys([(a, b) for a in range(3) for b in range(3)], (GROUND, RULE)) | {(i, j): RESULT}
        grid(axes, 4.12, top - 0.1, words, side, fills, 9.5)
        text(axes, 4.65, top + 0.05, f"dL/dW[{i}, {j}]", INK, 9.5)
    text(
        axes, WIDTH / 2, 0.12, "9 places for the 9 weights. In a batch, the results of all images are added.", QUIET, 9
    )
    return drawn


def of_image() -> Figure:
    """dL/dx: the flipped kernel walks over the derivatives of the output, which stand in a border of zeros."""
    drawn, axes = canvas(6.1)
    text(axes, WIDTH / 2, 6.0, "The gradient of the image: the flipped kernel walks over dL/dy", size=11, va="top")
    side = 0.3
    text(axes, 0.9, 5.34, "W", GREEN, 10, ha="right")
    every = {(i, j): WEIGHT for i in range(3) for j in range(3)}
    grid(axes, 1.0, 5.63, numbers(KERNEL), 0.27, every, 9)
    arrow(axes, (1.95, 5.24), (2.65, 5.24), GREEN)
    text(axes, 2.3, 5.38, "flip", GREEN, 9)
    grid(axes, 2.8, 5.63, numbers(flipped(KERNEL)), 0.27, every, 9)
    text(axes, 3.8, 5.3, "upside down\nand left to right", QUIET, 9, ha="left")
    wide = padded(SLOPES, 2)
    slopes = {(2 + r, 2 + s): SLOPE for r in range(2) for s in range(2)}
    turned = flipped(KERNEL)
    for number, (row, column) in enumerate([(0, 0), (1, 1)]):
        top = 4.5 - number * 2.15
        blank = {(i, j): (GROUND, RULE) for i in range(6) for j in range(6)}
        seen = dict.fromkeys(window(row, column), SEEN)
        fills = blank | seen | {place: (SLOPE[0], SEEN[1] if place in seen else SLOPE[1]) for place in slopes}
        grid(axes, 0.25, top, numbers(wide), side, fills, 9)
        for i in range(3):
            factors = [f"{in_brackets(wide[row + i, column + j])} · {in_brackets(turned[i, j])}" for j in range(3)]
            text(axes, 2.2, top - 0.3 - i * 0.27, ("   " if i == 0 else "+ ") + " + ".join(factors), size=9, ha="left")
        text(axes, 2.2, top - 1.2, f"= {minus(GRAD_INPUT[row, column])}", size=9.5, ha="left", weight="bold")
        arrow(axes, (2.75, top - 1.2), (4.05, top - 1.2))
        fills = {(a, b): (GROUND, RULE) for a in range(4) for b in range(4)} | {(row, column): RESULT}
        grid(axes, 4.14, top - 0.3, numbers(GRAD_INPUT), 0.35, fills, 9)
        text(axes, 4.82, top - 0.14, f"dL/dx[{row}, {column}]", INK, 9.5)
    text(
        axes, WIDTH / 2, 0.24, "Left: g in a border of two zeros, the window on it in blue. The corner of the", QUIET, 9
    )
    text(axes, WIDTH / 2, 0.08, "image was in one window only, its middle in all four.", QUIET, 9)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "convolution-grad-weights": of_weights,
    "convolution-grad-image": of_image,
}
