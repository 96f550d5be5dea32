"""The page Convolution as one file: its JavaScript gives the studio's numbers, and it needs no server."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from groundup.studio.convolution import networks
from groundup.studio.convolution.desk import Desk
from groundup.studio.export import export
from shared.machine.processes import ROOT
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.browser.studio.test_convolution import click, clicked, number_of, place, value
from tests.browser.studio.test_digits import THREE, draw
from tests.browser.studio.test_export import opened_file  # noqa: F401 (a fixture)
from tests.groundup.studio.convolution.made_networks import a_run
from tests.groundup.studio.convolution.test_routes import unpacked
from tests.groundup.studio.digits.made_runs import a_drawing

COLUMN = 736
"""Width of the book's text on a desktop, in CSS pixels."""

ASKED = """async ({ pixels, chosen, places }) => {
  const { offline } = await import("convolution/offline.js");
  const { embedded } = await import("common/embedded.js");
  const source = offline(embedded());
  const asked = { pixels, class: chosen };
  const plain = ({ shape, values }) => ({ shape, values: [...values] });
  const maps = await source.maps(asked);
  const outputs = Object.fromEntries(Object.entries(maps.outputs).map(([layer, each]) => [layer, plain(each)]));
  const clicks = [];
  for (const [layer, channel, row, column] of places) {
    const found = await source.pixel({ ...asked, layer, channel, row, column });
    for (const name of ["inputs", "back", "weights"])
      if (found[name]) found[name] = found[name].map((map) => map.map((line) => [...line]));
    clicks.push({ ...found, field: plain(found.field) });
  }
  return { ...maps, x: plain(maps.x), outputs, evidence: plain(maps.evidence), clicks };
}"""


def same(found: Any, expected: Any, where: str) -> None:
    """Numbers are equal but for the rounding of float32, measured by the largest of them; words are equal."""
    if isinstance(expected, dict) and "base64" in expected:
        found, expected = np.reshape(found["values"], found["shape"]), unpacked(expected)
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for name in expected:
            same(found[name], expected[name], f"{where} {name}")
    elif isinstance(expected, str) or expected is None:
        assert found == expected, where
    else:
        largest = float(np.abs(expected).max(initial=0))
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * largest, err_msg=where)


@pytest.mark.parametrize("name", [networks.SHIPPED, networks.SMALL, "every kind"])
def test_the_engine_in_javascript_answers_as_the_studio(opened_file, tmp_path, monkeypatch, name):  # noqa: F811
    runs = tmp_path / "runs"
    options = {"network": name} if name in networks.FILES else {"run": a_run(runs / "mine")}
    name = name if name in networks.FILES else "mine"
    desk, page = Desk(runs), opened_file("convolution", options)
    monkeypatch.setattr(desk.stages, "prepare", lambda dtype: None)
    layers = [each for each in desk.described(name)["layers"] if len(each["shape"]) == 3]
    random = np.random.default_rng(3)
    ends = [[each["number"], *(extent - 1 for extent in each["shape"])] for each in layers]
    inside = [[each["number"], *random.integers(0, each["shape"]).tolist()] for each in layers for _ in range(4)]
    places = [*([each["number"], 0, 0, 0] for each in layers), *ends, *inside]
    for digit, chosen in ((5, None), (2, 7)):
        body = {"network": name, "pixels": a_drawing(digit).tolist(), "class": chosen}
        found = page.evaluate(ASKED, {"pixels": body["pixels"], "chosen": chosen, "places": places})
        clicks = found.pop("clicks")
        same(found, desk.maps(body), name)
        for at, answer in zip(places, clicks, strict=True):
            expected = desk.clicked({**body, **dict(zip(("layer", "channel", "row", "column"), at, strict=True))})
            assert answer.pop("stages") == []
            expected = {field: each for field, each in expected.items() if field not in ("stages", "allowed")}
            expected["function"] = expected["function"] and list(expected["function"])
            assert answer.pop("function") == expected.pop("function")
            same(answer, expected, f"{name} {at}")


@pytest.mark.parametrize("week", range(19, 25))
def test_each_frame_of_the_book_shows_every_layer_without_scrolling(chromium, tmp_path, week):
    text = (ROOT / "docs" / "weeks" / f"week{week}.md").read_text(encoding="utf-8")
    frames = re.findall(r"^```\{studio\} convolution\n:title: .+\n:settings: (.+)\n:height: (\d+)$", text, re.MULTILINE)
    assert len(frames) == text.count("```{studio} convolution") >= 1
    for settings, height in frames:
        options = {
            name: each if each.startswith("/") else int(each) for name, each in re.findall(r"(\w+)=(\S+)", settings)
        }
        export("convolution", tmp_path / "page.html", options)
        frame = f'<iframe src="page.html" style="border:0;width:{COLUMN}px;height:{height}px"></iframe>'
        (tmp_path / "book.html").write_text(f"<!DOCTYPE html><title></title>{frame}")
        page = chromium.new_page(viewport={"width": 800, "height": 1000})
        page.goto((tmp_path / "book.html").as_uri())
        inside = page.frames[1]
        inside.wait_for_selector("body[data-clicked]")
        shown = place(inside)
        assert all(
            options.get(name, 0) == at for name, at in zip(("channel", "row"), shown, strict=False) if name in options
        )
        for button in inside.locator("#row button").all():
            clicked(inside, button.click)
            assert inside.evaluate("document.querySelector('main').offsetHeight") <= int(height), button.inner_text()
            assert not scrolls_sideways(inside)
            assert (
                inside.evaluate("(each => each.scrollWidth - each.clientWidth)(document.querySelector('.scroll'))") == 0
            )
        page.close()


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_pixel_is_clicked_and_a_digit_drawn_without_a_server(opened_file, width, look):  # noqa: F811
    opening = {"layer": 4, "channel": 1, "row": 6, "column": 3, "digit": 2, "class": 7}
    page = opened_file("convolution", opening, width, look)
    page.wait_for_selector("body[data-clicked]")
    page.wait_for_selector("#evidence:has-text('speak for 7')")
    assert place(page) == (1, 6, 3)
    assert page.get_by_role("button", name="Take a 2").get_attribute("aria-pressed") == "true"
    click(page, 2, 5, 10, 10)
    assert place(page) == (1, 2, 5)
    assert f"= {page.inner_text('#now').split(': ')[1].rstrip('.')}" in page.inner_text("#working .sum")
    clicked(page, lambda: page.keyboard.press("ArrowRight"))
    assert place(page) == (1, 2, 6)
    clicked(page, lambda: page.locator("#row button[aria-label^='Layer 5 ']").click())
    assert place(page) == (1, 2, 6), "another layer of the same shape keeps the place"
    clicked(page, lambda: page.locator("#row button[aria-label^='Layer 6 ']").click())
    assert number_of(page.inner_text("#working table:nth-of-type(1) td.winner")) == pytest.approx(value(page), rel=0.06)
    page.evaluate("scrollTo(0, 0)")
    clicked(page, lambda: draw(page, THREE))
    assert page.inner_text("#answer").startswith("It is 3")
    assert page.locator("#stages").is_hidden()
    assert page.locator("#network").is_hidden()
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
