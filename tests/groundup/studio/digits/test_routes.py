"""The addresses of the page Digits, asked as the page asks them, and with nonsense."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from groundup.studio.digits.networks import DEFAULT
from shared.data.datasets import load_dataset
from tests.groundup.studio.digits.made_runs import a_drawing, a_run

PIXELS = a_drawing(3).tolist()


def test_the_page_gets_a_network_with_its_parameters(studio_server):
    (default,) = studio_server.get("/api/digits/networks")["networks"]
    network = studio_server.get("/api/digits/network?name=/shipped")
    assert (network["title"], network["about"]) == (default["title"], default["about"])
    assert network["sizes"] == [784, 128, 10]
    assert [each["shape"] for each in network["parameters"]] == [[784, 128], [128], [128, 10], [10]]


def test_a_floor_answers_and_says_what_led_to_it(studio_server):
    asked = {"network": DEFAULT, "pixels": PIXELS}
    (answer,) = studio_server.post("/api/digits/answer", {**asked, "floors": [2]})["answers"]
    assert np.argmax(answer["probabilities"]) == load_dataset().test.y[3]
    found = studio_server.post("/api/digits/reasons", asked)
    assert found["winner"] == load_dataset().test.y[3]
    assert found["pull"]["shape"] == [784]


def test_the_nearest_training_images_are_those_of_a_plain_search(studio_server):
    found = studio_server.post("/api/digits/nearest", {"pixels": PIXELS})
    train = load_dataset().train
    distances = np.sqrt(np.sum((train.x.astype(np.float64) - np.array(PIXELS) / 255) ** 2, axis=1))
    assert found["of"] == 6000
    assert [each["index"] for each in found["nearest"]] == np.argsort(distances)[:8].tolist()
    np.testing.assert_allclose([each["distance"] for each in found["nearest"]], np.sort(distances)[:8], rtol=1e-5)
    for each in found["nearest"]:
        assert each["label"] == train.y[each["index"]]
        pixels = np.frombuffer(base64.b64decode(each["pixels"]), np.uint8)
        np.testing.assert_array_equal(pixels / np.float32(255), train.x[each["index"]])


def test_a_drawing_is_told_and_taken_back(studio_server):
    assert studio_server.get("/api/digits/own")["count"] == 0
    assert studio_server.post("/api/digits/tell", {"pixels": PIXELS, "label": 4})["count"] == 1
    assert (studio_server.studio.folder / "my-digits").is_dir()
    assert studio_server.post("/api/digits/take-back")["count"] == 0


@pytest.mark.parametrize(
    ("pixels", "sentence"),
    [
        (None, "pixels: expected a list of 784 numbers, 28 rows of 28, got NoneType"),
        ([0] * 783, "pixels: expected a list of 784 numbers, 28 rows of 28, got a list of 783"),
        ([0] * 784, "pixels: the drawing is empty; draw a digit first"),
        ([256] + [0] * 783, "pixels: expected whole numbers from 0 to 255, but number 0 is 256"),
        ([0.5] + [0] * 783, "pixels: expected whole numbers from 0 to 255, but number 0 is 0.5"),
        ([True] + [0] * 783, "pixels: expected whole numbers from 0 to 255, but number 0 is True"),
    ],
)
@pytest.mark.parametrize("action", ["answer", "reasons", "nearest", "tell"])
def test_a_drawing_that_is_none_is_refused(studio_server, action, pixels, sentence):
    body = {"network": DEFAULT, "floors": [2], "label": 1, "pixels": pixels}
    assert studio_server.refused(f"/api/digits/{action}", body) == sentence


def test_a_network_that_is_not_there_is_refused(studio_server):
    a_run(studio_server.studio.folder / "secret", [784, 4, 10])
    for name in ("../secret", "nothing", [DEFAULT], None):
        body = {"network": name, "pixels": PIXELS, "floors": [2]}
        assert "network: there is no run" in studio_server.refused("/api/digits/answer", body)
    assert "network: there is no run" in studio_server.refused("/api/digits/network?name=../secret")
    assert "floors: expected a list" in studio_server.refused("/api/digits/answer", {"pixels": PIXELS, "floors": 2})


@pytest.mark.parametrize(
    ("dataset", "why"),
    [
        ("fashion-mnist", "This network learned from 'fashion-mnist'; only the images of MNIST's bundled subset"),
        (None, "The network's file does not say what it learned from; only the images"),
        ("my own", "This network learned from 'my own'; only the images"),
        ("mnist", ""),
    ],
)
def test_only_a_network_of_digits_has_nearest_images_of_mnist(studio_server, dataset, why):
    a_run(studio_server.studio.folder / "runs" / "other", [784, 4, 10], {"dataset": dataset})
    found = studio_server.post("/api/digits/nearest", {"network": "other", "pixels": PIXELS})
    assert found["why"].startswith(why)
    assert len(found["nearest"]) == (0 if why else 8)


def test_an_answer_says_which_version_of_a_run_it_is_of(studio_server):
    folder = studio_server.studio.folder / "runs" / "mine"
    a_run(folder, [784, 4, 10])
    question = {"network": "mine", "pixels": PIXELS}

    def versions():
        network = studio_server.get("/api/digits/network?name=mine")["version"]
        answers = studio_server.post("/api/digits/answer", {**question, "floors": [2]})["answers"]
        return {network, answers[0]["version"], studio_server.post("/api/digits/reasons", question)["version"]}

    before = versions()
    a_run(folder, [784, 6, 10])
    after = versions()
    assert len(before) == len(after) == 1
    assert before != after
