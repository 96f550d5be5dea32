"""Losses far out, with one class, and with answers that do not fit. Their values are the business of test_oracle."""

import math
from typing import Any

import numpy as np
import pytest

from shared.contract import LABEL_LOSSES, LOSSES, Stage

FAR_OUT = [[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [-1e4, 0.0, 1e4]]


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


@pytest.mark.parametrize("name", LOSSES)
def test_outputs_that_are_no_matrix_are_rejected(stage: Stage, name: str, suffix: str) -> None:
    vector = stage.arrays.asarray([1.0, 2.0])
    answers = np.array([0, 1]) if name in LABEL_LOSSES else stage.arrays.asarray([[1.0, 2.0]])
    with pytest.raises((ValueError, TypeError), match=f"{name}{suffix}: (outputs|logits|scores)"):
        getattr(stage.losses, name + suffix)(vector, answers)
