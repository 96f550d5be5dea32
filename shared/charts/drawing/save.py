"""Writing a figure: as PNG, and as an SVG that is light on a light screen and dark on a dark one.

With dark=True there are two further files for places that are always dark, such as slides.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import Colormap, ListedColormap, to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Annotation, Text

from shared.charts.drawing import svg
from shared.charts.drawing.colours import on_dark
from shared.charts.drawing.style import DPI, Chart, house_style
from shared.machine.atomic import write_together
from shared.terminal import attempt

_COLOURS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def save(figure: Figure, stem: Path, *, dark: bool = False) -> list[Path]:
    """Write `stem`.png and `stem`.svg, whole or not at all; returns the paths. OSError where that cannot be.

    dark: write `stem`-dark.png and `stem`-dark.svg, too. The figure is dark afterwards.
    """
    paths = [stem.with_name(f"{stem.name}{end}") for end in (".png", ".svg", "-dark.png", "-dark.svg")]
    svg.make_printable(figure)
    with house_style():
        drawn = [_png(figure)]
        figure.set_layout_engine("none")  # everything has its place now, and finding it takes longer than drawing
        light = svg.of(figure)
        drawn.append(svg.with_palettes(light).encode())
        if dark:
            darken(figure)
            drawn += [_png(figure), svg.on_dark_screen(light).encode()]
    made = dict(zip(paths, drawn, strict=False))
    write_together(made, to_disk=False)
    return list(made)


def saved(chart: Chart, stem: Path, *, dark: bool = False) -> list[Path]:
    """Save a chart and return its paths. If that fails: no paths, and a sentence on standard error."""
    return attempt(f"the figure {chart.name} was not drawn", lambda: save(chart.figure, stem, dark=dark)) or []


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def darken(figure: Figure) -> None:
    """Give every artist of a figure the colours of a dark screen."""
    for artist in _artists(figure):
        for kind in _COLOURS:
            get, put = (getattr(artist, f"{verb}_{kind}", None) for verb in ("get", "set"))
            if get and put:
                _darken(get(), put)
        if isinstance(artist, AxesImage) and str(artist.get_gid() or "").startswith(svg.INK_IMAGE):
            artist.set_cmap(_inverted(artist.get_cmap()))


def _inverted(colours: Colormap) -> Colormap:
    shades = colours(np.linspace(0, 1, colours.N))
    shades[:, :3] = 1 - shades[:, :3]
    return ListedColormap(shades)


def _artists(figure: Figure) -> list[Artist]:
    found = figure.findobj()
    texts = [each for each in found if isinstance(each, Text)]
    boxes = [text.get_bbox_patch() for text in texts]
    arrows = [text.arrow_patch for text in texts if isinstance(text, Annotation)]
    return found + [each for each in (*boxes, *arrows) if each is not None]


def _darken(colour: Any, put: Any) -> None:
    if isinstance(colour, str) and colour in ("none", "auto", "inherit"):
        return
    rows = to_rgba_array(colour)
    dark = [(*to_rgba_array(on_dark(to_hex(row)))[0][:3], row[3]) for row in rows]
    if rows.size and (rows != dark).any():
        put(dark if len(dark) > 1 else dark[0])
