"""An installed Chromium, driven by Playwright, for all tests that open a page in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
NO_BROWSER = "no Chromium on the path (Debian and Ubuntu: apt install chromium)"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, started once for all tests."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()
