"""Pools find the largest and the average of every window, and send gradients back to where they came from."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.contract import Stage

few = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the stage is the same for all examples
)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(3, 9), st.integers(3, 9))


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def put(stage: Stage, array: Any, dtype: str = "float64") -> Any:
    return stage.arrays.asarray(np.ascontiguousarray(array), dtype)


def walk(shape: tuple[int, ...], size: tuple[int, int], stride: tuple[int, int]) -> list[tuple[int, int, slice, slice]]:
    """Every place of the window: its number along the rows and columns, and its slices of the image."""
    places = ((shape[2] - size[0]) // stride[0] + 1, (shape[3] - size[1]) // stride[1] + 1)
    return [
        (r, s, slice(r * stride[0], r * stride[0] + size[0]), slice(s * stride[1], s * stride[1] + size[1]))
        for r, s in product(*map(range, places))
    ]


def test_values_by_hand_with_a_tie_and_a_row_that_does_not_fit(stage: Stage, dtype: str) -> None:
    x = [[[[1.0, 5.0, 2.0, 2.0], [5.0, 0.0, 2.0, 2.0], [9.0, 9.0, 9.0, 9.0]]]]
    output, indices = stage.pooling.max_pool2d(put(stage, x, dtype), 2)
    assert host(stage, output).tolist() == [[[[5.0, 2.0]]]]
    assert host(stage, indices).tolist() == [[[[1, 2]]]]
    assert host(stage, stage.pooling.average_pool2d(put(stage, x, dtype), 2)).tolist() == [[[[2.75, 2.0]]]]


@pytest.mark.parametrize("stride", [2**31, 10**30])
def test_a_stride_longer_than_the_image_leaves_the_first_place(stage: Stage, stride: int) -> None:
    x, g = put(stage, np.arange(12.0).reshape(1, 1, 3, 4)), put(stage, [[[[4.0]]]])
    output, indices = stage.pooling.max_pool2d(x, 2, stride)
    assert (host(stage, output).tolist(), host(stage, indices).tolist()) == ([[[[5.0]]]], [[[[5]]]])
    assert host(stage, stage.pooling.average_pool2d(x, 2, stride)).tolist() == [[[[2.5]]]]
    back = host(stage, stage.pooling.average_pool2d_backward(g, (1, 1, 3, 4), 2, stride))
    assert back.tolist() == [[[[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]


def test_gradients_by_hand_add_up_where_windows_overlap(stage: Stage) -> None:
    x, grad_output = put(stage, [[[[1.0, 7.0, 3.0]]]]), put(stage, [[[[10.0, 100.0]]]])
    _, indices = stage.pooling.max_pool2d(x, (1, 2), 1)
    got = stage.pooling.max_pool2d_backward(grad_output, indices, (1, 1, 1, 3))
    assert host(stage, got).tolist() == [[[[0.0, 110.0, 0.0]]]]
    got = stage.pooling.average_pool2d_backward(grad_output, (1, 1, 1, 3), (1, 2), 1)
    assert host(stage, got).tolist() == [[[[5.0, 55.0, 50.0]]]]


def test_nan_is_the_largest_of_its_window_and_of_no_other(stage: Stage, dtype: str) -> None:
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    x[0, 0, 0, 1] = np.nan
    x[0, 0, 2:, 2:] = [[np.inf, np.nan], [np.nan, 1.0]]
    output, indices = stage.pooling.max_pool2d(put(stage, x, dtype), 2)
    np.testing.assert_array_equal(host(stage, output), [[[[np.nan, 7.0], [13.0, np.nan]]]])
    assert host(stage, indices).tolist() == [[[[1, 7], [13, 14]]]]  # of two NaN the last
    average = host(stage, stage.pooling.average_pool2d(put(stage, x, dtype), 2))
    assert np.isnan(average).tolist() == [[[[True, False], [False, True]]]]


def test_a_window_of_minus_infinity_has_its_first_number(stage: Stage, dtype: str) -> None:
    output, indices = stage.pooling.max_pool2d(put(stage, np.full((1, 1, 4, 4), -np.inf), dtype), 2)
    assert host(stage, output).tolist() == [[[[-np.inf] * 2] * 2]]
    assert host(stage, indices).tolist() == [[[[0, 2], [8, 10]]]]


def test_a_window_with_more_places_than_a_byte_counts(stage: Stage) -> None:
    x = np.random.default_rng(0).permutation(2 * 18 * 34).reshape(1, 2, 18, 34).astype(float)
    output, indices = stage.pooling.max_pool2d(put(stage, x), (18, 17))
    for c, half in product(range(2), range(2)):
        window = x[0, c, :, 17 * half : 17 * half + 17]
        row, column = np.unravel_index(window.argmax(), window.shape)
        assert host(stage, output)[0, c, 0, half] == window.max()
        assert host(stage, indices)[0, c, 0, half] == row * 34 + column + 17 * half


@few
@given(shape=shapes, size=pairs, stride=st.none() | pairs, seed=st.integers(0, 2**32 - 1))
def test_pools_are_what_a_walk_over_the_windows_finds(
    stage: Stage, shape: tuple[int, ...], size: tuple[int, int], stride: tuple[int, int] | None, seed: int
) -> None:
    x = np.random.default_rng(seed).integers(-3, 3, shape).astype(np.float64)
    output, indices = stage.pooling.max_pool2d(put(stage, x), size, stride)
    output, indices = host(stage, output), host(stage, indices)
    average = host(stage, stage.pooling.average_pool2d(put(stage, x), size, stride))
    places = walk(shape, size, stride or size)
    assert output[0, 0].size == indices[0, 0].size == average[0, 0].size == len(places)
    for r, s, rows, columns in places:
        windows = x[:, :, rows, columns].reshape(*shape[:2], -1)
        assert np.array_equal(output[:, :, r, s], windows.max(axis=2))
        first = windows.argmax(axis=2)
        at = (rows.start + first // size[1]) * shape[3] + columns.start + first % size[1]
        assert np.array_equal(indices[:, :, r, s], at)
        np.testing.assert_allclose(average[:, :, r, s], windows.mean(axis=2), rtol=1e-14, atol=1e-14)


@few
@given(shape=shapes, size=pairs, stride=st.none() | pairs, seed=st.integers(0, 2**32 - 1))
def test_both_backward_passes_are_the_adjoints_of_their_forward_passes(
    stage: Stage, shape: tuple[int, ...], size: tuple[int, int], stride: tuple[int, int] | None, seed: int
) -> None:
    """<pool(x), g> = <x, backward(g)>: the average is linear, and the largest is the choice of some of x's numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    output, indices = stage.pooling.max_pool2d(put(stage, x), size, stride)
    average = stage.pooling.average_pool2d(put(stage, x), size, stride)
    g = rng.normal(size=host(stage, output).shape)
    back = stage.pooling.max_pool2d_backward(put(stage, g), indices, shape)
    average_back = stage.pooling.average_pool2d_backward(put(stage, g), shape, size, stride)
    for forward, backward in ((output, back), (average, average_back)):
        assert host(stage, backward).shape == shape
        expected, size_of = np.sum(host(stage, forward) * g), np.sum(np.abs(host(stage, forward) * g)) + 1
        assert abs(np.sum(host(stage, backward) * x) - expected) <= 1e-13 * size_of


