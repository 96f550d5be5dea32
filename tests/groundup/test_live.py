"""groundup.live: the blocks of a sparkline, and the gradient ratios."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundup.live import BLOCKS, GAP, gradient_ratios, sparkline

# --- the sparkline ---


def test_a_series_that_rises_by_equal_steps_shows_every_block() -> None:
    assert sparkline([10, 20, 30, 40, 50, 60, 70, 80], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([3.5, 0.0, 7.0], 8) == f"{BLOCKS[round(3.5)]}▁█"
    assert sparkline([-1.0, 0.0, -2.0], 8) == f"{BLOCKS[round(3.5)]}█▁"


def test_more_values_than_width_are_averaged_in_neighbouring_groups() -> None:
    assert sparkline([0, 0, 1, 1, 7, 7], 3) == "▁▂█"
    assert sparkline([0, 0, 0, 7, 7], 2) == "▁█"  # the groups are 3 and 2 long
    assert sparkline([0, 100, 50, 50], 2) == "▁▁"  # a mean, not a largest value


@pytest.mark.parametrize("values", [[2.5], [2.5, 2.5, 2.5], [0.0, 0.0], [-1e300, -1e300]])
def test_a_constant_series_is_a_flat_line(values: list[float]) -> None:
    assert sparkline(values, 10) == "▁" * len(values)


def test_what_is_no_number_leaves_a_gap_and_does_not_disturb_the_rest() -> None:
    assert sparkline([0, math.nan, 7], 8) == f"▁{GAP}█"
    assert sparkline([0, math.inf, -math.inf, 7], 8) == f"▁{GAP}{GAP}█"
    assert sparkline([math.nan, 0, math.nan, 7], 2) == "▁█"  # left out of its group's mean
    assert sparkline([math.inf, 0, 7, 7], 2) == "▁█"
    assert sparkline([math.nan, math.nan], 8) == GAP * 2


def test_nothing_is_an_empty_line_and_a_width_below_1_an_error() -> None:
    assert sparkline([], 8) == ""
    with pytest.raises(ValueError, match="sparkline: width: expected at least 1, got 0"):
        sparkline([1, 2], 0)


series = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=50)


@given(series, st.integers(1, 60))
def test_a_sparkline_is_as_long_as_its_values_or_its_width(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set(BLOCKS)
    if len(values) <= width and max(values) > min(values):
        assert (line[values.index(min(values))], line[values.index(max(values))]) == (BLOCKS[0], BLOCKS[-1])


@given(series, st.integers(1, 60))
def test_a_sparkline_goes_up_where_its_values_do_whatever_their_unit(values: list[float], width: int) -> None:
    rising = sparkline(sorted(values), len(values))
    assert list(rising) == sorted(rising)
    assert sparkline([4 * value for value in values], width) == sparkline(values, width)


# --- the gradients' ratios ---


def test_a_ratio_is_one_norm_over_the_other_and_biases_are_left_out() -> None:
    parameters = [np.array([[3.0, 4.0]]), np.zeros(2), np.array([[2.0], [0.0]]), np.ones(1)]
    gradients = [np.array([[0.6, 0.8]]), np.full(2, 9.0), np.array([[0.0], [-1.0]]), np.full(1, 9.0)]
    assert gradient_ratios(parameters, gradients) == pytest.approx([0.2, 0.5])


def test_weights_of_0_give_an_infinite_ratio_or_0_where_nothing_pulls() -> None:
    zeros, ones, bias = np.zeros((2, 2)), np.ones((2, 2)), np.zeros(2)
    assert gradient_ratios([zeros, bias], [ones, bias]) == [math.inf]
    assert gradient_ratios([zeros, bias], [zeros, bias]) == [0.0]


def test_gradients_of_other_shapes_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"a gradient shaped like each parameter, got \[\(2, 2\)\] for \[\(2, 2\), \(2"
    ):
        gradient_ratios([np.zeros((2, 2)), np.zeros(2)], [np.zeros((2, 2))])
