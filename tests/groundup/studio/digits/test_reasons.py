"""What led to the answer: the layers' outputs, the winner's products, and gradients that are slopes."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from groundup.inside_layers import Layered
from groundup.studio.digits import embedded, networks
from groundup.studio.digits.pixels import as_input
from groundup.studio.digits.reasons import reasons
from shared.architectures import Architecture
from shared.contract import load_stage
from shared.layers import Activate, Conv, Dense, Flatten, MaxPool
from shared.training.checkpoints import build_network
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_drawing, a_run


def unpacked(array):
    return np.frombuffer(base64.b64decode(array["base64"]), "<f4").reshape(array["shape"])


def of(tmp_path, layers):
    a_run(tmp_path / "runs" / "one", layers, {"normalisation": {"mean": 0.1, "deviation": 0.3}})
    trained = networks.load(tmp_path / "runs", "one")
    return trained, build_network(load_stage("numpy"), trained.checkpoint)


@pytest.mark.parametrize("layers", [[784, 10], [784, 6, 10], [784, 7, 5, 10], SMALL_CNN], ids=str)
def test_the_winners_score_is_the_sum_of_its_products(tmp_path, layers):
    trained, network = of(tmp_path, layers)
    drawing = a_drawing(7)
    found = reasons(trained, drawing)
    scores = network.forward(trained.learned(as_input(drawing)))[0]
    assert [found["winner"], found["rival"]] == np.argsort(-scores)[:2].tolist()
    last = found["last"]
    score = float(unpacked(last["inputs"]) @ unpacked(last["weights"])) + last["bias"]
    assert score == pytest.approx(float(scores.max()), abs=1e-4)


def test_the_layers_are_those_of_the_network(tmp_path):
    trained, _ = of(tmp_path, [784, 7, 5, 10])
    layers = reasons(trained, a_drawing(1))["layers"]
    assert [each["words"] for each in layers] == ["hidden layer 1: 7 neurons, relu", "hidden layer 2: 5 neurons, relu"]
    parameters = trained.checkpoint.parameters
    first = np.maximum(trained.learned(as_input(a_drawing(1))) @ parameters[0] + parameters[1], 0)
    np.testing.assert_allclose(unpacked(layers[0]["values"]), first[0], rtol=1e-5, atol=1e-5)


def test_the_layers_of_a_convolutional_network_are_its_maps(tmp_path):
    trained, network = of(tmp_path, SMALL_CNN)
    layers = reasons(trained, a_drawing(1))["layers"]
    outputs = network.outputs(trained.learned(as_input(a_drawing(1))))
    assert [each["values"]["shape"] for each in layers] == [[3, 24, 24], [3, 6, 6]]
    np.testing.assert_allclose(unpacked(layers[0]["values"]), outputs[1][0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(unpacked(layers[1]["values"]), outputs[2][0], rtol=1e-5, atol=1e-5)


def test_of_many_channels_some_are_shown_and_of_flat_numbers_all(tmp_path):
    wide = Architecture((1, 28, 28), (Conv(20, 9), Activate("relu"), MaxPool(4), Flatten(), Dense(30), Dense(10)))
    layers = reasons(of(tmp_path, wide)[0], a_drawing(1))["layers"]
    assert [each["values"]["shape"] for each in layers] == [[16, 20, 20], [16, 5, 5], [30]]


def test_the_evidence_is_grad_cams_for_the_winner_and_a_dense_network_has_none(tmp_path):
    trained, _ = of(tmp_path, SMALL_CNN)
    found = reasons(trained, a_drawing(2))
    network = Layered(trained.checkpoint, trained.checkpoint.architecture)
    expected = network.evidence(trained.learned(as_input(a_drawing(2))), np.array([found["winner"]]))
    np.testing.assert_allclose(unpacked(found["evidence"]), expected[0], rtol=1e-6)
    assert embedded.network(trained)["convolves"] is True
    dense, _ = of(tmp_path, [784, 6, 10])
    assert reasons(dense, a_drawing(2))["evidence"] is None
    assert embedded.network(dense)["convolves"] is False


@pytest.mark.parametrize("layers", [[784, 10], [784, 6, 10], SMALL_CNN], ids=str)
def test_the_pixels_that_mattered_are_the_slopes_of_the_winners_lead(tmp_path, layers):
    trained, _ = of(tmp_path, layers)
    # Noise, and no digit: at a tie of the pool's window, as on blank paper, there is no slope.
    drawing = np.random.default_rng(0).integers(1, 255, 784).astype(np.uint8)
    found = reasons(trained, drawing)
    pull = unpacked(found["pull"])
    stage, checkpoint = load_stage("numpy"), trained.checkpoint
    double = stage.network.Network.from_parameters(
        checkpoint.parameters, dtype="float64", architecture=checkpoint.architecture
    )
    x = trained.learned(as_input(drawing)).astype(np.float64)
    lead = lambda x: float(np.subtract(*double.forward(x)[0][[found["winner"], found["rival"]]]))  # noqa: E731
    for pixel in np.argsort(-np.abs(pull))[[0, 1, 40]]:
        step = np.zeros_like(x)
        step[0, pixel] = 1e-6
        assert (lead(x + step) - lead(x - step)) / 2e-6 == pytest.approx(float(pull[pixel]), rel=1e-3, abs=1e-4)
