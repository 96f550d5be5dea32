"""shared.markup: texts are escaped, markup is not, and a palette has a value for each screen."""

from __future__ import annotations

import re

from shared.markup import Html, join, palettes, scrolling, table, tag


def test_markup_escapes_texts_and_keeps_html() -> None:
    assert tag("p", "a < b", Html("<b>c</b>"), class_="x", title='"q"') == (
        '<p class="x" title="&quot;q&quot;">a &lt; b<b>c</b></p>'
    )
    assert join("<", Html("<")) == "&lt;<"


def test_elements_without_content_are_not_closed() -> None:
    assert tag("img", alt="&") == '<img alt="&amp;">'
    assert tag("br") == "<br>"


def test_a_table_names_itself_aligns_numbers_and_scrolls_alone() -> None:
    made = table(["who", "time"], [["C", "<1 s"]], (1,), "Times")
    assert made == scrolling(Html(re.sub(r"^<div[^>]*>|</div>$", "", made)), "Times")
    assert 'aria-label="Times"' in made
    assert '<th scope="row" class="words">C</th><td class="number">&lt;1 s</td>' in made
    assert "<table>" in made
    assert '<table class="wrap">' in table(["a"], [["b"]], (), "t", wrap=True)


def test_a_palette_is_light_unless_a_screen_is_dark() -> None:
    sheet = palettes(".page", {"ink": ("#222", "#eee"), "paper": ("#fff", "#111")})
    light, dark = sheet.split("@media screen and (prefers-color-scheme:dark)")
    assert light == ".page{--ink:#222;--paper:#fff}"
    assert dark == "{.page{--ink:#eee;--paper:#111}}"
