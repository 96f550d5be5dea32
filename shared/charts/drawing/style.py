"""The house style of every figure: one width for page and phone, sizes that can be read on both.

Figures are built from `matplotlib.figure.Figure` directly, without pyplot: pyplot keeps a global list of figures,
looks for a screen, and passes both on to every program that imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from shared.charts.drawing.colours import INK, PAPER, QUIET, RULE

DPI = 240
"""Dots per inch of the PNG files."""

WIDTH = 5.2
"""Inches. A page shows a figure somewhat larger, a phone two thirds as large: wider figures could not be read there."""

SMALL = 8.5
"""Points of the text beside marks."""

SMALLEST = 7.5
"""Points of the small print; no text is smaller."""


class Chart(NamedTuple):
    """A figure and what belongs beside it.

    name: of its files. title: its headline, as one line. alt: what it shows, with the numbers, for screen readers.
    caption: how to read it.
    """

    name: str
    figure: Figure
    title: str
    alt: str
    caption: str


def patch(pad: float = 0.8) -> dict[str, Any]:
    """`bbox` for a text that lies on lines: paper behind it."""
    return {"facecolor": PAPER, "edgecolor": "none", "pad": pad}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this: matplotlib reads its settings when an artist is made, and again when it is drawn.

    All settings begin as matplotlib's own defaults, whatever the user's matplotlibrc and program have set.
    """
    style: dict[Any, Any] = {  # matplotlib types the keys as a long Literal
        "font.family": "DejaVu Sans",  # comes with matplotlib, so the figures look the same everywhere
        "font.size": 9.5,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "axes.edgecolor": QUIET,
        "axes.facecolor": PAPER,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "figure.facecolor": PAPER,
        "grid.color": RULE,
        "grid.linewidth": 0.7,
        "text.color": INK,
        "text.parse_math": False,  # a name from a results file may have a $ in it, which is no formula
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.frameon": False,
        "legend.fontsize": SMALL,
        "legend.labelcolor": INK,
        "hatch.linewidth": 0.8,
        "savefig.facecolor": "auto",
        "svg.hashsalt": "groundup",  # the same figure gives the same file
        "axes.unicode_minus": False,
    }
    defaults: dict[Any, Any] = dict(dict.items(matplotlib.rcParamsDefault))
    del defaults["backend"]  # the program's own, with which no figure of ours is drawn
    with matplotlib.rc_context():
        dict.update(matplotlib.rcParams, defaults)
        matplotlib.rcParams.update(style)
        yield


def bare(axes: Axes) -> None:
    """Take the ticks, the grid and the frame from axes that hold a picture."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def new_figure(title: str, footer: str, *, width: float = WIDTH, height: float = 4.2) -> Figure:
    """An empty figure with its headline above and the machine and date in small print below, both in as many lines as
    they need.

    width, height: inches. The height is that of a figure with one line of each; further lines are added to it.
    """
    size = 11.5
    headline = wrapped(title, width - 0.2, size, bold=True)
    small = wrapped(footer, width - 0.15, SMALLEST)
    lines = headline.count("\n") * size * 1.25 + small.count("\n") * SMALLEST * 1.25
    figure = Figure(figsize=(width, height + lines / 72), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    at = 0.07 / width
    figure.suptitle(headline, x=at, ha="left", fontsize=size, fontweight="bold")
    # supxlabel rather than text: the layout engine keeps room for it.
    figure.supxlabel(small, x=at, ha="left", multialignment="left", fontsize=SMALLEST, color=QUIET)
    return figure


def wrapped(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text with line breaks where it would be wider than `width` inches. size: points. Its own breaks stay."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size, bold=bold) > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return "\n".join(lines)


@cache
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Inches of the widest line. size: points."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=size)
    widths = (text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n"))
    return max(widths) / 72
