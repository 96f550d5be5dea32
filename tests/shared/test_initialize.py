"""The first weights: their mean, variance and bounds, and that a seed always gives the same ones.

The statistical tests use fixed seeds, so they pass or fail the same way every time; five standard errors
is how far off a right implementation would be for one seed in two million.
"""

import math
import re
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture, check_layer_sizes
from shared.initialize import INITIALIZERS, initialize_parameters
from shared.layers import BatchNorm, Conv, Dense, Flatten

FAN_IN, FAN_OUT = 300, 100
VARIANCES = {
    "he": 2 / FAN_IN,
    "he_normal": 2 / FAN_IN,
    "he_uniform": 2 / FAN_IN,
    "xavier": 2 / (FAN_IN + FAN_OUT),
    "xavier_normal": 2 / (FAN_IN + FAN_OUT),
    "xavier_uniform": 2 / (FAN_IN + FAN_OUT),
}
KURTOSES = {"normal": 3.0, "uniform": 1.8}  # the mean fourth power over the squared variance
FIVE_SIGMA = 5.0


def kind(initializer: str) -> str:
    return "uniform" if initializer.endswith("uniform") else "normal"


def weights(initializer: str, seed: int = 0) -> np.ndarray:
    """30,000 weights of one layer, flat."""
    return np.array(initialize_parameters([FAN_IN, FAN_OUT], initializer, seed)[0]).reshape(-1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_mean_variance_and_shape_are_the_formulas(initializer: str, seed: int) -> None:
    values, variance, kurtosis = weights(initializer, seed), VARIANCES[initializer], KURTOSES[kind(initializer)]
    squares = np.mean(values**2)
    assert abs(values.mean()) < FIVE_SIGMA * math.sqrt(variance / values.size)
    assert abs(squares - variance) < FIVE_SIGMA * variance * math.sqrt((kurtosis - 1) / values.size)
    assert np.mean(values**4) / squares**2 == pytest.approx(kurtosis, abs=0.15)


@pytest.mark.parametrize("initializer", [name for name in INITIALIZERS if kind(name) == "uniform"])
def test_uniform_weights_fill_their_bounds_and_never_leave_them(initializer: str) -> None:
    limit = math.sqrt(3 * VARIANCES[initializer])
    largest = np.abs(weights(initializer)).max()
    assert 0.999 * limit < largest <= limit


@pytest.mark.parametrize("initializer", [name for name in INITIALIZERS if kind(name) == "normal"])
def test_normal_weights_have_a_normals_tails(initializer: str) -> None:
    deviations = np.abs(weights(initializer)) / math.sqrt(VARIANCES[initializer])
    share = math.erfc(2 / math.sqrt(2))  # beyond two deviations: 4.55 %
    assert abs(np.mean(deviations > 2) - share) < FIVE_SIGMA * math.sqrt(share / deviations.size)
    assert 3.5 < deviations.max() < 6.0


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_a_seed_always_gives_the_same_numbers_and_another_seed_others(initializer: str) -> None:
    once = initialize_parameters([4, 3, 2], initializer, seed=7)
    assert once == initialize_parameters([4, 3, 2], initializer, seed=7)
    assert once != initialize_parameters([4, 3, 2], initializer, seed=8)


def test_the_short_names_are_the_normal_ones() -> None:
    for short in ("he", "xavier"):
        assert initialize_parameters([4, 3], short, 1) == initialize_parameters([4, 3], f"{short}_normal", 1)


def test_the_numbers_are_these_in_every_version() -> None:
    """A seed is a promise: old checkpoints and published results depend on it."""
    drawn = initialize_parameters([2, 2], "xavier_uniform", seed=1)
    limit = math.sqrt(6 / 4)
    # The first four numbers of the Mersenne Twister seeded with 1, as random.Random has given them since Python 3.2.
    twister = [0.13436424411240122, 0.8474337369372327, 0.763774618976614, 0.2550690257394217]
    assert drawn[0] == [[(2 * u - 1) * limit for u in twister[:2]], [(2 * u - 1) * limit for u in twister[2:]]]
    normal = math.sqrt(2) * math.sqrt(-2 * math.log(1 - twister[0])) * math.cos(2 * math.pi * twister[1])
    assert initialize_parameters([1, 1], "he_normal", seed=1)[0] == [[normal]]


def test_parameters_are_weights_and_zero_biases_in_turn() -> None:
    parameters = initialize_parameters([4, 3, 2])
    assert [np.shape(p) for p in parameters] == [(4, 3), (3,), (3, 2), (2,)]
    assert parameters[1] == [0.0] * 3
    assert parameters[3] == [0.0] * 2


def test_each_layer_is_scaled_by_its_own_fan_in() -> None:
    first, _, second, _ = (np.array(p) for p in initialize_parameters([10, 1000, 10], "he"))
    assert first.var() == pytest.approx(2 / 10, rel=0.1)
    assert second.var() == pytest.approx(2 / 1000, rel=0.1)


@pytest.mark.parametrize("sizes", [[], [3]])
def test_too_few_sizes_are_rejected(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"at least an input and an output size, got {sizes}")):
        check_layer_sizes(sizes)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3", None, math.nan])
def test_a_size_that_is_no_positive_whole_number_is_rejected(size: Any) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"layer_sizes: every size must be a whole number of at least 1, got {size!r}")
    ):
        initialize_parameters([4, size])


def test_an_unknown_initializer_is_rejected_with_the_choices() -> None:
    with pytest.raises(ValueError, match="unknown initializer 'zeros'; choose one of he, he_normal, he_uniform"):
        initialize_parameters([2, 2], "zeros")


@pytest.mark.parametrize("seed", [1.5, True, "1", None])
def test_a_seed_that_is_no_whole_number_is_rejected(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed: expected a whole number, got {seed!r}"):
        initialize_parameters([2, 2], seed=seed)


def test_a_convolution_counts_its_window_in_fan_in_and_fan_out() -> None:
    architecture = Architecture((40, 8, 8), (Conv(60, (3, 5)), BatchNorm(), Flatten(), Dense(2)))
    values, bias, gamma, beta, dense, _ = map(np.array, initialize_parameters(architecture, "xavier_uniform", seed=3))
    assert values.shape == (60, 40, 3, 5)
    limit = math.sqrt(6 / (15 * 40 + 15 * 60))
    assert 0.999 * limit < np.abs(values).max() <= limit
    assert abs(values.mean()) < FIVE_SIGMA * limit / math.sqrt(3 * values.size)
    assert np.abs(dense).max() <= math.sqrt(6 / (60 * 6 * 4 + 2))
    assert [bias.tolist(), gamma.tolist(), beta.tolist()] == [[0.0] * 60, [1.0] * 60, [0.0] * 60]
