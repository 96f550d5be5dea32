"""The page Runs in a real browser: runs over each other, one looked into, one followed live and killed, one damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup import inside
from groundup.train import Training, new_settings, run
from groundup.trained import beliefs
from shared.contract import load_stage
from shared.data.datasets import load_test
from shared.machine.processes import finding_our_packages
from shared.training.checkpoints import load_checkpoint
from shared.training.metrics import read_metrics
from shared.training.settings import QUIET
from shared.training.step_records import read_line
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways, until

NAME = "<img src=x onerror=alert(1)>"
IN_SIGHT = """() => {
  const { top, bottom } = document.activeElement.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: two sound ones of two stages, an old one, and a damaged one with a name that is a trap."""
    runs = tmp_path_factory.mktemp("studio") / "runs"
    for name, stage, given in (
        ("first", "numpy", {"hidden": "16", "epochs": 3}),
        ("second", "c", {"hidden": "16", "epochs": 3, "validation": 0.1, "optimizer": "adam"}),
    ):
        floor = load_stage(stage)
        asked = Training.of(new_settings(floor.name, given), runs / name, resume=False, overwrite=False)
        run(floor, asked, lambda network, data: QUIET, live=False)
    shutil.copytree(runs / "first", runs / "old")
    for name in ("steps.jsonl", "run.json"):
        (runs / "old" / name).unlink()
    shutil.copytree(runs / "first", runs / NAME)
    (runs / NAME / "last.safetensors").write_bytes(b"nothing")
    for path in runs.glob("*/*"):  # the page's order is that of the last change
        os.utime(path, (1e9 + 1000 * (path.parent.name == "second"),) * 2)
    return runs


@pytest.fixture
def studio_folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))


def ready(page: Any) -> None:
    page.wait_for_selector("#chart-loss .main-svg")
    page.wait_for_selector("#mistakes .matrix button")
    page.wait_for_selector("#mistakes canvas")


def lines(page: Any, place: str) -> list[dict[str, Any]]:
    """The lines that plotly draws: name, x and y of each."""
    script = "node => node.data.map(({name, x, y, mode}) => ({name, mode, x: Array.from(x), y: Array.from(y)}))"
    return page.locator(f"{place} .chart").evaluate(script)


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_runs_are_compared_and_looked_into_with_the_keyboard(
    studio_folder: Path, browser_page: Any, width: int, look: str
) -> None:
    page = browser_page("runs", width=width, look=look)
    ready(page)
    assert page.inner_text("#run-title") == "second"
    page.focus("#find")
    page.keyboard.type("numpy 16")
    assert page.locator("#list tbody tr").count() == 3
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    assert page.locator("#list tbody tr").count() == 4

    row = page.locator("#list tbody tr", has_text="first")
    code = row.locator("input").get_attribute("id").removeprefix("draw-")
    for _ in range(200):  # Tab alone leads there
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == f"select-{code}":
            break
    page.keyboard.press("Enter")
    page.locator("#run-title:focus", has_text="first").wait_for()
    assert page.evaluate(IN_SIGHT)
    ready(page)

    records = read_metrics(studio_folder / "first" / "metrics.jsonl")
    assert f"{100 * records[-1].test_accuracy:.2f} % test" in row.inner_text()
    steps = [read_line(line) for line in (studio_folder / "first" / "steps.jsonl").read_text().splitlines()]
    drawn = next(each for each in lines(page, "#chart-loss") if each["name"] == "first" and each["mode"] == "lines")
    assert drawn["x"] == [each.step for each in steps]
    assert drawn["y"] == pytest.approx([each.loss for each in steps])
    gradients = lines(page, "#layers-gradients")
    assert [each["name"] for each in gradients] == ["1: 784 x 16", "2: 16 x 10"]
    assert gradients[1]["y"] == pytest.approx([each.gradients[1] for each in steps])

    page.focus("#axis")
    page.keyboard.type("epochs")
    page.wait_for_timeout(300)
    page.focus("#to")
    page.keyboard.type("2")
    page.focus("#smoothing")
    page.keyboard.press("End")
    page.locator("#smoothing-text", has_text="0.99").wait_for()
    page.wait_for_timeout(300)
    assert page.locator("#chart-accuracy .chart").evaluate("node => node.layout.xaxis.range") == [0, 2]
    smooth = [each for each in lines(page, "#chart-loss") if each["name"] == "first"][1]
    assert smooth["y"][0] == pytest.approx(steps[0].loss)
    assert np.ptp(smooth["y"]) < np.ptp([each.loss for each in steps])
    page.keyboard.press("Home")
    points = next(each for each in lines(page, "#chart-accuracy") if each["name"] == "first, test")
    assert points["x"] == [1, 2, 3]
    assert points["y"] == pytest.approx([each.test_accuracy for each in records])

    heads = page.locator("#differences thead th").all_inner_texts()
    assert {"stage", "validation", "optimizer"} <= set(heads)
    assert "epochs" not in heads  # equal in all of them
    test, checkpoint = load_test(), load_checkpoint(studio_folder / "first" / "best.safetensors")
    answers = beliefs(checkpoint, test.x)
    counts = inside.confusion_matrix(test.y, answers.argmax(axis=1), 10)
    shown = [int(text) for text in page.locator(".matrix button").all_inner_texts()]
    assert shown == counts.ravel().tolist()
    page.focus("#cell-0-0")
    worst = np.unravel_index(np.argmax(counts - np.diag(np.diag(counts))), counts.shape)
    for key, times in (("ArrowDown", worst[0]), ("ArrowRight", worst[1])):
        for _ in range(times):
            page.keyboard.press(key)
    page.keyboard.press("Enter")
    title = f"{worst[0]} taken for {worst[1]}: {counts[worst]}"
    page.locator("#mistakes h3", has_text=title).wait_for()
    assert page.locator("#mistakes canvas").count() == counts[worst]

    assert "groundup train numpy --hidden 16 --epochs 3" in page.inner_text("#facts pre >> nth=0")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_a_damaged_run_is_a_sentence_and_its_name_is_text(studio_folder: Path, browser_page: Any) -> None:
    page = browser_page("runs")
    ready(page)
    page.locator("#list button", has_text=NAME).click()
    page.locator("#run-title", has_text=NAME).wait_for()
    page.locator(".trouble", has_text="last.safetensors cannot be read").wait_for()
    assert page.locator("img").count() == 0
    assert lines(page, "#chart-loss")


def test_an_old_run_has_its_epochs_and_says_what_it_lacks(studio_folder: Path, browser_page: Any) -> None:
    page = browser_page("runs")
    ready(page)
    page.locator("#list button", has_text="old").click()
    page.locator("#layers-note", has_text="This run has no steps.jsonl").wait_for()
    page.locator("#epochs-details summary").click()
    assert page.locator("#epochs tbody tr").count() == 3


def test_without_a_run_the_page_says_how_to_make_one(browser_page: Any) -> None:
    page = browser_page("runs")
    page.locator("#empty", has_text="There is no run yet").wait_for()
    assert "groundup train numpy" in page.inner_text("#empty")


NUMBERS = """async () => {
  const { smoothed, clock, bytes, looks, stepPlaces, timeUnit } = await import("/static/runs/numbers.js");
  const kept = {};
  return {
    smoothed: smoothed([1, null, 3, 3], 0.5), clocks: [0.456, 8, 61, 187, 4800, 90000, null].map(clock),
    bytes: [512, 2048, 91750400, 3e9].map(bytes), units: [10, 500, 9000, 1e6].map((each) => timeUnit(each)[0]),
    looks: looks(["a", "b"].map((code) => ({ code })), kept), fewer: looks([{ code: "b" }, { code: "c" }], kept),
    shares: stepPlaces({ state: "done", steps: 100 }, { steps: { step: [5, 20] } }, "share"),
    live: stepPlaces({ state: "running", steps: 100 }, { steps: { step: [5, 20] } }, "share"),
  };
}"""


def test_the_pages_own_numbers_are_right(browser_page: Any) -> None:
    found = browser_page("runs").evaluate(NUMBERS)
    # With weight 0.5: 1; then (1/2 · 1/2 · 1 + 1/2 · 3) / (1/4 + 1/2), and so on.
    assert found["smoothed"] == pytest.approx([1, None, 1.75 / 0.75, 2.375 / 0.875])
    assert found["clocks"] == ["0.46 s", "8 s", "1 min 1 s", "3 min 7 s", "1 h 20 min", "1 d 1 h", "unknown"]
    assert found["bytes"] == ["512 B", "2 KiB", "87.5 MiB", "2.79 GiB"]
    assert found["units"] == ["seconds", "minutes", "hours", "days"]
    assert [each["colour"] for each in found["looks"]] == ["blue", "orange"]
    assert [tuple(each.values()) for each in found["fewer"]] == [("orange", "solid"), ("stage3", "solid")]
    assert (found["shares"], found["live"]) == ([25, 100], [5, 20])


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (1000, "dark"), (390, "light")])
def test_a_run_keeps_its_colour_its_name_and_its_note(
    studio_folder: Path, browser_page: Any, width: int, look: str
) -> None:
    page = browser_page("runs", width=width, look=look)
    ready(page)

    def colours() -> dict[str, str]:
        script = "nodes => nodes.map(node => [node.innerText.trim(), node.querySelector('line').style.stroke])"
        return dict(page.locator("#legend > span").evaluate_all(script))

    before = colours()
    assert {"first", "second", "old"} == set(before)
    assert len(set(before.values())) == 3
    page.locator("#list tbody tr", has_text="second").locator("input").click()
    until(page, "() => document.querySelectorAll('#legend > span').length === 2")
    assert colours() == {name: before[name] for name in ("first", "old")}

    page.fill("#label-title", "wide")
    page.fill("#label-note", "does Adam help?")
    page.keyboard.press("Enter")
    page.locator("#list .note", has_text="does Adam help?").wait_for()
    assert json.loads((studio_folder / "second" / "label.json").read_text())["title"] == "wide"
    page.locator("#list tbody tr", has_text="wide").locator("input").click()
    until(page, "() => document.querySelectorAll('#legend > span').length === 3")
    assert colours() == {**{name: before[name] for name in ("first", "old")}, "wide": before["second"]}
    page.reload()
    ready(page)
    assert colours()["wide"] == before["second"]

    page.fill("#find", "optimizer=adam")
    assert page.locator("#list .name button").all_inner_texts() == ["wide"]
    page.fill("#find", "learning_rate<0.01")
    assert page.locator("#list .name button").all_inner_texts() == ["wide"]
    page.fill("#find", "")
    page.select_option("#order", "setting learning_rate")
    assert page.locator("#list .name button").first.inner_text() == "wide"
    assert page.locator("#list thead th").last.inner_text() == "learning rate"

    page.select_option("#axis", "share")
    page.wait_for_timeout(500)
    assert all(each["x"][-1] == pytest.approx(100) for each in lines(page, "#chart-loss"))
    page.locator("#histograms figcaption:has-text('Gradients')").nth(1).wait_for()
    assert "a batch of 128 images of its training set" in page.inner_text("#gradients-note")
    assert page.locator("#facts dd", has_text="the mean of the last steps").count() == 1
    assert page.locator("#facts dd", has_text="of the whole epoch").count() == 1
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


LIVE = """
import sys, time
from groundup.train import Training, new_settings, run
from shared.contract import load_stage
from shared.training.settings import Hooks
settings = new_settings("stage2_numpy", {"hidden": "8", "epochs": 500})
asked = Training.of(settings, sys.argv[1], resume=False, overwrite=False)
wait = Hooks(on_batch=lambda *step: time.sleep(0.002), progress_bar=False)
run(load_stage("numpy"), asked, lambda network, data: wait, live=False)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives no mark to a process")
def test_a_training_is_followed_while_it_runs_and_called_stopped_when_it_was_killed(
    tmp_path: Path, browser_page: Any
) -> None:
    page = browser_page("runs")
    page.locator("#empty", has_text="There is no run yet").wait_for()
    command = [sys.executable, "-c", LIVE, str(tmp_path / "runs" / "live")]
    child = subprocess.Popen(command, env=finding_our_packages(os.environ))
    try:
        page.locator("#list td", has_text="running").wait_for(timeout=60_000)
        page.select_option("#axis", "time")  # before the first epoch is finished
        page.wait_for_selector("#chart-loss .main-svg")
        page.select_option("#axis", "step")
        page.wait_for_selector("#chart-loss .main-svg")
        before = lines(page, "#chart-loss")[-1]["x"][-1]
        page.locator("#facts dd", has_text=" left").wait_for(timeout=60_000)
        for _ in range(100):
            if lines(page, "#chart-loss")[-1]["x"][-1] > before:
                break
            page.wait_for_timeout(200)
        assert lines(page, "#chart-loss")[-1]["x"][-1] > before
        child.send_signal(signal.SIGKILL)
        child.wait()
        page.locator("#list td", has_text="stopped").wait_for(timeout=30_000)
        page.locator("#facts dd", has_text="it was killed").wait_for(timeout=30_000)
    finally:
        child.kill()
        child.communicate()
