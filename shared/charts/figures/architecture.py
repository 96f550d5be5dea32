"""The drawing of a network: its images growing smaller layer by layer, and where its parameters, its work and, if it
was profiled, its time are.

A row for each layer that has parameters or moves a window; what comes right after it (batch normalisation, activation,
flattening, dropout) stands in the same row. A line at the left goes around the layers of a residual block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from shared.architectures import Architecture
from shared.charts.drawing.colours import BLUE, GREEN, INK, ORANGE, PINK, QUIET, pale, readable
from shared.charts.drawing.style import SMALL, SMALLEST, Chart, house_style, new_figure
from shared.charts.drawing.words import duration, many, plural, share
from shared.layers import (
    Activate,
    BatchNorm,
    Dropout,
    Flatten,
    Placed,
    Residual,
    Shape,
    describe,
    multiply_adds_of,
    parameters_of,
)

TITLES = {"lenet5": "LeNet-5", "fashion_cnn": "Fashion CNN", "residual_cnn": "Residual CNN"}
"""The known networks as figures call them."""
WIDTH, ROW = 5.2, 0.56
"""Inches of the figure, and of one row."""
PICTURE, WORDS, BARS, RIGHT = 0.58, 1.14, 3.38, 4.4
"""Inches from the left: the middle of the pictures, the descriptions, and where the bars begin and end."""
SIDE, SHEET = 0.34, 0.028
"""The largest image, and how far one sheet of a stack lies behind the next."""


@dataclass
class Row:
    """One row: the description of its layer, what follows it, the output's shape, and its parameters, work and time."""

    words: str
    shape: Shape
    parameters: int = 0
    work: int = 0
    seconds: float = 0.0
    after: list[str] = field(default_factory=list)


