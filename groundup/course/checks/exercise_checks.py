"""The checks of an exercise.

    shape       the result has the right shape and type
    values      numbers computed by hand
    gradient    a derivative against central differences
    agreement   random numbers, against the stage below (or NumPy in float64, where there is none)
    sizes       ones, primes, one past a tile
    again       more calls on the same objects, with other sizes, numbers and weights; and numbers far out, tiny, NaN
    memory      races, uninitialised reads, how often memory is read: the lens reports them of a kernel
    types       no float64 in a kernel of float32; float64 where the terms of a loss are added up
    way         how the result is computed, where that is what the exercise is about: by its source, or by what it reads
    speed       a time beside the project's own, in the same run

What else a task asks for is a Check of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Question, Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import cause_of_ragged, likely_cause
from groundup.course.checks.picture import picture
from groundup.course.checks.results import Outputs, call_by_hand, numbers, outputs, shown
from groundup.course.checks.speed import time_check
from groundup.course.checks.sure_causes import surely


def checks_of(exercise: Exercise) -> list[Check]:
    """The checks of an exercise, in the order of ORDER."""

    def one(tally: Tally, arguments: tuple[Any, ...], expected: Outputs) -> None:
        case = exercise.show(*arguments)
        tally.trying(case)
        copies = tuple(argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments)
        # Zero times infinity is asked on purpose, and NumPy's warning of it would look like a fault of the learner's.
        with np.errstate(all="ignore") if _has_infinities(arguments) else nullcontext():
            got = outputs(exercise.call(*copies))
        with np.errstate(all="ignore"):
            compare(tally, case, arguments, expected, got)

    def compare(tally: Tally, case: str, arguments: tuple[Any, ...], expected: Outputs, got: Outputs) -> None:
        scale = exercise.scale(*arguments)
        for name, value in expected.items():
            try:
                tally.equal(
                    got.get(name),
                    value,
                    case=case,
                    name=name,
                    dtype=exercise.dtype,
                    terms=exercise.terms(*arguments),
                    scale=scale[name] if isinstance(scale, Mapping) else scale,
                    mistakes=exercise.mistakes,
                    arguments=arguments,
                )
            except Wrong as wrong:
                wrong.by_hand = call_by_hand(exercise.show, arguments, value, got.get(name))
                raise

    def shape(tally: Tally) -> None:
        arguments, expected = exercise.hand[0]
        case = exercise.show(*arguments)
        tally.trying(case)
        result = exercise.call(*arguments)
        got = outputs(result)
        for name, value in outputs(expected).items():
            of = f"{name} of {case}" if name else case
            returned: Any = got.get(name) if name or name in got else result
            wanted = np.shape(value)
            tally.holds(returned is not None, f"{of}: nothing came back", got="None", cause="no return?")
            try:
                got_shape = np.shape(returned)
                numbers(returned)
            except (TypeError, ValueError) as error:
                ragged = "inhomogeneous" in str(error)
                reason = "the rows do not have one length" if ragged else "expected numbers"
                raise Wrong(
                    f"{of}: {reason}",
                    expected=f"numbers of shape {wanted}",
                    got=shown(returned),
                    cause=cause_of_ragged(returned) if ragged else "",
                ) from None
            try:
                tally.holds(
                    got_shape == wanted,
                    f"{of}: the shape is not right",
                    expected=str(wanted),
                    got=str(got_shape),
                    cause=exercise.shapes(*arguments).get(got_shape, "")
                    or likely_cause(np.asarray(returned), np.asarray(value), name, exercise.mistakes, arguments)
                    if got_shape != wanted
                    else "",
                )
            except Wrong as wrong:
                wrong.picture = picture(value, numbers(returned))
                raise

    def values(tally: Tally) -> None:
        for arguments, expected in exercise.hand:
            one(tally, arguments, outputs(expected))

    def agreement(tally: Tally) -> None:
        arguments = exercise.arguments(np.random.default_rng(1), exercise.typical)
        one(tally, arguments, outputs(exercise.reference(*arguments)))

    def sizes(tally: Tally) -> None:
        rng = np.random.default_rng(2)
        for size in exercise.sizes:
            arguments = exercise.arguments(rng, size)
            one(tally, arguments, outputs(exercise.reference(*arguments)))
        for factor in exercise.factors if exercise.again else ():
            arguments = tuple(_times(argument, factor) for argument in exercise.arguments(rng, exercise.typical))
            one(tally, arguments, outputs(exercise.reference(*arguments)))
        for arguments in _with_special_numbers(exercise, rng) if exercise.again else ():
            with np.errstate(all="ignore"):
                expected = outputs(exercise.reference(*arguments))
            one(tally, arguments, expected)

    def again(tally: Tally) -> None:
        rng = np.random.default_rng(5)
        drawn = (exercise.arguments(rng, size) for size in exercise.again)
        known = [(arguments, outputs(exercise.reference(*arguments))) for arguments in drawn]
        with repeated.repeating() as calls:
            for arguments, expected in [*known, *((inputs, outputs(result)) for inputs, result in exercise.hand)]:
                calls.next_call()
                try:
                    one(tally, arguments, expected)
                except repeated.Entangled:
                    raise
                except Exception as error:
                    if calls.number == 1:
                        raise
                    wrong = error if isinstance(error, Wrong) else Wrong(f"{type(error).__name__}: {error}")
                    wrong.what = f"call {calls.number} on the same objects: {wrong.what}"
                    if _is_right_alone(one, arguments, expected):
                        wrong.cause = repeated.LEFT_BEHIND
                    wrong.cause = wrong.cause or repeated.MAY_BE_LEFT
                    raise wrong from error
            calls.compare(tally)

    checks = [Check("shape", shape), Check("values", values)]
    if exercise.gradient is not None:
        checks.append(Check("gradient", exercise.gradient))
    checks += [Check("agreement", agreement), Check("sizes", sizes)]
    if exercise.again:
        checks.append(Check("again", again))
    if exercise.memory is not None:
        checks.append(Check("memory", exercise.memory))
    if exercise.types is not None:
        checks.append(Check("types", exercise.types))
    if exercise.way is not None:
        checks.append(Check("way", exercise.way))
    if exercise.speed is not None:
        checks.append(Check("speed", time_check(exercise.speed, exercise.call, exercise.reference, exercise.show)))
    question = Question(exercise.call, exercise.reference, exercise.arguments, exercise.typical)
    sure = [surely(exercise, check) for check in checks]
    return [Check(check.name, _with_fresh(check.run, exercise.fresh), question) for check in sure]


def _is_right_alone(
    one: Callable[[Tally, tuple[Any, ...], Outputs], None], arguments: tuple[Any, ...], expected: Outputs
) -> bool:
    with repeated.alone():
        try:
            one(Tally(), arguments, expected)
        except Exception:
            return False
    return True


def _times(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _with_special_numbers(exercise: Exercise, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Arguments of the typical size with NaN in each place of the special ones in turn, and an infinity in some."""
    arguments = exercise.arguments(rng, exercise.typical)
    floats = [i for i, each in enumerate(arguments) if isinstance(each, np.ndarray) and each.dtype.kind == "f"]
    for argument in floats if exercise.special is None else exercise.special:
        size = np.size(arguments[argument])
        infinities = [(place, sign * np.inf) for place in {0, size // 2, size - 1} for sign in (1, -1)]
        for place, value in [(place, np.nan) for place in range(size)] + infinities * exercise.infinite:
            changed = arguments[argument].copy()
            changed.flat[place] = value
            yield (*arguments[:argument], changed, *arguments[argument + 1 :])


def _has_infinities(arguments: tuple[Any, ...]) -> bool:
    floats = [each for each in arguments if isinstance(each, np.ndarray) and each.dtype.kind == "f"]
    return not all(np.isfinite(each).all() for each in floats)


def _with_fresh(run: Callable[[Tally], None], fresh: bool) -> Callable[[Tally], None]:
    def run_with_fresh(tally: Tally) -> None:
        tally.fresh = fresh
        run(tally)

    return run_with_fresh
