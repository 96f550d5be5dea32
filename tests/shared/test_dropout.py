"""Dropout masks: the fast and the plain formula agree, the rate is right, and different keys are independent."""

import numpy as np
import pytest

from shared.dropout import dropout_mask, mask_key, mask_value, random_bits, step_masks, uniform_numbers


def test_random_bits_are_splitmix64s_published_sequence() -> None:
    # The first outputs of SplitMix64 seeded with 1234567, as in Vigna's reference implementation (splitmix64.c).
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [random_bits(1234567, i) for i in range(4)] == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("seed", "step", "layer"), [(0, 0, 0), (1, 2, 3), (2**63, 10**12, 7), (5, 0, 2**40)])
def test_whole_mask_is_the_plain_formula_at_every_element(seed: int, step: int, layer: int, dtype: str) -> None:
    mask = dropout_mask(7, 13, 0.3, seed, step, layer, dtype)
    plain = [[mask_value(r * 13 + c, 0.3, seed, step, layer) for c in range(13)] for r in range(7)]
    assert mask.dtype == dtype
    np.testing.assert_array_equal(mask, np.array(plain, dtype))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.5, 0.9, 0.999])
def test_masks_hold_exactly_zero_and_the_scale_at_the_right_rate(rate: float) -> None:
    mask = dropout_mask(1000, 100, rate, seed=3, step=1, layer=0, dtype="float64")
    assert set(np.unique(mask)) <= {0.0, 1.0 / (1.0 - rate)}
    dropped = np.mean(mask == 0.0)
    assert abs(dropped - rate) <= 4 * np.sqrt(rate * (1 - rate) / mask.size)  # four standard deviations


@pytest.mark.parametrize("other", [(1, 0, 0), (0, 1, 0), (0, 0, 1)], ids=["seed", "step", "layer"])
def test_masks_of_another_seed_step_or_layer_are_uncorrelated(other: tuple[int, int, int]) -> None:
    first = dropout_mask(200, 100, 0.5, 0, 0, 0) - 1
    second = dropout_mask(200, 100, 0.5, *other) - 1
    assert abs(np.mean(first * second)) <= 4 / np.sqrt(first.size)


def test_the_key_takes_seed_step_and_layer_through_the_generator_in_turn() -> None:
    # A run that an earlier version began goes on with the same masks.
    assert mask_key(1, 2, 3) == random_bits(random_bits(random_bits(0, 1), 2), 3)


def test_a_number_that_equals_the_rate_survives() -> None:
    uniform = float(uniform_numbers(mask_key(1, 2, 3), np.arange(8, dtype=np.uint64))[5])
    assert dropout_mask(1, 8, uniform, 1, 2, 3)[0, 5] > 0.0
    assert mask_value(5, uniform, 1, 2, 3) > 0.0


def test_same_arguments_give_the_same_mask_and_neighbours_in_it_are_uncorrelated() -> None:
    mask = dropout_mask(200, 100, 0.5, 1, 2, 3)
    np.testing.assert_array_equal(mask, dropout_mask(200, 100, 0.5, 1, 2, 3))
    flat = mask.ravel() - 1
    for lag in (1, 2, 100):
        assert abs(np.mean(flat[lag:] * flat[:-lag])) <= 4 / np.sqrt(flat.size)


def test_step_masks_give_one_mask_for_each_place_at_its_rate_or_none() -> None:
    masks = step_masks(4, [(6, 0.5), (5, 0.25), (3, 0.0)], seed=1, step=9, dtype="float64")
    assert masks is not None
    assert {mask.dtype.name for mask in masks} == {"float64"}
    assert [mask.shape for mask in masks] == [(4, 6), (4, 5), (4, 3)]
    np.testing.assert_array_equal(masks[1], dropout_mask(4, 5, 0.25, 1, 9, 1, "float64"))
    np.testing.assert_array_equal(masks[2], np.ones((4, 3)))
    assert step_masks(4, [(6, 0.0)], seed=1, step=9) is None
    assert step_masks(4, [], seed=1, step=9) is None


def test_uniform_numbers_are_the_plain_formula_of_an_array_of_indices() -> None:
    indices = np.array([[0, 7], [2**40, 2**64 - 1]], np.uint64)
    expected = [[(random_bits(12345, int(i)) >> 11) / 2**53 for i in row] for row in indices]
    np.testing.assert_array_equal(uniform_numbers(12345, indices), expected)
    assert indices[0, 1] == 7, "the indices must not change"


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_impossible_rates_are_rejected(rate: float) -> None:
    with pytest.raises(ValueError, match=r"dropout: expected a rate of at least 0 and below 1, got"):
        dropout_mask(2, 2, rate, 0, 0, 0)
    with pytest.raises(ValueError, match=r"dropout: expected a rate of at least 0 and below 1, got"):
        mask_value(0, rate, 0, 0, 0)
