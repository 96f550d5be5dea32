"""Weeks 1 to 3: a product, the activations, three products of backpropagation, XOR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from style import (
    BLUE,
    GREEN,
    GROUND,
    INK,
    MINT,
    ORANGE,
    QUIET,
    SAND,
    SKY,
    box,
    canvas,
    figure,
    grid,
    plain,
    text,
)


def product() -> Figure:
    """One number of a product: a row of x, a column of W, three products and their sum."""
    from stage1_pure_python.matmul import index_loops

    x, weights = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]
    result = index_loops(x, weights)
    drawn, axes = canvas(3.25)
    chosen = {(1, k): (SKY, BLUE) for k in range(3)}
    grid(axes, 0.75, 1.64, x, fills=chosen)
    grid(axes, 2.4, 3.1, weights, fills={(k, 0): (SAND, ORANGE) for k in range(3)})
    grid(axes, 2.4, 1.64, result, fills={(1, 0): (MINT, GREEN)})
    text(axes, 1.36, 1.82, "x (2, 3)", BLUE, 10)
    text(axes, 3.75, 2.5, "W (3, 2)\na column is a neuron", ORANGE, 10, ha="left")
    text(axes, 3.75, 1.2, "xW (2, 2)\na row is a sample", GREEN, 10, ha="left")
    text(axes, 0.55, 1.0, "i = 1", QUIET, 9.5, ha="right")
    text(axes, 2.6, 0.64, "j = 0", QUIET, 9.5)
    terms = " + ".join(f"{x[1][k]:g}$\\cdot${weights[k][0]:g}" for k in range(3))
    text(axes, 2.8, 0.28, f"{terms} = {result[1][0]:g}", INK, 12)
    return drawn


def bends() -> Figure:
    """Three activations with their slopes, and what cross-entropy charges for a probability."""
    from stage1_pure_python import activations

    z = np.linspace(-4, 4, 161)
    drawn = figure(4.6)
    panels = drawn.subplots(2, 2)
    for axes, name in zip(panels.flat, ("relu", "sigmoid", "tanh"), strict=False):
        row = [z.tolist()]
        value = getattr(activations, name)(row)
        slope = getattr(activations, f"{name}_backward")([[1.0] * len(z)], row, value)
        axes.plot(z, value[0], color=BLUE, linewidth=2)
        axes.plot(z, slope[0], color=ORANGE, linewidth=1.6, linestyle=(0, (4, 2)))
        plain(axes, {"relu": "ReLU"}.get(name, name))
        axes.set_xticks([-4, 0, 4])
        axes.set_ylim(*{"relu": (-0.4, 2.2), "sigmoid": (-0.2, 1.25), "tanh": (-1.25, 1.25)}[name])
    panels[0, 0].text(1.9, 0.55, "slope", color=ORANGE, fontsize=9.5)
    panels[0, 0].text(-0.1, 1.55, "value", color=BLUE, fontsize=9.5)
    axes = panels[1, 1]
    p = np.linspace(0.01, 1, 200)
    axes.plot(p, -np.log(p), color=GREEN, linewidth=2)
    plain(axes, "loss: $-$log p of the right class")
    axes.set_xticks([0, 0.5, 1])
    axes.set_ylim(-0.3, 4.7)
    drawn.subplots_adjust(left=0.07, right=0.98, bottom=0.07, top=0.93, hspace=0.42, wspace=0.2)
    return drawn


def three_products() -> Figure:
    """A dense layer's product forward and its two products back, as rectangles of their shapes."""
    drawn, axes = canvas(5.0)
    batch, inputs, outputs = 0.5, 1.15, 0.8
    kinds = {"x": (SKY, BLUE), "W": (SAND, ORANGE), "g": (MINT, GREEN)}

    def matrix(left: float, middle: float, height: float, width: float, name: str, kind: str, shape: str) -> float:
        box(axes, left, middle - height / 2, width, height, *kinds[kind])
        text(axes, left + width / 2, middle, name, size=12)
        text(axes, left + width / 2, middle - height / 2 - 0.14, shape, QUIET, 9)
        return left + width

    def equation(
        middle: float, title_at: float, title: str, parts: Sequence[tuple[float, float, str, str, str] | str]
    ) -> None:
        text(axes, 0.1, title_at, title, size=10, ha="left")
        left = 0.45
        for part in parts:
            if isinstance(part, str):
                text(axes, left + 0.17, middle, part, size=12)
                left += 0.34
            else:
                left = matrix(left, middle, *part)

    x = (batch, inputs, "x", "x", "batch, in")
    weights = (inputs, outputs, "W", "W", "in, out")
    z = (batch, outputs, "z", "g", "batch, out")
    slopes = (batch, outputs, "g", "g", "batch, out")
    equation(4.15, 4.85, "forward", [x, "$\\cdot$", weights, "=", z])
    equation(
        2.45,
        3.2,
        "back, for the weights",
        [(inputs, batch, "x$^T$", "x", "in, batch"), "$\\cdot$", slopes, "=", (inputs, outputs, "dW", "W", "in, out")],
    )
    equation(
        0.72,
        1.4,
        "back, for the layer below",
        [slopes, "$\\cdot$", (outputs, inputs, "W$^T$", "W", "out, in"), "=", (batch, inputs, "dx", "x", "batch, in")],
    )
    text(axes, 4.85, 4.15, "+ b, to\nevery row", QUIET, 9.5)
    text(axes, 4.75, 2.45, "summed over\nthe batch;\ndb: sums of\ng's columns", QUIET, 9.5)
    return drawn


