"""groundup.inside: every number it gives is compared with a plain loop, a slope, or the network itself."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from groundup.inside import (
    active_shares,
    confusion_matrix,
    dead_units,
    first_layer_images,
    hidden_activations,
    host_parameters,
    most_wrong,
    saliency,
    scores,
)
from shared import contract
from shared.checks.gradients import slope

DEPTHS = [(5, 3), (5, 4, 3), (6, 5, 4, 3), (4, 1, 2)]


def parameters_of(sizes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [shape for pair in pairwise(sizes) for shape in (pair, pair[1:])]
    return [rng.standard_normal(shape) for shape in shapes]


def inputs(sizes: tuple[int, ...], batch: int = 4, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, sizes[0]))


# --- which class is taken for which ---


@st.composite
def judged(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    classes, count = draw(st.integers(1, 6)), draw(st.integers(0, 40))
    answers = arrays.arrays(np.int64, count, elements=st.integers(0, classes - 1))
    return draw(answers), draw(answers), classes


@given(judged())
def test_the_confusion_matrix_is_what_a_loop_counts(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    labels, predictions, classes = case
    expected = [[0] * classes for _ in range(classes)]
    for label, prediction in zip(labels, predictions, strict=True):
        expected[label][prediction] += 1
    found = confusion_matrix(labels, predictions, classes)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found.sum(axis=1), np.bincount(labels, minlength=classes))
    assert np.trace(found) == np.sum(labels == predictions)
    np.testing.assert_array_equal(found.T, confusion_matrix(predictions, labels, classes))


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([0, 1], [0], "2 labels but 1 predictions; expected one each"),
        ([0, 3], [0, 1], "labels: expected classes from 0 to 2, got 0 to 3"),
        ([[0], [1]], [0, 1], r"labels: expected integers \(n,\), got int64 of shape \(2, 1\)"),
    ],
)
def test_a_confusion_matrix_of_wrong_input_is_refused(labels: Any, predictions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        confusion_matrix(np.array(labels), np.array(predictions), 3)


# --- the mistakes it is surest of ---


@given(judged(), st.integers(0, 10), st.integers(0, 2**32 - 1))
def test_the_most_wrong_are_wrong_and_sorted_and_no_other_mistake_is_surer(
    case: tuple[np.ndarray, np.ndarray, int], count: int, seed: int
) -> None:
    labels, _, classes = case
    if not len(labels):
        return
    beliefs = np.random.default_rng(seed).dirichlet(np.ones(classes), len(labels)).round(1)  # rounded: some are equal
    found = most_wrong(beliefs, labels, count)
    mistakes = [i for i in range(len(labels)) if beliefs[i].argmax() != labels[i]]
    expected = sorted(mistakes, key=lambda i: (-beliefs[i].max(), i))[:count]
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("beliefs", "labels", "count", "message"),
    [
        (np.eye(3), np.arange(2), 1, "most_wrong: 2 labels for 3 samples; expected one each"),
        (np.eye(3), np.arange(3), -1, "most_wrong: count: expected at least 0, got -1"),
    ],
)
def test_most_wrong_refuses_what_does_not_fit(beliefs: Any, labels: Any, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        most_wrong(beliefs, labels, count)


# --- weights as images ---


def test_a_column_of_the_weights_becomes_the_image_of_its_unit() -> None:
    weights = np.zeros((6, 2))
    weights[:, 0] = [1, 2, 3, 4, 5, 6]
    weights[4, 1] = -0.5
    first, second = first_layer_images(weights, (2, 3))
    np.testing.assert_allclose(first, np.array([[1, 2, 3], [4, 5, 6]]) / 6)
    np.testing.assert_array_equal(second, [[0, 0, 0], [0, -1, 0]])


@given(arrays.arrays(np.float64, (12, 3), elements=st.floats(-1e100, 1e100)))
def test_the_scale_of_an_image_is_symmetric_and_keeps_signs(weights: np.ndarray) -> None:
    images = first_layer_images(weights, (3, 4))
    assert images.shape == (3, 3, 4)
    for unit, image in enumerate(images):
        expected = 1.0 if weights[:, unit].any() else 0.0
        assert np.abs(image).max() == pytest.approx(expected)
        assert np.all(image.ravel() * np.sign(weights[:, unit]) >= 0)


def test_weights_that_fill_no_image_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weights is \(12, 3\), expected 15 rows for images of 5 by 3"):
        first_layer_images(np.zeros((12, 3)), (5, 3))


# --- what the units say ---


@pytest.mark.parametrize("activation", contract.ACTIVATIONS)
@pytest.mark.parametrize("sizes", DEPTHS)
def test_scores_are_what_the_network_s_forward_returns(sizes: tuple[int, ...], activation: str) -> None:
    stage = contract.load_stage("numpy")
    parameters, x = parameters_of(sizes), inputs(sizes)
    network = stage.network.Network.from_parameters(parameters, activation=activation, dtype="float64")
    np.testing.assert_allclose(scores(parameters, activation, x), network.forward(x), rtol=1e-12)
    outputs = hidden_activations(parameters, activation, x)
    assert [each.shape for each in outputs] == [(4, size) for size in sizes[1:-1]]


def test_a_network_of_every_stage_comes_over_with_its_own_numbers(stage: contract.Stage) -> None:
    network = stage.network.Network([4, 3, 2], seed=5, dtype="float64")
    expected = contract.load_stage("numpy").network.Network([4, 3, 2], seed=5, dtype="float64").parameters
    found = host_parameters(stage, network)
    for own, other in zip(found, expected, strict=True):
        assert isinstance(own, np.ndarray)
        np.testing.assert_array_equal(own, other)
    found[0][:] = 0  # a copy: the network keeps its weights
    np.testing.assert_array_equal(host_parameters(stage, network)[0], expected[0])


def test_a_unit_is_dead_only_where_it_is_0_for_every_sample() -> None:
    activations = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0]])
    assert active_shares(activations).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 0])
    assert dead_units(activations) == 0.5


def test_dead_units_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"activations: expected a matrix with at least one row .* shape \(0, 4\)"):
        dead_units(np.zeros((0, 4)))


# --- which pixels a score hangs on ---


@pytest.mark.parametrize("activation", contract.ACTIVATIONS)
@pytest.mark.parametrize("sizes", DEPTHS)
def test_saliency_is_the_slope_of_the_label_s_score(sizes: tuple[int, ...], activation: str) -> None:
    parameters, x = parameters_of(sizes), inputs(sizes)
    labels = np.array([0, 1, sizes[-1] - 1, 0])
    found = saliency(parameters, activation, x, labels)
    assert found.shape == x.shape
    compared = 0
    for row, feature in np.ndindex(x.shape):

        def score(value: float, row: int = row, feature: int = feature) -> float:
            moved = x.copy()
            moved[row, feature] = value
            return float(scores(parameters, activation, moved)[row, labels[row]])

        numeric = slope(score, x[row, feature], score(x[row, feature]))
        if numeric is not None:  # None: a kink within the step
            assert found[row, feature] == pytest.approx(numeric, rel=1e-7, abs=1e-7)
            compared += 1
    assert compared >= 0.9 * x.size


def test_saliency_leaves_its_arguments_as_they_were_and_keeps_float32() -> None:
    parameters = [each.astype(np.float32) for each in parameters_of((5, 4, 3))]
    before = [each.copy() for each in parameters]
    x = inputs((5, 4, 3)).astype(np.float32)
    assert saliency(parameters, "tanh", x, np.zeros(4, int)).dtype == np.float32
    for each, was in zip(parameters, before, strict=True):
        np.testing.assert_array_equal(each, was)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": "swish"}, "unknown activation 'swish'; choose one of identity"),
        ({"x": np.ones((4, 6))}, r"x is \(4, 6\) but W1 is \(5, 4\); x's columns must equal W1's rows"),
        ({"labels": np.array([0, 1, 2])}, "saliency: 3 labels for 4 samples; expected one each"),
        ({"parameters": [np.ones((5, 4)), np.ones(3)]}, r"W1 is \(5, 4\) and b1 is \(3,\); expected \(m, n\)"),
    ],
)
def test_saliency_names_what_does_not_fit(change: dict[str, Any], message: str) -> None:
    right = {"parameters": parameters_of((5, 4, 3)), "activation": "relu", "x": np.ones((4, 5))}
    with pytest.raises(ValueError, match=message):
        saliency(**{**right, "labels": np.array([0, 1, 2, 0]), **change})
