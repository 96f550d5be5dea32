"""The page Benchmarks in a real browser: a race beside the recorded one, works chosen by keyboard, a wrong file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundup.studio.benchmarks.desk import RECORDS, Desk
from shared.bench.records.compare import compare
from shared.bench.records.document import load
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways

FULL, QUICK, RACE = (RECORDS / name / "results.json" for name in ("bench-2-threads", "bench-quick", "race-2-cores"))


def own(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "results.json").write_bytes(text)


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_the_own_race_stands_beside_the_recorded_one_of_the_same_work(browser_page, tmp_path, width, look):
    own(tmp_path, RACE.read_bytes())
    page = browser_page("benchmarks", width=width, look=look)
    page.wait_for_selector("#bars i")
    assert page.inner_text("#work-title") == "An epoch of training: 784-32-10, batch 32, mnist-subset, float64"
    yours, recorded = page.locator("#sides li").all_inner_texts()
    assert yours.startswith("Yours: AMD EPYC · 2 cores")
    assert recorded.startswith("Recorded: AMD EPYC · 2 cores")
    assert page.locator("#bars dt").all_inner_texts()[0] == "stage 1: pure Python"
    widths = page.locator("#bars i").evaluate_all("found => found.map(each => each.getBoundingClientRect().width)")
    assert len(widths) == 6  # three stages of each; the emulator has a time and no bar
    assert widths[0] < widths[2] < widths[4]
    assert widths[::2] == pytest.approx(widths[1::2])
    assert page.locator("#bars dd").last.inner_text().split() == ["Recorded", "401", "ms"]
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_another_work_is_chosen_by_keyboard_and_the_table_is_the_comparison(browser_page, tmp_path):
    own(tmp_path, FULL.read_bytes())
    page = browser_page("benchmarks")
    page.wait_for_selector("#bars i")
    off = page.locator("#other option").evaluate_all("all => all.filter(each => each.disabled).map(each => each.text)")
    assert off == ["runs/mine/results.json"]  # a file is not offered beside itself
    page.select_option("#other", label="bench-quick/results.json")
    page.locator("#sides li", has_text="1 thread").last.wait_for()
    differences = compare(load(QUICK), load(FULL))
    assert page.locator("#table tbody tr").count() == len(differences)
    assert page.locator("#table tbody tr").first.inner_text().startswith(differences[0].verdict)
    page.focus("#work")
    page.keyboard.type("784-128-10, batch 64, float32")
    page.keyboard.press("Tab")
    page.locator("#work-title", has_text="A training step: 784-128-10, batch 64, float32").wait_for()
    assert "stage 3: C, one_call" in page.locator("#bars dt").all_inner_texts()
    assert "as fast as stage 2: NumPy" in page.inner_text("#caption")


def test_without_an_own_run_the_command_stands_above_the_recorded_one(browser_page):
    page = browser_page("benchmarks")
    page.wait_for_selector("#bars i")
    assert page.inner_text("#none pre") == "groundup race"
    assert page.locator("#sides li").count() == 1
    assert page.locator("#comparison").is_hidden()
    with page.expect_popup() as popup:
        page.focus("#sides a")
        page.keyboard.press("Enter")
    popup.value.wait_for_selector("h1")
    assert popup.value.title() == "groundup race, 2026-11-22"
    assert popup.value.locator("figure svg").first.bounding_box()["width"] > 300


def test_without_any_file_two_sentences_say_what_to_do(browser_page, monkeypatch):
    monkeypatch.setattr(Desk, "_recorded", lambda self: [])
    page = browser_page("benchmarks")
    page.locator("#undocumented", has_text="docs/benchmarks of its repository").wait_for()
    assert page.locator("#none").is_visible()
    assert page.locator("#shown").is_hidden()
    assert page.locator("#failed").is_hidden()


def test_a_wrong_file_is_refused_in_a_sentence_and_names_stay_text(browser_page, tmp_path):
    evil = "<img src=x onerror=alert(1)><b>name</b>"
    document = json.loads(FULL.read_bytes())
    document["rows"] = [{**row, "name": evil} for row in document["rows"] if row["kind"] == "step"]
    own(tmp_path, json.dumps(document).encode())
    page = browser_page("benchmarks", refusals=True)
    page.locator("#work-title", has_text="onerror").wait_for()
    assert page.locator("main img, main b", has_text="name").count() == 0
    (tmp_path / "runs" / "mine" / "results.json").write_text('{"kind": "groundup bench", "schema": 2}')
    page.reload()
    page.wait_for_selector("#failed:not([hidden])")
    assert "runs/mine/results.json has version 2 of the format and this reads 3" in page.inner_text("#failed")
    page.locator("#sides li", has_text="Recorded").wait_for()


def test_an_answer_that_comes_too_late_is_not_shown(browser_page):
    page = browser_page("benchmarks")
    page.wait_for_selector("#bars i")
    slow = page.locator("#mine option", has_text="bench-2-threads").get_attribute("value")
    page.route(f"**/shown?mine={slow}*", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.select_option("#mine", slow)
    page.select_option("#mine", label="integers/results.json")
    page.locator("#work-title", has_text="A product in eight bits").wait_for()
    page.wait_for_timeout(2500)
    assert "A product in eight bits" in page.inner_text("#work-title")
    assert page.locator("#mine option:checked").inner_text() == "integers/results.json"
