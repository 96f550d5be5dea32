"""Eight bits on stage 2: how far a number may be off, that sums are exact, and what a network loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from shared.architectures import named
from shared.data.datasets import load_dataset
from shared.data.normalisation import Normalisation
from shared.machine.processes import ROOT
from shared.training.checkpoints import load_checkpoint
from stage2_numpy.eight_bits import (
    EXACT_TERMS,
    LARGEST,
    LONGEST_SUM,
    SMALLEST,
    dense_in_eight_bits,
    dequantise,
    integer_matmul,
    quantise,
    rounded_parameters,
    symmetric_scale,
)
from stage2_numpy.network import Network

SHIPPED = Path(ROOT) / "groundup/studio/digits/network.safetensors"
finite = st.floats(-1e6, 1e6, width=32).map(lambda value: value if abs(value) > 1e-30 else 0.0)
matrices = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=finite)


def test_three_weights_by_hand() -> None:
    weights = np.array([0.5, -1.27, 0.024])
    scale = symmetric_scale(weights)
    assert scale == pytest.approx(0.01)
    numbers = quantise(weights, scale)
    assert (numbers.dtype, numbers.tolist()) == (np.int8, [50, -127, 2])
    np.testing.assert_allclose(dequantise(numbers, scale), [0.5, -1.27, 0.02])


def test_each_output_has_the_scale_of_its_own_largest_weight() -> None:
    dense = np.array([[1.0, -100.0], [-2.0, 3.0]], np.float32)  # (in, out)
    assert (symmetric_scale(dense, axis=1) * LARGEST).tolist() == [[2.0, 100.0]]
    filters = np.stack([np.full((3, 2, 2), 4.0), np.full((3, 2, 2), -8.0)])  # (out, in, rows, columns)
    scales = symmetric_scale(filters, axis=0)
    assert scales.shape == (2, 1, 1, 1)
    assert np.ravel(scales * LARGEST).tolist() == [4.0, 8.0]
    assert symmetric_scale(dense, axis=-1).tolist() == symmetric_scale(dense, axis=1).tolist()


@settings(max_examples=30)
@given(matrices, st.sampled_from([None, 0, 1]))
def test_a_number_is_off_by_half_a_scale_at_most_and_its_opposite_by_as_much(
    values: np.ndarray, axis: int | None
) -> None:
    scale = symmetric_scale(values, axis)
    assert scale.dtype == values.dtype
    numbers = quantise(values, scale)
    assert np.abs(numbers.astype(int)).max(initial=0) <= LARGEST
    off = np.abs(dequantise(numbers, scale).astype(float) - values)
    assert np.all(off <= 0.5 * scale + np.abs(values) * 1e-6)
    assert np.array_equal(quantise(-values, scale), -numbers)
    assert np.all(symmetric_scale(values, axis) <= symmetric_scale(values)) or not values.all()


def test_halves_go_to_the_even_number_and_what_is_beyond_stays_at_the_end() -> None:
    assert quantise(np.array([0.5, 1.5, -2.5, 200.0, -1e9]), 1.0).tolist() == [0, 2, -2, 127, -128]


def test_zeros_stay_zeros_and_need_no_division_by_zero() -> None:
    values = np.zeros((2, 3), np.float32)
    with np.errstate(all="raise"):
        scale = symmetric_scale(values, axis=1)
        assert scale.tolist() == [[1.0, 1.0, 1.0]]
        assert not quantise(values, scale).any()


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf]])
def test_what_has_no_largest_number_is_refused(values: list[float]) -> None:
    with pytest.raises(
        ValueError, match=r"symmetric_scale: values: expected finite numbers, at least one, got shape \("
    ):
        symmetric_scale(np.array(values))


def test_sums_of_whole_numbers_are_exact_up_to_the_last_that_fits() -> None:
    rng = np.random.default_rng(0)
    for terms in (1, 700, EXACT_TERMS, EXACT_TERMS + 1, 2500):
        a, b = (rng.integers(SMALLEST, LARGEST + 1, shape, dtype=np.int8) for shape in ((5, terms), (terms, 4)))
        sums = integer_matmul(a, b)
        assert sums.dtype == np.int32
        rows, columns = a.tolist(), b.T.tolist()
        assert sums.tolist() == [[sum(map(int.__mul__, row, column)) for column in columns] for row in rows]
    ends = np.full((1, LONGEST_SUM), SMALLEST, np.int8)
    assert integer_matmul(ends, ends.T).tolist() == [[SMALLEST**2 * LONGEST_SUM]]
    with pytest.raises(ValueError, match="integer_matmul: 131,072 terms; a sum of 32 bits has room for 131,071"):
        integer_matmul(np.ones((1, LONGEST_SUM + 1), np.int8), np.ones((LONGEST_SUM + 1, 1), np.int8))


def test_a_sum_in_float32_has_room_for_all_its_parts() -> None:
    """One term more, and the largest sum is the first whole number that float32 may not have."""
    most = np.full((1, EXACT_TERMS), SMALLEST, np.int8)
    assert integer_matmul(most, most.T).tolist() == [[2**24]]
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    a, b = np.append(most, [[1]], axis=1).astype(np.int8), np.append(most, [[1]], axis=1).astype(np.int8)
    assert integer_matmul(a, b.T).tolist() == [[2**24 + 1]]


def test_floats_are_no_whole_numbers() -> None:
    ones = np.ones((2, 2), np.int8)
    with pytest.raises(TypeError, match="integer_matmul: expected two arrays of int8, got int8 and float32"):
        integer_matmul(ones, ones.astype(np.float32))


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_dense_layer_is_off_by_what_its_two_roundings_explain(per_channel: bool) -> None:
    rng = np.random.default_rng(1)
    x, bias = rng.standard_normal((9, 50)), rng.standard_normal(7)
    weights = rng.standard_normal((50, 7)) * np.geomspace(0.01, 10, 7)  # outputs of very different sizes
    got = dense_in_eight_bits(x, weights, bias, per_channel)
    of_x, of_w = symmetric_scale(x), symmetric_scale(weights, 1 if per_channel else None)
    terms = np.abs(x)[:, :, None] * of_w / 2 + np.abs(weights) * of_x / 2 + of_x * of_w / 4
    off = np.abs(got - (x @ weights + bias))
    assert np.all(off <= terms.sum(axis=1) * (1 + 1e-12))
    assert off.max() > 1e-3  # something was rounded


def test_a_scale_for_each_output_saves_those_with_small_weights() -> None:
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((9, 50)), rng.standard_normal((50, 2)) * [0.001, 1.0]
    exact = x @ weights
    off = {
        per_channel: np.abs(dense_in_eight_bits(x, weights, np.zeros(2), per_channel) - exact).max(axis=0)
        for per_channel in (False, True)
    }
    assert off[False][0] > 0.1 * np.abs(exact[:, 0]).max()
    assert off[True][0] < 0.02 * np.abs(exact[:, 0]).max()


@pytest.mark.parametrize("per_channel", [False, True])
def test_every_weight_becomes_one_of_255_and_nothing_else_changes(per_channel: bool) -> None:
    architecture = named("lenet5")
    network = Network(architecture, seed=1)
    before = [array.copy() for array in network.parameters]
    after = rounded_parameters(architecture, network.parameters, per_channel)
    for described, old, new, own in zip(architecture.parameters(), before, after, network.parameters, strict=True):
        assert np.array_equal(old, own)
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
        if not described.fan_in:
            assert np.array_equal(new, old)
            continue
        outputs = np.moveaxis(new, 1, 0) if new.ndim == 2 else new
        groups = outputs if per_channel else [outputs]
        assert max(len(np.unique(group)) for group in groups) <= 2 * LARGEST + 1
        assert not np.array_equal(new, old)


@pytest.mark.parametrize("per_channel", [False, True])
def test_the_network_that_ships_keeps_its_answers(per_channel: bool) -> None:
    checkpoint, test = load_checkpoint(SHIPPED), load_dataset("mnist-subset").test
    normalisation = Normalisation.from_notes(checkpoint.about_run["notes"])
    x = test.x if normalisation is None else normalisation.normalised(test.x)
    (w1, b1, w2, b2) = checkpoint.parameters
    answers = Network.from_parameters(checkpoint.parameters).forward(x).argmax(axis=1)
    rounded = rounded_parameters(checkpoint.architecture, checkpoint.parameters, per_channel)
    by_weights = Network.from_parameters(rounded).forward(x).argmax(axis=1)
    hidden = np.maximum(dense_in_eight_bits(x, w1, b1, per_channel), 0)
    by_integers = dense_in_eight_bits(hidden, w2, b2, per_channel).argmax(axis=1)
    for eight in (by_weights, by_integers):
        assert np.mean(eight == answers) >= 0.99
        assert abs(np.mean(eight == test.y) - np.mean(answers == test.y)) <= 0.003


@pytest.mark.parametrize(
    ("left", "right"), [((2, 1024), (2000, 3)), ((2, 0), (7, 3)), ((2, 5), (4, 3)), ((5,), (5, 3))]
)
def test_whole_numbers_of_shapes_that_do_not_fit_are_refused(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"integer_matmul: expected \(M, K\) and \(K, N\), got ") as caught:
        integer_matmul(np.ones(left, np.int8), np.ones(right, np.int8))
    assert str(caught.value).endswith(f"{left} and {right}")


def test_nan_is_no_whole_number() -> None:
    with pytest.raises(ValueError, match="quantise: values: expected numbers, got NaN"):
        quantise(np.array([1, np.nan], np.float32), np.float32(1))
