"""Known mistakes are recognised by their results."""

import numpy as np
import pytest

from groundup.course.checks.mistakes import Mistake, likely_cause

EXPECTED = np.arange(1.0, 7).reshape(2, 3)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (EXPECTED.T, "transposed"),
        (-EXPECTED, "wrong sign"),
        (4 * EXPECTED, "4 times too large"),
        (EXPECTED / 4, "4 times too small"),
        (0 * EXPECTED, "every number is 0"),
        (EXPECTED * np.nan, "nothing was written"),
        (np.where(EXPECTED == 5, np.nan, EXPECTED), "not every element is written: the first that is not is [1, 1]"),
        (EXPECTED.ravel(), "as many numbers as there should be"),
        (EXPECTED + 1e-7, "nearly right"),
        (EXPECTED + 1, ""),
        (EXPECTED, ""),
    ],
)
def test_what_numbers_alone_tell_is_recognised(got: np.ndarray, says: str) -> None:
    found = likely_cause(got, EXPECTED, "", [], ())
    assert says in found
    assert bool(found) == bool(says)


def test_a_nan_in_a_result_that_the_call_has_made_was_computed() -> None:
    one = np.where(EXPECTED == 5, np.nan, EXPECTED)
    assert likely_cause(EXPECTED * np.nan, EXPECTED, "", [], (), fresh=True).startswith("NaN was computed: inf - inf")
    assert likely_cause(one, EXPECTED, "", [], (), fresh=True).startswith("NaN was computed, first at [1, 1]: ")
    assert "NaN was computed" in likely_cause(EXPECTED * np.nan, EXPECTED, "", [], ())  # or it was there before


def test_a_mistake_is_told_only_where_its_result_is_what_came_out() -> None:
    mistakes = [
        Mistake("rows", lambda z: z / z.sum(axis=1, keepdims=True)),
        Mistake("columns", lambda z: z / z.sum(axis=0)),
    ]
    wrong = EXPECTED / EXPECTED.sum(axis=0)
    right = EXPECTED / EXPECTED.sum(axis=1, keepdims=True)
    assert likely_cause(wrong, right, "", mistakes, (EXPECTED,)) == "columns"
    assert likely_cause(right + 0.1, right, "", mistakes, (EXPECTED,)) == ""


def test_a_mistake_whose_result_is_right_by_chance_is_not_told() -> None:
    """With one column both axes may agree: then the number is wrong for another reason."""
    mistakes = [Mistake("never", lambda z: z)]
    assert likely_cause(EXPECTED, EXPECTED, "", mistakes, (EXPECTED,)) == ""
