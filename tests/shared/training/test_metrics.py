"""Measuring a network: loss, accuracy and predictions."""

import numpy as np
import pytest

from shared import contract
from shared.training.metrics import evaluate, predicted_classes
from tests.shared.training.small_runs import DATA, make


@pytest.mark.parametrize("batch_size", [1, 7, 50, 1000])
def test_evaluate_gives_the_network_s_loss_and_predictions_in_any_batches(
    stage: contract.Stage, batch_size: int
) -> None:
    network, _ = make(stage)
    loss, accuracy, predictions = evaluate(stage, network, DATA, batch_size)
    x = stage.arrays.asarray(DATA.x, "float64")
    np.testing.assert_array_equal(predictions, np.asarray(network.predict(x)))
    assert predictions.dtype == np.int64
    assert accuracy == np.mean(predictions == DATA.y)
    assert loss == pytest.approx(network.loss(x, DATA.y), rel=1e-12)


@pytest.mark.parametrize("loss", ["mean_squared_error", "sigmoid_cross_entropy"])
def test_predicted_classes_is_predict_s_rule_for_one_output_too(stage: contract.Stage, loss: str) -> None:
    network = stage.network.Network([4, 1], loss=loss, dtype="float64", seed=2)
    x = stage.arrays.asarray(DATA.x - 1, "float64")
    outputs = np.asarray(stage.arrays.to_host(network.forward(x)))
    got = predicted_classes(outputs, loss)
    assert set(got) == {0, 1}
    np.testing.assert_array_equal(got, np.asarray(network.predict(x)))
