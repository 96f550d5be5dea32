"""What the figures of the book have in common: the palette, the empty figure, boxes and words, and how they are saved.

Each figure is an SVG that carries its ground and two palettes: it is light on a light screen and dark on a dark one, in
the book and wherever else it is shown. Wide enough for a page, with letters that can still be read on a phone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Outline

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))


PALETTE = {
    "ink": ("#222222", "#e8e8e6"),
    "quiet": ("#5c5c5c", "#a8a8a4"),
    "rule": ("#d0d0ce", "#484846"),
    "ground": ("#ffffff", "#191918"),
    "panel": ("#f1f1ee", "#262625"),
    "blue": ("#0072b2", "#56b4e9"),
    "sky": ("#cfe4f2", "#1d3a4a"),
    "orange": ("#b35900", "#f0a03c"),
    "sand": ("#f8ddaa", "#5e481c"),
    "green": ("#00684b", "#4fd0a5"),
    "mint": ("#c9ebdf", "#17443a"),
    "pink": ("#a8457f", "#dd9cc0"),
}
"""Name -> what it is on a light screen and on a dark one. Okabe and Ito's colours, with text dark or light enough."""


INK, QUIET, RULE, GROUND, PANEL = (PALETTE[name][0] for name in ("ink", "quiet", "rule", "ground", "panel"))


BLUE, SKY, ORANGE, SAND = (PALETTE[name][0] for name in ("blue", "sky", "orange", "sand"))


GREEN, MINT, PINK = (PALETTE[name][0] for name in ("green", "mint", "pink"))
"""What figures are drawn with; `save` puts both palettes behind the names."""


WIDTH = 5.6
"""Inches. On a phone a figure shrinks to some 3.6, so text is drawn at 9 points or more."""


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure in the house style. Sizes in inches."""
    drawn = Figure(figsize=(width, height), facecolor=GROUND)
    FigureCanvasSVG(drawn)
    return drawn


def canvas(height: float, width: float = WIDTH) -> tuple[Figure, Any]:
    """A figure with one field from edge to edge, measured in inches from the lower left corner."""
    drawn = figure(height, width)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    return drawn, axes


def save(drawn: Figure, name: str, folder: Path = HERE) -> Path:
    """Write NAME.svg with both palettes in it. The same figure gives the same file, byte for byte."""
    text = StringIO()
    settings = {"svg.hashsalt": name, "svg.fonttype": "path", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(settings):
        drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, facecolor=GROUND)
    svg = text.getvalue()
    for variable, (light, _) in PALETTE.items():
        svg = re.sub(light, f"var(--{variable})", svg, flags=re.IGNORECASE)
    left = sorted(set(re.findall(r"#[0-9a-f]{6}(?=[;\"])", svg)))
    if left:
        raise ValueError(f"{name}: drawn in {', '.join(left)}, which PALETTE does not have")
    light, dark = (";".join(f"--{variable}:{both[look]}" for variable, both in PALETTE.items()) for look in range(2))
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    svg = re.sub(r"(<svg[^>]*>)", rf"\1{style}", svg, count=1)
    path = folder / f"{name}.svg"
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    return path


def box(axes: Any, x: float, y: float, width: float, height: float, fill: str = PANEL, edge: str = RULE) -> None:
    """A rectangle with its lower left corner at (x, y)."""
    style = "round,pad=0,rounding_size=0.05"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, edgecolor=edge, linewidth=1))


def text(axes: Any, x: float, y: float, words: str, colour: str = INK, size: float = 10, **more: Any) -> None:
    """Words, in the middle of (x, y) unless told otherwise."""
    axes.text(x, y, words, **{"color": colour, "fontsize": size, "ha": "center", "va": "center", **more})


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    """From one place to another."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def minus(value: float) -> str:
    """A number with as many digits as it has, four at most, and a true minus sign."""
    return f"{value:.4f}".rstrip("0").rstrip(".").replace("-", "\u2212")


def tidy(axes: Any) -> None:
    """Axes in the house style: two lines, quiet ticks."""
    axes.tick_params(colors=QUIET, labelsize=9, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(QUIET)


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
