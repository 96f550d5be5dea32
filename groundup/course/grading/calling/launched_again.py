"""The same kernel, launched again with what is not friendly, after it has passed with what is.

    kernel_checks   the checks of an Exercise whose call launches a kernel, with these launches at the end of `memory`

    in float64      a kernel computes in the type of its arrays, whichever that is
    tiny, huge      no bound, and no small number that is added, stands in it
    with gaps       arrays of which every second number counts, and outputs that hold the results of another launch
    in place        where its docstring says that an output may be one of the inputs
    NaN, inf        in each array: they come out again, where the arithmetic says so

Each differs from a launch that was right in one thing, so the cause is known. All run line by line: nothing is compiled
for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_emulator.inspection import step, tracing
from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.results import outputs
from groundup.course.grading.calling.kernel_causes import inputs_kept
from groundup.course.grading.calling.kernel_launches import (
    Both,
    Launch,
    Out,
    backend,
    filled,
    of_the_project,
    other_launch,
    parameters,
)
from groundup.course.grading.calling.line_by_line import explaining, time_limit

OLD_RESULT = 0.375
"""What an output holds that another launch has written before."""


@dataclass(frozen=True)
class Way:
    """How a launch differs from the plain one. name: as a message says it; cause: why a result may be wrong only then

    factor: of all numbers; dtype: of all arrays of floats; gaps: whether arrays have gaps, and outputs hold old results
    same: (input, output): the places of two arguments that are one array
    made_of: ways that have a part of what is different here
    """

    name: str
    cause: str
    factor: float = 1 / 3
    dtype: str = "float64"
    gaps: bool = False
    same: tuple[int, int] | None = None
    made_of: tuple[Way, ...] = ()


NAMES_FLOAT32 = (
    "float32 stands in it: a variable, a shared array or a part of the sum is float32 although the arrays are float64. "
    "Take the type of an array, a.dtype"
)

SHORT = "to float32's few digits it was right: is a small number added, or a constant written with few digits?"

BELOW_A_BOUND = (
    "all numbers are tiny here, and with numbers of about 1 it was right: is one compared with a small fixed bound, or "
    "a small number added, so that nothing is divided by zero?"
)

BEYOND_A_BOUND = (
    "all numbers lie far out here, and with numbers of about 1 it was right: is one clamped, or does a largest begin "
    "at a fixed number, which is not below all others?"
)

LEFT_AS_IT_WAS = (
    "the output holds the numbers of another launch here, and each array has gaps between its numbers; filled with NaN "
    "and without gaps it was right: is a part of the output left as it was, or an array taken for one piece of memory?"
)

FLOAT64 = Way(" in float64", SHORT)

TINY = Way(" in float64, with tiny numbers", BELOW_A_BOUND, 1e-12 / 3, made_of=(FLOAT64,))

GAPS = Way(" in float64, on arrays with gaps", LEFT_AS_IT_WAS, gaps=True)

HUGE_WITH_GAPS = Way(" in float64, with huge numbers", BEYOND_A_BOUND, 1e6 / 3, gaps=True, made_of=(FLOAT64, GAPS))

IN_SINGLE = [
    Way(" on arrays with gaps", LEFT_AS_IT_WAS, dtype="float32", gaps=True),
    Way(" with tiny numbers", BELOW_A_BOUND, 1e-12 / 3, "float32"),
    Way(" with huge numbers", BEYOND_A_BOUND, 1e6 / 3, "float32"),
]

IN_PLACE = (
    "with an array of its own it was right: where the two are one array, a number that is written takes the place of "
    "one that may still be needed, and so what is needed later has to be in a variable before"
)

LOST_NAN = (
    "NaN and inf say that something went wrong before, and the formula passes them on: here a number is skipped, "
    "replaced or compared so that they get lost"
)


Special = Sequence[Sequence[float]]
"""What stands in the first, the middle and the last place of an array, launch by launch."""

MIXED: Special = ((np.inf, np.nan, -np.inf),)

ONLY_NAN: Special = ((np.nan,) * 3,)
"""Where another form of the same formula may subtract an infinity from an infinity."""

APART: Special = ((np.nan,) * 3, (np.inf,) * 3)
"""Where numbers are added up: an infinity of either sign would give NaN, too."""


def kernel_checks(
    exercise: Exercise,
    *,
    same: Sequence[tuple[int, int]] = (),
    special: Special = MIXED,
    sizes: Sequence[Any] = (),
    single: bool = False,
) -> list[Check]:
    """The checks of a kernel's exercise, the unfriendly launches included.

    same: (input, output): the places of arguments of the kernel that may be one array, as its docstring says
    sizes: of the arguments; none for the typical size. The last has the special numbers
    single: whether the kernel is one of float32 alone, as those of the detective exercises are
    """
    dtype = "float32" if single else "float64"

    def unfriendly(tally: Tally) -> None:
        if backend() != "emulator":
            return
        ways = list(IN_SINGLE) if single else [FLOAT64, TINY, HUGE_WITH_GAPS]
        ways += [Way(f" with arguments {i + 1} and {o + 1} one array", IN_PLACE, same=(i, o)) for i, o in same]
        tried = list(sizes) or [exercise.typical]
        for number, way in enumerate(ways):
            for size in tried:
                _one(tally, exercise, exercise.arguments(np.random.default_rng(20 + number), size), way)
        inputs = exercise.arguments(np.random.default_rng(30), tried[-1])
        for place, array in enumerate(inputs):
            for values in special if _is_float(array) else ():
                changed = array.copy()
                changed.reshape(-1)[[0, min(array.size // 2 + 1, array.size - 1), -1]] = values
                named = " and ".join(f"{value:g}" for value in dict.fromkeys(values))
                way = Way(f" with {named} in one of its arrays", LOST_NAN, dtype=dtype)
                _one(tally, exercise, (*inputs[:place], changed, *inputs[place + 1 :]), way)

    last = "memory" if exercise.memory else "sizes"  # a race would show in these launches, too
    return and_then(checks_of(exercise), last, unfriendly)


def _one(tally: Tally, exercise: Exercise, arguments: tuple[Any, ...], way: Way) -> None:
    """Count a comparison of a call whose launches are made in that way."""
    # in float64, and not as float32 could hold them; NaN stays NaN
    scaled = tuple(
        (array.astype(np.float64) * way.factor).astype(way.dtype) if _is_float(array) else array for array in arguments
    )
    case = exercise.show(*scaled) + way.name
    tally.trying(case)
    is_special = not all(np.isfinite(array).all() for array in scaled if _is_float(array))
    scale = None if is_special else exercise.scale(*scaled)
    terms, dtype = exercise.terms(*scaled), "float32" if is_special else way.dtype
    with np.errstate(all="ignore"):
        expected = outputs(exercise.reference(*scaled))
        try:
            with launches_made(way):
                got = outputs(exercise.call(*scaled))
            for name, value in expected.items():
                of = scale[name] if isinstance(scale, dict) else scale
                tally.equal(got.get(name), value, case=case, name=name, dtype=dtype, terms=terms, scale=of)
        except Wrong as wrong:
            for simpler in way.made_of:  # whatever is wrong with one of its parts alone has that cause
                _one(tally, exercise, arguments, simpler)
            wrong.cause = NAMES_FLOAT32 if way.cause is SHORT and _names_float32(launched_kernel[0]) else way.cause
            raise


def _names_float32(kernel: Any) -> bool:
    """Whether the kernel, or a function that it calls, has the name float32 in it."""
    nodes = (node for source in (kernel.source, *tracing.called(kernel.source)) for node in ast.walk(source.tree))
    return any("float32" in (getattr(node, name, "") for name in ("id", "attr", "value")) for node in nodes)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0


@contextmanager
def launches_made(way: Way) -> Iterator[None]:
    """Meanwhile every launch of a learner's kernel is made in this way, line by line."""
    other_launch.append(lambda kernel, launch, *arguments: _launch(way, kernel, launch, arguments))
    try:
        yield
    finally:
        other_launch.pop()