def corners() -> Figure:
    """XOR: what one neuron and what two hidden neurons make of the plane, both trained here."""
    from stage1_pure_python.network import Network
    from stage1_pure_python.optimizers import SGD

    x, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [[0.0], [1.0], [1.0], [0.0]]
    drawn = figure(2.95)
    side = np.linspace(-0.4, 1.4, 121)
    plane = [[float(a), float(b)] for b in side for a in side]
    for axes, sizes, title in zip(
        drawn.subplots(1, 2),
        ([2, 1], [2, 2, 1]),
        ("one neuron: one line", "two hidden neurons: two lines"),
        strict=True,
    ):
        network = Network(sizes, activation="tanh", loss="sigmoid_cross_entropy", initializer="xavier", seed=1)
        optimizer = SGD(0.5, momentum=0.9)
        for _ in range(200):
            network.train_step(x, y, optimizer)
        outputs = np.array(network.forward(plane)).reshape(len(side), len(side))
        axes.contourf(side, side, outputs, levels=[-1e9, 0, 1e9], colors=[SKY, SAND])
        axes.contour(side, side, outputs, levels=[0], colors=[INK], linewidths=1.2)
        right = [(value > 0) == (target[0] > 0.5) for value, target in zip(network_outputs(network, x), y, strict=True)]
        for (a, b), target, ok in zip(x, y, right, strict=True):
            colour = ORANGE if target[0] else BLUE
            axes.scatter([a], [b], s=110, color=colour, edgecolors=GROUND, linewidths=1.5, zorder=3)
            if not ok:
                axes.scatter([a], [b], s=330, facecolors="none", edgecolors=INK, linewidths=1.2, zorder=3)
        plain(axes, f"{title}\n{sum(right)} of 4 right")
        axes.set_xticks([0, 1])
        axes.set_yticks([0, 1])
        axes.set_aspect("equal")
    drawn.subplots_adjust(left=0.05, right=0.97, bottom=0.09, top=0.84, wspace=0.12)
    return drawn


def network_outputs(network: Any, x: Sequence[Sequence[float]]) -> list[float]:
    """The only output of each row."""
    return [row[0] for row in network.forward([list(row) for row in x])]


FIGURES: dict[str, Callable[[], Figure]] = {
    "week01-product": product,
    "week02-bends": bends,
    "week03-products": three_products,
    "week03-xor": corners,
}