def test_out_is_filled_whatever_it_held_and_inputs_may_have_gaps(stage: Stage, dtype: str) -> None:
    if stage.name == "stage1_pure_python":
        pytest.skip("stage 1 makes new lists and takes no out")
    pooling, shape = stage.pooling, (2, 3, 7, 5)
    spread = np.full((2, 3, 14, 5), np.nan, dtype)
    spread[:, :, ::2] = np.random.default_rng(0).normal(size=shape)
    x = spread[:, :, ::2]
    expected, indices = pooling.max_pool2d(put(stage, x, dtype), (3, 2))
    average = pooling.average_pool2d(put(stage, x, dtype), (3, 2))

    def poisoned(like: Any) -> Any:
        return put(stage, np.full(np.shape(like), np.nan), dtype)

    out = poisoned(expected)
    got, got_indices = pooling.max_pool2d(x, (3, 2), out=out)
    assert got is out
    assert np.array_equal(host(stage, got), host(stage, expected))
    assert np.array_equal(host(stage, got_indices), host(stage, indices))
    assert host(stage, indices).dtype == np.int64
    out = poisoned(expected)
    assert pooling.average_pool2d(x, (3, 2), out=out) is out
    np.testing.assert_allclose(host(stage, out), host(stage, average), rtol=1e-6)
    back = pooling.max_pool2d_backward(expected, indices, shape)
    average_back = pooling.average_pool2d_backward(expected, shape, (3, 2))
    out = poisoned(x)
    assert pooling.max_pool2d_backward(expected, indices, shape, out=out) is out
    assert np.array_equal(host(stage, out), host(stage, back))
    out = poisoned(x)
    assert pooling.average_pool2d_backward(expected, shape, (3, 2), out=out) is out
    assert np.array_equal(host(stage, out), host(stage, average_back))


def test_inputs_are_left_alone(stage: Stage) -> None:
    values = np.random.default_rng(0).normal(size=(1, 2, 4, 4))
    x = put(stage, values)
    output, indices = stage.pooling.max_pool2d(x, 2)
    kept = np.array(host(stage, output)), np.array(host(stage, indices))
    stage.pooling.average_pool2d(x, 2)
    stage.pooling.max_pool2d_backward(output, indices, (1, 2, 4, 4))
    stage.pooling.average_pool2d_backward(output, (1, 2, 4, 4), 2)
    assert np.array_equal(host(stage, x), values)
    assert np.array_equal(host(stage, output), kept[0])
    assert np.array_equal(host(stage, indices), kept[1])
