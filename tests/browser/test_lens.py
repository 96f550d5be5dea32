"""The lens's page in a real browser: nothing on its console, nothing loaded, light and dark, and a phone's width.

Drives an installed Chromium from its command line, so it needs no further package. What the page looks like inside is
asked by a script that is put into a copy of the page.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from cuda_emulator.inspection import page
from tests.cuda_emulator.lens import lens_profiles as made

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

REASON = "no Chromium on the path (Debian and Ubuntu: apt install chromium)"
pytestmark = pytest.mark.skipif(BROWSER is None, reason=REASON)

WIDTHS = (360, 700, 1400)
"""Of a phone, a tablet, a desktop, in CSS pixels."""

ASK = """<script>onload = () => {
const look = frame => {
  const inside = frame.contentDocument, root = inside.documentElement;
  const outside = [...inside.querySelectorAll("article *, h1, h2, h3")].filter(each => !each.closest(".scroll")
    && each.getBoundingClientRect().right > root.clientWidth + 1);
  return {
    width: frame.contentWindow.innerWidth, scrolled: Math.max(root.scrollWidth, inside.body.scrollWidth),
    ground: getComputedStyle(inside.querySelector(".lens")).backgroundColor,
    ink: getComputedStyle(inside.querySelector("h1")).color,
    pictures: [...inside.querySelectorAll("svg")].map(each => each.getBoundingClientRect().height),
    outside: outside.map(each => each.outerHTML.slice(0, 80)),
    loaded: frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name),
  };
};
document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(look));
}</script>"""


def chromium(folder, target, *options):
    """Open a file without a screen: (the page's DOM, what was said on its console)."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={folder / 'browser'}", "--enable-logging=stderr", *options]
    done = subprocess.run(
        [*command, "--dump-dom", target.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def frames(folder, *options):
    """What ASK finds out about a page of two kernels in frames of WIDTHS."""
    page.write(PROFILES, folder / "lens.html")
    drawn = "".join(
        f'<iframe src="lens.html" style="border:0;width:{each}px;height:900px"></iframe>' for each in WIDTHS
    )
    (folder / "shell.html").write_text(f"<!DOCTYPE html><title></title><body>{drawn}{ASK}</body>", encoding="utf-8")
    dom, console = chromium(folder, folder / "shell.html", "--allow-file-access-from-files", *options)
    assert console == []
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.DOTALL).group(1)))


PROFILES = [made.strided(), made.racing()]


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    return frames(tmp_path_factory.mktemp("light"), "--blink-settings=preferredColorScheme=1")


@pytest.fixture(scope="module")
def dark(tmp_path_factory):
    return frames(tmp_path_factory.mktemp("dark"), "--blink-settings=preferredColorScheme=0")


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_the_page_leaves_the_console_empty(tmp_path):
    dom, console = chromium(tmp_path, page.write(PROFILES, tmp_path / "lens.html"))
    assert "Race on shared tile[0, 5]" in dom
    assert console == []


def test_the_page_would_refuse_to_load_anything_and_say_so(tmp_path):
    """Its content policy stops every request, and the browser reports that on the console that the other tests read."""
    written = page.html(PROFILES).replace("</main>", '<img src="picture.png"></main>')
    (tmp_path / "lens.html").write_text(written, encoding="utf-8")
    _, console = chromium(tmp_path, tmp_path / "lens.html")
    assert len(console) == 1
    assert "Content Security Policy" in console[0]


def test_the_page_loads_nothing(light):
    assert [each["loaded"] for each in light] == [[]] * len(WIDTHS)


def test_the_page_follows_the_colour_scheme(light, dark):
    assert all(brightness(each["ground"]) > brightness(each["ink"]) for each in light)
    assert all(brightness(each["ground"]) < brightness(each["ink"]) for each in dark)


def test_every_picture_has_a_size(light):
    for each in light:
        assert len(each["pictures"]) == 8  # three maps in memory, three in their arrays, two timelines
        assert min(each["pictures"]) > 40


def test_the_page_never_scrolls_sideways(light, dark):
    for each, width in zip(light + dark, WIDTHS * 2, strict=True):
        assert each["width"] == width
        assert each["outside"] == []
        assert each["scrolled"] <= width


KEYS = """<script>onload = () => {
const inside = document.querySelector("iframe").contentDocument, picture = inside.querySelector("figure svg");
const said = () => inside.querySelector("output").textContent, heard = [];
for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft"]) {
  picture.dispatchEvent(new KeyboardEvent("keydown", {key}));
  heard.push(said());
}
const marked = inside.querySelectorAll(".here").length, focusable = picture.getAttribute("tabindex");
document.title = JSON.stringify({heard, focusable, marked});
}</script>"""


def test_tooltips_can_be_reached_by_keyboard(tmp_path):
    page.write(PROFILES[:1], tmp_path / "lens.html")
    shell = f'<!DOCTYPE html><title></title><body><iframe src="lens.html"></iframe>{KEYS}</body>'
    (tmp_path / "shell.html").write_text(shell, encoding="utf-8")
    dom, console = chromium(tmp_path, tmp_path / "shell.html", "--allow-file-access-from-files")
    assert console == []
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.DOTALL).group(1)))
    first, second, again, last = found["heard"]
    assert first == again == "lane 0: a[0], byte 0"
    assert second == "lane 1: a[32], byte 128"
    assert last.startswith("lane 31: ")
    assert (found["focusable"], found["marked"]) == ("0", 1)
