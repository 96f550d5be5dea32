"""The page of a service, groundup serve, in a real browser."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.browser.studio.conftest import contrast_failures, scrolls_sideways
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_drawing, a_run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a service of two networks: convolves, and ranks, whose loss gives no probabilities."""
    folder = tmp_path_factory.mktemp("serve")
    notes = {"dataset": "mnist-subset", "data_dir": None}
    a_run(folder / "convolves", SMALL_CNN, notes)
    a_run(folder / "ranks", [784, 6, 10], notes, loss="mean_squared_error")
    program = [sys.executable, "-m", "groundup", "serve", folder / "convolves", folder / "ranks", "--port", "0"]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("http"))
    yield line.split("/ answers")[0]
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_page_answers_for_a_picture_and_says_what_it_shows(look: str, address: str, chromium: Any) -> None:
    file = io.BytesIO()
    Image.fromarray(255 - a_drawing(3).reshape(28, 28)).resize((40, 30)).save(file, "PNG")
    context = chromium.new_context(viewport={"width": 390, "height": 900}, color_scheme=look)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    assert f"curl -F image=@seven.png {address}/classify" in page.inner_text("main")
    page.set_input_files("#image", {"name": "three.png", "mimeType": "image/png", "buffer": file.getvalue()})
    page.select_option("#model", "convolves")
    page.click("button")
    page.wait_for_selector("#evidence figcaption")
    assert "resized from 40 by 30 to 28 by 28 pixels" in page.inner_text("#answer")
    assert "no probabilities" not in page.inner_text("#answer")
    assert page.evaluate("document.getElementById('explained').naturalWidth") == 2 * 224 + 36
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
    page.select_option("#model", "ranks")
    page.click("button")
    page.wait_for_selector("#answer:has-text('needs a convolution')")
    assert "rank the classes and are no probabilities" in page.inner_text("#answer")
    assert not page.is_visible("#evidence")
    context.close()
    assert wrong == []
