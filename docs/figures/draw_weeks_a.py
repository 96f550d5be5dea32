"""Draws the figures of weeks 1 to 9.

    python docs/figures/draw_weeks_a.py           all of them, into docs/figures
    python docs/figures/draw_weeks_a.py week03    those with this in their name

draw.py says what the figures have in common. Numbers in a figure are computed here, by the project's own code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from draw import (
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
    box,
    canvas,
    figure,
    save,
    text,
)
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle


def grid(
    axes: Any,
    left: float,
    top: float,
    rows: Any,
    side: float = 0.42,
    fills: dict[tuple[int, int], tuple[str, str]] | None = None,
    size: float = 10,
) -> None:
    """A matrix as boxes, its upper left corner at (left, top).

    rows: of numbers or words; fills: (row, column) -> (fill, edge)
    """
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            fill, edge = (fills or {}).get((i, j), (PANEL, RULE))
            box(axes, left + j * side, top - (i + 1) * side, side - 0.04, side - 0.04, fill, edge)
            words = f"{value:g}" if isinstance(value, float) else str(value)
            text(axes, left + (j + 0.5) * side - 0.02, top - (i + 0.5) * side - 0.02, words, size=size)


# ---- week 1


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


# ---- week 2


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


def plain(axes: Any, title: str, zero: bool = True) -> None:
    """Axes in the house style, with a title and a quiet line at zero."""
    axes.set_facecolor(GROUND)
    axes.set_title(title, fontsize=10.5, color=INK)
    axes.tick_params(colors=QUIET, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(RULE)
    if zero:
        axes.axhline(0, color=RULE, linewidth=0.8, zorder=0)


# ---- week 3


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


# ---- week 4


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


# ---- week 5


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


# ---- week 6


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


# ---- week 7


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


# ---- week 8


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


# ---- week 9


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


FIGURES: dict[str, Callable[[], Figure]] = {
    "week01-product": product,
    "week02-bends": bends,
    "week03-products": three_products,
    "week03-xor": corners,
    "week04-axes": axes_of_sums,
    "week05-digit": a_digit,
    "week06-row-major": row_major,
    "week07-walks": walks,
    "week08-tile": register_tile,
    "week09-grid-stride": grid_stride,
}


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, drawing in FIGURES.items():
        if wanted in name:
            print(save(drawing(), name))


if __name__ == "__main__":
    main()
