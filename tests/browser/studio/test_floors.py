"""The page Floors in a real browser: a function on four columns, or in tabs on a phone, by keyboard alone; and run."""

from __future__ import annotations

import math

import pytest

from groundup.studio.floors.columns import function
from shared.contract import STAGES, load_stage
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways, until


def opened(browser_page, room, name, **how):
    page = browser_page("floors", query=f"&room={room}&function={name}", **how)
    shows(page, name)
    return page


def shows(page, name):
    page.wait_for_selector(f"#name:has-text('{name}.')")


def numbers(page, stage):
    """The results of a stage, in the table of a run."""
    return page.locator(f"#numbers tbody tr:not(:last-child) td:nth-child({stage + 1})").all_inner_texts()


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_function_is_chosen_with_the_keyboard_and_run(browser_page, width, look):
    page = opened(browser_page, "activations", "relu", width=width, look=look)
    page.focus("#room")
    page.keyboard.type("loss")
    page.keyboard.press("Tab")
    shows(page, "mean_squared_error")
    page.keyboard.type("hinge")
    page.keyboard.press("Tab")
    shows(page, "hinge")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#verdict:has-text('4 stages')", timeout=60_000)
    assert "4 stages give equal numbers" in page.inner_text("#verdict") or "stages agree" in page.inner_text("#verdict")
    first = numbers(page, 1)
    assert len(first) == 1
    assert all(numbers(page, stage) == first for stage in (2, 3, 4))
    assert "emulated: no GPU's time" in page.inner_text("#numbers tr:last-child td:last-child")
    assert page.locator("#speeds .bars li").count() == 3
    (group,) = function("losses", "hinge")["speeds"]
    for bar in group["bars"]:
        assert bar["time"] in page.inner_text("#speeds")
    assert "Stage 4 is not among them" in page.inner_text("#speeds")
    assert page.locator("#columns > .cell:visible").count() == (4 if width >= 1000 else 1)
    assert page.locator("#tabs").is_visible() == (width < 1000)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_matching_lines_stand_at_the_same_height_and_changes_are_marked(browser_page):
    page = opened(browser_page, "activations", "softmax")
    tops = "each => [...each.querySelectorAll(':scope > code')].map(line => line.getBoundingClientRect().top)"
    heights = [page.locator(f"#column-{k}").evaluate(tops) for k in range(4)]
    assert heights[0] == heights[1] == heights[2] == heights[3]
    marks = page.locator("#column-1 .sign").evaluate_all("all => all.map(each => [each.textContent, each.ariaLabel])")
    assert ["+", "new"] in marks
    assert ["~", "changed"] in marks
    assert ["\u2212", "gone"] in marks
    assert page.locator("#column-0 .sign").count() == 0
    assert "softmax in C" in page.inner_text("#column-2 .head >> nth=0")
    assert "You call softmax, which leads to what stands above" in page.inner_text("#column-2 .head >> nth=1")
    definition = "def softmax", "def softmax", "NAME(softmax)", "def softmax_warp"
    places = [page.locator(f"#column-{k} > code", has_text=definition[k]).first.bounding_box()["y"] for k in range(4)]
    assert len(set(places)) == 1
    page.click("#column-0 summary:has-text('Its docstring')")
    assert "keeps exp from overflowing" in page.inner_text("#column-0")


def test_arrow_keys_choose_the_next_function_and_a_reload_keeps_it(browser_page):
    page = opened(browser_page, "activations", "softmax_backward")
    page.keyboard.press("ArrowRight")
    shows(page, "mean_squared_error")
    assert page.input_value("#room") == "losses"
    page.keyboard.press("ArrowRight")
    shows(page, "mean_squared_error_backward")
    page.keyboard.press("ArrowLeft")
    shows(page, "mean_squared_error")
    page.reload()
    shows(page, "mean_squared_error")
    page.click("#previous")
    shows(page, "softmax_backward")
    assert "room=activations&function=softmax_backward" in page.url


