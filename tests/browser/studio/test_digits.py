"""The page Digits in a real browser: drawn by mouse and by keyboard, its numbers compared with the library's."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import pytest

from groundup import inside
from groundup.inside_layers import Layered
from groundup.studio.digits import networks
from shared.data.datasets import load_dataset
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_run

THREE = [(0.3, 0.2), (0.45, 0.12), (0.6, 0.18), (0.64, 0.3), (0.55, 0.42), (0.42, 0.47)]
THREE += [(0.56, 0.5), (0.66, 0.6), (0.66, 0.74), (0.55, 0.85), (0.4, 0.86), (0.28, 0.78)]
"""A 3 on the pad, in shares of its side."""

SEEN = """async () => {
  const canvas = document.querySelector("#input canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, 28, 28);
  return Array.from({ length: 784 }, (_, i) => data[4 * i + 3]);
}"""
"""The pixels that the page shows as the network's input: the ink is in the picture's alpha."""


def draw(page, points):
    box = page.locator("#pad canvas").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=3)
    page.mouse.up()


def opened(browser_page, **how):
    page = browser_page("digits", **how)
    page.wait_for_selector("#floors:not(:has-text('being prepared'))", timeout=120_000)
    return page


def answered(page):
    page.wait_for_selector("body[data-done]", timeout=30_000)
    return page.locator("#floors tr").all_inner_texts()


def as_library(pixels):
    """(scores, gradient of the winner's lead) of the shipped network."""
    checkpoint = networks.load(networks.SHIPPED, networks.DEFAULT).checkpoint
    x = np.array([pixels], np.float32) / np.float32(255)
    scores = inside.scores(checkpoint.parameters, "relu", x)
    winner, rival = np.argsort(-scores[0])[:2]
    slopes = [inside.saliency(checkpoint.parameters, "relu", x, np.array([each]))[0] for each in (winner, rival)]
    return scores, slopes[0] - slopes[1]


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_drawn_digit_is_answered_on_every_floor_with_the_librarys_numbers(browser_page, width, look):
    page = opened(browser_page, width=width, look=look)
    draw(page, THREE)
    rows = answered(page)
    assert page.inner_text("#answer").startswith("It is a 3, with a probability of")
    assert [row.split("\t")[1] for row in rows if "\t" in row] == ["3"] * len(rows)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
    scores, _ = as_library(page.evaluate(SEEN))
    probabilities = inside.probabilities(scores)[0]
    shown = page.locator("#bars li .number").all_inner_texts()
    for share, text in zip(probabilities, shown, strict=True):
        assert text == ("> 99.9 %" if share > 0.9995 else "< 0.1 %" if share < 0.0005 else f"{100 * share:.1f} %")
    assert f"The score of 3 is {scores.max():.4g}" in page.inner_text("#winner")


@pytest.mark.parametrize("width", [1000, 1280])
def test_the_table_of_the_stages_shows_all_its_columns(browser_page, width):
    page = opened(browser_page, width=width)
    draw(page, THREE)
    answered(page)
    assert page.locator(".floors .scroll").evaluate("each => each.scrollWidth <= each.clientWidth")


def test_by_keyboard_alone_a_one_is_drawn_told_and_taken_back(browser_page, studio_server):
    page = opened(browser_page)
    pad = page.locator("#pad canvas")
    for _ in range(30):
        page.keyboard.press("Tab")
        if pad.evaluate("each => each === document.activeElement"):
            break
    for key in ["ArrowUp"] * 9 + [" "] + ["ArrowDown"] * 18 + [" "]:
        page.keyboard.press(key)
    answered(page)
    assert page.inner_text("#answer").startswith("It is a 1")
    told = page.get_by_role("button", name="1", exact=True)
    told.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#own-count")
    assert page.inner_text("#own-count").startswith("Your set holds 1 drawing, in ")
    data = load_dataset("mnist", studio_server.studio.folder / "my-digits")
    assert data.train.y[-1] == 1
    np.testing.assert_array_equal(data.train.x[-1], np.array(page.evaluate(SEEN), np.float32) / np.float32(255))
    page.get_by_role("button", name="Take the newest one back").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Your set holds no drawing yet.")
    pad.focus()
    page.keyboard.press("Delete")
    assert page.inner_text("#answer") == "Draw something."


def test_a_neuron_is_chosen_by_keyboard(browser_page):
    page = opened(browser_page)
    draw(page, THREE)
    answered(page)
    page.locator("svg.layers").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.inner_text("#neuron").startswith("Neuron 0 of hidden layer 1")
    x = np.array([page.evaluate(SEEN)], np.float32) / np.float32(255)
    parameters = networks.load(networks.SHIPPED, networks.DEFAULT).checkpoint.parameters
    output = float(inside.hidden_activations(parameters, "relu", x)[0][0, 0])
    said = float(page.inner_text("#neuron").split("Its output is ")[1].split(". ")[0])
    assert said == pytest.approx(output, rel=0.01)


def test_a_run_with_a_hostile_name_is_text(browser_page, studio_server):
    name = "<img src=x onerror=alert(1)>"
    a_run(studio_server.studio.folder / "runs" / name, [784, 4, 10], {"dataset": name})
    page = browser_page("digits")
    page.wait_for_selector("#network option:nth-child(2)", state="attached")
    assert page.locator("#network option").all_inner_texts()[1] == f"{name}: 784-4-10 relu"
    page.select_option("#network", name)
    page.wait_for_selector("#about:has-text('784-4-10')")
    assert page.inner_text("#about") == f"784-4-10 relu: 2 epochs of {name} by stage 2: NumPy."
    assert page.locator("img").count() == 0


def test_a_convolutional_network_shows_what_speaks_for_its_answer(browser_page, studio_server):
    a_run(studio_server.studio.folder / "runs" / "convolves", SMALL_CNN)
    page = opened(browser_page)
    assert page.is_hidden("#evidence-panel")
    page.select_option("#network", "convolves")
    page.wait_for_selector("#evidence-panel:visible")
    draw(page, THREE)
    page.wait_for_selector("#evidence:has-text('speaks for')", timeout=60_000)
    answer = page.inner_text("#answer").removeprefix("It is a ").partition(",")[0]
    pixels = page.evaluate(SEEN)
    trained = networks.load(studio_server.studio.folder / "runs", "convolves")
    network = Layered(trained.checkpoint, trained.checkpoint.architecture)
    x = np.array([pixels], np.float32) / np.float32(255)
    places = network.evidence(x, np.array([int(answer)]))
    assert places.any()
    assert page.inner_text("#evidence p") == (
        f"Orange: what lies here in the last maps, 24 by 24 of them, speaks for {answer}."
    )
    assert page.get_attribute("#evidence .places", "width") == "24"
    page.uncheck("#evidence input")
    assert page.is_hidden("#evidence .places")
    page.check("#evidence input")
    assert page.is_visible("#evidence .places")


def test_a_run_that_ends_while_the_page_is_open_can_be_chosen(browser_page, studio_server):
    page = opened(browser_page)
    a_run(studio_server.studio.folder / "runs" / "default", [784, 4, 10])
    page.locator("#network").focus()
    page.wait_for_selector("#network option:nth-child(2)", state="attached")
    assert page.locator("#network option").all_inner_texts() == [
        "784-128-10 relu, from groundup",
        "default: 784-4-10 relu",
    ]
    assert page.input_value("#network") == "/shipped"
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#about:has-text('784-4-10')")


CENTRED = """async ([images, size]) => {
  const { centred } = await import("/static/digits/centre.js");
  const found = images.map(ink => centred(ink, size, [1, 28, 28]));
  return found.map(each => each && { ...each, pixels: [...each.pixels], ink: [] });
}"""


def test_mnists_own_digits_are_left_where_they_are(browser_page):
    """They have been centred in the same way: most come back pixel by pixel, and none moves by more than one pixel."""
    page = browser_page("digits")
    images = np.rint(load_dataset().test.x[:100] * 255).astype(int)
    found = page.evaluate(CENTRED, [images.tolist(), 28])
    same = sum(np.array_equal(each["pixels"], image) for each, image in zip(found, images, strict=True))
    assert same >= 80
    assert all(abs(each["down"]) <= 1.5 and abs(each["right"]) <= 1.5 for each in found)


@pytest.mark.parametrize("shift", [(0, 0), (5, -7)])
def test_a_drawing_is_scaled_into_the_box_and_centred_by_its_mass(browser_page, shift):
    """A bar of 60 by 20 points on a pad of 280, with a heavier end: 20 by 7 pixels, its centre of mass at (14, 14)."""
    page = browser_page("digits")
    ink = np.zeros((280, 280), int)
    down, right = shift
    ink[100 + down : 160 + down, 50 + right : 70 + right] = 255
    ink[100 + down : 120 + down, 50 + right : 70 + right] = 128
    found, nothing = page.evaluate(CENTRED, [[ink.ravel().tolist(), [0] * 280**2], 280])
    assert nothing is None
    pixels = np.array(found["pixels"]).reshape(28, 28)
    rows, columns = np.flatnonzero(pixels.any(1)), np.flatnonzero(pixels.any(0))
    assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == (20, 7)
    mass = pixels.sum()
    assert abs((pixels.sum(1) * np.arange(28)).sum() / mass - 14) <= 0.5
    assert abs((pixels.sum(0) * np.arange(28)).sum() / mass - 14) <= 0.5
    assert found["scale"] == pytest.approx(20 / 6)
    assert "scaled by 3.33" in found["words"]


NUMBERS = ("#answer", "#bars", "#floors", "#apart", "#winner", "#pull", "#nearest", "#neuron")


def numbers(page):
    """The texts of all places that show numbers of a drawing; of #neuron and #floors only what a drawing gives."""
    texts = {place: page.inner_text(place) for place in NUMBERS}
    return {place: text for place, text in texts.items() if any(letter.isdigit() for letter in without_names(text))}


def without_names(text):
    """The text without what is known without a drawing: names of classes, floors and neurons."""
    for known in ("stage 1", "stage 2", "stage 3", "stage 4", *(f"\n{digit}" for digit in range(10))):
        text = f"\n{text}".replace(known, "")
    return text


@contextmanager
def held(page, address):
    """Hold the studio's answers at an address back."""
    routes = []
    page.route(f"**{address}*", lambda route: routes.append(route))
    yield
    for route in routes:
        route.continue_()
    page.unroute(f"**{address}*")


def test_after_clear_nothing_of_the_drawing_is_left(browser_page):
    page = opened(browser_page)
    first = {place: page.inner_text(place) for place in (*NUMBERS[:2], *NUMBERS[3:], "#done")}
    draw(page, THREE)
    answered(page)
    assert set(numbers(page)) >= {"#answer", "#floors", "#winner", "#nearest"}
    page.click("#clear")
    assert {place: page.inner_text(place) for place in first} == first
    assert numbers(page) == {}
    assert page.locator("svg.layers .ink, svg.layers .lines line, svg.layers .winner").count() == 0
    assert page.locator("svg.layers circle[style*='rgb']").count() == 0


@pytest.mark.parametrize(
    "address", ["/api/digits/network", "/api/digits/floors", "/api/digits/answer", "/api/digits/reasons"]
)
def test_after_a_change_of_network_nothing_of_the_one_before_is_shown(address, browser_page, studio_server):
    folder = studio_server.studio.folder / "runs"
    a_run(folder / "clothes", [784, 4, 10], {"dataset": "fashion-mnist"})
    page = opened(browser_page)
    draw(page, THREE)
    answered(page)
    with held(page, address):
        page.select_option("#network", "clothes")
        page.wait_for_timeout(300)
        assert set(numbers(page)) <= ({"#answer", "#bars", "#floors"} if address.endswith("reasons") else set())
        assert "The score of 3" not in page.inner_text("#winner")
        assert page.locator("svg.layers .lines line").count() == 0
    page.wait_for_function(
        "() => document.querySelector('#nearest').textContent.includes('fashion-mnist')", timeout=60_000
    )
    assert page.inner_text("#nearest").startswith("This network learned from 'fashion-mnist'; only the images of MNIST")
    assert "It is a 3" not in page.inner_text("#answer")


def test_a_drawing_that_is_not_answered_yet_has_no_numbers(browser_page):
    page = opened(browser_page)
    draw(page, THREE)
    answered(page)
    with held(page, "/api/digits/answer"):
        draw(page, [(0.5, 0.1), (0.5, 0.9)])
        page.wait_for_timeout(300)
        assert numbers(page) == {}
    page.wait_for_function(
        "() => document.querySelector('#winner').textContent.includes('The score of')", timeout=60_000
    )


def test_a_run_that_has_trained_on_is_loaded_again_before_it_answers(browser_page, studio_server):
    folder = studio_server.studio.folder / "runs" / "mine"
    a_run(folder, [784, 4, 10])
    page = opened(browser_page)
    page.select_option("#network", "mine")
    page.wait_for_selector("#about:has-text('784-4-10')")
    a_run(folder, [784, 6, 10])
    draw(page, THREE)
    page.wait_for_selector("#about:has-text('784-6-10')")
    page.wait_for_function(
        "() => document.querySelector('#winner').textContent.includes('a sum of 6 products')", timeout=60_000
    )
    assert page.locator("svg.layers .unit0").count() == 6


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (1000, "dark"), (390, "light")])
def test_probabilities_are_seen_logarithmically_too(browser_page, width, look):
    page = opened(browser_page, width=width, look=look)
    draw(page, THREE)
    answered(page)
    lengths = "nodes => nodes.map(node => parseFloat(node.style.width))"
    plain = page.locator("#bars .bar span").evaluate_all(lengths)
    page.check("#log-bars")
    shown = page.locator("#bars .bar span").evaluate_all(lengths)
    expected = [max(0.0, 100 * (1 + math.log10(each / 100) / 6)) if each else 0.0 for each in plain]
    assert shown == pytest.approx(expected, abs=0.5)
    assert sum(each > 5 for each in shown) > sum(each > 5 for each in plain)
    assert not scrolls_sideways(page)


LABELS = """async classes => {
  const { makeLayers } = await import("/static/digits/layers.js");
  const server = await import("/static/digits/server.js");
  const network = { ...await server.network(document.getElementById("network").value), classes };
  const node = document.getElementById("layers");
  makeLayers(node, network, () => {});
  const frame = node.querySelector("svg").getBoundingClientRect();
  return [...node.querySelectorAll("text")].filter(each => {
    const box = each.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
  }).map(each => each.textContent);
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_names_of_classes_are_not_cut(browser_page, width):
    page = opened(browser_page, width=width)
    names = ["T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
    assert page.evaluate(LABELS, names) == []
    assert page.locator("#layers text").all_text_contents() == names
