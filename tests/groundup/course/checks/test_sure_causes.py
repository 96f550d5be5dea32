"""A cause is told only where the answer fits it in the exercise's other cases, and no other cause as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake

LAST = Mistake("only the last", lambda x: x[-1] if len(x) > 1 else None)
ADDED = Mistake("one more", lambda x: x.sum(axis=0) + 1)
LARGEST = Mistake("the largest", lambda x: x.max(axis=0))


def told(function: Callable[[np.ndarray], np.ndarray], mistakes: Sequence[Mistake], hand: np.ndarray) -> str:
    """The cause that the check `values` tells of a function that should be the sum over the rows."""
    exercise = Exercise(
        call=function,
        reference=lambda x: x.sum(axis=0),
        show=lambda x: f"sum of {x.shape}",
        hand=[((hand,), hand.sum(axis=0))],
        arguments=lambda rng, size: (rng.standard_normal(size),),
        typical=(4, 3),
        sizes=[(1, 1), (2, 5), (7, 3), (3, 9)],
        mistakes=mistakes,
    )
    with pytest.raises(Wrong) as raised:
        checks_of(exercise)[1].run(Tally())
    return raised.value.cause


RISING = np.array([[0.0, 1.0], [2.0, 3.0]])
"""Its last row is its largest numbers, too."""


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda x: x[-1], "only the last"),
        (lambda x: x.max(axis=0), "the largest"),
        (lambda x: np.sort(x, axis=0)[len(x) // 2], ""),  # in RISING the last and the largest, elsewhere neither
        (lambda x: x.sum(axis=0) + 1, "one more"),
        (lambda x: x.sum(axis=0) + (len(x) == 2), ""),  # right where "one more" would be wrong
        (lambda x: 0 * x[0], "every number is 0: what was computed does not get into the result"),
        (lambda x: x.sum(axis=0) * (len(x) != 2), ""),  # all are 0 here, and right elsewhere
        (lambda x: x.sum(axis=0) * (0 if len(x) == 2 else 2), ""),  # two general causes for one answer
    ],
)
def test_a_cause_is_told_only_if_it_fits_in_the_other_cases(
    function: Callable[[np.ndarray], np.ndarray], cause: str
) -> None:
    assert told(function, [LAST, ADDED, LARGEST], RISING) == cause


def test_of_two_mistakes_with_the_same_numbers_none_is_told() -> None:
    same = Mistake("the last in other words", LAST.result)
    assert told(lambda x: x[-1], [LAST, same], RISING) == ""


def test_of_several_models_of_one_mistake_one_has_to_fit() -> None:
    half = [Mistake("a bound", lambda x, b=b: np.minimum(x.sum(axis=0), b)) for b in (0.5, 3.5)]
    assert told(lambda x: np.minimum(x.sum(axis=0), 0.5), half, RISING) == "a bound"


def test_an_answer_that_fails_elsewhere_has_the_cause_of_where_it_does_not() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        if len(x) == 7:
            raise IndexError("beyond the end")
        return np.asarray(x[-1])

    assert told(function, [LAST, ADDED], RISING) == "only the last"
