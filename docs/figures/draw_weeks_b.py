"""Draws the figures of weeks 10 to 18.

    python docs/figures/draw_weeks_b.py           all of them, into docs/figures
    python docs/figures/draw_weeks_b.py week13    those with this in their name

draw.py says what the figures have in common. Numbers in a figure are computed here, by the project's own code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
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
from draw_weeks_a import plain
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline

WORD, SECTOR, LANES = 4, 32, 32
"""Bytes of a float32, bytes of a sector, threads of a warp."""


def cells(axes: Any, left: float, top: float, places: Iterable[tuple[int, int]], side: float, colour: str) -> None:
    """Squares of one colour at (row, column) of a raster whose upper left corner is at (left, top), as one shape."""
    corners: list[tuple[float, float]] = []
    codes: list[Any] = []
    for row, first, count in runs(places):
        x, y, right = left + first * side, top - (row + 1) * side, left + (first + count) * side
        corners += [(x, y), (right, y), (right, y + side), (x, y + side), (x, y)]
        codes += [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    if corners:
        axes.add_patch(PathPatch(Outline(corners, codes), facecolor=colour, edgecolor=colour, linewidth=0.3))


def runs(places: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(row, first column, how many) of neighbours in a row."""
    found: list[tuple[int, int, int]] = []
    for row, column in sorted(places):
        if found and found[-1][0] == row and found[-1][1] + found[-1][2] == column:
            found[-1] = row, found[-1][1], found[-1][2] + 1
        else:
            found.append((row, column, 1))
    return found


# ---- week 10


