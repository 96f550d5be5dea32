"""Weeks 19 and 20: one row of pixels under a kernel, forward and backward; three layers that change an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GREEN, INK, MINT, ORANGE, QUIET, SAND, SKY, arrow, canvas, grid, minus, text

PIXELS, KERNEL, SLOPES = [1, 2, 0, 1, 3], [2, 1, -1], [1, -1, 2]
"""x, w and dL/dy of the page of week 19."""


def shared_weights() -> Figure:
    """The same three weights at three places of a row; the gradient of one weight, and of one pixel, as a sum."""
    from stage1_pure_python.convolution import conv2d, conv2d_backward

    def images(row: list[int]) -> Any:
        return [[[[float(v) for v in row]]]]

    x, weights = images(PIXELS), images(KERNEL)
    output = conv2d(x, weights, [0.0])[0][0][0]
    grad_x, grad_weights, _ = conv2d_backward(images(SLOPES), x, weights)
    drawn, axes = canvas(4.75)
    columns = (0.25, 2.05, 3.85)

    def row(left: float, top: float, values: Any, marked: dict[int, tuple[str, str]] | None = None) -> None:
        fills = {(0, j): fill for j, fill in (marked or {}).items()}
        grid(axes, left, top, [[minus(float(v)) for v in values]], 0.32, fills, 9)

    def terms(pairs: Any) -> str:
        return " + ".join(f"{minus(a)}\u00b7{minus(b) if b >= 0 else '(' + minus(b) + ')'}" for a, b in pairs)

    blue, orange, green = (SKY, BLUE), (SAND, ORANGE), (MINT, GREEN)
    text(axes, 0.25, 4.6, "Forward: the same weights at every place", INK, 10.5, ha="left")
    for place, left in enumerate(columns):
        row(left, 4.4, PIXELS, dict.fromkeys(range(place, place + 3), blue))
        row(left + 0.32 * place, 4.04, KERNEL)
        text(axes, left + 0.8, 3.58, terms(zip(KERNEL, PIXELS[place : place + 3], strict=True)), QUIET, 9)
        text(axes, left + 0.8, 3.36, f"y{place} = {minus(output[place])}", BLUE, 10)
    text(axes, 0.25, 3.02, f"The weight {KERNEL[1]} was used three times: its gradient is a sum", INK, 10.5, ha="left")
    for place, left in enumerate(columns):
        row(left, 2.82, PIXELS, {place + 1: orange})
        text(
            axes, left + 0.8, 2.36, f"pixel {minus(PIXELS[place + 1])}, dL/dy{place} = {minus(SLOPES[place])}", QUIET, 9
        )
    pairs = zip(PIXELS[1:4], SLOPES, strict=True)
    text(axes, 0.25, 2.12, f"{terms(pairs)} = {minus(grad_weights[0][0][0][1])}", ORANGE, 10, ha="left")
    text(axes, 0.25, 1.76, "The pixel in the middle lies in three windows: its gradient, too", INK, 10.5, ha="left")
    for place, left in enumerate(columns):
        row(left, 1.56, PIXELS, {2: green})
        row(left + 0.32 * place, 1.2, KERNEL, {2 - place: green})
        met = KERNEL[2 - place]
        text(axes, left + 0.8, 0.74, f"weight {minus(met)}, dL/dy{place} = {minus(SLOPES[place])}", QUIET, 9)
    pairs = zip(KERNEL[::-1], SLOPES, strict=True)
    text(axes, 0.25, 0.5, f"{terms(pairs)} = {minus(grad_x[0][0][0][2])}", GREEN, 10, ha="left")
    text(axes, 0.25, 0.18, "dL/dy, what the layer behind hands back, is 1, \u22121, 2", QUIET, 9, ha="left")
    return drawn


def three_layers() -> Figure:
    """A max pool and its way back, a channel before and after normalisation, and the two ways of a residual block."""
    from stage2_numpy.pooling import max_pool2d, max_pool2d_backward

    image = np.array([[1.0, 3.0, 2.0, 0.0], [4.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 1.0], [2.0, 1.0, 0.0, 3.0]])
    grad = np.array([[1.0, -2.0], [3.0, 4.0]])
    output, indices = max_pool2d(image[None, None], 2)
    back = max_pool2d_backward(grad[None, None], indices, (1, 1, 4, 4))[0, 0]
    won = {(int(at) // 4, int(at) % 4): (SAND, ORANGE) for at in indices.ravel()}
    drawn, axes = canvas(4.1)
    side = 0.32

    def shown(values: np.ndarray) -> list[list[str]]:
        return [[minus(float(v)) for v in row] for row in values]

    text(axes, 0.2, 3.92, "Max pooling remembers where each largest number stood", INK, 10.5, ha="left")
    grid(axes, 0.2, 3.72, shown(image), side, won, 9)
    arrow(axes, (1.55, 3.08), (1.9, 3.08), ORANGE)
    grid(axes, 2.0, 3.4, shown(output[0, 0]), side, dict.fromkeys(np.ndindex(2, 2), (SAND, ORANGE)), 9)
    text(axes, 2.32, 2.6, "output", QUIET, 9)
    grid(axes, 3.1, 3.4, shown(grad), side, dict.fromkeys(np.ndindex(2, 2), (SKY, BLUE)), 9)
    text(axes, 3.42, 2.6, "dL/doutput", QUIET, 9)
    arrow(axes, (3.8, 3.08), (4.15, 3.08), BLUE)
    grid(axes, 4.25, 3.72, shown(back), side, dict.fromkeys(won, (SKY, BLUE)), 9)
    values = np.array([9.0, 10.0, 11.0, 14.0])
    normalised = (values - values.mean()) / values.std()
    text(axes, 0.2, 2.15, "Batch normalisation: mean 0 and variance 1 for each channel", INK, 10.5, ha="left")
    grid(axes, 0.2, 1.95, shown(values[None]), 0.56, size=9)
    arrow(axes, (2.5, 1.67), (2.9, 1.67), GREEN)
    fills = {(0, j): (MINT, GREEN) for j in range(4)}
    grid(axes, 3.0, 1.95, [[minus(round(float(v), 2)) for v in normalised]], 0.56, fills, 9)
    mean = f"mean {values.mean():g}, variance {values.var():g}"
    text(axes, 0.2, 1.22, mean, QUIET, 9, ha="left")
    text(axes, 0.2, 0.88, "A residual block: the gradient takes both ways, and they add up", INK, 10.5, ha="left")
    y = 0.42
    text(axes, 0.3, y, "x", size=11)
    arrow(axes, (0.45, y), (1.3, y), INK)
    text(axes, 1.85, y, "layers", BLUE, 10, bbox={"boxstyle": "round,pad=0.3", "facecolor": SKY, "edgecolor": BLUE})
    arrow(axes, (2.35, y), (3.0, y), INK)
    text(axes, 3.15, y, "+", size=12, bbox={"boxstyle": "circle,pad=0.15", "facecolor": MINT, "edgecolor": GREEN})
    arrow(axes, (3.35, y), (4.1, y), INK)
    text(axes, 4.75, y, "layers(x) + x", size=10)
    axes.plot([0.75, 0.75, 3.15], [y, y - 0.3, y - 0.3], color=GREEN, linewidth=1.4)
    arrow(axes, (3.15, y - 0.3), (3.15, y - 0.14), GREEN)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week19-shared": shared_weights,
    "week20-layers": three_layers,
}
