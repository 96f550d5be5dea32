"""The tolerance is right-sized, and a comparison measures in it and says where."""

import math

import numpy as np
import pytest

from shared.architectures import mlp, named
from shared.checks.tolerance import C, compare, tolerance
from shared.checks.trajectory import compare_parameters, longest_sum


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tolerance_is_c_eps_sqrt_k_scale(dtype: str) -> None:
    assert tolerance(dtype, 100, 3.0) == C * np.finfo(dtype).eps * 10 * 3.0
    np.testing.assert_array_equal(
        tolerance(dtype, 4, np.array([[1.0, 2.0]])), C * np.finfo(dtype).eps * 2 * np.array([[1.0, 2.0]])
    )


def test_the_tolerance_of_nothing_is_the_smallest_normal_number() -> None:
    assert tolerance("float32", 1, 0.0) == np.finfo(np.float32).tiny


@pytest.mark.parametrize("k", [0, -1, math.nan])
def test_a_tolerance_needs_at_least_one_term(k: float) -> None:
    with pytest.raises(ValueError, match="at least 1 accumulated term"):
        tolerance("float32", k, 1.0)


@pytest.mark.parametrize("k", [10, 1000, 30_000])
def test_sums_taken_one_by_one_stay_within_the_tolerance_and_use_a_fair_part_of_it(k: int) -> None:
    # All terms positive and added in order: the case in which partial sums, and so their roundings, are largest.
    terms = np.random.default_rng(k).random((200, k), np.float32)
    got = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
    expected = terms.astype(np.float64).sum(axis=1)
    worst = compare("sum", got, expected, "float32", k, scale=expected)
    assert worst.ok
    assert worst.tolerances > 0.05


# compare


def test_an_error_of_a_few_tolerances_fails_and_of_half_a_tolerance_passes() -> None:
    expected = np.random.default_rng(1).standard_normal((5, 7))
    for size, ok in [(0.5, True), (0.99, True), (1.01, False), (3.0, False), (-0.99, True), (-1.01, False)]:
        got = expected.copy()
        got[3, 2] += size * tolerance("float64", 9, np.abs(expected).max())
        found = compare("op", got, expected, "float64", 9, layer=2)
        assert (found.ok, found.index, found.layer) == (ok, (3, 2), 2)
        assert found.tolerances == pytest.approx(abs(size), rel=0.05)
        assert (found.got, found.expected) == (got[3, 2], expected[3, 2])


def test_without_a_scale_the_largest_finite_number_that_is_expected_is_the_scale() -> None:
    assert not compare("op", [2e-20], [1e-20], "float64", 1).ok
    assert not compare("op", [2.0, math.inf], [1.0, math.inf], "float64", 1).ok


def test_a_scale_array_judges_every_element_by_its_own_size() -> None:
    expected = np.array([1e6, 1.0])
    got = expected + np.array([1e-11, 1e-11])
    assert compare("op", got, expected, "float64", 1).ok
    found = compare("op", got, expected, "float64", 1, scale=np.abs(expected))
    assert not found.ok
    assert found.index == (1,)


def test_shapes_must_be_equal_and_not_only_broadcastable() -> None:
    found = compare("op", np.zeros((3, 1)), np.zeros(3), "float64", 1, layer=2, level="layer", case="batch 3")
    assert found.tolerances == math.inf
    assert str(found) == "op, layer 2: got shape (3, 1), expected (3,); no rounding explains that (batch 3)"
    assert found.level == "layer"


@pytest.mark.parametrize(
    ("got", "expected", "ok"),
    [
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.inf, 1.0, False),
        (1.0, -math.inf, False),
        (math.nan, math.inf, False),
    ],
)
def test_nan_and_infinities_match_only_their_own_kind(got: float, expected: float, ok: bool) -> None:
    found = compare("op", [[0.5, got]], [[0.5, expected]], "float64", 1)
    assert found.ok is ok
    assert found.tolerances == (0.0 if ok else math.inf)
    assert ok or found.index == (0, 1)


def test_what_float32_cannot_hold_counts_as_infinite() -> None:
    assert compare("op", [math.inf], [1e39], "float32", 1).ok
    assert compare("op", [-math.inf], [-1e39], "float32", 1).ok
    assert not compare("op", [math.inf], [1e39], "float64", 1).ok
    largest = float(np.finfo(np.float32).max)
    assert compare("op", [largest, -largest], [largest, -largest], "float32", 1).ok


def test_a_report_line_names_op_layer_index_values_and_tolerances() -> None:
    line = str(compare("relu_backward", [[0.0, 2.0]], [[0.0, -2.0]], "float64", 1, layer="2", case="batch 1"))
    assert line.startswith("relu_backward, layer 2, index (0, 1): got 2, expected -2; ")
    assert line.endswith(" tolerances apart (batch 1)")
    assert str(compare("loss", 1.0, 1.0, "float64", 1)) == "loss: got 1, expected 1; 0 tolerances apart"


def test_compare_parameters_names_the_parameter_and_grows_with_k() -> None:
    expected, architecture = [np.ones((9, 2)), np.ones(2), np.ones((2, 1)), np.ones(1)], mlp([9, 2, 1])
    got = [p.copy() for p in expected]
    got[2][1, 0] += 1.5 * tolerance("float64", 16 * 9, 1.0)
    (wrong,) = [c for c in compare_parameters(got, expected, architecture, "float64", 16 * 9) if not c.ok]
    assert (wrong.op, wrong.layer, wrong.index) == ("trained weights", "3", (1, 0))
    assert all(c.ok for c in compare_parameters(got, expected, architecture, "float64", 64 * 9))


def test_compare_parameters_rejects_networks_of_another_form() -> None:
    one, two = [np.ones((1, 1))], [np.ones((1, 1)), np.ones(1)]
    for got, expected in ((one, two), (one, one)):
        message = f"got 1 arrays and {len(expected)} are expected, but the architecture has 2 parameters"
        with pytest.raises(ValueError, match=message):
            compare_parameters(got, expected, mlp([1, 1]), "float64", 1)


def test_the_longest_sum_is_over_inputs_or_over_the_places_of_a_kernel_in_the_batch() -> None:
    assert longest_sum(mlp([5, 7, 3]), 6) == 7
    assert longest_sum(mlp([5, 7, 3]), 60) == 60
    assert longest_sum(named("lenet5"), 2) == 2 * 28 * 28
