"""Parts that several figures share: logarithmic axes, labels beside the ends of lines, columns of numbers, headings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from shared.charts.drawing.colours import INK, QUIET, RULE, readable
from shared.charts.drawing.style import SMALL, patch, text_width
from shared.charts.drawing.words import three_digits


class Label(NamedTuple):
    """A text for a point of the data. colour: None for ink."""

    x: float
    y: float
    text: str
    colour: str | None = None


def log_axis(
    axes: Axes,
    which: Literal["x", "y"],
    low: float,
    high: float,
    *,
    text: Callable[[float], str] = three_digits,
    most: int = 8,
    ticks: Sequence[float] = (),
) -> None:
    """Make an axis logarithmic from low to high, with these ticks, or with at most `most`: decades, or 1, 2, 5 where
    those are few."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axis.set_major_locator(FixedLocator(ticks or log_ticks(low, high, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """1, 2, 5 of each decade, or 1 and 3, or 1, or 1 of every few decades: the first that are at most `most`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [tick for tick in found if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found
    apart = math.ceil(len(found) / most)
    return [10.0**power for power in range(first, last + 1) if power % apart == 0 and low <= 10.0**power <= high]


def size_axis(axes: Axes, sizes: Sequence[int], *, margin: float = 1.15, most: int = 9) -> None:
    """A logarithmic x axis with a tick at every size that was measured, or at every other one."""
    wanted = sorted(set(sizes))
    axes.set_xscale("log")
    axes.set_xlim(wanted[0] / margin, wanted[-1] * margin)
    while len(wanted) > most:
        wanted = wanted[::-2][::-1]
    axes.set_xticks(wanted, [f"{size:,}" for size in wanted])
    axes.xaxis.set_minor_locator(NullLocator())


def label_column(
    axes: Axes, labels: Sequence[Label], *, gap: float = 8.0, size: float = SMALL, settled: bool = False
) -> None:
    """Write the labels in a column right of the axes, each as near to the height of its point as its neighbours let it,
    with a thin line to the point.

    A label that has no other near its height, and room to the right of its point, is written beside the point instead.
    gap: points between axes and column. The axes' limits must be final, because this function reads their height.
    settled: whether the figure was already laid out, for another of its panels.
    """
    if not labels:
        return
    figure = axes.figure
    if not settled:
        figure.draw_without_rendering()  # type: ignore[union-attr]
    height = axes.bbox.height * 72 / figure.dpi
    lines = [label.text.count("\n") + 1 for label in labels]
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [height * float(to_axes.transform((label.x, label.y))[1]) for label in labels]
    across = axes.bbox.width * 72 / figure.dpi
    # What the column takes from the axes' width as soon as it is there.
    column_width = 72 * max(text_width(label.text, size) for label in labels) + gap
    short = [
        i
        for i, label in enumerate(labels)
        if _stands_alone(i, wanted, size) and _room(label, to_axes, across - column_width) > 0
    ]
    for i in short:
        x, y, text, colour = labels[i]
        beside(axes, x, y, text, distance=8, size=size, color=readable(colour or INK))
    others = [i for i in range(len(labels)) if i not in short]
    places = spread([wanted[i] for i in others], [1.22 * size * lines[i] for i in others], height)
    leader = {"arrowstyle": "-", "color": QUIET, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 4, "relpos": (0, 0.5)}
    for label, place in zip([labels[i] for i in others], places, strict=True):
        axes.annotate(
            label.text,
            (label.x, label.y),
            (1.0 + gap / across, place / height),
            textcoords="axes fraction",
            annotation_clip=False,
            va="center",
            fontsize=size,
            color=readable(label.colour) if label.colour else INK,
            arrowprops=leader,
        )


def _stands_alone(i: int, wanted: Sequence[float], size: float) -> bool:
    """Whether no other label is within four lines of this one's height, so that a text beside the point covers none."""
    return all(abs(wanted[i] - other) > 4 * size for j, other in enumerate(wanted) if j != i)


def _room(label: Label, to_axes: Any, across: float) -> float:
    """Points between the label, written right of its point, and the axes' right edge."""
    at = across * float(to_axes.transform((label.x, label.y))[0])
    return across - at - 12 - 72 * text_width(label.text, SMALL)


def spread(wanted: Sequence[float], heights: Sequence[float], room: float) -> list[float]:
    """Centres of texts of these heights, in the order of `wanted`, as near to it as possible and none over another.

    They stay within [0, room] where they fit. Neighbours that would touch are moved as one block, to the mean of
    what its members want.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[int]] = []
    for i in order:
        blocks.append([i])
        while len(blocks) > 1 and _top(blocks[-2], wanted, heights, room) > _bottom(blocks[-1], wanted, heights, room):
            last = blocks.pop()
            blocks[-1] += last
    places = [0.0] * len(wanted)
    for block in blocks:
        at = _bottom(block, wanted, heights, room)
        for i in block:
            places[i] = at + heights[i] / 2
            at += heights[i]
    return places


def _bottom(block: Sequence[int], wanted: Sequence[float], heights: Sequence[float], room: float) -> float:
    total = sum(heights[i] for i in block)
    start, before = 0.0, 0.0
    for i in block:
        start += wanted[i] - before - heights[i] / 2
        before += heights[i]
    return max(0.0, min(start / len(block), room - total))


def _top(block: Sequence[int], wanted: Sequence[float], heights: Sequence[float], room: float) -> float:
    return _bottom(block, wanted, heights, room) + sum(heights[i] for i in block) - 1e-9


def column(axes: Axes, y: float, distance: float, text: str, *, colour: str | None = None, **more: Any) -> None:
    """Write a text right of the axes, at height y of the data, so that it ends `distance` points from them."""
    # Distances in points: as shares of the axes they would move while the layout makes room for them.
    axes.annotate(
        text,
        (1, y),
        (distance, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        annotation_clip=False,
        ha="right",
        va="center_baseline",  # as the names of the rows
        fontsize=SMALL,
        color=colour,
        **more,
    )


def heading(axes: Axes, y: float, text: str) -> None:
    """A bold line that opens a group of rows, flush with the axes' left edge."""
    axes.annotate(
        text,
        (0, y),
        (3, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center_baseline",
        fontsize=9,
        fontweight="bold",
        bbox=patch(1.0),
        zorder=4,
    )


def rows_axis(axes: Axes, names: Sequence[tuple[float, str]], last: float, *, first: float = 0.0) -> None:
    """A y axis of rows, the first one on top: (place, name) each, from `first` to `last`."""
    axes.set_yticks([place for place, _ in names], [text for _, text in names], fontsize=SMALL)
    axes.set_ylim(last + 0.6, first - 0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def beside(
    axes: Axes, x: float, y: float, text: str, *, distance: float = 6.0, size: float = SMALL, **more: Any
) -> None:
    """A text right of a point, or left of it where distance is negative."""
    axes.annotate(
        text,
        (x, y),
        (distance, 0),
        textcoords="offset points",
        ha="left" if distance > 0 else "right",
        va="center_baseline",
        fontsize=size,
        bbox=patch(),
        zorder=4,
        **more,
    )


def guide(axes: Axes, y: float) -> None:
    """A faint line along a row, which leads from its name to its numbers."""
    axes.axhline(y, color=RULE, linewidth=0.6, zorder=0)
