"""Weeks 4 and 5: the learner's functions take NumPy arrays. The right results are those of stage 1.

A function that takes `out` is called twice: with an `out` full of NaN, and without one, in repeated calls with scratch
memory. After each call its arguments
must be unchanged, and its result must have the dtype of its arguments. That `out` itself came back is asked after the
values: a wrong number is the more helpful message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.check import both as both_checks
from groundup.course.checks.exercise import Exercise, twice_with_others
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.repeated import handed, is_repeating, returned, same
from groundup.course.checks.speed import Speed
from groundup.course.grading.problems.dense import NO_OUT
from groundup.course.grading.problems.networks import Problem
from groundup.course.grading.problems.optimizer_steps import Steps
from shared.contract import load_stage

MOST = 20.0
"""The limit, as a multiple of a NumPy expression's time. A Python loop over elements or rows takes hundreds of
times.
"""

LOOP = "a loop in Python over elements or rows: one call of NumPy does a whole array"


def stage() -> Any:
    """The second stage, with the learner's function in it."""
    return load_stage("stage2_numpy")


def floor_below() -> Any:
    """The first stage, whose results are the expected ones."""
    return load_stage("stage1_pure_python")


def poisoned_scratch(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Scratch memory full of values that the function must not read: NaN, or True. Repeated calls get it again."""
    values = np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 1, dtype)
    return same(("scratch", name, shape, values.dtype), lambda: values)


def on_arrays(
    function: Callable[..., Any], shape: Callable[..., tuple[int, ...]], *names: str, scratch: bool = True
) -> Callable[..., Any]:
    """A function with `out` as one that returns both of its results, by name.

    "": the result in an `out` full of NaN; NO_OUT: the result without `out`
    shape: computes the shape of the result from the arguments; names: of the arguments
    scratch: whether the function also takes scratch memory
    """

    def call(*arguments: Any) -> dict[str, Any]:
        before = [np.copy(argument) for argument in arguments]
        arguments = tuple(handed(each) if isinstance(each, np.ndarray) else each for each in arguments)
        dtype = arguments[0].dtype
        size = math.prod(shape(*arguments))
        out = np.full(size + 8, np.nan, dtype)[:size].reshape(
            shape(*arguments)
        )  # part of a larger one, as in a network
        into_out = function(*arguments, out=out, **({"scratch": poisoned_scratch} if scratch else {}))
        if into_out is None:
            return {"": None}
        if into_out is not out:
            cause = "write into out and return it: NumPy's functions take out=…, and out[...] = … fills it"
            not_out.append(Wrong(f"{function.__name__}(…, out=out) did not return out", cause=cause))
        listed = (
            each.tolist() if isinstance(each, np.ndarray) and each.dtype.kind == "i" else each for each in arguments
        )  # labels, as a list
        plain = function(*listed, **({"scratch": poisoned_scratch} if scratch and is_repeating() else {}))
        unchanged(Tally(), before, arguments, names)
        check_dtype(function.__name__, plain, dtype)
        returned(plain, [each for each in arguments if isinstance(each, np.ndarray)])
        return {"": into_out, NO_OUT: plain}

    return call


not_out: list[Wrong] = []
"""The calls of `on_arrays` in the check that runs whose result was another array than `out`; `graded` raises the first.
"""


def check_dtype(name: str, result: Any, dtype: Any) -> None:
    if not isinstance(result, np.ndarray):
        raise Wrong(f"{name}: expected an array", got=type(result).__name__)
    if result.dtype != dtype:
        cause = "the result's dtype is the arguments': make new arrays with dtype=…, or let out= decide"
        raise Wrong(f"{name}: {dtype} came in, {result.dtype} came back", cause=cause)


def both(expected: Any) -> dict[str, Any]:
    """An expected result for both: in `out`, and returned without it."""
    return {"": expected, NO_OUT: expected}


def twice(hand: Sequence[tuple[tuple[Any, ...], Any]]) -> list[tuple[tuple[Any, ...], Any]]:
    """Values by hand, each for both results."""
    return [(arguments, both(expected)) for arguments, expected in hand]


def below(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of stage 1 as the reference for one with `out`."""
    return lambda *arguments: both(function(*map(_listed, arguments)))


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def graded(exercise: Exercise, *more: Check) -> list[Check]:
    """The checks of an exercise. Its agreement is tried in float32 too; further checks come at the end.

    From the check `values` on, each ends with the question whether `out` came back.
    """
    exercise = replace(exercise, again=exercise.again or twice_with_others(exercise))
    made = {check.name: check for check in checks_of(exercise)}
    double = made["agreement"]
    single = next(check for check in checks_of(in_float32(exercise)) if check.name == "agreement")

    made["agreement"] = Check("agreement", both_checks(double.run, single.run))
    return [check if check.name == "shape" else _returning_out(check) for check in made.values()] + [*more]


def _returning_out(check: Check) -> Check:
    """The check, which also raises Wrong if one of its calls of `on_arrays` returned another array than `out`."""

    def run(tally: Tally) -> None:
        not_out.clear()
        check.run(tally)
        if not_out:
            raise not_out[0]

    return Check(check.name, run)


def in_float32(exercise: Exercise) -> Exercise:
    """The exercise with arguments in float32; the right results are computed in float64."""

    def reference(*arguments: Any) -> Any:
        return exercise.reference(
            *(each.astype(np.float64) if getattr(each, "dtype", None) == np.float32 else each for each in arguments)
        )

    return replace(
        exercise,
        dtype="float32",
        reference=reference,
        arguments=lambda rng, size: tuple(narrowed(each) for each in exercise.arguments(rng, size)),
        show=lambda *arguments: f"{exercise.show(*arguments)} in float32",
    )


def narrowed(value: Any) -> Any:
    """A value in float32: an array, a network's problem, or an optimizer's steps."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float32) if value.dtype.kind == "f" else value
    if isinstance(value, Problem):
        masks = None if value.masks is None else narrowed(value.masks)
        return replace(value, parameters=narrowed(value.parameters), x=narrowed(value.x), masks=masks)
    if isinstance(value, Steps):
        gradients = [(narrowed(g), narrowed(h)) for g, h in value.gradients]
        return replace(value, weights=narrowed(value.weights), bias=narrowed(value.bias), gradients=gradients)
    return [narrowed(each) for each in value] if isinstance(value, list) else value


def speed_check(
    exercise: Exercise,
    call: Callable[..., Any],
    against: Callable[..., Any],
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
    cause: str = LOOP,
) -> Check:
    """The check of the time of one plain call, beside a NumPy expression."""
    speed = Speed(arguments, MOST, cause, against, "a plain NumPy expression")
    return checks_of(replace(exercise, call=call, speed=speed))[-1]


OVERFLOWED = (
    "exp has overflowed, and inf / inf is NaN; or all exps of a row are 0, and so is 0 / 0: subtract each row's "
    "maximum first"
)
