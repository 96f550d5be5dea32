"""The checks of an exercise: what each compares, and what it reports."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.results import by_hand
from groundup.course.grading.calling import on_lists

EXPECTED = np.arange(1.0, 7).reshape(2, 3)


def exercise(call: Callable[[], Any], expected: Any, fresh: bool = False) -> Exercise:
    return Exercise(call, lambda: expected, lambda: "f()", [((), expected)], lambda rng, size: (), 1, [1], fresh=fresh)


def raised_by(name: str, graded: Exercise) -> Wrong:
    with pytest.raises(Wrong) as raised:
        next(check for check in checks_of(graded) if check.name == name).run(Tally())
    return raised.value


def test_an_exercise_says_whether_a_nan_can_have_been_there_before_the_call() -> None:
    made = np.full((2, 3), np.nan)
    assert raised_by("values", exercise(lambda: made, EXPECTED)).cause.startswith("nothing was written")
    assert raised_by("values", exercise(lambda: made, EXPECTED, fresh=True)).cause.startswith("NaN was computed")


@pytest.mark.parametrize(
    ("result", "what"),
    [
        ("text" * 1000, "f(): expected numbers"),
        (["7.0"] * 1000, "f(): expected numbers"),
        ({"w": "text" * 1000}, "f(): expected numbers"),
        ([[{1: "x" * 1000}], [{}]], "f(): expected numbers"),
        (zip([1], [2], strict=True), "f(): expected numbers"),
        ([[1.0] * 1000, [1.0]], "f(): the rows do not have one length"),
    ],
)
def test_a_result_without_a_shape_is_told_in_short(result: Any, what: str) -> None:
    wrong = raised_by("shape", exercise(lambda: result, EXPECTED))
    assert wrong.what == what
    assert wrong.expected == "numbers of shape (2, 3)"
    assert 0 < len(wrong.got) <= 160


@pytest.mark.parametrize(
    ("result", "got", "cause"),
    [
        (EXPECTED, "ndarray", "this stage uses no NumPy"),
        (list(EXPECTED), "ndarray within a list", "this stage uses no NumPy"),
        ([[np.float64(1)] * 3] * 2, "float64 within a list", "this stage uses no NumPy"),
        ([(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)], "tuple within a list", "a tuple cannot be changed in place"),
        ([["1.0"] * 3] * 2, "str within a list", "float(...)"),
        ([[True] * 3] * 2, "bool within a list", "True and False are no numbers here"),
    ],
)
def test_the_first_floor_takes_only_lists_of_pythons_own_numbers(result: Any, got: str, cause: str) -> None:
    with pytest.raises(Wrong, match=r"^f\(\): expected numbers of Python's own$") as raised:
        on_lists.graded(exercise(lambda: result, EXPECTED))[0].run(Tally())
    assert (raised.value.expected, raised.value.got) == ("a list of lists of floats", got)
    assert cause in raised.value.cause


def test_matrices_of_several_images_are_shown_without_empty_lines() -> None:
    assert by_hand(np.arange(4.0).reshape(2, 1, 1, 2)) == "[[[[0. 1.]]]\n [[[2. 3.]]]]"


def test_wrong_numbers_computed_by_hand_are_shown_with_their_arguments_and_both_results() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    graded = Exercise(
        lambda x: -x, lambda x: x, lambda x: f"f(x {x.shape})", [((x,), x)], lambda rng, size: (x,), 1, [1]
    )
    assert raised_by("values", graded).by_hand.splitlines() == [
        "x = [[1. 2.]",
        "     [3. 4.]]",
        "expected = [[1. 2.]",
        "            [3. 4.]]",
        "got      = [[-1. -2.]",
        "            [-3. -4.]]",
    ]
    large = np.zeros((100, 100))
    many = Exercise(lambda: large, lambda: large, lambda: "f()", [((), large + 1)], lambda rng, size: (), 1, [1])
    assert raised_by("values", many).by_hand == ""


@pytest.mark.parametrize(("value", "warned"), [(1e308, True), (np.inf, False), (np.nan, False)])
def test_only_of_finite_numbers_a_warning_by_the_learners_code_is_shown(value: float, warned: bool) -> None:
    x = np.array([value, 0.0])

    def call(x: np.ndarray) -> np.ndarray:
        return 10 * x - 10 * x[0] + 0 * x  # too large for a float64, or inf - inf

    with np.errstate(all="ignore"):
        expected = call(x)
    graded = Exercise(call, call, lambda x: "f(x)", [((x,), expected)], lambda rng, size: (x,), 1, [1])
    (values,) = (check for check in checks_of(graded) if check.name == "values")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        values.run(Tally())
    assert bool(shown) == warned


def test_the_first_floor_takes_whole_numbers_for_floats() -> None:
    on_lists.graded(exercise(lambda: [[1, 2, 3], [4, 5, 6.0]], EXPECTED))[0].run(Tally())
