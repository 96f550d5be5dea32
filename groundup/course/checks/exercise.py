"""How one function is graded: how it is called, what is right, and for which arguments. Its checks are made of this in
groundup/course/checks/exercise_checks.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.speed import Speed


@dataclass(frozen=True)
class Exercise:
    """How one function is graded.

    call: the learner's function; it takes NumPy arrays and returns one, or a mapping of several by name
    reference: the same function, written right: the stage below, or NumPy in float64
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
