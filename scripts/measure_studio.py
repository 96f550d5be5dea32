"""How fast the studio answers: `python scripts/measure_studio.py [FILE.json]`.

Starts `groundup studio` as a reader does, drives an installed Chromium, and prints the times that docs/guides/studio.md
tells. With a file, they are written there, too, with the machine and the versions. Needs the extra dev, a Chromium on
the path, and a machine that does nothing else.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from shared.machine import processes
from shared.machine.environment import environment

PROGRAM = processes.python("-c", "from groundup.cli import main; main()", "studio")
PATIENCE = 60_000
"""Milliseconds that a page may take: floors prepare themselves."""

STARTS, CLICKS, DRAWINGS, WALKS, RUNNING, PIXELS = 5, 60, 20, 5, 5000, 100
"""How often each is measured; the last one in milliseconds."""

SMALL = "#stage=stage3_c"
LARGE = "#stage=stage3_c&data=digits&layers=128&activation=relu&initializer=he&learning_rate=0.003"

CLICK = """async count => {
  const steps = document.getElementById("steps"), times = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    document.getElementById("step").click();
    await new Promise(done => {
      const seen = new MutationObserver(() => { seen.disconnect(); done(); });
      seen.observe(steps, { childList: true, characterData: true, subtree: true });
    });
    times.push(performance.now() - began);
    await new Promise(done => setTimeout(done, 60));
  }
  return times;
}"""

PICTURES = """during => new Promise(done => {
  const steps = document.getElementById("steps"), began = performance.now();
  let frames = 0, pictures = 0, last = "";
  const look = () => {
    frames++;
    if (steps.textContent !== last) { pictures++; last = steps.textContent; }
    const time = performance.now() - began;
    if (time < during) requestAnimationFrame(look); else done([frames / time * 1000, pictures / time * 1000]);
  };
  requestAnimationFrame(look);
})"""


def main() -> None:
    """Measure, print, and write."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("no Chromium on the path (Debian and Ubuntu: apt install chromium)")
    measured: dict[str, Any] = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        measured["start_to_page_s"] = reported("From the command to the page", "s", starts(chromium, folder))
        with studio(folder, "playground") as address:
            for name, query in (("click_small_ms", SMALL), ("click_784_128_10_ms", LARGE)):
                page = opened(chromium, address + query)
                page.wait_for_function("document.getElementById('computed').textContent !== ''", timeout=PATIENCE)
                page.evaluate(CLICK, 5)
                measured[name] = reported(f"From a click to the picture, {name}", "ms", page.evaluate(CLICK, CLICKS))
                page.close()
            for name, query in (("default", ""), ("spirals_8_8_8_stage3", "#data=spirals&layers=8,8,8&stage=stage3_c")):
                page = opened(chromium, address + query)
                page.wait_for_function("document.getElementById('computed').textContent !== ''", timeout=PATIENCE)
                rest = page.evaluate(PICTURES, RUNNING)[0]
                page.click("#run")
                page.wait_for_timeout(1000)
                frames, pictures = page.evaluate(PICTURES, RUNNING)
                print(
                    f"Pictures a second, {name}: {pictures:.1f} (frames {frames:.1f}; at rest {rest:.1f})", flush=True
                )
                measured[f"pictures_a_second_{name}"] = round(pictures, 1)
                page.close()
        with studio(folder, "race") as address:
            rate, answered = race(chromium, address)
            print(f"Pictures a second, race: {rate:.1f}", flush=True)
            measured["pictures_a_second_race"] = round(rate, 1)
            measured["race_digit_ms"] = reported("From a digit to the answers of all lanes, racing", "ms", answered)
        with studio(folder, "convolution") as address:
            measured["pixel_ms"] = reported("From a click on a pixel to its sum", "ms", pixels(chromium, address))
        with studio(folder, "digits") as address:
            measured["digit_ms"] = reported("From the lifted pen to the answer", "ms", digits(chromium, address))
        measured["walk_cold_s"] = reported(
            "A 64 by 64 tiled walk, studio just started", "s", walks(chromium, folder, cold=True)
        )
        measured["walk_again_s"] = reported("The same, studio warm", "s", walks(chromium, folder, cold=False))
        measured["browser"] = chromium.version
        chromium.close()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(
            json.dumps({"machine": environment(), "studio": measured}, indent=2) + "\n", encoding="utf-8"
        )


def reported(title: str, unit: str, times: list[float]) -> dict[str, float]:
    """Print and return the median, and what nine of ten stay under."""
    times = sorted(times)
    found = {
        "median": round(statistics.median(times), 3),
        "p90": round(times[int(0.9 * (len(times) - 1))], 3),
        "measured": len(times),
    }
    print(f"{title}: median {found['median']:g} {unit}, nine of ten under {found['p90']:g} {unit}", flush=True)
    return found


