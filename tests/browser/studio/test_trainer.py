"""The browser's own trainer: its steps, its masks and its pictures are the library's."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.studio.playground.model import Playground
from groundup.studio.playground.picture import picture
from groundup.studio.playground.settings import OPTIMIZERS, Settings
from shared.architectures import mlp
from shared.contract import ACTIVATIONS, LOSSES, load_stage
from shared.data.batches import as_targets
from shared.dropout import step_masks

Opened = Callable[..., Any]

TRAIN = """async ({ parameters, activation, loss, optimizer, rate, batches }) => {
  const { fromParameters } = await import("/static/common/network.js");
  const training = await import("/static/playground/training.js");
  const { OPTIMIZERS } = await import("/static/playground/optimizers.js");
  const network = fromParameters(parameters, activation);
  const moving = OPTIMIZERS[optimizer](rate);
  const losses = batches.map(({ x, labels, masks }) => {
    const flat = masks && masks.map((mask) => Float64Array.from(mask.flat()));
    const result = training.lossAndGradients(network, Float64Array.from(x.flat()), labels, loss, flat);
    moving.step(training.parameters(network), result.gradients);
    return result.loss;
  });
  return { losses, parameters: training.parameters(network).map((each) => [...each]) };
}"""


TRAINED = [
    *[("tanh", loss, "Adam", 0.0) for loss in LOSSES],
    *[(activation, "softmax_cross_entropy", "momentum", 0.2) for activation in ACTIVATIONS],
    *[("relu", "softmax_cross_entropy", optimizer, 0.3) for optimizer in OPTIMIZERS],
]


def test_the_browsers_trainer_is_stage_2_after_100_steps(browser_page: Opened) -> None:
    page = browser_page("playground")
    stage, sizes, rate = load_stage("numpy"), [3, 7, 5, 4], 0.01
    for activation, loss, optimizer, dropout in TRAINED:
        rng = np.random.default_rng(5)
        network = stage.network.Network(mlp(sizes, activation, dropout), activation, loss, seed=2, dtype="float64")
        room = stage.optimizers
        moving = room.SGD(rate, momentum=0.9) if optimizer == "momentum" else getattr(room, optimizer)(rate)
        start = [each.tolist() for each in network.parameters]
        batches, losses = [], []
        for step in range(100):
            rows = 11 if step % 7 else 1
            x, labels = rng.normal(size=(rows, 3)), rng.integers(0, 4, rows)
            masks = step_masks(rows, [(7, dropout), (5, dropout)], 1, step, "float64")
            listed = None if masks is None else [mask.tolist() for mask in masks]
            batches.append({"x": x.tolist(), "labels": labels.tolist(), "masks": listed})
            losses.append(network.train_step(x, as_targets(labels, loss, 4, "float64"), moving, masks))
        names = {"activation": activation, "loss": loss, "optimizer": optimizer, "rate": rate}
        found = page.evaluate(TRAIN, {"parameters": start, "batches": batches, **names})
        np.testing.assert_allclose(found["losses"], losses, rtol=0, atol=1e-5, err_msg=str(names))
        for got, expected in zip(found["parameters"], network.parameters, strict=True):
            np.testing.assert_allclose(got, expected.ravel(), rtol=0, atol=1e-5, err_msg=str(names))


def test_the_browser_drops_the_same_neurons_as_the_floors(browser_page: Opened) -> None:
    page = browser_page("playground")
    found = page.evaluate(
        """async () => { const { dropoutMask } = await import("/static/playground/random.js");
        return [...dropoutMask(5 * 4, 0.3, 7, 12, 1)]; }"""
    )
    masks = step_masks(5, [(9, 0.3), (4, 0.3)], 7, 12, "float64")
    assert masks is not None
    np.testing.assert_array_equal(found, masks[1].ravel())


DRAW = """async ({ parameters, activation, loss }) => {
  const { fromParameters } = await import("/static/common/network.js");
  const { grids } = await import("/static/playground/pictures.js");
  const { surface, tiles, largest } = grids(fromParameters(parameters, activation), loss);
  return { surface: [...surface], tiles: tiles.map((each) => [...each]), largest };
}"""


def test_the_browser_draws_what_the_server_draws(browser_page: Opened) -> None:
    page = browser_page("playground")
    for loss in LOSSES:
        playground = Playground(Settings(data="spirals", activation="relu", initializer="he", loss=loss))
        playground.step(60)
        parameters = [each.tolist() for each in playground.parameters()]
        found = page.evaluate(DRAW, {"parameters": parameters, "activation": "relu", "loss": loss})
        drawn = picture(playground)
        surface = np.frombuffer(base64.b64decode(drawn["surface"]), np.uint8)
        # A lead of exactly half a level may be rounded up here and down there.
        assert np.abs(np.array(found["surface"]) - surface.astype(int)).max() <= 1
        for got, expected in zip(found["tiles"], drawn["tiles"], strict=True):
            tiles = np.frombuffer(base64.b64decode(expected), np.int8)
            assert np.abs(np.array(got) - tiles.astype(int)).max() <= 1
        for got, expected in zip(found["largest"], drawn["largest"], strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-4)
