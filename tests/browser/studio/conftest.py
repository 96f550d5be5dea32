"""A real browser for the tests of the studio: an installed Chromium, driven by Playwright.

Every page that is opened here is watched: at the end of the test nothing may stand on its console, and no request may
have gone anywhere but to the studio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.studio_server import RunningStudio, running

LOOKS = [(width, look) for width in (1280, 1000, 390) for look in ("light", "dark")]
"""Widths in CSS pixels of a desktop, a small window and a phone, each on a light and a dark screen."""


@pytest.fixture
def studio_server(tmp_path: Path) -> Iterator[RunningStudio]:
    """A studio that was started in an empty folder, tmp_path."""
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def browser_page(chromium: Any, studio_server: RunningStudio) -> Iterator[Callable[..., Any]]:
    """browser_page("digits", width=1280, look="light") opens a page of the studio and returns Playwright's Page.

    refusals: whether the test asks for what the studio refuses, which the browser notes on the console
    """
    contexts, wrong = [], []

    def opened(
        name: str,
        width: int = 1280,
        look: str = "light",
        motion: str = "no-preference",
        query: str = "",
        refusals: bool = False,
    ) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=look, reduced_motion=motion, has_touch=width < 600
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: noted(said, refusals))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("request", lambda request: elsewhere(request.url) and wrong.append(f"request to {request.url}"))
        page.goto(studio_server.opening(name) + query)
        return page

    def noted(said: Any, refusals: bool) -> None:
        if said.type in ("error", "warning") and not (refusals and "status of 4" in said.text):
            wrong.append(f"{said.type}: {said.text}")

    def elsewhere(url: str) -> bool:
        return not url.startswith((studio_server.address + "/", "data:", "blob:"))

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def until(page: Any, script: str, given: Any = None) -> None:
    """Wait until a function of the page is true. Playwright's own way needs eval, which the studio's pages forbid."""
    for _ in range(600):
        if page.evaluate(script, given):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not true after 30 s: {script}")


def scrolls_sideways(page: Any) -> bool:
    """Whether the page as a whole is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def contrast_failures(page: Any) -> list[str]:
    """Texts with less contrast to their ground than WCAG 2.2, level AA, asks for."""
    return page.evaluate(CONTRAST)


CONTRAST = """() => {
  const parse = text => {
    const parts = (text.match(/[\\d.]+/g) ?? []).map(Number);
    const size = text.startsWith("color(") ? 255 : 1;  // color(srgb …), what color-mix comes to, counts from 0 to 1
    return parts.length < 3 ? [0, 0, 0, 0] : [...parts.slice(0, 3).map(part => part * size), parts[3] ?? 1];
  };
  const linear = part => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = node => {
    for (let each = node; each; each = each.parentElement) {
      const found = parse(getComputedStyle(each).backgroundColor);
      if (found[3] > 0.99) return found;
    }
    return [255, 255, 255, 1];
  };
  const own = node => [...node.childNodes].filter(each => each.nodeType === 3).map(each => each.data.trim()).join(" ");
  const apart = "[hidden], .hidden, .skip, svg, .js-plotly-plot, option, :disabled";
  const failures = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!own(node).trim() || node.closest(apart) || !node.checkVisibility()) continue;
    const style = getComputedStyle(node), ink = light(parse(style.color)), paper = light(ground(node));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) failures.push(`${contrast.toFixed(2)}: ${own(node).slice(0, 60)}`);
  }
  return failures;
}"""
