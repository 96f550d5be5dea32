"""The page Kernel in a real browser: walked through with the keyboard alone, its numbers compared with NumPy's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways, until
from tests.groundup.studio.kernel.test_routes import MARKUP, SCRIPT

WAIT = 60_000
"""Milliseconds for what runs a kernel, on a machine that is busy with other tests."""

NUMBER = r"\d+(?:\.\d+)?"
MINUS = "\N{MINUS SIGN}"


@pytest.fixture
def opened(browser_page: Any) -> Any:
    def open_page(**options: Any) -> Any:
        page = browser_page("kernel", **options)
        page.wait_for_selector("#walk:not([hidden])", timeout=WAIT)
        page.locator("#source .note").first.wait_for(timeout=WAIT)  # the lens's verdicts
        return page

    return open_page


def product() -> np.ndarray[Any, Any]:
    """What tiled_16 computes when the page opens."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    return a.astype(np.float64) @ b


def number_after(text: str, name: str) -> float:
    found = re.search(re.escape(name) + rf" = ({MINUS}?)({NUMBER})", text)
    assert found, text
    return float(found[2]) * (-1 if found[1] else 1)


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_walk_with_the_keyboard_ends_at_the_products_numbers(opened: Any, width: int, look: str) -> None:
    page = opened(width=width, look=look)
    assert "Step 1 of" in page.inner_text("#now")
    page.keyboard.press("b")
    assert "every thread waits" in page.inner_text("#now")
    assert "syncthreads" in page.inner_text("#source .now .text")
    assert "256 of 256 elements are written" in page.inner_text("#shared")
    for _ in range(3):  # the loop, its first line, the products
        page.keyboard.press("ArrowRight")
    assert "tile_a[y, k]" in page.inner_text("#requests")
    assert page.locator("#requests .own").count() >= 4  # the thread's lane and its word, in both requests
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#thread-number") == "1"
    page.keyboard.press("End")
    said = page.inner_text("#now")
    assert number_after(said, "c[0, 1]") == pytest.approx(product()[0, 1], rel=1e-5)
    page.keyboard.press("Home")
    assert "Step 1 of" in page.inner_text("#now")
    # Another warp: thread 40 is (8, 2).
    page.fill("#thread-number", "40")
    page.keyboard.press("Enter")
    page.locator("#requests h2", has_text="warp 1").wait_for(timeout=WAIT)
    page.locator("#title").click()
    page.keyboard.press("End")
    assert number_after(page.inner_text("#now"), "c[2, 8]") == pytest.approx(product()[2, 8], rel=1e-5)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), [LOOKS[0], LOOKS[3]])
