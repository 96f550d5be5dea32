"""The page Course in a real browser: a verdict at every save, with the matrices drawn, and everything by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundup.course.learner.learners_folder import DEFAULT
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.groundup.course.course_helpers import new_folder, write

FIRST = course().task("1.1")
MINUS = "\N{MINUS SIGN}1"


@pytest.fixture
def learner(tmp_path: Path) -> Workspace:
    return new_folder(tmp_path / DEFAULT)


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_save_is_graded_and_the_difference_drawn(browser_page, learner, width, look):
    page = browser_page("course", width=width, look=look)
    page.locator("#verdict", has_text="Not written yet").wait_for()
    assert "Put your own lines in place of the error" in page.inner_text("#verdict")
    write(
        learner,
        FIRST,
        "    return c",
        "    c[1][0] = float('nan')\n    print('<img src=x onerror=alert(1)>')\n    return c",
    )
    page.locator("#verdict .headline", has_text="Failed").wait_for()
    assert page.locator("#verdict .matrix").count() == 2
    wrong = page.locator("#verdict td.wrong")
    assert wrong.count() == 1
    assert "NaN" in wrong.inner_text()
    assert page.locator("#verdict .matrix").first.locator("td").all_inner_texts() == ["7", MINUS, "16", MINUS]
    assert "<img src=x onerror" in page.inner_text("#verdict div > pre >> nth=-1")
    assert page.locator("#verdict img").count() == 0
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), [(1000, "light"), (390, "dark")])
def test_the_file_is_a_link_and_a_check_tells_its_time(browser_page, learner, width, look):
    page = browser_page("course", width=width, look=look)
    page.locator("#verdict", has_text="Not written yet").wait_for()
    place = page.inner_text("#place")
    assert page.get_attribute("#edit", "href") == f"vscode://file{place}"
    page.click("#again")
    page.locator("#checking", has_text=" s of about ").wait_for()
    assert page.locator("#verdict progress").count() == 1
    page.locator("#verdict", has_text="Not written yet").wait_for()
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_a_check_that_runs_is_named_below_those_that_passed(browser_page, learner):
    write(learner, FIRST, "    return c", "    import time\n    time.sleep(0.3)\n    return c")
    page = browser_page("course")
    page.locator("#checks li", has_text="✓ shape").wait_for()
    assert page.locator("#checks li").last.inner_text().endswith(" runs …")
    first = int(page.inner_text("#checking").split()[0])
    page.locator("#checks li", has_text="✓ values").wait_for()
    assert int(page.inner_text("#checking").split()[0]) >= first  # the clock goes on from check to check
    assert contrast_failures(page) == []


def test_hint_next_and_check_by_keyboard(browser_page, learner):
    page = browser_page("course")
    page.locator("#verdict", has_text="Not written yet").wait_for()
    page.keyboard.press("h")
    page.locator("#hints", has_text="Hint 1 of 3: an idea").wait_for()
    assert " ".join(FIRST.hints[0].split()) in page.inner_text("#hints")
    write(learner, FIRST)
    page.locator("#verdict .headline", has_text="Passed").wait_for()
    assert page.inner_text("#count") == f"1 of {len(course().tasks)} tasks passed"
    assert "✓ passed, 1 hint" in page.inner_text("#list")
    page.keyboard.press("n")
    page.locator("#title", has_text="1.2").wait_for()
    page.locator("#verdict", has_text="Not written yet").wait_for()
    page.keyboard.press("c")
    page.locator("#verdict", has_text="Not written yet").wait_for()
    page.focus("#list button >> text=/^2.3/")
    page.keyboard.press("Enter")
    page.locator("#week", has_text="Week 2").wait_for()
    assert page.locator("#text math").count() > 0


def test_the_solution_is_shown_to_who_asks_twice(browser_page, learner):
    page = browser_page("course", query="&task=1.2")
    page.locator("#verdict", has_text="Not written yet").wait_for()
    page.click("#solution")
    page.locator("#compared button").click()
    page.locator("#compared .plus", has_text="zip(a_row, b, strict=True)").wait_for()


def test_a_detective_exercise_is_answered(browser_page, learner):
    page = browser_page("course", query="&task=9.d")
    page.locator("#verdict", has_text="Not mended yet").wait_for()
    page.locator("#case", has_text="one fault").wait_for()
    page.fill("#case input", "1")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#case", has_text="The line is not right").wait_for()
    assert contrast_failures(page) == []


def test_without_a_folder_the_page_makes_one(browser_page):
    page = browser_page("course")
    page.locator("#none-said", has_text="no course folder here").wait_for()
    page.focus("#start")
    page.keyboard.press("Enter")
    page.locator("#title", has_text="1.1").wait_for()
