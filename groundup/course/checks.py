"""How an answer is graded: one check after the other, from "does it return the right shape" to "is it fast".

    shape       what comes back has the right shape and type
    values      hand-computed numbers
    gradient    a derivative against central differences
    agreement   random numbers, against the floor below (or NumPy in float64, where there is none)
    sizes       ones, primes, one past a tile
    memory      races, uninitialised reads, how often memory is read: what the lens sees of a kernel
    speed       a time beside the project's own, in the same run

A task has the checks that make sense for it, in this order; the first that fails ends the grading. A check that
compared nothing fails, too: a test that tests nothing must not pass.

Most functions are graded by an `Exercise`: how to call the learner's function on NumPy arrays, what is right, and on
what. `checks_of` makes the checks of it. What else a task asks for is a Check of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.course.mistakes import Mistake, likely_cause
from shared.checks.tolerance import Comparison, compare, failed, tolerance
from shared.numbers import two_digits

ORDER = ("shape", "values", "gradient", "agreement", "sizes", "memory", "speed")

STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
"""As in shared.checks.gradients: not imported, for there are exercises in there, and the learner's have to come
first."""

SLOPE_ERROR = 1e-7
"""Relative to loss and gradient: central differences err by about 1e-10, a wrong formula by parts of the whole."""

Outputs = Mapping[str, Any]
"""What a function gave, by name; a single result has the name ""."""


class Wrong(Exception):
    """The first thing that is not right, for the learner.

    what: a sentence; expected, got: the two values, as text, where there are such; likely: what the reason may be
    line: in the learner's assembled file, where the reason has a line
    """

    def __init__(
        self, what: str, *, expected: str = "", got: str = "", cause: str = "", line: int | None = None
    ) -> None:
        super().__init__(what)
        self.what, self.expected, self.got, self.cause, self.line = what, expected, got, cause, line


class Tally:
    """Counts what was compared, and tells whoever watches what is being tried."""

    def __init__(self, tell: Callable[[str, str], None] = lambda event, text: None) -> None:
        self._tell = tell
        self.count = 0
        self.fresh = False  # whether the results compared are made by the call: see Exercise

    def trying(self, case: str) -> None:
        """What is about to be tried: where the process dies in it, this is what is known."""
        self._tell("trying", case)

    def note(self, text: str) -> None:
        """Something to tell whoever passed, such as a measured time."""
        self._tell("note", text)

    def holds(
        self, holds: Any, what: str, *, expected: str = "", got: str = "", cause: str = "", line: int | None = None
    ) -> None:
        """Count one check; Wrong(what, …) where `holds` is not true."""
        self.count += 1
        if not holds:
            raise Wrong(what, expected=expected, got=got, cause=cause, line=line)

    def finding(self, finding: Any, cause: str = "") -> None:
        """Count one answer of the lens's checks (groundup.lens.checks), and raise Wrong where it is no."""
        self.holds(finding.passed, finding.message, cause=cause, line=finding.line)

    def equal(
        self,
        got: Any,
        expected: Any,
        *,
        case: str,
        name: str = "",
        dtype: str = "float64",
        terms: float = 16,
        scale: Any = None,
        mistakes: Sequence[Mistake] = (),
        arguments: Sequence[Any] = (),
    ) -> None:
        """Count one comparison of two arrays, within what rounding explains.

        case: what it was called with; name: which of several outputs; dtype: what `got` was computed in
        terms, scale: as shared.checks.tolerance takes k and scale
        guesses, arguments: misconceptions to recognise, and what the function was called with, for them
        """
        self.count += 1
        of = f"{name} of {case}" if name else case
        expected = np.asarray(expected, np.float64)
        if got is None:
            raise Wrong(f"{of}: nothing came back", expected=_shown(expected), got="None", cause="no return?")
        try:
            values = _numbers(got)
        except (TypeError, ValueError):
            raise Wrong(f"{of}: expected numbers", expected=_shown(expected), got=_shown(got)) from None
        if values.shape != expected.shape:
            raise Wrong(
                f"{of}: the shape is not right",
                expected=str(expected.shape),
                got=str(values.shape),
                cause=likely_cause(values, expected, name, mistakes, arguments, self.fresh),
            )
        found = compare(of, values, expected, dtype, max(terms, 1), scale=scale)
        if not found.ok:
            at = f" at index {list(found.index)}" if found.index else ""
            told, wanted, had = apart(found)
            raise Wrong(
                f"{of}: wrong{at}{told}",
                expected=wanted,
                got=had,
                cause=likely_cause(values, expected, name, mistakes, arguments, self.fresh),
            )


