"""Losses far out, with one class, and with answers that do not fit. Their values are the business of test_oracle."""

import math
from typing import Any

import numpy as np
import pytest

from shared.contract import LABEL_LOSSES, LOSSES, Stage

TARGET_LOSSES = [name for name in LOSSES if name not in LABEL_LOSSES]
FAR_OUT = [[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, -1e4]]


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["", "_backward"], ids=["value", "backward"])
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


def answers_for(stage: Stage, name: str, rows: int, columns: int, dtype: str = "float64") -> Any:
    """Labels 1, 1, … or targets 1 in column 1 and 0 elsewhere."""
    if name in LABEL_LOSSES:
        return np.ones(rows, dtype=np.int64)
    targets = np.zeros((rows, columns))
    targets[:, 1] = 1.0
    return stage.arrays.asarray(targets, dtype)


@pytest.mark.parametrize("name", LOSSES)
def test_finite_and_silent_at_ten_thousand(stage: Stage, name: str, dtype: str) -> None:
    outputs = stage.arrays.asarray(FAR_OUT, dtype)
    answers = answers_for(stage, name, 3, 3, dtype)
    with np.errstate(all="raise"):
        value = getattr(stage.losses, name)(outputs, answers)
        gradient = np.asarray(stage.arrays.to_host(getattr(stage.losses, f"{name}_backward")(outputs, answers)))
    assert isinstance(value, float)
    assert math.isfinite(value)
    assert value > 0.0
    assert np.isfinite(gradient).all()


def test_the_cost_of_a_right_answer_far_out_keeps_its_digits(stage: Stage, dtype: str) -> None:
    """log(1 + exp(-40)) is exp(-40); written so, it would be 0."""
    logits, targets = stage.arrays.asarray([[40.0, -40.0]], dtype), stage.arrays.asarray([[1.0, 0.0]], dtype)
    assert stage.losses.sigmoid_cross_entropy(logits, targets) == pytest.approx(math.exp(-40), rel=1e-6, abs=0)


@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_a_right_answer_with_a_wide_lead_costs_nothing(stage: Stage, name: str, dtype: str) -> None:
    scores = stage.arrays.asarray([[0.0, 1e4, -1e4]], dtype)
    assert getattr(stage.losses, name)(scores, np.array([1])) == 0.0
    assert not np.any(stage.arrays.to_host(getattr(stage.losses, f"{name}_backward")(scores, np.array([1]))))


@pytest.mark.parametrize("name", LOSSES)
def test_nan_makes_the_loss_nan(stage: Stage, name: str, dtype: str) -> None:
    outputs = stage.arrays.asarray([[math.nan, 0.0], [0.0, 0.0]], dtype)
    assert math.isnan(getattr(stage.losses, name)(outputs, answers_for(stage, name, 2, 2, dtype)))


@pytest.mark.parametrize("name", LOSSES)
def test_neither_pass_changes_its_inputs(stage: Stage, name: str) -> None:
    outputs, answers = stage.arrays.asarray(FAR_OUT, "float64"), answers_for(stage, name, 3, 3)
    before = np.array(answers if name in LABEL_LOSSES else stage.arrays.to_host(answers))
    getattr(stage.losses, name)(outputs, answers)
    getattr(stage.losses, f"{name}_backward")(outputs, answers)
    assert np.array_equal(stage.arrays.to_host(outputs), FAR_OUT)
    assert np.array_equal(answers if name in LABEL_LOSSES else stage.arrays.to_host(answers), before)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_keep_the_dtype(stage: Stage, name: str, dtype: str) -> None:
    outputs = stage.arrays.asarray(FAR_OUT, dtype)
    gradient = getattr(stage.losses, f"{name}_backward")(outputs, answers_for(stage, name, 3, 3, dtype))
    expected = "float64" if stage.name == "stage1_pure_python" else dtype
    assert np.asarray(stage.arrays.to_host(gradient)).dtype == expected


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize("integer", ["uint8", "int32", "int64"])
def test_labels_of_any_integer_type_mean_the_same(stage: Stage, name: str, integer: str) -> None:
    scores = stage.arrays.asarray(FAR_OUT, "float64")
    value = getattr(stage.losses, name)(scores, np.array([0, 1, 2], dtype=integer))
    assert value == getattr(stage.losses, name)(scores, np.array([0, 1, 2]))


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize("label", [3, -1, 255])
def test_a_label_out_of_range_is_named_with_its_index_and_the_number_of_classes(
    stage: Stage, name: str, suffix: str, label: int
) -> None:
    scores = stage.arrays.asarray(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=rf"{name}.*: labels\[2\] is {label}\b.*3 classes"):
        getattr(stage.losses, name + suffix)(scores, np.array([0, 1, label, 2]))


@pytest.mark.parametrize("name", LABEL_LOSSES)
@pytest.mark.parametrize("count", [0, 3, 5])
def test_a_wrong_number_of_labels_is_rejected_naming_both_numbers(
    stage: Stage, name: str, suffix: str, count: int
) -> None:
    scores = stage.arrays.asarray(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=rf"{name}.*4.*labels.*\b{count}\b"):
        getattr(stage.losses, name + suffix)(scores, np.zeros(count, dtype=np.int64))


@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_labels_that_are_no_whole_numbers_are_a_type_error(stage: Stage, name: str, suffix: str) -> None:
    scores = stage.arrays.asarray(np.zeros((2, 3)))
    for labels in (np.array([0.0, 1.0]), np.array(["0", "1"]), None):
        with pytest.raises(TypeError, match=rf"{name}.*labels.*whole number"):
            getattr(stage.losses, name + suffix)(scores, labels)


@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_one_hot_labels_are_rejected(stage: Stage, name: str, suffix: str) -> None:
    scores = stage.arrays.asarray(np.zeros((3, 3)))
    with pytest.raises((ValueError, TypeError), match=f"{name}.*labels"):
        getattr(stage.losses, name + suffix)(scores, np.eye(3, dtype=np.int64))


@pytest.mark.parametrize("name", TARGET_LOSSES)
@pytest.mark.parametrize("shape", [(3, 4), (4, 1), (1, 3)])
def test_targets_of_another_shape_are_rejected_naming_both(
    stage: Stage, name: str, suffix: str, shape: tuple[int, int]
) -> None:
    outputs, targets = stage.arrays.asarray(np.zeros((4, 3))), stage.arrays.asarray(np.zeros(shape))
    with pytest.raises(ValueError, match=f"{name}{suffix}: .*targets") as caught:
        getattr(stage.losses, name + suffix)(outputs, targets)
    assert "(4, 3)" in str(caught.value)
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("name", LOSSES)
def test_outputs_that_are_no_matrix_are_rejected(stage: Stage, name: str, suffix: str) -> None:
    vector = stage.arrays.asarray([1.0, 2.0])
    answers = np.array([0, 1]) if name in LABEL_LOSSES else stage.arrays.asarray([[1.0, 2.0]])
    with pytest.raises((ValueError, TypeError), match=f"{name}{suffix}: (outputs|logits|scores)"):
        getattr(stage.losses, name + suffix)(vector, answers)
