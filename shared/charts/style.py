"""The house style of every figure: colours that colour-blind readers can tell apart, sizes that survive print.

A figure is drawn for a `Look`: on white paper or on a dark screen, as wide as a page or as a phone. Nothing but this
file knows what that does to colours and sizes.

Figures are built from `matplotlib.figure.Figure` directly, without pyplot: pyplot keeps a global list of figures,
looks for a screen, and leaks both into whatever imports it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

STAGE_COLOURS = {
    "stage1_pure_python": "#0072B2",
    "stage2_numpy": "#E69F00",
    "stage3_c": "#009E73",
    "stage4_numba_cuda": "#CC79A7",
}
"""Okabe and Ito's palette (https://jfly.uni-koeln.de/color/): colour-blind readers can tell them apart."""

INK = "#222222"
QUIET = "#595959"
DPI = 200
WIDE, NARROW = 7.2, 3.7
"""Inches: a page's text, and a phone held upright."""

SMALL = 8.5
"""Points of the text beside marks; nothing but the footer is smaller."""

READABLE = 4.5
"""The least contrast of text with its paper (Web Content Accessibility Guidelines 2.2, level AA)."""


@dataclass(frozen=True)
class Look:
    """What a figure is drawn for. dark: a dark screen; narrow: a phone, where panels stand below each other."""

    dark: bool = False
    narrow: bool = False


LIGHT = Look()


class Chart(NamedTuple):
    """A figure and what belongs beside it.

    name: of its files. title: its headline, as one line. alt: what it shows, with the numbers, for who cannot see it.
    caption: how to read it.
    """

    name: str
    figure: Figure
    title: str
    alt: str
    caption: str


def ink(look: Look) -> str:
    """Of text and of lines that matter."""
    return "#ECECEC" if look.dark else INK


def quiet(look: Look) -> str:
    """Of small print and leader lines."""
    return "#B4B8C0" if look.dark else QUIET


def paper(look: Look) -> str:
    """Behind everything."""
    return "#16181D" if look.dark else "#FFFFFF"


def grid(look: Look) -> str:
    """Of lines that only guide the eye."""
    return "#363B45" if look.dark else "#DDDDDD"


def luminance(colour: str) -> float:
    """How light a colour is, in [0, 1], as the guidelines of READABLE define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1, the same colour, to 21, black on white."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """The colour with this share of the other one in it."""
    red, green, blue = (a + share * (b - a) for a, b in zip(to_rgb(colour), to_rgb(other), strict=True))
    return to_hex((red, green, blue))


def readable(colour: str, look: Look) -> str:
    """The colour itself where text can be read in it on this paper, else as much of the ink in it as that takes."""
    shares = (step / 20 for step in range(21))
    tries = (mixed(colour, ink(look), share) for share in shares)
    return next(each for each in tries if contrast(each, paper(look)) >= READABLE)


def patch(look: Look, pad: float = 0.8) -> dict[str, Any]:
    """`bbox` for a text that lies on lines: paper behind it."""
    return {"facecolor": paper(look), "edgecolor": "none", "pad": pad}


@contextmanager
def house_style(look: Look = LIGHT) -> Iterator[None]:
    """Draw and save inside this: matplotlib reads its settings when an artist is made, and again when it is drawn."""
    style: Any = {  # matplotlib types the keys as a long Literal
        "font.family": "DejaVu Sans",  # comes with matplotlib, so the figures look the same everywhere
        "font.size": 9.5,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.labelsize": 9 if look.narrow else 9.5,
        "axes.edgecolor": quiet(look),
        "axes.facecolor": paper(look),
        "axes.labelcolor": ink(look),
        "axes.titlecolor": ink(look),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "figure.facecolor": paper(look),
        "grid.color": grid(look),
        "grid.linewidth": 0.7,
        "text.color": ink(look),
        "xtick.color": ink(look),
        "ytick.color": ink(look),
        "legend.frameon": False,
        "legend.labelcolor": ink(look),
        "hatch.linewidth": 0.8,
        "savefig.facecolor": "auto",
        "svg.hashsalt": "groundup",  # the same figure gives the same file
        "axes.unicode_minus": False,
    }
    with matplotlib.rc_context(style):
        yield


def new_figure(
    title: str, footer: str, look: Look = LIGHT, *, width: float | None = None, height: float = 4.2
) -> Figure:
    """An empty figure with its headline above and the machine and date in small print below, both in as many lines as
    they need.

    width, height: inches; None for as wide as the look is. The height is that of a figure with one line of each;
    further lines are added to it.
    """
    width = NARROW if look.narrow else width or WIDE
    headline = wrapped(title, width - 0.2, size := 11.0 if look.narrow else 12.0, bold=True)
    small = wrapped(footer, width - 0.15, 7.0)
    lines = headline.count("\n") * size * 1.25 + small.count("\n") * 7.0 * 1.25
    figure = Figure(figsize=(width, height + lines / 72), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.07, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    at = 0.07 / width
    figure.suptitle(headline, x=at, ha="left", fontsize=size, fontweight="bold")
    # supxlabel rather than text: the layout engine keeps room for it.
    figure.supxlabel(small, x=at, ha="left", multialignment="left", fontsize=7, color=quiet(look))
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


def save(figure: Figure, stem: Path, look: Look = LIGHT) -> list[Path]:
    """Write the figure as `stem`.png (200 dpi) and `stem`.svg; returns both paths. OSError where that cannot be.

    look: the one that it was drawn for.
    """
    paths = [stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")]
    stem.parent.mkdir(parents=True, exist_ok=True)
    with house_style(look):
        figure.savefig(paths[0], dpi=DPI)
        figure.set_layout_engine("none")  # everything has its place now, and finding it takes longer than drawing
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def svg_text(figure: Figure, look: Look = LIGHT) -> str:
    """The figure as an `<svg>` element to stand among others in one page: its ids are its own."""
    buffer = StringIO()
    with house_style(look):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    own = f"c{zlib.crc32(f'{figure.get_suptitle()} {look}'.encode()):08x}-"
    text = re.sub(r'\bid="', f'id="{own}', text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{own}", text)
