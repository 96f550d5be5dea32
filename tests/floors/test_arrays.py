"""asarray brings numbers into a stage, to_host brings them out, and nothing else gets in."""

from typing import Any

import numpy as np
import pytest

from shared.contract import Stage


@pytest.mark.parametrize(
    "values",
    [
        [1.5, -2.0, 3.25],
        [[1.5, -2.0], [3.25, 0.0], [7.0, 8.0]],
        [[5.0]],
        (1, 2, 3),
        [(1, 2), (3, 4)],
        np.arange(6.0).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(3, 2),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [np.float32(1.0), np.int64(2)],
        [[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]],
        np.arange(24.0).reshape(2, 3, 1, 4).transpose(1, 0, 3, 2),
        [[np.eye(2)], [np.ones((2, 2))]],
    ],
    ids=[
        *("vector", "matrix", "one", "tuple", "tuples", "numpy", "numpy int", "numpy transposed", "list of numpy rows"),
        *("list of numpy numbers", "images", "numpy images transposed", "lists of numpy matrices"),
    ],
)
def test_values_come_out_as_they_went_in(stage: Stage, values: Any) -> None:
    for dtype in ("float32", "float64"):
        got = np.asarray(stage.arrays.to_host(stage.arrays.asarray(values, dtype)))
        assert got.shape == np.shape(values)
        assert np.array_equal(got, np.asarray(values, dtype=np.float64))


@pytest.mark.parametrize("values", [[[1.0, 2.0], [3.0, 4.0]], [[[[1.0, 2.0], [3.0, 4.0]]]]], ids=["matrix", "images"])
def test_asarray_takes_its_own_arrays(stage: Stage, values: Any) -> None:
    array = stage.arrays.asarray(values)
    assert np.array_equal(stage.arrays.to_host(stage.arrays.asarray(array)), values)


def test_nan_and_inf_are_numbers(stage: Stage) -> None:
    got = np.asarray(stage.arrays.to_host(stage.arrays.asarray([np.nan, np.inf, -np.inf])))
    assert np.array_equal(got, [np.nan, np.inf, -np.inf], equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_is_rounded_to_the_dtype_it_is_kept_in(stage: Stage, dtype: str) -> None:
    got = np.asarray(stage.arrays.to_host(stage.arrays.asarray([1 / 3], dtype)))[0]
    kept = "float64" if stage.name == "stage1_pure_python" else dtype
    assert got == np.dtype(kept).type(1 / 3)


def test_dtype_is_float32_where_none_is_given(stage: Stage) -> None:
    got = np.asarray(stage.arrays.to_host(stage.arrays.asarray([1.0])))
    assert got.dtype == (np.float64 if stage.name == "stage1_pure_python" else np.float32)


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 2.0], [3.0]],
        [[1.0], 2.0],
        [[[[1.0]]], [[[1.0]], [[2.0]]]],
        [[[[1.0], [2.0]]], [[[1.0, 2.0]]]],
    ],
    ids=["row too short", "number among rows", "another number of channels", "channels of another shape"],
)
def test_ragged_values_are_rejected_and_called_ragged(stage: Stage, values: Any) -> None:
    with pytest.raises(ValueError, match="ragged"):
        stage.arrays.asarray(values)


@pytest.mark.parametrize("values", [[], [[]], [[], []], np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 1, 0, 3))])
def test_empty_values_are_rejected(stage: Stage, values: Any) -> None:
    with pytest.raises(ValueError, match=r"^asarray: expected at least one value"):
        stage.arrays.asarray(values)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (1, 1, 1, 1, 1), (1, 2, 1, 2, 1)], ids=str)
@pytest.mark.parametrize("kind", ["lists", "numpy"])
def test_three_and_five_dimensions_are_rejected(stage: Stage, shape: tuple[int, ...], kind: str) -> None:
    values: Any = np.ones(shape) if kind == "numpy" else np.ones(shape).tolist()
    with pytest.raises(ValueError, match=rf"^asarray: expected 1, 2 or 4 dimensions, got {len(shape)}$"):
        stage.arrays.asarray(values)


@pytest.mark.parametrize(
    "values",
    [["1", "2"], [1.0, None], [1 + 2j], "12", None, np.array(["1"]), np.array([1 + 2j])],
    ids=["text", "None inside", "complex", "str", "None", "numpy text", "numpy complex"],
)
def test_what_is_no_number_is_a_type_error(stage: Stage, values: Any) -> None:
    with pytest.raises(TypeError, match="asarray: "):
        stage.arrays.asarray(values)


@pytest.mark.parametrize("values", [3.0, np.float32(3.0), np.array(3.0)], ids=["float", "numpy scalar", "0-d array"])
def test_a_lone_number_is_no_array(stage: Stage, values: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="asarray: expected"):
        stage.arrays.asarray(values)


@pytest.mark.parametrize("dtype", ["float16", "int32", "", "double"])
def test_unknown_dtypes_are_rejected_with_the_choices(stage: Stage, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"unknown dtype '{dtype}'; choose one of float32, float64"):
        stage.arrays.asarray([1.0], dtype)