def drawing(
    architecture: Architecture, name: str, seconds: Mapping[str, float] | None = None, measured: str = ""
) -> Chart:
    """The figure of an architecture. name: what the network is called, as in 'LeNet-5'.

    seconds: by the number of a layer, the time that it took; measured: what these times are of, for the footer
    """
    rows, blocks = rows_of(architecture, seconds)
    total, work = architecture.parameter_count, architecture.multiply_adds
    title = _headline(name, rows, total, work)
    layers = plural(sum(bool(row.parameters) for row in rows), "layer")
    footer = f"{name}: {layers} with weights, {total:,} parameters, {many(work)} multiply-adds for one input"
    footer += f"; time: {measured}" if seconds else ""
    with house_style():
        figure = new_figure(title, footer, width=WIDTH, height=1.05 + ROW * len(rows))
        axes = figure.subplots()
        axes.set(xlim=(0, WIDTH - 0.2), ylim=(len(rows) - 0.42, -0.85))
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        heads = [("parameters", GREEN, 0.0, "left"), ("multiply-adds", ORANGE, WIDTH - 0.22 - BARS, "right")]
        if seconds:
            heads.append(("time", PINK, 0.0, "left"))
        for i, (words, colour, right, side) in enumerate(heads):
            down = -0.68 + 0.27 * (i // 2)
            axes.text(BARS + right, down, words, color=readable(colour), fontsize=SMALL, ha=side, va="center")
        largest = max(max(row.shape[1:], default=1) for row in rows)
        for i, row in enumerate(rows):
            _picture(axes, i, row.shape, largest)
            _words(axes, i, row)
            _bars(axes, i, row, rows)
        for first, last in blocks:
            _around(axes, first, last)
    return Chart(
        "architecture",
        figure,
        title,
        f"The layers of {name} from top to bottom. "
        + "; ".join(
            f"{row.words}: {_times(row.shape)}, {plural(row.parameters, 'parameter')}"
            + (f", {duration(row.seconds)}" if row.seconds else "")
            for row in rows
        )
        + ".",
        "A stack of squares is an image with as many channels as it says, a row of boxes is a row of features. Bars "
        "show each layer's share of all parameters and of all multiply-adds of one forward pass"
        + (", and of the time of all layers in a training step." if seconds else ".")
        + (" The line at the left carries the input of a residual block past it." if blocks else ""),
    )


def rows_of(
    architecture: Architecture, seconds: Mapping[str, float] | None = None
) -> tuple[list[Row], list[tuple[int, int]]]:
    """(the rows, the first one being the input; (row before, last row) of each residual block)."""
    rows = [Row("input", architecture.input_shape)]
    starts: dict[str, int] = {}
    blocks = []
    for each in architecture.placed():
        block = each.number.rpartition(".")[0]
        while block and block not in starts:  # the first layer of a block tells where the block begins
            starts[block] = len(rows) - 1
            block = block.rpartition(".")[0]
        if isinstance(each.layer, Residual):
            blocks.append((starts[each.number], len(rows) - 1))
            rows[-1].after.append("+ input")
        elif isinstance(each.layer, Activate | BatchNorm | Dropout | Flatten):
            rows[-1].after.append(_short(each))
            rows[-1].parameters += _count(each)
            rows[-1].shape = each.output_shape if not isinstance(each.layer, Flatten) else rows[-1].shape
        else:
            rows.append(Row(describe(each.layer), each.output_shape, _count(each), multiply_adds_of(each)))
        rows[-1].seconds += (seconds or {}).get(each.number, 0.0)
    return rows, blocks


def _short(each: Placed) -> str:
    layer = each.layer
    if isinstance(layer, Activate):
        return layer.name
    names = {BatchNorm: "batch norm", Flatten: f"flatten to {each.output_shape[0]:,}"}
    return f"dropout {layer.rate:g}" if isinstance(layer, Dropout) else names[type(layer)]


def _count(each: Placed) -> int:
    return sum(math.prod(parameter.shape) for parameter in parameters_of(each))


def _headline(name: str, rows: list[Row], total: int, work: int) -> str:
    """Where most parameters and most work are."""
    heavy, busy = max(rows, key=lambda row: row.parameters), max(rows, key=lambda row: row.work)
    held, done = share(heavy.parameters / max(total, 1)), share(busy.work / max(work, 1))
    holds = f"{name}: {heavy.words} holds {held} of the {total:,} parameters"
    if heavy is busy:
        return f"{holds} and does {done} of the work"
    if busy.work > work / 2:
        return f"{holds}, {busy.words} does {done} of the work"
    images = sum(row.work for row in rows if len(row.shape) == 3)
    return f"{holds}, the convolutions do {share(images / max(work, 1))} of the work"


def _picture(axes: Axes, row: int, shape: Shape, largest: int) -> None:
    """The output: sheets one behind the other for channels, or a row of boxes for features."""
    fill = pale("stage1_pure_python")
    if len(shape) == 1:
        boxes = max(2, round(1.4 * math.log2(shape[0] + 1)))
        size = 0.075
        left = PICTURE - boxes * size / 2
        for i in range(boxes):
            place = left + i * size, row - size / ROW / 2
            axes.add_patch(Rectangle(place, size, size / ROW, facecolor=fill, edgecolor=BLUE, linewidth=0.7))
        return
    channels, height, width = shape
    sheets = 1 + round(1.5 * math.log2(channels))
    high, wide = (max(0.05, SIDE * extent / largest) for extent in (height, width))
    depth = SHEET * (sheets - 1)
    for i in reversed(range(sheets)):
        left = PICTURE - (wide + depth) / 2 + SHEET * i
        top = row - (high - depth * 0.5) / ROW / 2 - SHEET * 0.5 * i / ROW
        axes.add_patch(Rectangle((left, top), wide, high / ROW, facecolor=fill, edgecolor=BLUE, linewidth=0.7))


def _words(axes: Axes, row: int, of: Row) -> None:
    axes.text(WORDS, row - 0.2, of.words, fontsize=SMALL, va="center", color=INK)
    under = " · ".join([_times(of.shape), *of.after])
    axes.text(WORDS, row + 0.16, under, fontsize=SMALLEST, va="center", color=QUIET)


def _bars(axes: Axes, row: int, of: Row, rows: list[Row]) -> None:
    """Bars of the row's shares. Without times there are two, and they are higher."""
    kinds = [
        (of.parameters, sum(each.parameters for each in rows), GREEN, _count_text(of.parameters)),
        (of.work, sum(each.work for each in rows), ORANGE, _count_text(of.work)),
        (of.seconds, sum(each.seconds for each in rows), PINK, duration(of.seconds)),
    ]
    shown = kinds if kinds[2][1] else kinds[:2]
    high = 0.58 / len(shown)
    for i, (value, whole, colour, text) in enumerate(shown):
        if value:
            top, length = -0.26 + high * i, (RIGHT - BARS) * value / whole
            axes.add_patch(Rectangle((BARS, row + top), length, 0.76 * high, facecolor=colour, edgecolor="none"))
            axes.text(BARS + length + 0.05, row + top + 0.4 * high, text, fontsize=SMALLEST, va="center", color=INK)


def _count_text(value: int) -> str:
    return f"{value:,}" if value < 1_000_000 else many(value)


def _around(axes: Axes, first: int, last: int) -> None:
    """The way of a block's input past the block: out at the left, down, and back to its sum."""
    left, right = 0.0, PICTURE - 0.42
    top, bottom = first + 0.12, last - 0.04
    axes.plot([right, left, left, right - 0.03], [top, top, bottom, bottom], color=INK, linewidth=1.1, clip_on=False)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(right + 0.06, bottom), xytext=(right - 0.06, bottom), arrowprops=arrow)


def _times(shape: Shape) -> str:
    return "\u00d7".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]:,}"
