"""The frame of the pages, and the style sheet's agreement with the printed figures."""

from __future__ import annotations

import re

import pytest

from groundup.studio.app import static_files
from groundup.studio.frame import HERE, PAGES, document, index, page_named
from shared.charts.drawing.colours import CONTENDERS, PALETTE, contrast, on_dark
from shared.contract import STAGES

SHEET = (HERE / "static" / "common" / "studio.css").read_text(encoding="utf-8")


def variables(block):
    return dict(re.findall(r"--([\w-]+): (#[0-9A-F]{6});", block))


LIGHT = variables(SHEET.split("@media")[0])
DARK = {**LIGHT, **variables(SHEET.split("@media")[1])}


def test_the_colours_are_those_of_the_figures():
    for name in ("ink", "quiet", "rule", "paper", "blue"):
        assert (LIGHT[name], DARK[name]) == PALETTE[name]
    for number, stage in enumerate(STAGES, 1):
        assert (LIGHT[f"stage{number}"], DARK[f"stage{number}"]) == (CONTENDERS[stage], on_dark(CONTENDERS[stage]))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "quiet", "accent", "good", "bad"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_can_be_read_on_both_grounds(colours, name, ground):
    assert contrast(colours[name], colours[ground]) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_edges_of_controls_can_be_seen(colours):
    assert contrast(colours["edge"], colours["paper"]) >= 3
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_brings_no_script_style_or_handler_of_its_own(page):
    fragment = (page.static / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|style|link|iframe|base)\b|\bon\w+=|\bstyle=|javascript:", fragment, re.IGNORECASE)
    assert fragment.count("<h1") == 1
    assert f'src="/static/{page.name}/page.js"' in document(page)


def test_no_script_builds_markup_or_code_out_of_text():
    scripts = {name: path for name, path in static_files().items() if name.endswith(".js") and "plotly" not in name}
    assert scripts
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.srcdoc")
    found = {name: forbidden.findall(path.read_text(encoding="utf-8")) for name, path in scripts.items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_a_script_is_read_in_one_sitting():
    scripts = {name: path for name, path in static_files().items() if name.endswith(".js") and "plotly" not in name}
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in scripts.items()}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_the_overview_links_every_page():
    assert all(f'href="/{page.name}"' in index() for page in PAGES)


def test_an_unknown_page_is_an_error_that_names_all():
    with pytest.raises(ValueError, match=r"studio: there is no page 'digit'; the pages are "):
        page_named("digit")
