"""The page Benchmarks in a real browser: filtered by keyboard, compared, and refusing a wrong file with its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundup.studio.benchmarks.recorded_results import RECORDED
from shared.bench.records.compare import compare
from shared.bench.records.document import load
from shared.numbers import duration
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways

FULL, QUICK = (RECORDED / name / "results.json" for name in ("bench-2-threads", "bench-quick"))


def said(page: Any, place: str, text: str) -> None:
    """Wait for a text. (A condition in JavaScript would be evaluated in the page, whose policy forbids that.)"""
    page.locator(place, has_text=text).wait_for()


def drawn(page: Any) -> None:
    page.wait_for_selector("#chart .main-svg")
    page.wait_for_selector("#tables tbody tr")


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_file_is_filtered_with_the_keyboard_and_its_numbers_are_the_files(browser_page, width, look):
    page = browser_page("benchmarks", width=width, look=look)
    drawn(page)
    page.focus("#kind")
    page.keyboard.type("Training steps")
    page.keyboard.press("Tab")
    said(page, "#caption", "Training steps")
    page.focus("#dtype")
    page.keyboard.press("Home")
    while page.input_value("#dtype") != "float32":
        page.keyboard.press("ArrowDown")
    shown = page.locator("#tables tbody tr").all_inner_texts()
    rows = [row for row in load(FULL).rows if row.kind == "step" and row.dtype == "float32"]
    assert len(shown) == len(rows)
    for text, row in zip(shown, rows, strict=True):
        assert duration(row.seconds) in text
        assert row.contender in text
    page.focus("#stages input[value=pytorch]")
    page.keyboard.press("Space")
    page.locator("#tables tbody td:nth-child(2)", has_text="PyTorch").first.wait_for(state="detached")
    assert page.locator("#tables tbody tr").count() == sum(row.stage != "pytorch" for row in rows)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_two_files_are_compared(browser_page, width, look):
    page = browser_page("benchmarks", width=width, look=look)
    drawn(page)
    page.select_option("#old", label="bench-quick/results.json")
    said(page, "#about", "measured in both")
    page.wait_for_selector("#tables h2")
    differences = compare(load(QUICK), load(FULL))
    assert f"Of {len(differences)} measured in both" in page.inner_text("#about")
    assert page.locator("#tables tbody tr").count() == len(differences)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_a_dot_says_more_when_it_is_pointed_at(browser_page):
    page = browser_page("benchmarks")
    drawn(page)
    dot = page.locator("#chart .scatterlayer .point").first
    dot.hover(force=True)
    page.wait_for_selector("#chart .hovertext")
    assert "median" in page.locator("#chart .hovertext").first.text_content()


def test_a_wrong_file_is_refused_and_a_name_in_a_file_stays_text(browser_page, tmp_path: Path):
    page = browser_page("benchmarks", refusals=True)
    drawn(page)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    page.set_input_files("#open", wrong)
    page.wait_for_selector("#failed:not([hidden])")
    assert "wrong.json: expected a results file" in page.inner_text("#failed")
    document = json.loads(QUICK.read_text(encoding="utf-8"))
    evil = "<img src=x onerror=alert(1)><b>name</b>"
    document["rows"] = [{**row, "name": evil} for row in document["rows"] if row["kind"] == "ladder"]
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({**document, "command": evil}))
    page.set_input_files("#open", mine)
    said(page, "#about", "onerror")
    said(page, "#tables", "onerror")
    assert page.locator("main img, main b").count() == 0
    assert page.locator("#failed").is_hidden()