def test_on_a_phone_the_stages_are_tabs(browser_page):
    page = opened(browser_page, "activations", "relu", width=390)
    assert page.locator("#tabs [role=tab]").count() == 4
    page.focus("#tabs [aria-selected=true]")
    for key, chosen in (("ArrowRight", 1), ("End", 3), ("ArrowRight", 0), ("ArrowLeft", 3), ("Home", 0)):
        page.keyboard.press(key)
        (panel,) = page.locator("#columns > [role=tabpanel]:visible").all()
        assert panel.get_attribute("data-floor") == STAGES[chosen]
        assert page.evaluate("document.activeElement.getAttribute('aria-controls')") == f"column-{chosen}"
        assert page.evaluate("document.activeElement.tabIndex") == 0
    page.keyboard.press("End")
    page.click("#next")
    shows(page, "relu_backward")
    assert page.locator("#columns > .cell:visible").get_attribute("data-floor") == STAGES[3]
    page.set_viewport_size({"width": 1280, "height": 900})
    until(page, "() => document.querySelectorAll('#columns > .cell:not([hidden])').length === 4")


def test_a_ladder_is_climbed_rung_by_rung(browser_page):
    page = opened(browser_page, "matmul", "matmul ladder")
    rung = page.get_by_label("Rung of Stage 3: C")
    assert rung.input_value() == "ijk"
    rung.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#column-2 .head:has-text('matmul_ikj')")
    assert page.evaluate("document.activeElement.ariaLabel") == "Rung of Stage 3: C"
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('4 stages')", timeout=60_000)
    charts = page.locator("#speeds figure")
    assert charts.count() == 2
    assert "NVIDIA" in charts.nth(1).inner_text()
    assert "Stage 4" not in charts.nth(0).inner_text()
    page.reload()
    page.wait_for_selector("#column-2 .head:has-text('matmul_ikj')")


def test_other_numbers_are_other_numbers(browser_page):
    page = opened(browser_page, "dense", "Dense.forward")
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('4 stages')", timeout=60_000)
    before = page.inner_text("#numbers pre >> nth=0"), numbers(page, 2)
    page.click("#other")
    until(page, "before => document.querySelector('#numbers pre').innerText !== before", before[0])
    assert numbers(page, 2) != before[1]
    assert page.inner_text("#numbers pre >> nth=0").startswith("x (2, 3)")
    page.focus("#other")
    page.keyboard.press("ArrowRight")
    shows(page, "Dense.backward")
    assert page.evaluate("document.activeElement.id") == "run"  # the button that had the focus is hidden again


def test_arrow_keys_scroll_a_table_that_is_wider_than_the_screen(browser_page):
    page = opened(browser_page, "activations", "softmax", width=320)
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('4 stages')", timeout=60_000)
    page.focus("#numbers .scroll")
    page.keyboard.press("ArrowRight")
    until(page, "() => document.querySelector('#numbers .scroll').scrollLeft > 0")
    shows(page, "softmax")


@pytest.mark.parametrize("query", ["room=constructor", "room=losses&function=toString"])
def test_an_address_of_what_there_is_not_shows_what_there_is(browser_page, query):
    page = browser_page("floors", query=f"&{query}")
    page.wait_for_selector("#name:has-text('.')")
    assert page.is_hidden("#failed")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 0.5])
def test_a_stage_that_gives_no_number_or_a_wrong_one_is_named(browser_page, monkeypatch, wrong):
    stage = load_stage("stage1_pure_python")
    right = stage.activations.relu
    monkeypatch.setattr(stage.activations, "relu", lambda z: [[wrong, *right(z)[0][1:]], *right(z)[1:]])
    page = opened(browser_page, "activations", "relu")
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('A stage is wrong: stage 1: pure Python is')", timeout=60_000)
    first = numbers(page, 1)[0]
    assert first == ("0.5" if wrong == 0.5 else "no number")


def test_a_stage_that_raises_says_so_and_the_others_are_compared(browser_page, monkeypatch):
    def relu(z):
        raise IndexError("list index out of range")

    monkeypatch.setattr(load_stage("stage1_pure_python").activations, "relu", relu)
    page = opened(browser_page, "activations", "relu")
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('3 stages give equal numbers')", timeout=60_000)
    assert "IndexError: list index out of range" in page.inner_text("#numbers tr:last-child td >> nth=0")


def test_a_run_that_is_asked_for_while_the_function_loads_stays(browser_page):
    page = opened(browser_page, "activations", "relu")
    page.route("**/api/floors/function?*", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.click("#next")
    page.click("#run")
    shows(page, "relu_backward")
    page.wait_for_selector("#verdict:has-text('stages')", timeout=60_000)
    assert "grad_output" in page.inner_text("#numbers")
    page.wait_for_timeout(500)
    assert page.is_visible("#ran")