def apart(found: Comparison) -> tuple[str, str, str]:
    """Where two numbers that are not equal would read the same, by how much they differ; else "". And both as text,
    expected and got, with as many digits as show it."""
    expected, got = f"{found.expected:.9g}", f"{found.got:.9g}"
    if expected != got or found.ok or not np.isfinite(found.got):
        return "", expected, got
    difference = abs(found.got - found.expected)
    told = f", by {difference:.2g} where rounding allows {difference / found.tolerances:.2g}"
    return told, f"{found.expected:.17g}", f"{found.got:.17g}"


@dataclass(frozen=True)
class Check:
    """One step of grading. name: one of ORDER; run: compares, counts on the tally it is given, and raises Wrong."""

    name: str
    run: Callable[[Tally], None]


@dataclass(frozen=True)
class Speed:
    """arguments: what both are called with; most: how many times the project's own time is still all right.

    A time is noisy, so `most` is what no right answer reaches: it finds a Python loop where an array operation was
    asked for, and not a bad hour of the machine. likely: what it means.
    """

    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    most: float
    cause: str
    against: Callable[..., Any] | None = None
    what: str = "the project's own"


@dataclass(frozen=True)
class Exercise:
    """How one function is graded.

    call: the learner's function, taking and giving NumPy arrays (or a mapping of several by name)
    reference: the same, right: the floor below, or NumPy in float64
    show: how the arguments read in a message: "matmul of (2, 3) and (3, 4)"
    hand: (arguments, expected) computed by hand; the first is also what the shape check calls
    arguments: random ones of a size; typical: the size of the agreement check; sizes: of the sizes check
    forward: where the function is the derivative of another, what `gradient` may differentiate: takes the argument at
        `by` changed and gives the number that the first output of `call` is the gradient of
    dtype, terms, scale: of the comparison; terms and scale are functions of the arguments
    guesses: misconceptions that this task invites; the general ones are looked for anyway
    fresh: whether `call` gives what the function has made, so that a NaN in it was computed. False where it gives what
        was handed to the function full of NaN: there, NaN may also mean that nothing was written
    """

    call: Callable[..., Any]
    reference: Callable[..., Any]
    show: Callable[..., str]
    hand: Sequence[tuple[tuple[Any, ...], Any]]
    arguments: Callable[[np.random.Generator, Any], tuple[Any, ...]]
    typical: Any
    sizes: Sequence[Any]
    gradient: Callable[[Tally], None] | None = None
    dtype: str = "float64"
    terms: Callable[..., float] = field(default=lambda *arguments: 16)
    scale: Callable[..., Any] = field(default=lambda *arguments: None)
    mistakes: Sequence[Mistake] = ()
    memory: Callable[[Tally], None] | None = None
    speed: Speed | None = None
    fresh: bool = False


def checks_of(exercise: Exercise) -> list[Check]:
    """The checks of an exercise, in order."""

    def one(tally: Tally, arguments: tuple[Any, ...], expected: Outputs) -> None:
        case = exercise.show(*arguments)
        tally.trying(case)
        given = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)
        got = outputs(exercise.call(*given))
        for name, value in expected.items():
            tally.equal(
                got.get(name),
                value,
                case=case,
                name=name,
                dtype=exercise.dtype,
                terms=exercise.terms(*arguments),
                scale=exercise.scale(*arguments),
                mistakes=exercise.mistakes,
                arguments=arguments,
            )

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
                _numbers(given)
            except (TypeError, ValueError) as error:
                ragged = "inhomogeneous" in str(error)
                what = "the rows do not have one length" if ragged else "expected numbers"
                raise Wrong(f"{of}: {what}", expected=f"numbers of shape {wanted}", got=_shown(given)) from None
            tally.holds(
                found == wanted,
                f"{of}: the shape is not right",
                expected=str(wanted),
                got=str(found),
                cause=likely_cause(np.asarray(given), np.asarray(value), name, exercise.mistakes, arguments)
                if found != wanted
                else "",
            )

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

    made = [Check("shape", shape), Check("values", values)]
    if exercise.gradient is not None:
        made.append(Check("gradient", exercise.gradient))
    made += [Check("agreement", agreement), Check("sizes", sizes)]
    if exercise.memory is not None:
        made.append(Check("memory", exercise.memory))
    if exercise.speed is not None:
        made.append(Check("speed", _speed(exercise, exercise.speed)))
    return [Check(each.name, _with_fresh(each.run, exercise.fresh)) for each in made]


