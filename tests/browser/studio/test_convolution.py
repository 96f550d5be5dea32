"""The page Convolution in a real browser: clicked, moved by keys, and its numbers compared with the library's."""

from __future__ import annotations

import numpy as np
import pytest

from groundup.studio.convolution import networks
from groundup.studio.convolution.passes import LayeredPasses
from groundup.studio.convolution.pixel import pixel
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways, until
from tests.browser.studio.test_digits import THREE, draw
from tests.groundup.studio.convolution.made_networks import EVERY_KIND, a_run, made

MINUS = "\u2212"
SEEN = """() => {
  const { data } = document.querySelector("#evidence canvas").getContext("2d").getImageData(0, 0, 28, 28);
  return Array.from({ length: 784 }, (_, i) => data[4 * i + 3]);
}"""
"""The drawing: its ink is in the picture's alpha."""


def opened(browser_page, network="", **how):
    """The page with its first digit, when all stages are ready; network: chosen in the list."""
    page = browser_page("convolution", **how)
    if network:
        page.wait_for_selector("body[data-clicked]", timeout=60_000)
        clicked(page, lambda: page.select_option("#network", network))
    page.wait_for_selector("#verdict:has-text('stages computed it')", timeout=120_000)
    page.wait_for_selector("#stages:not(:has-text('being prepared'))", timeout=120_000)
    return page


def number_of(text):
    return float(text.replace(MINUS, "-").replace(",", ""))


def value(page):
    """The number that the page names in its sentence, "Map 0. Row 1, column 2: 3.5."."""
    return number_of(page.inner_text("#now").split(": ")[1].rstrip("."))


def place(page):
    """(map, row, column) of the same sentence."""
    words = page.inner_text("#now").replace(",", "").replace(".", "").replace(":", "").split()
    return int(words[1]), int(words[3]), int(words[5])


def clicked(page, action):
    """Do something, and wait until the number that it chooses is shown."""
    page.evaluate("delete document.body.dataset.clicked")
    action()
    page.wait_for_selector("body[data-clicked]", timeout=60_000)


def click(page, row, column, rows, columns):
    shown = page.locator("#working .map.live")
    box = shown.bounding_box()
    at = {"x": (column + 0.5) * box["width"] / columns, "y": (row + 0.5) * box["height"] / rows}
    clicked(page, lambda: shown.click(position=at))


def cells(page, table):
    rows = page.locator(f"#working table:nth-of-type({table}) tr").all()
    return np.array([[number_of(cell) for cell in row.locator("td").all_inner_texts()] for row in rows])


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_clicked_pixel_shows_the_librarys_numbers(browser_page, width, look):
    page = opened(browser_page, width=width, look=look)
    clicked(page, lambda: page.locator("#row button[aria-label^='Layer 4 ']").click())
    click(page, 6, 3, 10, 10)
    assert place(page) == (0, 6, 3)
    network = LayeredPasses(networks.load(None, networks.SHIPPED))
    found = pixel(network, network.passed(bytes(page.evaluate(SEEN)), None), "4", 0, 6, 3)
    assert value(page) == pytest.approx(found.value, rel=1e-3)
    sums = found.as_json()["sums"]
    assert page.input_value("#working input") == str(np.abs(sums).argmax())
    window, weights, products = (cells(page, i) for i in (1, 2, 3))
    shown = np.abs(sums).argmax()
    np.testing.assert_allclose(window, found.inputs[shown], rtol=0.06, atol=1e-6)
    np.testing.assert_allclose(weights, found.weights[shown], rtol=0.06, atol=1e-6)
    np.testing.assert_allclose(products, found.inputs[shown] * found.weights[shown], rtol=0.06, atol=1e-6)
    assert f"= {found.value:.4g}".replace("-", MINUS) in page.inner_text("#working .sum")
    assert "It depends on 196 of 784 pixels: rows 10 to 23, columns 4 to 17." in page.inner_text("#working")
    values = page.locator("#stages tbody td:nth-child(2)").all_inner_texts()
    assert len(values) == 4
    assert all(number_of(each) == pytest.approx(found.value, rel=1e-5) for each in values)
    assert "They agree" in page.inner_text("#verdict")
    page.wait_for_selector("#code summary:has-text('conv2d')")
    assert page.locator("#code > div").count() == 4
    assert page.locator("#form img").get_attribute("alt").startswith("The layers of LeNet-5")
    page.wait_for_function("document.querySelector('#form img').naturalWidth > 100")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_the_keys_move_the_pixel_and_choose_the_map(browser_page):
    page = opened(browser_page)
    page.locator("#row button").first.focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    clicked(page, lambda: page.keyboard.press("Enter"))
    assert page.inner_text("#number-title") == "One number of layer 3, MaxPool(2)"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#working .map.live')"):
            break
    click(page, 5, 5, 14, 14)
    for key, expected in [
        *(("ArrowRight", (0, 5, 6)), ("ArrowDown", (0, 6, 6)), ("ArrowLeft", (0, 6, 5)), ("ArrowUp", (0, 5, 5))),
        *(("PageDown", (1, 5, 5)), ("PageUp", (0, 5, 5)), ("PageUp", (5, 5, 5))),
    ]:
        clicked(page, lambda key=key: page.keyboard.press(key))
        assert place(page) == expected
        assert page.evaluate("document.activeElement.matches('#working .map.live')")
    for _ in range(16):
        clicked(page, lambda: page.keyboard.press("ArrowUp"))
    assert place(page) == (5, 0, 5)


