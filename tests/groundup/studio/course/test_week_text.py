"""The weeks' pages as HTML, formulas included."""

from __future__ import annotations

import re
from html import unescape

import pytest

from groundup.studio.course import week_text


@pytest.mark.parametrize("week", range(1, 19))
def test_nothing_of_a_weeks_page_is_lost(week: int) -> None:
    text = (week_text.WEEKS / f"week{week:02}.md").read_text(encoding="utf-8")
    plain = re.sub(
        r"^```\w+$|^```\{\w+\}|^\$ |<!--.*?-->|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)",
        " ",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    html = week_text.page(week)
    assert set(re.findall(r"[A-Za-z_]{4,}", plain)) - set(re.findall(r"[A-Za-z_]{4,}", unescape(html))) == set()
    assert " style=" not in html
    formulas = re.findall(r"<math.*?</math>", html, re.DOTALL)
    assert [formula for formula in formulas if "\\" in formula or "merror" in formula] == []


def test_every_figure_of_a_week_is_there() -> None:
    figures = [name for week in range(1, 19) for name in re.findall(r"figure\?name=([^\"]+)", week_text.page(week))]
    assert len(figures) >= 18
    assert [name for name in figures if week_text.figure(name) is None] == []
    assert week_text.figure("../../pyproject.toml") is None


def test_only_links_into_the_web_are_links() -> None:
    html = week_text.as_html("[a page](../a.md), [the `web`](https://a.b/c), [x](javascript:alert)")
    assert re.findall("<a [^>]*>", html) == ['<a href="https://a.b/c" rel="noopener noreferrer" target="_blank">']
    assert "<em>a page</em>" in html


def test_markup_in_a_page_is_text() -> None:
    html = week_text.as_html("<script>alert(1)</script>\n\n`<b>` and <i onclick=x>\n\n```\n<u>\n```\n")
    assert re.findall(r"<(script|b|i|u)\b", html) == []


def test_formulas_are_mathml() -> None:
    html = week_text.as_html(r"In a line $x^2$, and" "\n\n$$\n\\sqrt{v} \\text{ is right}\n$$\n")
    assert 'display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup>' in html
    assert 'display="block"><mrow><msqrt>' in html