def _with_fresh(run: Callable[[Tally], None], fresh: bool) -> Callable[[Tally], None]:
    def run_with_fresh(tally: Tally) -> None:
        tally.fresh = fresh
        run(tally)

    return run_with_fresh


def outputs(result: Any) -> Outputs:
    """A function's results by name; a single one as {"": result}."""
    return result if isinstance(result, Mapping) else {"": result}


def slopes(loss: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """The gradient of a loss by central differences, number by number: (loss(v + h) - loss(v - h)) / 2h."""
    found = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        h = STEP * max(1.0, abs(float(at[index])))
        above, below = at.copy(), at.copy()
        above[index] += h
        below[index] -= h
        found[index] = (loss(above) - loss(below)) / (2 * h)
    return found


def gradient_check(
    loss: Callable[[np.ndarray], float],
    analytic: Callable[[np.ndarray], Any],
    at: Callable[[np.random.Generator], np.ndarray],
    case: str,
    *,
    name: str = "",
    mistakes: Sequence[Mistake] = (),
) -> Callable[[Tally], None]:
    """The check of a derivative: `analytic`, the learner's, against the slopes of `loss` at random numbers.

    at: draws them, away from kinks
    """

    def check(tally: Tally) -> None:
        tally.trying(f"the slope of {case}")
        point = at(np.random.default_rng(3))
        got = outputs(analytic(point.copy())).get(name)
        expected = slopes(loss, point)
        size = float(np.max(np.abs(expected))) + abs(loss(point))
        tally.equal(
            got,
            expected,
            case=f"the slope of {case}",
            name=name,
            terms=1,
            scale=SLOPE_ERROR * size / tolerance("float64", 1, 1.0),
            mistakes=mistakes,
            arguments=(point,),
        )

    return check


def _speed(exercise: Exercise, speed: Speed) -> Callable[[Tally], None]:
    def check(tally: Tally) -> None:
        arguments = speed.arguments(np.random.default_rng(4))
        tally.trying(f"the time of {exercise.show(*arguments)}")
        against = speed.against or exercise.reference
        ratio = times_slower(lambda: exercise.call(*arguments), lambda: against(*arguments))
        text = f"{exercise.show(*arguments)} takes {two_digits(ratio)} times as long as {speed.what}"
        tally.holds(ratio <= speed.most, text, expected=f"at most {speed.most:g} times", cause=speed.cause)
        tally.note(text)

    return check


def times_slower(call: Callable[[], Any], against: Callable[[], Any], repeats: int = 5) -> float:
    """The median ratio of two calls' times, taken in turn after a call of each that does not count."""
    call()
    against()
    ratios = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        between = time.perf_counter()
        against()
        ratios.append((between - start) / max(time.perf_counter() - between, 1e-9))
    return statistics.median(ratios)


def unchanged(tally: Tally, before: Sequence[Any], after: Sequence[Any], names: Sequence[str]) -> None:
    """Wrong where a function has changed what it was given."""
    for name, old, new in zip(names, before, after, strict=True):
        found = compare(name, new, old, "float64", 1) if np.shape(old) == np.shape(new) else failed(name, "reshaped")
        tally.holds(
            found.ok,
            f"{name} was changed by the call",
            cause=f"write into a new array, not into {name}: the caller still needs it",
        )


def _numbers(value: Any) -> np.ndarray:
    """A result as an array. Raises TypeError or ValueError where it has no numbers: "7.0" in quotes is none."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"expected numbers, got {array.dtype}")
    return np.asarray(array, np.float64)


MOST_SHOWN = 160
"""Characters of a result that is shown as it came."""


def _shown(value: Any) -> str:
    try:
        text = np.array2string(np.asarray(value), precision=6, threshold=12) if np.ndim(value) else str(value)
    except ValueError:  # rows of several lengths are no array
        text = str(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
