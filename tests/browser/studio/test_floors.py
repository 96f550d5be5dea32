"""The page Floors in a real browser: four stages side by side, one at a time on a phone, by keyboard alone."""

from __future__ import annotations

import pytest

from groundup.studio.floors.recorded_speeds import recorded_times
from shared.contract import STAGES
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_room_is_chosen_with_the_keyboard_and_its_speeds_are_the_recorded_ones(browser_page, width, look):
    page = browser_page("floors", width=width, look=look)
    page.locator("#rows .cell").first.wait_for()
    page.focus("#room")
    page.keyboard.type("acti")
    page.keyboard.press("Tab")
    page.locator("#rows h2", has_text="softmax_backward").wait_for()
    shown = STAGES if width > 600 else STAGES[:1]
    row = page.locator("#rows section").first
    assert [row.locator(".cell").nth(at).get_attribute("data-floor") for at in range(len(shown))] == list(shown)
    for stage in shown:
        cell = row.locator(f".cell[data-floor={stage}]")
        for text in recorded_times(stage, "op", "identity", "forward"):
            assert text in cell.inner_text()
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_on_a_phone_the_switch_changes_the_floor(browser_page):
    page = browser_page("floors", width=390, query="&room=activations")
    page.locator("#rows .cell").first.wait_for()
    page.focus("#floors button:nth-child(3)")
    page.keyboard.press("Enter")
    assert {each.get_attribute("data-floor") for each in page.locator("#rows .cell").all()} == {STAGES[2]}
    assert page.locator("#floors button[aria-pressed=true]").count() == 1
    assert "void NAME(relu)" in page.locator("#rows").text_content()


def test_a_floor_can_be_put_away_but_not_the_last(browser_page):
    page = browser_page("floors", query="&room=dense")
    page.locator("#rows .cell").first.wait_for()
    for _ in range(2):
        for at in range(1, 5):
            page.click(f"#floors button:nth-child({at})")
            assert page.locator("#floors button[aria-pressed=true]").count() >= 1
    assert page.locator("#rows section").first.locator(".cell").count() >= 1
