"""A tally counts each comparison and shows where two results differ."""

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong, unchanged

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


@pytest.mark.parametrize(
    ("got", "message", "shown"),
    [
        (None, "y of f: nothing came back", "None"),
        ({"a": 1}, "y of f: expected numbers", "{'a': 1}"),
        (EXPECTED.T, "y of f: the shape is not right", "(3, 2)"),
        (EXPECTED[0], "y of f: the shape is not right", "(3,)"),
        (EXPECTED * np.nan, r"y of f: wrong at index \[0, 0\]", "nan"),
    ],
)
def test_what_is_no_right_result_is_wrong(got: object, message: str, shown: str) -> None:
    tally = Tally()
    with pytest.raises(Wrong, match=message) as raised:
        tally.equal(got, EXPECTED, case="f", name="y")
    assert (raised.value.got, tally.count) == (shown, 1)


def test_the_scale_and_the_terms_decide_how_far_two_results_may_differ() -> None:
    near = EXPECTED + np.array([[4e-15, 0, 0], [0, 0, 0]])
    Tally().equal(near, EXPECTED, case="f", terms=1)
    with pytest.raises(Wrong):
        Tally().equal(near, EXPECTED, case="f", terms=1, scale=EXPECTED)
    Tally().equal(near, EXPECTED, case="f", terms=100, scale=EXPECTED)
    Tally().equal(1.0, 1.0, case="f", terms=0)


def test_an_expectation_counts_and_tells_what_it_was_given() -> None:
    tally = Tally()
    tally.holds(True, "fine")
    with pytest.raises(Wrong, match="not so") as raised:
        tally.holds(False, "not so", expected="1", got="2", cause="a sign", line=3)
    wrong = raised.value
    assert (wrong.expected, wrong.got, wrong.cause, wrong.line, tally.count) == ("1", "2", "a sign", 3, 2)


def test_what_is_tried_and_noted_is_told() -> None:
    told = []
    tally = Tally(lambda event, text: told.append((event, text)))
    tally.trying("f(1)")
    tally.note("2 ms")
    assert told == [("trying", "f(1)"), ("note", "2 ms")]


def test_an_argument_that_the_call_changed_is_named() -> None:
    tally = Tally()
    unchanged(tally, [EXPECTED, [1.0]], [EXPECTED.copy(), [1.0]], ["x", "y"])
    assert tally.count == 2
    for after in ([1.5], [1.0, 2.0], [np.nan]):
        with pytest.raises(Wrong, match="y was changed by the call") as raised:
            unchanged(tally, [EXPECTED, [1.0]], [EXPECTED, after], ["x", "y"])
        assert raised.value.cause == "write into a new array, not into y: the caller still needs it"
