"""The report in a real browser: nothing on its console, nothing loaded, light and dark, from a phone to a desktop.

Drives an installed Chromium from its command line, so it needs no further package. What the page looks like inside is
asked by a script in a page around it; the report itself has none.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shared.charts import book
from shared.charts.drawing import style
from shared.charts.report import page
from tests.shared.bench import bench_results as made

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

REASON = "no Chromium on the path (Debian and Ubuntu: apt install chromium)"
pytestmark = pytest.mark.skipif(BROWSER is None, reason=REASON)

WIDTHS = (360, 768, 1280)
"""Of a phone, a tablet, a desktop, in CSS pixels."""

ASK = """<script>onload = () => {
const look = frame => {
  const inside = frame.contentDocument, root = inside.documentElement, view = frame.contentWindow;
  inside.querySelectorAll("details").forEach(each => each.open = true);
  const outside = [...inside.querySelectorAll("main *")].filter(each => !each.closest(".scroll, pre, svg *")
    && each.getBoundingClientRect().right > root.clientWidth + 1);
  return {
    width: view.innerWidth, scrolled: Math.max(root.scrollWidth, inside.body.scrollWidth),
    ground: view.getComputedStyle(root).backgroundColor,
    ink: view.getComputedStyle(inside.querySelector("h1")).color,
    figures: [...inside.querySelectorAll("figure svg")].map(each => ({alt: each.getAttribute("aria-label"),
      wide: each.getBoundingClientRect().width, high: each.getBoundingClientRect().height,
      ground: view.getComputedStyle(each.querySelector("path")).fill})),
    outside: outside.map(each => each.outerHTML.slice(0, 80)),
    loaded: view.performance.getEntriesByType("resource").map(each => each.name).filter(each => !/^data:/.test(each)),
  };
};
const frames = [...document.querySelectorAll("iframe")];
document.title = JSON.stringify(frames.map(look));
}</script>"""


def chromium(folder: Path, target: Path, *options: str) -> tuple[str, list[str]]:
    """Open a file without a screen: (the page's DOM, what was said on its console)."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={folder / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=20000"]
    done = subprocess.run(
        [*command, *options, "--dump-dom", target.as_uri()], capture_output=True, text=True, timeout=90, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a whole run with two figures."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "FIGURES", (book.staircase, book.inference))
        results = made.full_results()
        return page.write(results, book.draw(results), folder / "report.html")


def frames(report: Path, folder: Path, *options: str) -> list[dict[str, Any]]:
    """What ASK finds out about the report in frames of WIDTHS."""
    shutil.copy(report, folder)
    drawn = "".join(
        f'<iframe src="report.html" style="border:0;width:{each}px;height:900px"></iframe>' for each in WIDTHS
    )
    (folder / "shell.html").write_text(f"<!DOCTYPE html><title></title><body>{drawn}{ASK}</body>", encoding="utf-8")
    dom, console = chromium(folder, folder / "shell.html", "--allow-file-access-from-files", *options)
    assert console == []
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found is not None
    answer: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return answer


@pytest.fixture(scope="module")
def light(report: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return frames(report, tmp_path_factory.mktemp("light"), "--blink-settings=preferredColorScheme=1")


@pytest.fixture(scope="module")
def dark(report: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return frames(report, tmp_path_factory.mktemp("dark"), "--blink-settings=preferredColorScheme=0")


def brightness(colour: str) -> int:
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_the_report_leaves_the_console_empty(report: Path, tmp_path: Path) -> None:
    dom, console = chromium(tmp_path, report)
    assert "How to read this" in dom
    assert console == []


def test_the_report_would_refuse_to_load_anything_and_say_so(report: Path, tmp_path: Path) -> None:
    """Its content policy stops every request, and the browser reports that on the console that the other tests read."""
    written = report.read_text(encoding="utf-8").replace("</main>", '<img src="picture.png" alt=""></main>')
    (tmp_path / "report.html").write_text(written, encoding="utf-8")
    _, console = chromium(tmp_path, tmp_path / "report.html")
    assert len(console) == 1
    assert "Content Security Policy" in console[0]


def test_the_report_loads_nothing(light: list[dict[str, Any]]) -> None:
    assert [each["loaded"] for each in light] == [[]] * len(WIDTHS)


def test_the_report_and_its_figures_follow_the_colour_scheme(
    light: list[dict[str, Any]], dark: list[dict[str, Any]]
) -> None:
    assert all(brightness(each["ground"]) > brightness(each["ink"]) for each in light)
    assert all(brightness(each["ground"]) < brightness(each["ink"]) for each in dark)
    assert {figure["ground"] for each in light for figure in each["figures"]} == {"rgb(255, 255, 255)"}
    assert {figure["ground"] for each in dark for figure in each["figures"]} == {"rgb(22, 24, 29)"}


def test_every_figure_is_drawn_in_its_width_and_says_in_words_what_it_shows(light: list[dict[str, Any]]) -> None:
    for each, width in zip(light, WIDTHS, strict=True):
        assert len(each["figures"]) == 2
        for figure in each["figures"]:
            assert re.search(r"\d", figure["alt"])
            assert figure["wide"] > 0.88 * min(width, 704)
            assert figure["high"] > 0.5 * figure["wide"]


def test_the_smallest_letters_can_be_read_on_a_phone(light: list[dict[str, Any]]) -> None:
    scale = light[0]["figures"][0]["wide"] / (style.WIDTH * 96)
    assert style.SMALLEST * 4 / 3 * scale > 6.3
    assert style.SMALL * 4 / 3 * scale > 7.2


def test_the_report_never_scrolls_sideways(light: list[dict[str, Any]], dark: list[dict[str, Any]]) -> None:
    for each, width in zip(light + dark, WIDTHS * 2, strict=True):
        assert each["width"] == width
        assert each["outside"] == []
        assert each["scrolled"] <= width