def _launch(way: Way, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Any:
    of_the_project(kernel)
    launched_kernel[:] = [kernel]
    given = [_made(each, way) for each in arguments]
    if way.same:
        given[way.same[1]] = given[way.same[0]]
    writes = [isinstance(each, Out | Both) or (way.same or (-1,))[0] == i for i, each in enumerate(arguments)]
    before = [np.copy(each) if isinstance(each, np.ndarray) else each for each in given]
    configured = kernel.configure(launch.grid, launch.block)
    with explaining(), time_limit():
        step.run_kernel(kernel.source, given, configured.griddim, configured.blockdim, 0)
    inputs_kept(parameters(kernel, len(given)), before, given, writes)
    results = [
        np.asarray(value, np.float64)
        for value, each in zip(given, arguments, strict=True)
        if isinstance(each, Out | Both)
    ]
    return results[0] if len(results) == 1 else tuple(results)


launched_kernel: list[Any] = []
"""The last kernel that was launched."""


def _made(argument: Any, way: Way) -> Any:
    """The argument that the kernel gets."""
    array = filled(argument)
    if not isinstance(array, np.ndarray):
        return array
    if array.dtype.kind == "f":
        array = array.astype(way.dtype)
    if isinstance(argument, Out) and way.gaps:
        array = np.full(array.shape, OLD_RESULT if array.dtype.kind == "f" else 3, array.dtype)
    if not way.gaps or not array.ndim:
        return array.copy()
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]
