"""Repeated calls: what a function keeps, shares or changes between them is seen, and nothing else is."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groundup.course.checks import repeated
from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.exercise import Exercise, twice_with_others
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.grading.calling.on_lists import on_lists


def doubled(x: Any) -> Any:
    return [[2 * v for v in row] for row in x]


def graded(function: Callable[[Any], Any]) -> Exercise:
    """The exercise of a function of lists that doubles a matrix."""
    exercise = Exercise(
        call=on_lists(function, "x"),
        reference=lambda x: 2 * x,
        show=lambda x: f"f(x {x.shape})",
        hand=[((np.ones((2, 3)),), np.full((2, 3), 2.0))],
        arguments=lambda rng, shape: (rng.standard_normal(shape),),
        typical=(2, 3),
        sizes=[(1, 1), (5, 3)],
    )
    return Exercise(**{**vars(exercise), "again": twice_with_others(exercise)})


def run(function: Callable[[Any], Any]) -> None:
    (again,) = (check for check in checks_of(graded(function)) if check.name == "again")
    again.run(Tally())


def test_a_function_that_keeps_nothing_passes() -> None:
    run(doubled)


def kept_by_identity() -> Callable[[Any], Any]:
    known: dict[int, Any] = {}
    return lambda x: [list(row) for row in known.setdefault(id(x), (x, doubled(x)))[1]]


def kept_by_shape() -> Callable[[Any], Any]:
    known: dict[Any, Any] = {}
    return lambda x: [list(row) for row in known.setdefault((len(x), len(x[0])), doubled(x))]


def of_the_first_length() -> Callable[[Any], Any]:
    known: list[int] = []

    def function(x: Any) -> Any:
        known.append(len(x))
        return doubled(x[: known[0]])

    return function


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (kept_by_identity, repeated.LEFT_BEHIND),
        (kept_by_shape, repeated.MAY_BE_LEFT),
        (of_the_first_length, repeated.MAY_BE_LEFT),
    ],
)
def test_what_an_earlier_call_has_left_behind_is_told(make: Callable[[], Callable[[Any], Any]], cause: str) -> None:
    with pytest.raises(Wrong) as wrong:
        run(make())
    assert re.match(r"call [2-6] on the same objects: ", wrong.value.what)
    assert wrong.value.cause == cause


def test_a_result_that_a_later_call_overwrites_is_told() -> None:
    result: list[Any] = []

    def function(x: Any) -> Any:
        result[:] = doubled(x)
        return result

    with pytest.raises(Wrong, match="the result of call 1 has changed in a later call") as wrong:
        run(function)
    assert wrong.value.cause == repeated.OVERWRITTEN


def test_an_argument_that_a_later_call_changes_is_told() -> None:
    earlier: list[Any] = []

    def function(x: Any) -> Any:
        if len(x) == 5:
            earlier[0][0][0] = 7.0
        earlier.append(x)
        return doubled(x)

    with pytest.raises(Wrong, match="an argument was changed after the call that it was for"):
        run(function)


def test_a_result_with_an_argument_in_it_is_told() -> None:
    with repeated.repeating() as calls:
        calls.next_call()
        x = repeated.handed(np.ones((2, 3)), np.ndarray.tolist)
        with pytest.raises(repeated.Entangled, match="the result shares memory with an argument"):
            repeated.returned([x[0], [2.0, 2.0, 2.0]], [x])


def test_arrays_are_the_same_memory_in_every_other_call() -> None:
    with repeated.repeating() as calls:
        memory = []
        for _ in range(4):
            calls.next_call()
            memory.append(repeated.handed(np.zeros(3)))
        assert [each is memory[0] for each in memory] == [True, True, False, False]
        with repeated.alone():
            assert not any(repeated.handed(np.zeros(3)) is each for each in memory)
        with pytest.raises(Wrong):
            repeated.returned(memory[0][1:], ())
    repeated.returned(memory[0], memory)  # outside nothing is compared
