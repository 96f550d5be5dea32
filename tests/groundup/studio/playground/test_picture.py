"""What the page draws is what the library computes, and every picture of every set can be sent as strict JSON."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from groundup.studio.playground.model import Playground
from groundup.studio.playground.picture import DRAWN, GRID, LEVELS, TILE, grid, picture, scene
from groundup.studio.playground.settings import Settings
from shared.contract import LOSSES
from shared.training.metrics import evaluate

OWN = tuple((x / 5, y / 5, (x + y) % 5) for x in range(5) for y in range(5))


def trained(settings: Settings, steps: int = 40) -> Playground:
    playground = Playground(settings)
    playground.step(steps)
    return playground


def unpacked(text: str, kind: type = np.uint8) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


@pytest.mark.parametrize("data", ["xor", "clouds", "circles", "spirals", "own", "digits"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_losses_and_accuracies_are_those_of_the_library(data: str, loss: str) -> None:
    points = OWN if data == "own" else ()
    playground = trained(Settings(data=data, loss=loss, points=points, learning_rate=0.01), 5)
    drawn = picture(playground)
    train, test = playground.data.train, playground.data.test
    if data == "digits":
        train, test = train.first(100), test.first(100)
    for i, part in enumerate((train, test)):
        expected, accuracy, _ = evaluate(playground.stage, playground.network, part)
        assert drawn["loss"][i] == pytest.approx(expected, rel=1e-12)
        assert drawn["accuracy"][i] == accuracy
    json.dumps([drawn, scene(playground)], allow_nan=False)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_surface_shows_the_predictions_and_the_lead_of_the_best(loss: str) -> None:
    playground = trained(Settings(data="spirals", loss=loss))
    cells = grid()
    outputs = np.asarray(playground.network.forward(cells))
    shown = unpacked(picture(playground)["surface"])
    np.testing.assert_array_equal(shown // LEVELS, playground.network.predict(cells))
    if loss == "softmax_cross_entropy":
        outputs = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    if loss == "sigmoid_cross_entropy":
        outputs = 1 / (1 + np.exp(-outputs))
    ordered = np.sort(outputs, axis=1)
    lead = np.minimum(1, ordered[:, -1] - ordered[:, -2])
    np.testing.assert_allclose(shown % LEVELS / (LEVELS - 1), lead, atol=0.5 / (LEVELS - 1) + 1e-9)


def test_the_first_row_of_the_grid_is_the_top_of_the_picture() -> None:
    cells = grid().reshape(GRID, GRID, 2)
    assert cells[0, 0].tolist() == pytest.approx([-1.176, 1.176])
    assert cells[-1, -1].tolist() == pytest.approx([1.176, -1.176])


def test_a_neurons_tile_is_its_output_beside_its_own_largest() -> None:
    playground = trained(Settings(layers=(3,), activation="tanh"))
    drawn = picture(playground)
    weights, bias = playground.state().parameters[:2]
    outputs = np.moveaxis(np.tanh(grid() @ weights + bias).reshape(GRID, GRID, 3)[1::2, ::2], -1, 0)
    largest = np.abs(outputs).max(axis=(1, 2))
    tiles = unpacked(drawn["tiles"][0], np.int8).reshape(3, TILE, TILE)
    np.testing.assert_allclose(tiles / 127, outputs / largest[:, None, None], atol=0.5 / 127 + 1e-9)
    assert drawn["largest"][0] == pytest.approx(largest, abs=1e-4)


def test_a_wide_layer_is_drawn_in_part() -> None:
    drawn = picture(trained(Settings(layers=(40, 5)), 1))
    assert np.shape(drawn["weights"][0]) == (2, DRAWN)
    assert np.shape(drawn["weights"][1]) == (DRAWN, 5)
    assert len(unpacked(drawn["tiles"][0])) == DRAWN * TILE * TILE


def test_dead_neurons_are_those_that_no_sample_moves() -> None:
    playground = Playground(Settings(activation="relu", layers=(4,)))
    playground.network.parameters[1][:] = [0, -100, 0, -100]
    assert picture(playground)["dead"] == [[1, 3]]
    assert picture(Playground(Settings(activation="tanh")))["dead"] is None


def test_the_gradient_norms_are_those_of_each_layers_weights() -> None:
    playground = trained(Settings(), 1)
    norms = [np.linalg.norm(each) for each in playground.network.layer_gradients[::2]]
    assert picture(playground)["gradients"] == pytest.approx(norms)
    assert picture(Playground(Settings()))["gradients"] == []


def test_digits_show_weights_as_images_and_what_is_taken_for_what() -> None:
    playground = trained(Settings(data="digits", layers=(20,), activation="relu"), 3)
    drawn = picture(playground)
    assert unpacked(drawn["images"], np.int8).reshape(DRAWN, 28, 28).any()
    assert np.sum(drawn["confusion"]) == 100
    assert np.trace(drawn["confusion"]) / 100 == drawn["accuracy"][1]
    assert scene(playground)["points"] is None
    assert np.shape(drawn["weights"][0]) == (0, DRAWN) or drawn["weights"][0] == []


def test_a_network_without_hidden_layers_is_drawn() -> None:
    drawn = picture(trained(Settings(data="clouds", layers=()), 5))
    assert drawn["active"] == []
    assert len(drawn["tiles"]) == 1


def test_a_training_that_has_diverged_is_drawn_as_such() -> None:
    settings = Settings(activation="identity", loss="mean_squared_error", optimizer="SGD", learning_rate=10.0,
                        mistake="large_rate")  # fmt: skip
    playground = trained(settings, 80)
    drawn = picture(playground)
    assert not drawn["finite"]
    assert len(unpacked(drawn["surface"])) == GRID * GRID
    assert playground.change(replace(settings, mistake="none"))
