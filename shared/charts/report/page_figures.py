"""The page's figures: each once, as an SVG element in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shared.charts.drawing import svg
from shared.charts.drawing.style import Chart
from shared.markup import Html, tag


def figures(charts: Sequence[Chart], saved: Path | None = None) -> Html:
    """The section of all figures, with a list of them in front. saved: as in `page.write`."""
    heading = tag("h2", "Figures", id="figures")
    if not charts:
        return tag("section", heading, tag("p", "Too little was measured for a figure."))
    links = tag("ul", *(tag("li", tag("a", chart.title, href=f"#{chart.name}")) for chart in charts))
    shown = [_figure(chart, f"f{number}", saved) for number, chart in enumerate(charts)]
    return tag("section", heading, tag("nav", links, aria_label="Figures"), *shown)


def _figure(chart: Chart, prefix: str, saved: Path | None) -> Html:
    if saved is None:
        drawn = svg.with_palettes(svg.of(chart.figure))
    else:
        drawn = (saved / f"{chart.name}.svg").read_text(encoding="utf-8")
    picture = svg.inline(drawn, prefix, f"{chart.title}. {chart.alt}")
    return tag("figure", picture, tag("figcaption", chart.caption), id=chart.name)
