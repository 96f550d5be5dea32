"""The page's questions and actions, answered by a running studio."""

from __future__ import annotations

import base64
import shutil

import numpy as np
import pytest

from groundup.studio.convolution.field import receptive_field
from groundup.studio.convolution.pixel import pixel
from shared.architectures import named
from shared.machine.processes import ROOT
from tests.groundup.studio.convolution.made_networks import EVERY_KIND, a_run, made
from tests.groundup.studio.digits.made_runs import a_drawing
from tests.groundup.studio.digits.made_runs import a_run as a_dense_run

PIXELS = a_drawing(3).tolist()
ASKED = {"network": "mine", "pixels": PIXELS, "layer": "5.1", "channel": 1, "row": 2, "column": 3}


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["base64"]), "<f4").reshape(packed["shape"])


@pytest.fixture
def mine(studio_server):
    a_run(studio_server.studio.folder / "runs" / "mine")
    return studio_server


def test_the_networks_are_the_known_ones_and_the_convolutional_runs(mine):
    a_dense_run(mine.studio.folder / "runs" / "dense", [784, 4, 10])
    networks = mine.get("/api/convolution/networks")["networks"]
    assert [(each["name"], each["title"]) for each in networks] == [
        ("/lenet5", "LeNet-5, from groundup"),
        *(("/small_residual_cnn", "A small residual CNN, from groundup"), ("mine", "mine: 10 layers")),
        *(("/fashion_cnn", "Fashion CNN, untrained"), ("/residual_cnn", "Residual CNN, untrained")),
    ]
    assert "dense has no convolution" in mine.refused("/api/convolution/network?name=dense")
    assert "network: there is no run '../mine'" in mine.refused("/api/convolution/network?name=../mine")
    assert "there is no run ''" in mine.refused("/api/convolution/network")


@pytest.mark.parametrize("name", ["lenet5", "fashion_cnn", "residual_cnn"])
def test_a_known_network_has_its_layers_and_filters(studio_server, name):
    network = studio_server.get(f"/api/convolution/network?name=/{name}")
    placed = named(name).placed()
    assert [(each["number"], tuple(each["shape"])) for each in network["layers"]] == [
        (each.number, each.output_shape) for each in placed
    ]
    shapes = [each["weights"]["shape"] for each in network["layers"] if "weights" in each]
    assert shapes == [list(each) for each in named(name).parameter_shapes() if len(each) == 4]
    assert ("untrained" in network["about"]) == (name != "lenet5")


def test_the_network_that_ships_reads_the_digits_that_the_page_offers(studio_server):
    digits = studio_server.get("/api/convolution/digits")["digits"]
    for digit, image in enumerate(digits):
        pixels = list(base64.b64decode(image))
        maps = studio_server.post("/api/convolution/maps", {"network": "/lenet5", "pixels": pixels})
        assert maps["class"] == int(np.argmax(maps["scores"])) == digit
        assert sum(maps["shares"]) == pytest.approx(1)


def test_the_maps_and_a_number_of_them_are_those_of_stage_2(mine):
    network = made(EVERY_KIND)
    for chosen in (None, 7):
        maps = mine.post("/api/convolution/maps", {**ASKED, "class": chosen})
        passed = network.passed(bytes(PIXELS), chosen)
        assert maps["class"] == passed.chosen
        for number, output in passed.outputs.items():
            np.testing.assert_allclose(unpacked(maps["outputs"][number]), output, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(unpacked(maps["evidence"]), passed.evidence, rtol=1e-5, atol=1e-5)
        found = mine.post("/api/convolution/pixel", {**ASKED, "class": chosen})
        expected = pixel(network, passed, "5.1", 1, 2, 3)
        assert found["value"] == pytest.approx(expected.value, rel=1e-6)
        assert found["slope"] == pytest.approx(expected.slope, rel=1e-5)
        np.testing.assert_array_equal(unpacked(found["field"]), receptive_field(EVERY_KIND, "5.1", 2, 3))
        assert found["function"] == ["convolution", "conv2d"]
        assert [each["title"][:7] for each in found["stages"]] == ["stage 1", "stage 2", "stage 3", "stage 4"]


def test_a_run_that_has_trained_on_is_another_network(mine):
    before = mine.post("/api/convolution/maps", ASKED)["scores"]
    shutil.copyfile(
        ROOT / "groundup" / "studio" / "convolution" / "lenet5.safetensors",
        mine.studio.folder / "runs" / "mine" / "last.safetensors",
    )
    assert mine.post("/api/convolution/maps", ASKED)["scores"] != before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"network": ["mine"]}, "network: there is no run"),
        ({"pixels": [0] * 784}, "pixels: the drawing is empty; draw a digit first"),
        ({"pixels": [1]}, "pixels: expected a list of 784 numbers"),
        ({"class": 10}, "class: expected a whole number from 0 to 9, got 10"),
        ({"class": True}, "class: expected a whole number from 0 to 9, got True"),
        ({"layer": "9"}, "layer: expected one that has maps, 1, 2, 3, "),
        ({"row": 99}, "row: expected a whole number from 0 to "),
    ],
)
def test_what_cannot_be_looked_at_is_refused_with_a_sentence(mine, change, sentence):
    assert mine.refused("/api/convolution/pixel", {**ASKED, **change}).startswith(sentence)


def test_the_architecture_is_drawn(mine):
    drawn = mine.get("/api/convolution/architecture?name=mine")
    assert drawn["svg"].count("<svg") == 1
    assert "prefers-color-scheme:dark" in drawn["svg"]
    assert "Conv(4, (3, 5), stride=(2, 1), padding=(1, 2)): 4\u00d714\u00d728, 72" in drawn["alt"]