@contextmanager
def studio(folder: str, page: str) -> Iterator[str]:
    """The address of a studio that runs in a process of its own."""
    process = subprocess.Popen([*PROGRAM, page, "--no-browser"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, line
        yield address.group()
    finally:
        process.terminate()
        process.wait(30)


def opened(chromium: Any, address: str) -> Any:
    """A page in a window of its own. The pages forbid eval, which Playwright waits with."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    return page


def starts(chromium: Any, folder: str) -> list[float]:
    """Seconds from the command to the page Digits with the networks that can answer."""

    def one() -> float:
        began = time.perf_counter()
        with studio(folder, "digits") as address:
            page = opened(chromium, address)
            page.wait_for_function("document.querySelector('#network option') !== null", timeout=PATIENCE)
            taken = time.perf_counter() - began
            page.close()
        return taken

    return repeated(one, STARTS)


def digits(chromium: Any, address: str) -> list[float]:
    """Milliseconds until floors 2 to 4 have answered a stroke."""
    page = opened(chromium, address)
    floors = "document.getElementById('floors').innerText"
    page.wait_for_function(f"{floors}.includes('ready') && !{floors}.includes('prepared')", timeout=PATIENCE)
    box = page.locator("#pad").bounding_box()
    times = []
    for number in range(DRAWINGS + 3):
        page.click("#clear")
        page.evaluate("delete document.body.dataset.answered")
        x = box["x"] + box["width"] * (0.35 + 0.3 * number / DRAWINGS)
        page.mouse.move(x, box["y"] + 0.2 * box["width"])
        page.mouse.down()
        page.mouse.move(x, box["y"] + 0.8 * box["width"], steps=8)
        page.mouse.up()
        page.wait_for_function("document.body.dataset.answered !== undefined", timeout=PATIENCE)
        times.append(float(page.evaluate("document.body.dataset.answered")))  # noted by the page itself
        page.wait_for_timeout(800)
    page.close()
    return times[3:]


def race(chromium: Any, address: str) -> tuple[float, list[float]]:
    """Pictures a second that really changed, while all lanes train and somebody draws, and milliseconds from a digit
    that is taken to the answers of all lanes."""
    page = opened(chromium, address)
    words = "document.getElementById('news').textContent"
    page.wait_for_function(f"document.querySelectorAll('.winner').length === 4 && {words} === ''", timeout=PATIENCE)
    page.click("#run")
    page.wait_for_timeout(2000)
    box, painted = page.locator("#pad canvas").bounding_box(), "Number(document.body.dataset.painted)"
    began, before = time.perf_counter(), page.evaluate(painted)
    while time.perf_counter() - began < RUNNING / 1000:
        page.mouse.move(box["x"] + 40, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 140, box["y"] + 120, steps=40)
        page.mouse.up()
    rate = (page.evaluate(painted) - before) / (time.perf_counter() - began)
    times = []
    for number in range(DRAWINGS):
        page.wait_for_timeout(200)
        page.click("#clear")
        page.wait_for_timeout(200)
        page.evaluate("delete document.body.dataset.answered")
        page.click(f"#samples button:nth-child({number % 10 + 1})")
        page.wait_for_function("document.body.dataset.answered !== undefined", timeout=PATIENCE)
        times.append(float(page.evaluate("document.body.dataset.answered")))  # noted by the page itself
    page.close()
    return rate, times


def pixels(chromium: Any, address: str) -> list[float]:
    """Milliseconds until a number of LeNet-5's second convolution is worked out, by all stages, and shown."""
    page = opened(chromium, address)
    page.wait_for_function(
        "document.getElementById('verdict').textContent.startsWith('4 stages computed')", timeout=PATIENCE
    )
    page.click("#row button[aria-label^='Layer 4 ']")
    times = []
    for number in range(PIXELS + 5):
        page.wait_for_timeout(100)
        page.evaluate("delete document.body.dataset.clicked")
        shown = page.locator("#working .map.live")
        side = shown.bounding_box()["width"] / 10
        shown.click(position={"x": (number % 10 + 0.5) * side, "y": (number // 10 % 10 + 0.5) * side})
        page.wait_for_function("document.body.dataset.clicked !== undefined", timeout=PATIENCE)
        times.append(float(page.evaluate("document.body.dataset.clicked")))  # noted by the page itself
    page.close()
    return times[5:]


def walks(chromium: Any, folder: str, cold: bool) -> list[float]:
    """Seconds until the page Kernel shows its first walk. cold: each time in a studio that was just started."""

    def one(address: str) -> float:
        began = time.perf_counter()
        page = opened(chromium, address)
        page.wait_for_selector("#walk:not([hidden])", timeout=PATIENCE)
        taken = time.perf_counter() - began
        page.close()
        return taken

    def fresh() -> float:
        with studio(folder, "kernel") as address:
            return one(address)

    if cold:
        return repeated(fresh, WALKS)
    with studio(folder, "kernel") as address:
        return repeated(lambda: one(address), WALKS, pause=15)


def repeated(measured: Callable[[], float], count: int, pause: float = 0) -> list[float]:
    """What this many calls gave, after one that does not count. pause: seconds for what a closed page leaves behind, as
    the lens's verdicts on a walk"""
    times = []
    for _ in range(count + 1):
        times.append(measured())
        time.sleep(pause)
    return times[1:]


if __name__ == "__main__":
    main()
