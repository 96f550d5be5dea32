"""A tally counts each comparison and shows where two results differ."""

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong

EXPECTED = np.arange(1.0, 7).reshape(2, 3)


def test_a_tally_counts_each_comparison_and_shows_the_worst_place() -> None:
    tally = Tally()
    tally.equal(EXPECTED, EXPECTED, case="f(x)")
    with pytest.raises(Wrong, match=r"f\(x\): wrong at index \[1, 2\]") as raised:
        tally.equal(np.where(EXPECTED == 6, 7, EXPECTED), EXPECTED, case="f(x)")
    assert (raised.value.expected, raised.value.got, tally.count) == ("6", "7", 2)


def test_numbers_that_read_the_same_are_told_with_all_digits_and_their_distance() -> None:
    with pytest.raises(Wrong, match=r"^f\(x\): wrong, by 9.4e-14 where rounding allows 3.6e-15$") as raised:
        Tally().equal(1 - 9.4e-14, 1.0, case="f(x)")
    assert (raised.value.expected, raised.value.got) == ("1", "0.99999999999990596")
    assert "clamped" in raised.value.cause