def sectors() -> Figure:
    """What a warp asks of a 32 by 32 matrix of float32, and what memory sends, down a column and along a row."""
    drawn, axes = canvas(3.35)
    side, top, share = 0.07, 2.9, SECTOR // WORD
    for left, title, asked in (
        (0.35, "lane i reads row i: down a column", [(lane, 12) for lane in range(LANES)]),
        (3.05, "lane i reads column i: along a row", [(12, lane) for lane in range(LANES)]),
    ):
        sent = {(row, column // share) for row, column in asked}
        text(axes, left + LANES * side / 2, 3.1, title, size=10)
        axes.add_patch(
            Rectangle((left, top - LANES * side), LANES * side, LANES * side, facecolor=PANEL, edgecolor=RULE)
        )
        came = [(row, sector * share + word) for row, sector in sent for word in range(share)]
        cells(axes, left, top, came, side, SAND)
        cells(axes, left, top, asked, side, ORANGE)
        for border in range(share, LANES, share):
            axes.plot([left + border * side] * 2, [top, top - LANES * side], color=RULE, linewidth=0.7)
        used = len(asked) * WORD / (len(sent) * SECTOR)
        words = f"{len(sent)} sectors, {len(sent) * SECTOR:,} bytes,\n{used:.1%} of them used".replace(".0%", "%")
        text(axes, left + LANES * side / 2, 0.4, words.replace("%", " %"), INK, 10)
    text(axes, 2.8, 0.08, "between two lines: sectors of 8 numbers", QUIET, 9.5)
    return drawn


# ---- week 11


def tiles() -> Figure:
    """One block's tile of c, and the tiles of a and b that it goes through; the last ones reach over the edge."""
    drawn, axes = canvas(4.3)
    tile, inner, rows, columns = 0.44, 4.72, 3, 3  # inner: K as a multiple of the tile
    left, top = 2.95, 1.5
    whole = int(np.ceil(inner))
    a_left, b_top = left - 0.3 - whole * tile, top + 0.25 + whole * tile
    for i in range(rows):
        for j in range(columns):
            mine = (i, j) == (1, 1)
            box(
                axes,
                left + j * tile,
                top - (i + 1) * tile,
                tile - 0.04,
                tile - 0.04,
                *((MINT, GREEN) if mine else (PANEL, RULE)),
            )
    for k in range(whole):
        now = k == 1
        for i in range(rows):
            fill, edge = (SKY, BLUE) if i == 1 and now else (SKY, RULE) if i == 1 else (PANEL, RULE)
            box(axes, a_left + k * tile, top - (i + 1) * tile, tile - 0.04, tile - 0.04, fill, edge)
        for j in range(columns):
            fill, edge = (SAND, ORANGE) if j == 1 and now else (SAND, RULE) if j == 1 else (PANEL, RULE)
            box(axes, left + j * tile, b_top - (k + 1) * tile, tile - 0.04, tile - 0.04, fill, edge)
        text(axes, a_left + (k + 0.5) * tile - 0.02, top - 1.5 * tile - 0.02, str(k), size=10)
        text(axes, left + 1.5 * tile - 0.02, b_top - (k + 0.5) * tile - 0.02, str(k), size=10)
    edge_x, edge_y = a_left + inner * tile - 0.02, b_top - inner * tile + 0.02
    axes.plot([edge_x] * 2, [top + 0.08, top - rows * tile - 0.06], color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.plot(
        [left - 0.06, left + columns * tile + 0.06], [edge_y] * 2, color=INK, linewidth=1.2, linestyle=(0, (3, 2))
    )
    text(axes, edge_x - 0.08, top + 0.17, "a ends here", QUIET, 9.5, ha="right")
    text(axes, left + columns * tile + 0.12, edge_y, "b ends here", QUIET, 9.5, ha="left")
    text(axes, a_left - 0.09, top - 1.5 * tile, "a", BLUE, 12, ha="right")
    text(axes, left + 1.5 * tile, b_top + 0.13, "b", ORANGE, 12)
    text(axes, left + columns * tile + 0.12, top - 1.5 * tile, "c: one block's\ntile", GREEN, 10, ha="left")
    text(
        axes,
        0.15,
        3.35,
        "round 1: the block copies\ntile 1 of a and tile 1 of b,\nwaits, multiplies, waits",
        INK,
        10,
        ha="left",
    )
    return drawn


# ---- week 12


def slopes_of_outputs() -> Figure:
    """The slope of four activations as a function of their output, by the kernels' own device functions."""
    from stage4_numba_cuda.kernels import activations

    drawn = figure(2.15)
    for axes, (name, title, low, high) in zip(
        drawn.subplots(1, 4),
        (
            ("relu", "ReLU", -1, 1),
            ("leaky_relu", "leaky ReLU", -1, 1),
            ("sigmoid", "sigmoid", 0, 1),
            ("tanh", "tanh", -1, 1),
        ),
        strict=True,
    ):
        output = np.linspace(low, high, 201)
        slope = np.zeros_like(output)
        back = activations.BACKWARD[name]
        back[1, 32](np.ones_like(output), output, slope)
        if name in ("relu", "leaky_relu"):
            for part in (output <= 0, output > 0):
                axes.plot(output[part], slope[part], color=BLUE, linewidth=2)
        else:
            axes.plot(output, slope, color=BLUE, linewidth=2)
        plain(axes, title)
        axes.set_xticks([low, (low + high) / 2, high], [f"{low}", "0.5" if low == 0 else "0", f"{high}"])
        axes.set_xlabel("output", color=QUIET, fontsize=9)
        axes.set_ylim(-0.08, 1.15)
        axes.set_yticks([0, 0.25, 1], ["0", "¼", "1"])
    drawn.subplots_adjust(left=0.05, right=0.985, bottom=0.23, top=0.87, wspace=0.32)
    return drawn


# ---- week 13


def trees() -> Figure:
    """Eight numbers added by a tree in shared memory, and by shuffles between the lanes of a warp."""
    start = [3, 1, 4, 1, 5, 9, 2, 6]
    drawn, axes = canvas(3.5)
    wide, high, step = 0.265, 0.26, 0.6
    for left, title, everywhere in ((0.1, "a tree in shared memory", False), (2.8, "shuffles", True)):
        values, half, top = list(start), len(start) // 2, 2.9
        text(axes, left + 4 * wide, 3.33, title, size=10.5)
        row(axes, left, top, wide, high, values, range(len(values)))
        while half:
            before, top_before = list(values), top
            top -= step
            if everywhere:
                values = [before[lane] + before[lane ^ half] for lane in range(len(values))]
                changed: range = range(len(values))
                pairs = [(lane, lane ^ half) for lane in range(len(values))]
            else:
                values = [before[i] + before[i + half] if i < half else before[i] for i in range(len(values))]
                changed = range(half)
                pairs = [(i, i + half) for i in range(half)]
            row(axes, left, top, wide, high, values, changed)
            for to, source in pairs:
                start_at = left + (source + 0.5) * wide - 0.02, top_before - 0.02
                end_at = left + (to + 0.5) * wide - 0.02, top + high + 0.03
                axes.plot(*zip(start_at, end_at, strict=True), color=ORANGE, linewidth=0.9)
            word = f"lane ^ {half}" if everywhere else "barrier"
            text(axes, left + 8 * wide + 0.02, (top_before + top + high) / 2, word, QUIET, 9, ha="left", va="center")
            half //= 2
    text(axes, 1.16, 0.85, "the sum is in place 0", GREEN, 10)
    text(axes, 3.86, 0.85, "the sum is in every lane", GREEN, 10)
    text(axes, 2.8, 0.45, "8 numbers, 3 levels; a block of 512 has 9, a warp 5", INK, 10)
    text(axes, 2.8, 0.15, "orange: the number that comes to what is there already", QUIET, 9.5)
    return drawn


def row(
    axes: Any, left: float, top: float, wide: float, high: float, values: Sequence[int], live: Iterable[int]
) -> None:
    """Numbers side by side; those at `live` are current."""
    current = set(live)
    for i, value in enumerate(values):
        fill, edge = (SKY, BLUE) if i in current else (GROUND, RULE)
        box(axes, left + i * wide, top, wide - 0.04, high, fill, edge)
        text(
            axes, left + (i + 0.5) * wide - 0.02, top + high / 2 - 0.01, str(value), INK if i in current else QUIET, 9.5
        )


# ---- week 14


def column_block() -> Figure:
    """A block adds the columns of a matrix: each warp its own rows, then a tree over the warps."""
    warps, lanes, rows = 4, 8, 10
    tints = [(SKY, BLUE), (SAND, ORANGE), (MINT, GREEN), (PANEL, QUIET)]
    drawn, axes = canvas(3.6)
    side, left, top = 0.235, 0.62, 3.2
    text(axes, left + lanes * side / 2, 3.4, "the matrix", size=10.5)
    for i in range(rows):
        fill, edge = tints[i % warps]
        for j in range(lanes):
            box(axes, left + j * side, top - (i + 1) * side, side - 0.03, side - 0.03, fill, edge)
        text(axes, left - 0.08, top - (i + 0.5) * side, f"row {i}", QUIET, 9, ha="right")
    text(axes, left + lanes * side / 2, 0.62, "neighbouring lanes,\nneighbouring columns", QUIET, 9.5)
    right, at = 3.2, 3.2
    text(axes, right + lanes * side / 2, 3.4, "partial, in shared memory", size=10.5)
    half, live = warps, warps
    while live:
        for i in range(live):
            fill, edge = tints[i]
            for j in range(lanes):
                box(axes, right + j * side, at - (i + 1) * side, side - 0.03, side - 0.03, fill, edge)
            if live == warps:
                text(axes, right + lanes * side + 0.05, at - (i + 0.5) * side, f"warp {i}", QUIET, 9, ha="left")
        at -= live * side
        half = live // 2
        if half:
            text(axes, right + lanes * side / 2, at - 0.15, f"barrier, then {live} rows become {half}", QUIET, 9.5)
            at -= 0.3
        live = half
    text(axes, right + lanes * side / 2, at - 0.2, "written to sums", GREEN, 10)
    text(axes, 2.8, 0.15, f"drawn with {warps} warps of {lanes} lanes; the kernel has 16 of 32", INK, 10)
    arrow(axes, (left + lanes * side + 0.1, 2.5), (right - 0.1, 2.5), QUIET)
    return drawn


# ---- weeks 15 and 16


def launches() -> dict[str, list[str]]:
    """Rung -> the names of the kernels that a step of 784-128-10 launches, in order. Launches are noted, not run."""
    from cuda_emulator.runtime.dispatcher import Configured
    from stage4_numba_cuda.network import Network
    from stage4_numba_cuda.optimizers import SGD
    from stage4_numba_cuda.steps import STEP_LADDER

    launched: list[str] = []
    as_it_was = Configured.__call__
    Configured.__call__ = lambda self, *arguments: launched.append(self.dispatcher.py_func.__name__)  # type: ignore[method-assign]
    try:
        network, x, y = Network([784, 128, 10], seed=0), np.zeros((64, 784), np.float32), np.zeros(64, np.int32)
        found = {}
        for name, step in STEP_LADDER.items():
            launched.clear()
            step(network, x, y, SGD(0.1))
            found[name] = list(launched)
    finally:
        Configured.__call__ = as_it_was  # type: ignore[method-assign]
    return found


def op_by_op() -> Figure:
    """The launches of the lowest rung: forward to the loss, back through the layers, and the optimizer."""
    names = launches()["op_by_op"]
    parts = [
        ("forward", names[:5], SKY, BLUE),
        ("loss", names[5:8], SAND, ORANGE),
        ("back", names[8:14], MINT, GREEN),
        ("optimizer", names[14:], PANEL, QUIET),
    ]
    what = [
        ["x W1", "+ b1", "ReLU", "h W2", "+ b2"],
        ["row losses", "their sum", "slopes g2"],
        ["hᵀ g2", "column sums", "g2 W2ᵀ", "ReLU's slope", "xᵀ g1", "column sums"],
        ["W1", "b1", "W2", "b2"],
    ]
    short = {"softmax_cross_entropy": "softmax_cross_…", "softmax_cross_entropy_backward": "…_backward"}
    drawn, axes = canvas(3.45)
    wide, high, step, top = 1.26, 0.42, 0.46, 2.88
    number = 1
    for part, ((title, kernels, fill, edge), meanings) in enumerate(zip(parts, what, strict=True)):
        left = 0.1 + part * 1.37
        text(axes, left + wide / 2, 3.24, title, edge if edge != QUIET else INK, 10.5)
        for place, (kernel, meaning) in enumerate(zip(kernels, meanings, strict=True)):
            bottom = top - place * step - 0.24
            box(axes, left, bottom, wide, high - 0.02, fill, edge)
            text(axes, left + wide / 2, bottom + 0.27, f"{number}  {meaning}", size=9)
            text(axes, left + wide / 2, bottom + 0.11, short.get(kernel, kernel), QUIET, 9)
            number += 1
    text(axes, 1.4, 0.3, f"{len(names)} launches for one step", INK, 10)
    return drawn


def ladder_of_launches() -> Figure:
    """How many launches a step takes on each rung."""
    drawn, axes = canvas(2.4)
    kinds = [
        (("multiply", "forward", "backward", "forward_partial"), SKY, BLUE),
        (("head",), MINT, GREEN),
        (("sgd", "update"), PANEL, QUIET),
    ]
    found = launches()
    side, left = 0.213, 1.1
    for place, (rung, names) in enumerate(found.items()):
        bottom = 1.82 - place * 0.44
        shown = [""] if rung == "graph" else names
        text(axes, left - 0.1, bottom + 0.13, rung, size=10, ha="right")
        for i, name in enumerate(shown):
            fill, edge = next(((fill, edge) for of, fill, edge in kinds if name in of), (SAND, ORANGE))
            fill, edge = (GROUND, INK) if rung == "graph" else (fill, edge)
            box(axes, left + i * side, bottom, side - 0.035, 0.26, fill, edge)
        if rung == "graph":
            for i in range(len(names)):
                box(axes, left + (i + 1.6) * side, bottom + 0.03, side - 0.05, 0.2, GROUND, RULE)
            words = f"1 order from the host; the device starts its {len(names)} kernels by itself"
            text(axes, left, bottom - 0.16, words, QUIET, 9, ha="left")
        else:
            text(axes, left + len(shown) * side + 0.05, bottom + 0.13, str(len(names)), INK, 10, ha="left")
    text(axes, 0.1, 2.26, "launches of one training step, 784-128-10", QUIET, 9.5, ha="left")
    for place, (words, colour) in enumerate((("products", BLUE), ("the optimizer", QUIET), ("the rest", ORANGE))):
        text(axes, 5.5, 1.5 - place * 0.2, words, colour, 9.5, ha="right")
    return drawn


# ---- week 17


def trained(weight_decay: float) -> Any:
    """784-32-10 after ten epochs of the bundled images in batches of 32."""
    from shared.data.datasets import load_dataset
    from stage2_numpy.network import Network
    from stage2_numpy.optimizers import SGD

    images = load_dataset("mnist-subset").train
    network, rng = Network([784, 32, 10], seed=0), np.random.default_rng(0)
    optimizer = SGD(0.1, weight_decay=weight_decay)
    for _ in range(10):
        order = rng.permutation(len(images))
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            network.train_step(images.x[batch], images.y[batch], optimizer)
    return network


def looking_inside() -> Figure:
    """Two units' weights as images, with weight decay and without; a mistake, and what speaks for and against it."""
    from groundup import inside
    from shared.data.datasets import load_dataset

    test = load_dataset("mnist-subset").test
    plainly, decayed = ([np.array(each) for each in trained(decay).parameters] for decay in (0.0, 0.01))
    beliefs = inside.probabilities(inside.scores(decayed, "relu", test.x))
    wrong = int(inside.most_wrong(beliefs, test.y, 1)[0])
    label, taken = int(test.y[wrong]), int(beliefs[wrong].argmax())
    picture = test.x[wrong : wrong + 1]
    pull = np.subtract(*(inside.saliency(decayed, "relu", picture, np.array([each])) for each in (taken, label)))
    drawn, axes = canvas(3.85)
    side, gap, wide = 0.0455, 0.08, 28 * 0.0455

    def signed(left: float, top: float, values: np.ndarray, least: float) -> None:
        axes.add_patch(Rectangle((left, top - wide), wide, wide, facecolor=PANEL, edgecolor=RULE))
        cells(axes, left, top, map(tuple, np.argwhere(values > least)), side, ORANGE)
        cells(axes, left, top, map(tuple, np.argwhere(values < -least)), side, BLUE)

    text(axes, 0.12, 3.7, "what two of the 32 hidden units look for", size=10, ha="left")
    for place, (unit, (parameters, words)) in enumerate(
        (unit, pair) for unit in (3, 8) for pair in ((plainly, "no weight decay"), (decayed, "weight decay"))
    ):
        left = 0.12 + place * (wide + gap)
        signed(left, 3.55, inside.first_layer_images(parameters[0], (28, 28))[unit], 0.3)
        text(axes, left + wide / 2, 2.15, words, QUIET, 9.5)
    top = 1.5
    text(axes, 0.12, 1.67, f"the surest mistake: a {label} taken for a {taken}", size=10, ha="left")
    axes.add_patch(Rectangle((0.12, top - wide), wide, wide, facecolor=PANEL, edgecolor=RULE))
    ink = picture.reshape(28, 28)
    cells(axes, 0.12, top, map(tuple, np.argwhere((ink > 0.2) & (ink <= 0.6))), side, QUIET)
    cells(axes, 0.12, top, map(tuple, np.argwhere(ink > 0.6)), side, INK)
    signed(0.12 + wide + gap, top, pull.reshape(28, 28) / np.abs(pull).max(), 0.25)
    words_at = 0.25 + 2 * (wide + gap)
    text(axes, words_at, top - 0.2, f"{100 * beliefs[wrong, taken]:.1f} % sure", INK, 10, ha="left")
    text(
        axes,
        words_at,
        top - 0.55,
        f"orange: more ink there speaks\nfor {taken} and against {label}",
        ORANGE,
        10,
        ha="left",
    )
    text(
        axes, words_at, top - 1.0, f"blue: more ink there speaks\nfor {label} and against {taken}", BLUE, 10, ha="left"
    )
    return drawn


# ---- week 18


def step_sizes() -> Figure:
    """How far a measured slope of tanh is from its derivative, against the step it is measured with."""
    h = np.logspace(-12, -0.5, 231)
    at = 0.7
    exact = 1 - np.tanh(at) ** 2
    drawn = figure(3.3)
    axes = drawn.add_axes((0.115, 0.16, 0.86, 0.73), facecolor=GROUND)
    both = np.abs((np.tanh(at + h) - np.tanh(at - h)) / (2 * h) - exact)
    one = np.abs((np.tanh(at + h) - np.tanh(at)) / h - exact)
    axes.loglog(h, np.maximum(one, 1e-16), color=ORANGE, linewidth=1.2)
    axes.loglog(h, np.maximum(both, 1e-16), color=BLUE, linewidth=1.6)
    best = np.finfo(np.float64).eps ** (1 / 3)
    axes.axvline(best, color=QUIET, linewidth=1, linestyle=(0, (3, 2)))
    axes.annotate("∛eps = 6e-6", (best, 3e-2), (5, 0), textcoords="offset points", color=QUIET, fontsize=9.5)
    axes.annotate(
        "rounding grows\nas h shrinks", (3e-12, 3e-7), (6, 40), textcoords="offset points", color=INK, fontsize=9.5
    )
    axes.annotate("one side", (2e-3, 4e-3), color=ORANGE, fontsize=9.5, ha="right")
    axes.annotate("the formula errs\nby less as h shrinks", (0.35, 1.2e-10), color=INK, fontsize=9.5, ha="right")
    axes.annotate("both sides", (4e-3, 3e-8), color=BLUE, fontsize=9.5)
    axes.set_ylim(1e-14, 1)
    axes.set_xlim(1e-12, 0.4)
    axes.set_xticks([1e-12, 1e-9, 1e-6, 1e-3], ["1e-12", "1e-9", "1e-6", "1e-3"])
    axes.set_yticks([1e-12, 1e-8, 1e-4, 1], ["1e-12", "1e-8", "1e-4", "1"])
    axes.minorticks_off()
    axes.set_xlabel("h, the step", color=INK, fontsize=9.5)
    plain(axes, "error of the measured slope of tanh at 0.7, in float64", zero=False)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week10-sectors": sectors,
    "week11-tiles": tiles,
    "week12-slopes": slopes_of_outputs,
    "week13-trees": trees,
    "week14-columns": column_block,
    "week15-launches": op_by_op,
    "week16-rungs": ladder_of_launches,
    "week17-inside": looking_inside,
    "week18-steps": step_sizes,
}


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, drawing in FIGURES.items():
        if wanted in name:
            print(save(drawing(), name))


if __name__ == "__main__":
    main()
