"""Activations far out, at their kinks, and with shapes that do not fit. Their values are test_oracle's business."""

import math
import re
from typing import Any

import numpy as np
import pytest

from shared.contract import ACTIVATIONS, Stage

FAR_OUT = [[1e4, -1e4, 0.0, 1.0], [-1e4, -1e4, -1e4, -1e4], [1e4, 1e4, 1e4, 1e4]]


def forward_and_backward(
    stage: Stage, name: str, z: Any, grad_output: Any, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    z, grad_output = stage.arrays.asarray(z, dtype), stage.arrays.asarray(grad_output, dtype)
    output = getattr(stage.activations, name)(z)
    grad_z = getattr(stage.activations, f"{name}_backward")(grad_output, z, output)
    return np.asarray(stage.arrays.to_host(output)), np.asarray(stage.arrays.to_host(grad_z))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_finite_and_silent_at_ten_thousand(stage: Stage, name: str, dtype: str) -> None:
    with np.errstate(all="raise"):
        output, grad_z = forward_and_backward(stage, name, FAR_OUT, np.ones((3, 4)), dtype)
    assert np.isfinite(output).all()
    assert np.isfinite(grad_z).all()


def test_values_far_out_are_the_limits(stage: Stage, dtype: str) -> None:
    limits = {"sigmoid": [1.0, 0.0], "tanh": [1.0, -1.0], "relu": [1e4, 0.0], "softmax": [1.0, 0.0]}
    for name, expected in limits.items():
        output, _ = forward_and_backward(stage, name, [[1e4, -1e4]], [[1.0, 1.0]], dtype)
        assert output.tolist() == [expected], name


def test_sigmoid_keeps_its_precision_where_it_is_small(stage: Stage) -> None:
    output, grad_z = forward_and_backward(stage, "sigmoid", [[-50.0]], [[1.0]], "float64")
    assert output[0, 0] == pytest.approx(math.exp(-50.0), rel=1e-14)
    assert grad_z[0, 0] == pytest.approx(math.exp(-50.0), rel=1e-14)


@pytest.mark.parametrize(("name", "slope"), [("relu", 0.0), ("leaky_relu", 0.01), ("identity", 1.0)])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_slope_at_zero_is_the_one_from_the_left(stage: Stage, name: str, slope: float, zero: float) -> None:
    output, grad_z = forward_and_backward(stage, name, [[zero]], [[3.0]], "float64")
    assert output[0, 0] == 0.0
    assert grad_z[0, 0] == slope * 3.0


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_nan_stays_nan(stage: Stage, name: str, dtype: str) -> None:
    output, _ = forward_and_backward(stage, name, [[math.nan, 1.0], [1.0, 2.0]], np.ones((2, 2)), dtype)
    assert math.isnan(output[0, 0])
    assert np.isfinite(output[1]).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_nan_in_grad_output_reaches_the_gradient(stage: Stage, name: str, dtype: str) -> None:
    _, grad_z = forward_and_backward(stage, name, [[1.0, 2.0], [1.0, 2.0]], [[math.nan, 1.0], [1.0, 1.0]], dtype)
    assert math.isnan(grad_z[0, 0])
    assert np.isfinite(grad_z[1]).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_neither_pass_changes_its_inputs_or_returns_them(stage: Stage, name: str) -> None:
    values, grads = [[-1.0, 0.0, 2.0]], [[1.0, 2.0, 3.0]]
    z, grad_output = stage.arrays.asarray(values, "float64"), stage.arrays.asarray(grads, "float64")
    output = getattr(stage.activations, name)(z)
    before = np.array(stage.arrays.to_host(output))
    getattr(stage.activations, f"{name}_backward")(grad_output, z, output)
    assert np.array_equal(stage.arrays.to_host(z), values)
    assert np.array_equal(stage.arrays.to_host(grad_output), grads)
    assert np.array_equal(stage.arrays.to_host(output), before)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_backward_rejects_a_gradient_of_another_shape_naming_both(stage: Stage, name: str) -> None:
    z = stage.arrays.asarray(np.ones((2, 3)), "float64")
    output = getattr(stage.activations, name)(z)
    with pytest.raises(ValueError, match=f"{name}_backward: .*grad_output") as caught:
        getattr(stage.activations, f"{name}_backward")(stage.arrays.asarray(np.ones((3, 2)), "float64"), z, output)
    assert "(2, 3)" in str(caught.value)
    assert "(3, 2)" in str(caught.value)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("wrong", [[1.0, 2.0], None], ids=["vector", "None"])
def test_forward_rejects_what_is_no_matrix(stage: Stage, name: str, wrong: Any) -> None:
    given = wrong if stage.name == "stage1_pure_python" else np.array(wrong)
    with pytest.raises((ValueError, TypeError), match=re.escape(f"{name}: z")):
        getattr(stage.activations, name)(given)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_results_keep_the_dtype(stage: Stage, name: str, dtype: str) -> None:
    output, grad_z = forward_and_backward(stage, name, FAR_OUT, np.ones((3, 4)), dtype)
    expected = "float64" if stage.name == "stage1_pure_python" else dtype
    assert output.dtype == expected
    assert grad_z.dtype == expected