def test_a_runs_pool_norm_and_block_show_what_they_compute(browser_page, studio_server):
    a_run(studio_server.studio.folder / "runs" / "mine")
    page = opened(browser_page, "mine")
    network = made(EVERY_KIND)
    passed = network.passed(bytes(page.evaluate(SEEN)), None)
    for number, title in (("4", "MaxPool"), ("2", "batch norm"), ("5", "sum"), ("6", "AveragePool")):
        clicked(page, lambda number=number: page.locator(f"#row button[aria-label^='Layer {number} ']").click())
        assert title.lower().split()[0][:3] in page.inner_text("#number-title").lower() or number == "5"
        found = pixel(network, passed, number, *place(page))
        assert value(page) == pytest.approx(found.value, rel=1e-3)
        if number == "4":
            assert number_of(page.inner_text("#working table:nth-of-type(1) td.winner")) == pytest.approx(
                found.value, rel=0.06
            )
            way_back = cells(page, 2)
            assert np.count_nonzero(way_back) == np.count_nonzero(found.back) <= 1
            np.testing.assert_allclose(way_back, found.back[0], rtol=0.06)
        elif number == "2":
            steps = page.locator("#working tr").all_inner_texts()
            assert len(steps) == 5
            assert number_of(steps[0].split("\t")[1]) == pytest.approx(found.inputs.item(), rel=1e-3)
            assert number_of(steps[4].split("\t")[1]) == pytest.approx(found.value, rel=1e-3)
        elif number == "5":
            assert f"{found.numbers['through']:.4g}".replace("-", MINUS) in page.inner_text("#working .sum")
            assert page.locator("#stages table").count() == 0
    assert contrast_failures(page) == []


def test_a_drawing_goes_through_the_network_and_a_class_is_chosen(browser_page):
    page = opened(browser_page)
    clicked(page, lambda: draw(page, THREE))
    assert page.inner_text("#answer").startswith("It is 3")
    assert page.input_value("#class") == "3"
    before = page.locator("#evidence .heat").evaluate("each => each.toDataURL()")
    clicked(page, lambda: page.select_option("#class", "8"))
    assert "speak for 8" in page.inner_text("#evidence")
    assert page.locator("#evidence .heat").evaluate("each => each.toDataURL()") != before
    page.click("#clear")
    assert page.locator("#inside").is_hidden()
    assert page.inner_text("#answer") == "Draw something."
    clicked(page, lambda: page.get_by_role("button", name="Take a 7").click())
    assert page.inner_text("#answer").startswith("It is 7")


def test_the_untrained_residual_network_has_all_its_layers(browser_page):
    page = opened(browser_page, "/residual_cnn", width=390, look="dark")
    assert page.locator("#row .column").count() == 1 + 26
    assert page.locator("#row .inner").count() == 10
    assert "untrained, its weights are random" in page.inner_text("#about")
    clicked(page, lambda: page.locator("#row button[aria-label^='Layer 10.4 ']").click())
    assert "It depends on" in page.inner_text("#working")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_the_first_sentence_leads_to_the_maps(browser_page):
    page = browser_page("convolution")
    page.wait_for_selector("body[data-clicked]", timeout=60_000)
    page.click("text=a map below")
    until(page, "() => Math.abs(document.getElementById('row-title').getBoundingClientRect().top) < 40")


def test_the_ink_of_test_images_follows_the_colour_scheme(browser_page):
    page = browser_page("convolution", look="light")
    page.wait_for_selector("#digits canvas", timeout=60_000)
    picture = "document.querySelector('#digits canvas').toDataURL()"
    light = page.evaluate(picture)
    page.emulate_media(color_scheme="dark")
    until(page, f"light => {picture} !== light", light)
