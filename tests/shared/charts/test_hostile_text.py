"""Names out of a results file are drawn as text: a figure stays XML, and no formula is made of a dollar."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from shared.charts.drawing.save import save
from shared.charts.drawing.style import house_style
from shared.markup import join, tag
from tests.shared.test_text import HOSTILE
from tests.wide import widely

MARKUP = ["<img src=x onerror=alert(1)>", "&amp;<b>", '"><script>alert(1)</script>', "$x^$", "$\\frac{1}$"]


@pytest.mark.parametrize("texts", [*widely([[text] for text in HOSTILE], first=0), HOSTILE, MARKUP])
def test_a_figure_with_hostile_names_is_written_and_stays_xml(tmp_path, texts):
    with house_style():
        figure = Figure()
        axes = figure.subplots()
        for height, text in enumerate(texts):
            axes.plot([height, height], label=text)
            axes.text(0, height, text)
        axes.set_title(texts[0])
        axes.legend()
    for path in save(figure, tmp_path / "figure"):
        assert path.stat().st_size > 0
    names = {element.tag.partition("}")[2] for element in ElementTree.parse(tmp_path / "figure.svg").iter()}
    assert not names & {"img", "script", "b"}


@pytest.mark.parametrize("text", [*HOSTILE, *MARKUP])
def test_a_page_shows_a_hostile_name_as_text(text):
    page = ElementTree.fromstring(tag("div", text, title=text))
    assert list(page) == []
    assert join(text).encode()
