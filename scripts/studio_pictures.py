"""The pictures of the studio in the README and the book: `python scripts/studio_pictures.py [PAGE …]`.

Starts a studio in an empty folder, trains two small runs and a race there, does the main action of each page in an
installed Chromium, and writes docs/figures/studio-PAGE.png and studio-PAGE-dark.png, in both colour schemes. Needs the
extra dev and a Chromium on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from groundup.studio.app import Studio
from groundup.studio.server import listen, new_server
from shared.machine import processes

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
PROGRAM = processes.python("-c", "from groundup.cli import main; main()")
KEY = "for-the-pictures"
PATIENCE = 60_000
"""Milliseconds that a page may take: stage 4 compiles its kernels."""

THREE = ((0.3, 0.25), (0.5, 0.15), (0.68, 0.27), (0.5, 0.47), (0.72, 0.63), (0.55, 0.85), (0.28, 0.76))
"""Points of a drawn 3, as shares of the pad's width and height."""


def main() -> None:
    """Write one picture for each page, or for those that the command line names."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("no Chromium on the path (Debian and Ubuntu: apt install chromium)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for arguments in TRAININGS:
            subprocess.run([*PROGRAM, *arguments], cwd=folder, check=True, env={**os.environ, "COLUMNS": "100"})
        studio, listening, ready = Studio(Path(folder)), listen(0), threading.Event()
        server = new_server(studio, listening, KEY, ready.set)
        thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
        thread.start()
        ready.wait()
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name in sys.argv[1:] or PAGES:
            height, action = PAGES[name]
            size = {"width": 1280, "height": height}
            # The pages forbid eval, which Playwright waits with.
            page = chromium.new_page(viewport=size, bypass_csp=True)
            page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/{name}?token={KEY}")
            action(page)
            page.mouse.move(0, 0)
            for scheme, end in (("light", ""), ("dark", "-dark")):
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(500)
                page.screenshot(path=FOLDER / f"studio-{name}{end}.png")
            page.close()
        chromium.close()
        studio.ending.set()
        server.should_exit = True
        thread.join()


def playground(page: Any) -> None:
    """Some hundreds of steps of the circles."""
    page.get_by_role("button", name="Run").click()
    page.wait_for_function(
        "Number(document.getElementById('steps').textContent.replace(',', '')) >= 400", timeout=PATIENCE
    )
    page.get_by_role("button", name="Pause").click()
    page.locator("#settings-box").evaluate("node => { node.open = false; }")
    page.wait_for_timeout(500)


def digits(page: Any) -> None:
    """A drawn 3."""
    floors = "document.getElementById('floors').innerText"
    page.wait_for_function(f"{floors}.includes('ready') && !{floors}.includes('prepared')", timeout=PATIENCE)
    box = page.locator("#pad").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["width"]) for x, y in THREE]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()
    page.wait_for_function("!document.getElementById('answer').innerText.includes('Draw')", timeout=PATIENCE)
    page.wait_for_timeout(1500)


def convolution(page: Any) -> None:
    """A number of the second convolution, with the row of all layers above it."""
    page.wait_for_selector("#verdict:has-text('4 stages computed')", timeout=PATIENCE)
    page.click("#row button[aria-label^='Layer 4 ']")
    page.wait_for_selector("#number-title:has-text('layer 4')", timeout=PATIENCE)
    page.locator("section:has(#row)").evaluate("node => node.scrollIntoView()")


def race(page: Any) -> None:
    """A race whose first lane has a third of its lap, and a 3 that all lanes read."""
    lanes = "document.getElementById('lanes').innerText"
    page.wait_for_function(f"{lanes}.includes('4 CUDA') && !{lanes}.includes('prepared')", timeout=PATIENCE)
    page.get_by_label("Take a 3").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_function(f"/2,\\d{{3}} images/.test({lanes}.split('2 NumPy')[0])", timeout=3 * PATIENCE)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1000)


def benchmarks(page: Any) -> None:
    """The recorded race beside one's own, which `main` ran."""
    page.wait_for_selector("#shown:not([hidden]) #bars dd", timeout=PATIENCE)
    page.wait_for_timeout(1500)


def runs(page: Any) -> None:
    """Two runs over each other."""
    page.wait_for_selector("#curves .main-svg", timeout=PATIENCE)
    boxes = page.locator("#list input[type=checkbox]")
    for number in range(boxes.count()):
        boxes.nth(number).check()
    page.wait_for_timeout(3000)


def floors(page: Any) -> None:
    """Softmax on four stages, and a call of it."""
    page.wait_for_selector("#columns > .cell", timeout=PATIENCE)
    page.click("#run")
    page.wait_for_selector("#verdict:has-text('4 stages')", timeout=PATIENCE)


def kernel(page: Any) -> None:
    """The first multiplications after the tiles were filled."""
    page.wait_for_selector("#walk:not([hidden])", timeout=PATIENCE)
    page.keyboard.press("b")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(1500)


TRAININGS = (
    ["train", "stage3_c", "--epochs", "12", "--run-dir", "runs/sgd"],
    ["train", "stage2_numpy", "--epochs", "12", "--optimizer", "adam", "--run-dir", "runs/adam"],
    ["race", "--out", "runs/race"],
)
"""What is there before the pages are opened."""

PAGES: dict[str, tuple[int, Callable[[Any], None]]] = {
    "playground": (900, playground),
    "digits": (1300, digits),
    "convolution": (1420, convolution),
    "race": (790, race),
    "runs": (1100, runs),
    "floors": (1650, floors),
    "kernel": (1150, kernel),
    "benchmarks": (736, benchmarks),
}
"""Page -> height of the picture in CSS pixels, and what is done first."""

if __name__ == "__main__":
    main()
