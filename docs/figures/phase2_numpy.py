"""Weeks 4 and 5: the axes of a sum, and a digit on its way through the network."""

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
    arrow,
    canvas,
    figure,
    grid,
    plain,
    text,
)


def axes_of_sums() -> Figure:
    """Sums along either axis of a matrix, and a row that is broadcast over it."""
    values = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    drawn, axes = canvas(4.3)
    side = 0.44
    text(axes, 1.18, 4.15, "z (3, 4)", size=10)
    grid(axes, 0.3, 4.0, values, side)
    sums = values.sum(axis=1, keepdims=True)
    grid(axes, 3.0, 4.0, sums, side, {(i, 0): (SAND, ORANGE) for i in range(3)})
    arrow(axes, (2.15, 3.34), (2.9, 3.34), ORANGE)
    text(axes, 3.55, 3.48, "z.sum(axis=1,\n      keepdims=True)", ORANGE, 10, ha="left")
    text(axes, 3.55, 3.02, "(3, 1): the columns vanish", QUIET, 9.5, ha="left")
    grid(axes, 0.3, 2.25, [values.sum(axis=0)], side, {(0, j): (SKY, BLUE) for j in range(4)})
    arrow(axes, (1.16, 2.66), (1.16, 2.3), BLUE)
    text(axes, 3.0, 2.12, "z.sum(axis=0)", BLUE, 10, ha="left")
    text(axes, 3.0, 1.9, "(4,): the rows vanish", QUIET, 9.5, ha="left")
    bias = np.array([10, 20, 30, 40])
    small = 0.4
    grid(axes, 0.3, 1.42, values, small, size=9)
    text(axes, 2.1, 0.84, "+", size=13)
    fills = {(i, j): (MINT, GREEN) if i == 0 else (GROUND, RULE) for i in range(3) for j in range(4)}
    grid(axes, 2.3, 1.42, [bias] * 3, small, fills, 9)
    text(axes, 4.1, 1.1, "z + bias", GREEN, 10, ha="left")
    text(axes, 4.1, 0.7, "(3, 4) + (4,):\nthe row serves\nevery row", QUIET, 9.5, ha="left")
    return drawn


def a_digit() -> Figure:
    """A test image, and what the network thinks of it before training, after one epoch and after four."""
    from shared.data.datasets import load_dataset
    from stage2_numpy.activations import softmax
    from stage2_numpy.network import Network
    from stage2_numpy.optimizers import SGD

    data = load_dataset("mnist-subset")
    network = Network([784, 32, 10], seed=0, dtype="float64")
    optimizer = SGD(0.1)
    shown = 722  # a 3 that takes more than one epoch
    image = data.test.x[shown : shown + 1].astype(np.float64)
    guesses, rng = [("before", softmax(network.forward(image))[0])], np.random.default_rng(0)
    for epoch in range(1, 5):
        order = rng.permutation(len(data.train.x))
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            network.train_step(data.train.x[batch].astype(np.float64), data.train.y[batch], optimizer)
        if epoch in (1, 4):
            guesses.append((f"after {epoch} epoch{'s' if epoch > 1 else ''}", softmax(network.forward(image))[0]))
    drawn = figure(2.3)
    picture, *bars = drawn.subplots(1, 4, width_ratios=[1.05, 1, 1, 1])
    picture.add_patch(Rectangle((0, 0), 28, 28, facecolor=PANEL, edgecolor=RULE))
    for (row, column), value in np.ndenumerate(image.reshape(28, 28)):
        if value > 0.2:
            picture.add_patch(Rectangle((column, 27 - row), 1, 1, color=QUIET if value < 0.6 else INK, linewidth=0.4))
    picture.set_xlim(-0.5, 28.5)
    picture.set_ylim(-0.5, 28.5)
    picture.set_aspect("equal")
    picture.axis("off")
    picture.set_title(f"784 pixels, a {data.test.y[shown]}", fontsize=10, color=INK)
    for axes, (title, probabilities) in zip(bars, guesses, strict=True):
        colours = [ORANGE if digit == data.test.y[shown] else BLUE for digit in range(10)]
        axes.barh(range(10), probabilities, color=colours)
        plain(axes, title, zero=False)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 1])
        axes.set_yticks(range(10))
        axes.tick_params(labelsize=8)
        axes.invert_yaxis()
    drawn.subplots_adjust(left=0.02, right=0.98, bottom=0.11, top=0.88, wspace=0.3)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week04-axes": axes_of_sums,
    "week05-digit": a_digit,
}
