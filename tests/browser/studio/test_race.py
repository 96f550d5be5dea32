"""The page Race in a real browser: four lanes move and read a drawing at once; exported, they do without a server."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from groundup.studio.race import embedded
from groundup.studio.race.racing import Lane
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.machine.processes import ROOT
from tests.browser.studio import test_export
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways, until
from tests.browser.studio.test_digits import THREE, draw

opened_file = test_export.opened_file
WIDTHS = [*LOOKS, (1000, "light"), (1000, "dark")]
FRAME = 840
"""The height of the frame on the book's front page, for which an exported race is made."""
FASTER = "() => [...document.querySelectorAll('.lane b')].some(each => parseFloat(each.textContent.slice(3)) > 20)"
MOVES = """async () => {
  const pictures = () => document.querySelector(".lane canvas").toDataURL();
  const first = pictures();
  for (let i = 0; i < 100 && pictures() === first; i++) await new Promise(done => setTimeout(done, 50));
  return pictures() !== first;
}"""
PAINTED = """async during => {
  const [began, first] = [performance.now(), Number(document.body.dataset.painted)];
  await new Promise(done => setTimeout(done, during));
  return (Number(document.body.dataset.painted) - first) / (performance.now() - began) * 1000;
}"""
ASKED = """async ([at, images]) => {
  const { answer } = await import("race/replay.js");
  const { embedded } = await import("common/embedded.js");
  return images.map(pixels => answer(embedded().networks[at], pixels));
}"""


def opened(browser_page, **how):
    """The page with all lanes ready and the first digit read by all of them."""
    page = browser_page("race", **how)
    page.wait_for_selector(".lane:nth-child(4) p:has-text('A guess')", timeout=120_000)
    page.wait_for_selector("#news:has-text('being prepared')", state="detached", timeout=60_000)
    return page


def answers(page):
    return [text.split(":")[0] for text in page.locator(".lane p").all_inner_texts() if text.startswith("It is")]


@pytest.mark.parametrize(("width", "look"), WIDTHS)
def test_all_lanes_move_and_read_what_is_drawn_meanwhile(browser_page, width, look):
    page = opened(browser_page, width=width, look=look)
    page.get_by_role("button", name="Start").click()
    until(page, FASTER)
    assert page.evaluate(MOVES)
    page.get_by_role("button", name="Take a 7").click()
    until(page, "() => document.querySelector('.lane:nth-child(3) .winner')?.textContent === '7'")
    page.evaluate("delete document.body.dataset.answered")
    draw(page, THREE)
    page.wait_for_selector("body[data-answered]")
    assert page.locator("#samples [aria-pressed=true]").count() == 0
    assert len(answers(page)) == 4
    until(page, "() => [2, 3].some(i => document.querySelector(`.lane:nth-child(${i})`).innerText.includes('It is 3'))")
    assert "emulated on the CPU: not the time of a GPU" in page.inner_text(".lane:nth-child(4) h3")
    assert "Python" not in page.inner_text(".lane:nth-child(4) h3")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
    page.click("#clear")
    until(page, "() => !document.getElementById('lanes').innerText.includes('It is')")


def test_the_lanes_agree_at_a_mark_and_the_race_is_paused_and_put_back_by_keyboard(browser_page):
    page = opened(browser_page)
    page.locator("#run").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#agreed:has-text('After 640 images the loss of every lane was 1.145314719566, and no')")
    page.keyboard.press("Space")
    page.wait_for_selector("#run:has-text('Go on')")
    page.wait_for_timeout(1000)
    before = page.locator(".lane p").all_inner_texts()
    page.wait_for_timeout(500)
    assert page.locator(".lane p").all_inner_texts() == before
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#run:has-text('Start')")
    assert "0 images" in page.inner_text(".lane:nth-child(3)")
    assert "A guess" in page.inner_text(".lane:nth-child(3)")
    assert page.inner_text("#agreed") == ""
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Take a 0"
    page.keyboard.press("Enter")
    page.wait_for_selector("#samples [aria-label='Take a 0'][aria-pressed=true]")


def test_a_race_is_painted_thirty_times_a_second_while_somebody_draws(browser_page):
    page = opened(browser_page)
    page.click("#run")
    until(page, FASTER)
    box = page.locator("#pad canvas").bounding_box()
    rates = []
    for _ in range(3):
        page.mouse.move(box["x"] + 60, box["y"] + 60)
        page.mouse.down()
        page.evaluate(f"during => {{ window.rate = ({PAINTED})(during); }}", 2000)
        for i in range(60):
            page.mouse.move(box["x"] + 60 + i, box["y"] + 60 + (i % 7) * 10)
            page.wait_for_timeout(25)
        rates.append(page.evaluate("window.rate"))
        page.mouse.up()
    assert max(rates) > 30, rates


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (736, "dark"), (620, "light"), (358, "dark")])
def test_an_exported_race_fits_its_frame_to_the_finish(opened_file, width, look):
    page = opened_file("race", None, width, look)
    page.set_viewport_size({"width": width, "height": FRAME})
    page.wait_for_selector(".lane:nth-child(4) .winner")
    fits = "document.documentElement.scrollHeight <= innerHeight"
    assert page.evaluate(fits)
    page.click("#run")
    until(page, FASTER)
    draw(page, THREE)
    assert page.evaluate(fits)
    assert contrast_failures(page) == []
    page.wait_for_selector(
        "#news:has-text('While pure Python ran one lap, C ran 451 and NumPy ran 185')", timeout=30_000
    )
    assert "after as many images, up to 180,000" in page.inner_text("#how")
    page.wait_for_selector(
        "#agreed:has-text('After 30,000 images of the recorded race the weights of all lanes were the same but for')"
    )
    assert page.evaluate(fits)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
    page.click("#begin")
    page.wait_for_selector("#run:has-text('Start'):not([disabled])")


def test_a_race_without_pure_python_is_compared_with_its_first_lane(opened_file, tmp_path):
    results = json.loads((ROOT / "docs" / "benchmarks" / "race-2-cores" / "results.json").read_bytes())
    del results["stages"][0]
    (tmp_path / "results.json").write_text(json.dumps(results))
    page = opened_file("race", {"run": tmp_path})
    page.click("#run")
    page.wait_for_selector("#news:has-text('While NumPy ran one lap, C ran 2.')")
    heads = page.locator(".lane h3").all_inner_texts()
    assert "Python" not in "".join(heads)
    assert "NumPy" not in heads[0].partition("lap")[2]
    assert re.search(r"2\.43 . NumPy$", heads[1])


def test_the_answers_in_javascript_are_stage_2s(opened_file, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "STEPS", (0, 20, 376))
    page = opened_file("race")
    test = load_dataset().test.x[:20]
    stage = load_stage("stage2_numpy")
    lane = Lane("stage2_numpy", load_dataset())
    lane.prepare()
    for at, steps in enumerate((0, 20, 356)):
        for _ in range(steps):
            lane.turn(0)
        found = page.evaluate(ASKED, [at, np.rint(test * 255).astype(int).tolist()])
        expected = stage.activations.softmax(lane.network.forward(test.astype(np.float64)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)


def test_a_reader_who_wants_less_motion_sees_two_pictures_a_second(browser_page):
    page = opened(browser_page, motion="reduce")
    page.click("#run")
    until(page, FASTER)
    assert 0.5 < page.evaluate(PAINTED, 3000) < 3
