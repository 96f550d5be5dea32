"""Weeks 12 to 16: slopes, reductions by a tree, sums of columns, the launches of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    PANEL,
    QUIET,
    RULE,
    SAND,
    SKY,
    arrow,
    box,
    canvas,
    figure,
    plain,
    text,
)


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


def launches() -> dict[str, list[str]]:
    """Rung -> the names of the kernels that a step of 784-128-10 launches, in order. Launches are noted, not run."""
    from cuda_emulator.inspection import Configured
    from stage4_numba_cuda.network import STEP_LADDER, Network
    from stage4_numba_cuda.optimizers import SGD

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


RUNGS = ("op_by_op", "fused", "few_kernels", "graph")
"""The rungs of week 16's figure. `persistent` has one launch for many steps, and the page comes to it later."""


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
    for place, rung in enumerate(RUNGS):
        names = found[rung]
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
    legend = (("products", BLUE), ("the optimizer", QUIET), ("head: last layer and loss", GREEN), ("the rest", ORANGE))
    for place, (words, colour) in enumerate(legend):
        text(axes, 5.5, 1.5 - place * 0.2, words, colour, 9.5, ha="right")
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week12-slopes": slopes_of_outputs,
    "week13-trees": trees,
    "week14-columns": column_block,
    "week15-launches": op_by_op,
    "week16-rungs": ladder_of_launches,
}
