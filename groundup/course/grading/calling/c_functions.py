"""Weeks 6 to 8: a C function is called as stage3_c.library calls it, on arrays that lie inside fenced ones.

The right results are computed by stage 2 in float64. fenced_arrays.py has the fences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.results import difference_shown
from groundup.course.checks.speed import times_slower
from groundup.course.grading.calling.on_arrays import in_float32
from shared.checks.tolerance import compare
from shared.contract import load_part, load_stage
from shared.numbers import two_digits

library: Any = load_part("stage3_c", "library")

SHAPES = [(1, 1), (1, 7), (13, 1), (3, 5), (17, 31), (2, 300), (300, 3), (65_537, 2), (1, 65_537)]
"""(rows, columns). 300 and 65,537 are more than fits an array of 256 numbers, or an index of 8 or 16 bits."""


def numpy_floor() -> Any:
    """Stage 2, whose results are the expected ones."""
    return load_stage("stage2_numpy")


def c_floor() -> Any:
    """Stage 3 with the learner's function in it: compiled, and its threads started, before memory is limited."""
    stage = load_stage("stage3_c")
    library.pool()
    return stage


def c_function(name: str) -> Callable[..., Any]:
    """A C function of stage 3, called as stage3_c.library calls it, for the dtype of the first array of floats."""
    c_floor()
    functions = {dtype: library.function(name, dtype) for dtype in ("float32", "float64")}

    def call(*arguments: Any) -> Any:
        kinds = (each.dtype.name for each in arguments if isinstance(each, np.ndarray) and each.dtype.kind == "f")
        return functions[next(kinds)](*arguments)

    return call


def graded(exercise: Exercise) -> list[Check]:
    """The checks of an exercise in C: called again, and in float32, too."""
    # a cause is tried with few sizes: a call that goes wrong may end the process
    again = exercise.again or [exercise.typical, exercise.sizes[3], exercise.typical]
    exercise = replace(exercise, again=again, told_by=[exercise.typical, exercise.sizes[3]])
    narrow = next(check for check in checks_of(in_float32(exercise)) if check.name == "agreement")
    return and_then(checks_of(exercise), "agreement", narrow.run)


def alike(
    tally: Tally, case: str, got: Any, expected: Any, cause: str, dtype: str = "float64", scale: Any = None
) -> None:
    """One comparison whose failure has one likely cause."""
    found = compare(case, got, expected, dtype, 64, scale=scale)
    differs_by, wanted, was = difference_shown(found)
    tally.holds(found.ok, f"{case}: wrong{differs_by}", expected=wanted, got=was, cause=cause)


def faster(name: str, call: Callable[[], Any], than: str, against: Callable[[], Any], most: float, cause: str) -> Check:
    """The speed check: `call` takes at most `most` times as long as `against`, which does the same in another way."""

    def check(tally: Tally) -> None:
        tally.trying(f"the time of {name}")
        ratio = times_slower(call, against)
        text = f"{name} takes {two_digits(ratio)} times as long as {than}"
        tally.holds(ratio <= most, text, expected=f"at most {most:g} times", cause=cause)
        tally.note(text)

    return Check("speed", check)


def matrix(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """A matrix of random numbers."""
    return rng.standard_normal(size)


def read_at_strides(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
    """A matrix as a function reads it that takes element (i, j) to be at [i * row + j * column].

    None if that leaves the array.
    """
    i, j = np.indices(values.shape)
    places = i * row + j * column
    return values.reshape(-1)[places] if places.max() < values.size else None
