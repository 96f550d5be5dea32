"""A dense layer's gradients, its own copies of what it was given, and what it refuses."""

import re
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage
from tests.stages import AWKWARD_SIZES


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def make_layer(stage: Stage, in_features: int, out_features: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """A float64 layer with random numbers, and those numbers."""
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(size=(in_features, out_features)), rng.normal(size=out_features)
    layer = stage.dense.Dense(stage.arrays.asarray(weights, "float64"), stage.arrays.asarray(bias, "float64"))
    return layer, weights, bias


LARGE_SIZES = [(1, 3, 301), (5, 1100, 3)]
"""One row of many numbers, and more terms than a block of any stage's sums has."""


@pytest.mark.parametrize(("batch", "in_features", "out_features"), [*AWKWARD_SIZES, *LARGE_SIZES])
def test_forward_and_every_gradient_at_awkward_sizes(
    stage: Stage, batch: int, in_features: int, out_features: int
) -> None:
    layer, weights, bias = make_layer(stage, in_features, out_features)
    rng = np.random.default_rng(1)
    x, grad_output = rng.normal(size=(batch, in_features)), rng.normal(size=(batch, out_features))
    output = layer.forward(stage.arrays.asarray(x, "float64"))
    grad_input = layer.backward(stage.arrays.asarray(grad_output, "float64"))
    for got, expected in [
        (output, x @ weights + bias),
        (grad_input, grad_output @ weights.T),
        (layer.grad_weights, x.T @ grad_output),
        (layer.grad_bias, grad_output.sum(axis=0)),
    ]:
        np.testing.assert_allclose(host(stage, got), expected, rtol=1e-12, atol=1e-12)


def test_the_input_gradient_is_left_out_where_nobody_needs_it(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 3)
    layer.forward(stage.arrays.asarray([[1.0, 2.0]], "float64"))
    assert layer.backward(stage.arrays.asarray([[1.0, 1.0, 1.0]], "float64"), needs_grad_input=False) is None
    assert host(stage, layer.grad_weights).tolist() == [[1.0] * 3, [2.0] * 3]
    assert host(stage, layer.grad_bias).tolist() == [1.0] * 3


def test_gradients_are_those_of_the_last_backward_not_a_running_sum(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 1)
    for _ in range(2):
        layer.forward(stage.arrays.asarray([[1.0, 2.0]], "float64"))
        layer.backward(stage.arrays.asarray([[1.0]], "float64"))
    assert host(stage, layer.grad_weights).tolist() == [[1.0], [2.0]]


def test_gradients_are_zero_before_the_first_backward(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 3)
    assert host(stage, layer.grad_weights).tolist() == [[0.0] * 3] * 2
    assert host(stage, layer.grad_bias).tolist() == [0.0] * 3


def test_the_layer_keeps_copies_of_its_weights_and_bias(stage: Stage) -> None:
    weights, bias = stage.arrays.asarray([[1.0], [2.0]], "float64"), stage.arrays.asarray([3.0], "float64")
    layer = stage.dense.Dense(weights, bias)
    weights[0][0] = 100.0
    bias[0] = 100.0
    assert host(stage, layer.forward(stage.arrays.asarray([[1.0, 1.0]], "float64"))).tolist() == [[6.0]]


def test_forward_rejects_the_wrong_number_of_columns_naming_both_shapes(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 3)
    with pytest.raises(ValueError, match=re.escape("x is (4, 5) but weights are (2, 3)")):
        layer.forward(stage.arrays.asarray(np.ones((4, 5)), "float64"))


def test_backward_rejects_a_gradient_that_is_not_shaped_like_the_output(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 3)
    layer.forward(stage.arrays.asarray(np.ones((4, 2)), "float64"))
    for shape in [(4, 2), (3, 3), (1, 3)]:
        with pytest.raises(ValueError, match=re.escape(f"grad_output is {shape}, expected (4, 3)")):
            layer.backward(stage.arrays.asarray(np.ones(shape), "float64"))


def test_backward_before_forward_is_rejected(stage: Stage) -> None:
    layer, _, _ = make_layer(stage, 2, 3)
    with pytest.raises(ValueError, match="no forward pass yet"):
        layer.backward(stage.arrays.asarray(np.ones((4, 3)), "float64"))
