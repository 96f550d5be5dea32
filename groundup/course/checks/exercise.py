"""How one function is graded, and the checks that follow from it.

    shape       the result has the right shape and type
    values      numbers computed by hand
    gradient    a derivative against central differences
    agreement   random numbers, against the floor below (or NumPy in float64, where there is none)
    sizes       ones, primes, one past a tile
    again       more calls on the same objects, with other sizes, numbers and weights; and numbers far out, tiny, NaN
    memory      races, uninitialised reads, how often memory is read: the lens reports them of a kernel
    types       no float64 in a kernel of float32; float64 where the terms of a loss are added up
    way         how the result is computed, where that is what the exercise is about: by its source, or by what it reads
    speed       a time beside the project's own, in the same run

An `Exercise` says how the learner's function is called on NumPy arrays, which results are right, and for which
arguments. `checks_of` makes its checks. What else a task asks for is a Check of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Question, Tally, Wrong
from groundup.course.checks.mistakes import Mistake, cause_of_ragged, likely_cause
from groundup.course.checks.picture import picture
from groundup.course.checks.results import Outputs, call_by_hand, numbers, outputs, shown
from groundup.course.checks.speed import Speed, time_check
from groundup.course.checks.sure_causes import surely


@dataclass(frozen=True)
class Exercise:
    """How one function is graded.

    call: the learner's function; it takes NumPy arrays and returns one, or a mapping of several by name
    reference: the same function, written right: the floor below, or NumPy in float64
    show: how a call with these arguments reads in a message: "matmul of (2, 3) and (3, 4)"
    hand: (arguments, expected) computed by hand; the check `shape` uses the first
    arguments: makes random arguments of a size; typical: the size for `agreement`; sizes: those for `sizes`
    again: the sizes of the calls of `again`, one after the other; none leaves this check out. One size comes at least
        twice, with a larger and a smaller one in between. Objects that live longer than a call come from
        checks/repeated.py; a call that fails there and is right alone has something left over from an earlier one
    factors: by which all float arguments are multiplied, in turn, for further calls with numbers far out, or tiny
    special: the places of the arguments in which one number at a time is NaN or infinite; None for all arrays of
        floats; infinite: False for NaN alone
    told_by: the sizes with which a cause is tried before it is told; none for the typical one and the first of `sizes`
    gradient, memory, types, way: the checks of these names, None where the task has none; speed: the limit for `speed`
    shapes: wrong shapes of a result that tell their cause, {shape: cause}, from the arguments; for the check `shape`
    dtype, terms, scale: of the comparison, as shared.checks.tolerance has them; terms and scale are functions of the
        arguments
    mistakes: the known mistakes of this task; the general ones are recognised in every task
    fresh: True if the function itself makes its result, so that a NaN in it was computed. False if the function fills
        an array that was full of NaN: then a NaN can also mean that nothing was written
    """

    call: Callable[..., Any]
    reference: Callable[..., Any]
    show: Callable[..., str]
    hand: Sequence[tuple[tuple[Any, ...], Any]]
    arguments: Callable[[np.random.Generator, Any], tuple[Any, ...]]
    typical: Any
    sizes: Sequence[Any]
    again: Sequence[Any] = ()
    factors: Sequence[float] = (1e4, 1e-6)
    special: Sequence[int] | None = None
    infinite: bool = True
    told_by: Sequence[Any] = ()
    gradient: Callable[[Tally], None] | None = None
    dtype: str = "float64"
    terms: Callable[..., float] = field(default=lambda *arguments: 16)
    scale: Callable[..., Any] = field(default=lambda *arguments: None)
    mistakes: Sequence[Mistake] = ()
    shapes: Callable[..., Mapping[tuple[int, ...], str]] = field(default=lambda *arguments: {})
    memory: Callable[[Tally], None] | None = None
    types: Callable[[Tally], None] | None = None
    way: Callable[[Tally], None] | None = None
    speed: Speed | None = None
    fresh: bool = False


def twice_with_others(exercise: Exercise) -> list[Any]:
    """Sizes for `again`: the typical one, the last and the first of `sizes`, and the typical one twice more."""
    return [exercise.typical, exercise.sizes[-1], exercise.sizes[0], exercise.typical, exercise.typical]


def checks_of(exercise: Exercise) -> list[Check]:
    """The checks of an exercise, in the order of ORDER."""

    def one(tally: Tally, arguments: tuple[Any, ...], expected: Outputs) -> None:
        case = exercise.show(*arguments)
        tally.trying(case)
        given = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)
        # Zero times infinity is asked on purpose, and NumPy's warning of it would look like a fault of the learner's.
        with np.errstate(all="ignore") if _has_infinities(arguments) else nullcontext():
            got = outputs(exercise.call(*given))
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
            given: Any = got.get(name) if name or name in got else result
            wanted = np.shape(value)
            tally.holds(given is not None, f"{of}: nothing came back", got="None", cause="no return?")
            try:
                found = np.shape(given)
                numbers(given)
            except (TypeError, ValueError) as error:
                ragged = "inhomogeneous" in str(error)
                what = "the rows do not have one length" if ragged else "expected numbers"
                raise Wrong(
                    f"{of}: {what}",
                    expected=f"numbers of shape {wanted}",
                    got=shown(given),
                    cause=cause_of_ragged(given) if ragged else "",
                ) from None
            try:
                tally.holds(
                    found == wanted,
                    f"{of}: the shape is not right",
                    expected=str(wanted),
                    got=str(found),
                    cause=exercise.shapes(*arguments).get(found, "")
                    or likely_cause(np.asarray(given), np.asarray(value), name, exercise.mistakes, arguments)
                    if found != wanted
                    else "",
                )
            except Wrong as wrong:
                wrong.picture = picture(value, numbers(given))
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
            arguments = tuple(_times(each, factor) for each in exercise.arguments(rng, exercise.typical))
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
            for arguments, expected in [*known, *((given, outputs(result)) for given, result in exercise.hand)]:
                calls.next_call()
                try:
                    one(tally, arguments, expected)
                except repeated.Entangled:
                    raise
                except Exception as error:
                    if calls.number == 1:
                        raise
                    told = error if isinstance(error, Wrong) else Wrong(f"{type(error).__name__}: {error}")
                    told.what = f"call {calls.number} on the same objects: {told.what}"
                    if _is_right_alone(one, arguments, expected):
                        told.cause = repeated.LEFT_BEHIND
                    told.cause = told.cause or repeated.MAY_BE_LEFT
                    raise told from error
            calls.compare(tally)

    made = [Check("shape", shape), Check("values", values)]
    if exercise.gradient is not None:
        made.append(Check("gradient", exercise.gradient))
    made += [Check("agreement", agreement), Check("sizes", sizes)]
    if exercise.again:
        made.append(Check("again", again))
    if exercise.memory is not None:
        made.append(Check("memory", exercise.memory))
    if exercise.types is not None:
        made.append(Check("types", exercise.types))
    if exercise.way is not None:
        made.append(Check("way", exercise.way))
    if exercise.speed is not None:
        made.append(Check("speed", time_check(exercise.speed, exercise.call, exercise.reference, exercise.show)))
    question = Question(exercise.call, exercise.reference, exercise.arguments, exercise.typical)
    sure = [surely(exercise, each) for each in made]
    return [Check(each.name, _with_fresh(each.run, exercise.fresh), question) for each in sure]


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