def test_a_barrier_is_taken_away_and_put_back_with_the_keyboard(opened: Any, width: int, look: str) -> None:
    page = opened(width=width, look=look)
    page.locator("#source button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#race:not([hidden])", timeout=WAIT)
    assert page.evaluate("document.activeElement.textContent") == "The wrong read"
    text = page.inner_text("#race")
    assert "runs ahead of the others" in text
    end = re.search(rf"In the end c\[(\d+), (\d+)\] is (-?{NUMBER}); with the barrier it is (-?{NUMBER})", text)
    assert end, text
    right = product()[int(end[1]), int(end[2])]
    assert float(end[4]) == pytest.approx(right, rel=1e-4)
    assert abs(float(end[3]) - right) > 1e-3
    assert "should give" in page.inner_text("#now")
    assert "wrong result" in page.inner_text("#global")
    page.locator("#race button", has_text="came too late").focus()
    page.keyboard.press("Enter")
    assert "in this step" in page.inner_text("#shared")  # another warp writes
    assert "came too late" in page.evaluate("document.activeElement.textContent")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
    page.locator("#race button", has_text="Put the barrier back").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#race", state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Take this barrier away"
    page.locator("#title").click()
    page.keyboard.press("End")
    assert number_after(page.inner_text("#now"), "c[0, 0]") == pytest.approx(product()[0, 0], rel=1e-5)


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (1000, "dark"), (390, "light")])
def test_memory_stands_by_the_code_and_a_reload_keeps_the_walk(opened: Any, width: int, look: str) -> None:
    page = opened(width=width, look=look)
    page.keyboard.press("a")
    assert page.locator("#requests .picture svg").count() >= 1
    memory, code = (page.locator(place).bounding_box() for place in ("#shared", "#source"))
    assert memory["y"] < code["y"] + code["height"]
    assert "Thread (0, 0) does not touch it in this step" in page.inner_text("#global")
    sizes = page.locator("#requests svg text").evaluate_all(
        "nodes => nodes.map(node => node.getBBox().height * node.getCTM().a)"
    )
    assert min(sizes) > 9
    page.select_option("#speed", "30")
    page.focus("#play")
    page.keyboard.press("Enter")
    until(page, "() => Number(document.querySelector('#slider').value) > 30")
    page.keyboard.press("Enter")
    page.fill("#thread-number", "40")
    page.keyboard.press("Enter")
    page.locator("#requests h2", has_text="warp 1").wait_for(timeout=WAIT)
    said = page.inner_text("#now")
    page.reload()
    page.locator("#requests h2", has_text="warp 1").wait_for(timeout=WAIT)
    until(page, "said => document.querySelector('#now').innerText === said", said)
    assert page.input_value("#thread-number") == "40"

    page.locator("#source .note").first.wait_for(timeout=WAIT)
    page.locator("#source button").first.click()
    assert page.locator("#source button", has_text="Looking for an order").count() == 1
    page.wait_for_selector("#race:not([hidden])", timeout=WAIT)
    top = page.locator("#race").bounding_box()["y"]
    assert 0 <= top < 900
    said = page.inner_text("#now")
    page.reload()
    page.wait_for_selector("#race:not([hidden])", timeout=WAIT)
    until(page, "said => document.querySelector('#now').innerText === said", said)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_a_scripts_names_and_output_are_texts(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "<img src=x onerror=alert(1)>.py").write_text(SCRIPT)
    page = opened()
    page.on("dialog", lambda dialog: pytest.fail("a script has run"))
    page.select_option("#choice", label="<img src=x onerror=alert(1)>.py: scale")
    page.focus("#open")
    page.keyboard.press("Enter")
    page.locator("#title", has_text="scale").wait_for(timeout=WAIT)
    assert MARKUP in page.inner_text("#source")
    page.locator("#further summary").click()
    page.locator("#found pre", has_text="is printed").wait_for(timeout=WAIT)
    assert page.locator("main img").count() == 0
    page.fill("#block-number", "1")
    page.keyboard.press("Enter")
    page.locator("#maps", has_text="Block 1 of 2").wait_for(timeout=WAIT)
    page.locator("#title").click()
    page.keyboard.press("End")
    assert "8 of 32 threads" in page.inner_text("#now")
    assert number_after(page.inner_text("#now"), "out[32]") == 96


def test_a_kernel_that_cannot_be_opened_is_a_sentence_and_the_page_goes_on(browser_page: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT.replace("program()\n", "raise ValueError('<b>no</b>')\n"))
    page = browser_page("kernel", refusals=True)
    page.wait_for_selector("#walk:not([hidden])", timeout=WAIT)
    page.select_option("#choice", label="mine.py: scale")
    page.click("#open")
    page.locator("#failed", has_text="<b>no</b>").wait_for(timeout=WAIT)
    page.locator("#title").click()
    page.keyboard.press("ArrowRight")
    assert "Step 2 of" in page.inner_text("#now")


def test_what_is_drawn_is_what_the_lens_counts_and_the_way_back_is_the_way_there(opened: Any) -> None:
    page = opened()
    found = page.evaluate(COMPARED)
    assert found["wrong"] == []
    assert found["requests"] > 100


COMPARED = """async () => {
  const { post } = await import("/static/common/api.js");
  const { Walk } = await import("/static/kernel/walk.js");
  const { banksOf, sectorsOf } = await import("/static/kernel/requests.js");
  const { session } = await post("/api/kernel/begin");
  const wrong = [];
  let requests = 0;
  for (const name of ["tiled_16:tn", "naive", "sums.columns_by_atomics"]) {
    const target = { kind: "project", name, size: [20, 21, 19] };
    const { walk: data } = await post("/api/kernel/open", { session, target });
    const walk = new Walk(data);
    const seen = (step) => JSON.stringify(
      [...walk.memory(step)].map(([array, { values, by }]) => [array, [...values], [...by]]));
    const there = [];
    for (let step = 0; step < walk.length; step++) {
      there.push(seen(step));
      for (const access of walk.accesses(step)) {
        const drawn = access.array.space === "global" ? sectorsOf(access).length
          : Math.max(...banksOf(access).map((bank) => bank.length));
        requests += 1;
        const counted = access.cost[0];
        if (drawn !== counted) wrong.push(`${name} step ${step} ${access.text}: ${drawn}, not ${counted}`);
      }
    }
    for (let step = walk.length - 1; step >= 0; step -= 7) {
      if (seen(step) !== there[step]) wrong.push(`${name} step ${step}: other values on the way back`);
    }
  }
  return { wrong, requests };
}"""
