"""The frame of the studio in a real browser."""

from __future__ import annotations

import pytest

from groundup.studio.frame import PAGES
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.studio_server import running


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_the_overview_links_every_page(browser_page, width, look):
    page = browser_page("", width=width, look=look)
    assert page.locator("main .cards a").count() == len(PAGES)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), LOOKS)
@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_every_page_fits_its_screen_and_can_be_read(browser_page, name, width, look):
    page = browser_page(name, width=width, look=look)
    page.wait_for_load_state("load")
    assert page.locator("h1").count() == 1
    assert page.locator("nav [aria-current=page]").inner_text() == next(p.title for p in PAGES if p.name == name)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_every_control_has_a_name_and_every_picture_a_text(browser_page, name):
    page = browser_page(name)
    page.wait_for_load_state("load")
    nameless = page.evaluate(NAMELESS)
    assert nameless == []


@pytest.mark.parametrize("name", ["", *(page.name for page in PAGES)])
def test_a_stopped_studio_is_said_within_two_seconds(chromium, tmp_path, name):
    context = chromium.new_context()
    with running(tmp_path) as server:
        page = context.new_page()
        page.goto(server.opening(name))
        page.wait_for_timeout(1500)
        assert "does not answer" not in page.inner_text("#failed")
    page.locator("#failed", has_text="The studio does not answer").wait_for(timeout=2000)
    context.close()


def test_the_key_leaves_the_address(browser_page):
    page = browser_page("")
    assert "token" not in page.url


def test_tab_reaches_the_skip_link_first_and_it_leads_to_the_page(browser_page):
    page = browser_page("")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


NAMELESS = """() => {
  const named = each => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.title
    || each.getAttribute("alt") || each.labels?.length || (each.matches("a, button") && each.innerText.trim());
  return [...document.querySelectorAll("input, select, textarea, button, a, [role=img], svg, canvas, img")]
    .filter(each => each.checkVisibility() && !each.closest("[aria-hidden=true]"))
    .filter(each => !(each.matches("svg, canvas") && each.parentElement.closest("[role=img], button, a")))
    .filter(each => !named(each)).map(each => each.outerHTML.slice(0, 120));
}"""
