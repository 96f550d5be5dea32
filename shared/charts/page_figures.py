"""The page's figures: each four times, for a light and a dark screen, wide and narrow; the browser takes what fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from shared.bench.document import Results
from shared.charts import book
from shared.charts.page_pictures import compact, data_uri, size
from shared.charts.page_style import NARROW
from shared.charts.style import LIGHT, Chart, Look, svg_text
from shared.markup import Html, tag

_DARK = "(prefers-color-scheme:dark)"
LOOKS = {
    f"{NARROW} and {_DARK}": Look(dark=True, narrow=True),
    NARROW: Look(narrow=True),
    _DARK: Look(dark=True),
    "": LIGHT,
}
"""Where each is shown; a browser takes the first whose condition holds."""


class Picture(NamedTuple):
    """A figure's address, and its width and height in CSS pixels."""

    address: Html
    width: int
    height: int


def figures(results: Results, *, emulated: bool = False, saved: Path | None = None) -> Html:
    """The section of all figures, with a list of them in front. emulated, saved: as in `page.write`."""
    charts = book.draw(results, LIGHT, emulated=emulated)
    heading = tag("h2", "Figures", id="figures")
    if not charts:
        return tag("section", heading, tag("p", "Too little was measured for a figure."))
    drawn = {media: _pictures(results, charts, look, emulated, saved) for media, look in LOOKS.items()}
    links = tag("ul", *(tag("li", tag("a", chart.title, href=f"#{chart.name}")) for chart in charts))
    shown = [_figure(chart, {media: each[chart.name] for media, each in drawn.items()}) for chart in charts]
    return tag("section", heading, tag("nav", links, aria_label="Figures"), *shown)


def _pictures(
    results: Results, light: Sequence[Chart], look: Look, emulated: bool, saved: Path | None
) -> dict[str, Picture]:
    """Name -> picture in this look. light: the charts in the first look, whose names all looks share."""
    if saved is not None and not look.narrow:
        suffix = "-dark.svg" if look.dark else ".svg"
        files = {chart.name: saved / f"{chart.name}{suffix}" for chart in light}
        return {name: _picture(file.read_text(encoding="utf-8")) for name, file in files.items()}
    charts = light if look == LIGHT else book.draw(results, look, emulated=emulated)
    return {chart.name: _picture(svg_text(chart.figure, look)) for chart in charts}


def _picture(svg: str) -> Picture:
    small = compact(svg)
    return Picture(Html(data_uri(small)), *size(small))


def _figure(chart: Chart, looks: Mapping[str, Picture]) -> Html:
    sources = [
        tag("source", media=Html(media), srcset=each.address, width=each.width, height=each.height)
        for media, each in looks.items()
        if media
    ]
    light = looks[""]
    alt = f"{chart.title}. {chart.alt}"
    image = tag("img", src=light.address, alt=alt, width=light.width, height=light.height)
    return tag("figure", tag("picture", *sources, image), tag("figcaption", chart.caption), id=chart.name)
