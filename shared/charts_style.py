"""The house style of every figure: colours that colour-blind readers can tell apart, sizes that survive print.

Figures are built from `matplotlib.figure.Figure` directly, without pyplot: pyplot keeps a global list of figures,
looks for a screen, and leaks both into whatever imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

STAGE_COLOURS = {
    "stage1_pure_python": "#0072B2",
    "stage2_numpy": "#E69F00",
    "stage3_c": "#009E73",
    "stage4_numba_cuda": "#CC79A7",
}
"""Okabe and Ito's palette (https://jfly.uni-koeln.de/color/): colour-blind readers can tell them apart."""

INK = "#222222"
QUIET = "#666666"
DPI = 200

_STYLE: Any = {  # matplotlib types the keys as a long Literal
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the figures look the same everywhere
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.hashsalt": "groundup",  # the same figure gives the same file
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this: matplotlib reads its settings when an artist is made, and again when it is drawn."""
    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(title: str, footer: str, *, width: float = 7.2, height: float = 4.2) -> Figure:
    """An empty figure with its headline above and the machine and date in small print below. Sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    # supxlabel rather than text: the layout engine keeps room for it.
    figure.supxlabel(footer, x=0.01, ha="left", fontsize=7, color=QUIET)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as `stem`.png (200 dpi) and `stem`.svg; returns both paths. OSError where that cannot be."""
    paths = [stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")]
    stem.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        figure.savefig(paths[0], dpi=DPI)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def three_digits(value: float) -> str:
    """A number as charts and tables show it, without an exponent: 0.0312, 4.57, 183, 12,400."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"
