"""Weeks 1 to 3: the learner's functions take lists of floats, and are called here with NumPy arrays.

The right results are computed with NumPy in float64. `graded` also asks that a result consists of Python's own lists
and numbers.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Wrong
from groundup.course.checks.exercise import Exercise, twice_with_others
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.repeated import handed, returned
from groundup.course.checks.results import outputs
from shared.contract import load_stage


def stage() -> Any:
    """The first stage, with the learner's function in it."""
    return load_stage("stage1_pure_python")


def on_lists(
    function: Callable[..., Any], *names: str, overflow: str = "", division: str = "", logarithm: str = ""
) -> Callable[..., Any]:
    """A function of lists as one of NumPy arrays.

    names: of the arguments, which must not change in the call
    overflow, division, logarithm: the cause if Python raises such an error; "" leaves the error as it is
    """

    def call(*arguments: Any) -> Any:
        inputs = [handed(array, np.ndarray.tolist) if isinstance(array, np.ndarray) else array for array in arguments]
        before = copy.deepcopy(inputs)
        try:
            result = function(*inputs)
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            if isinstance(error, ValueError):
                # The words of math.log: up to Python 3.13, and from 3.14 on.
                cause = logarithm if str(error).startswith(("math domain error", "expected a positive input")) else ""
            else:
                cause = overflow if isinstance(error, OverflowError) else division
            if not cause:
                raise
            called = f"{function.__name__}({', '.join(_short(array) for array in arguments)})"
            sentence = f"{type(error).__name__}: {error}, in {called}"
            raise Wrong(sentence, cause=cause, line=_line_in(function, error)) from None
        for name, old, new in zip(names, before, inputs, strict=False):
            if old != new:
                cause = f"make a new list, and leave {name} as it is: the caller still needs it"
                raise Wrong(f"{name} was changed by the call", cause=cause)
        returned(result, inputs)
        return result

    return call


def graded(exercise: Exercise) -> list[Check]:
    """The checks of an exercise whose results must be Python's own lists and numbers.

    A NumPy array with the right numbers would pass otherwise, and break the next function, which expects a list.
    """

    def call(*arguments: Any) -> Any:
        results = exercise.call(*arguments)
        for name, value in outputs(results).items():
            foreign = None if value is None else foreign_type(value)
            if foreign is not None:
                case = exercise.show(*arguments)
                raise Wrong(
                    f"{f'{name} of ' if name else ''}{case}: expected numbers of Python's own",
                    expected=dimensions.get(name, MATRIX),
                    got=foreign.__name__ if type(value) is foreign else f"{foreign.__name__} within a list",
                    cause=FOREIGN.get(foreign, NO_NUMPY),
                )
        return results

    dimensions = {
        name: LISTS[np.ndim(value)] for _, expected in exercise.hand for name, value in outputs(expected).items()
    }
    return checks_of(replace(exercise, call=call, fresh=True, again=exercise.again or twice_with_others(exercise)))


MATRIX = "a list of lists of floats"

IMAGES = "lists of four levels: images, channels, rows, floats"

LISTS = {0: "a float", 1: "a list of floats", 2: MATRIX, 4: IMAGES}
"""By the dimensions of a result."""

NO_NUMPY = "this stage uses no NumPy: rows are lists, and their elements floats"


FOREIGN: dict[type, str] = {
    tuple: "a tuple cannot be changed in place: rows are lists, [...]",
    str: "what stands in quotes is text: float(...) makes a number of it",
    bool: "True and False are no numbers here: 1.0 if ... else 0.0",
}


def foreign_type(value: Any) -> type | None:
    """The first type in a result that is not list, int or float; else None. Subclasses such as bool are foreign."""
    if type(value) is list:
        return next((found for found in map(foreign_type, value) if found is not None), None)
    return None if type(value) in (int, float) else type(value)


def _short(value: Any) -> str:
    if np.ndim(value):
        return np.array2string(np.asarray(value), precision=4, separator=", ", threshold=8).replace("\n", "")
    return f"{value:g}"


def _line_in(function: Callable[..., Any], error: BaseException) -> int | None:
    """The last line of the function's own file through which the error came."""
    file = function.__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None
