"""A learner's C is called on arrays that lie inside larger ones, so that a write outside is noticed and does no harm.

C does not notice an index that is one too large: it reads or writes whatever lies there. So every array that a function
gets here has margins before and after it, filled with a known number, and an array that the function must fill holds
another known number. A function that keeps within its arrays leaves the margins unchanged. Its result does not depend
on what the margins, or the memory that it fills, held before. In two more calls a page that may not be read lies right
behind each array, and right before it: there an access ends the process, even if the result does not show it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from groundup.course.checks import repeated
from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.calling import guarded_memory
from shared.contract import load_part

MARGIN = 4096
"""Elements before and after each array: wrong row lengths go far beyond an end."""

OUTSIDE = 1000.0
"""What the margins hold in one call; minus that in the other."""

HELD = 0.125
"""What an array to be written holds before the second call; before the first it is NaN."""

PAST_THE_END = (
    "an index goes too far: does every loop stop before its size (<, not <=), and is every row as long as you think?"
)

NEVER_SET = "a number is added to memory that was never set: write it with = first, or start the sum from 0"


FROM_OUTSIDE = (
    "an index goes past the end of a row or a matrix: element (i, j) is at [i * columns + j], with the columns "
    "of the same matrix"
)


@dataclass(frozen=True, eq=False)
class Memory:
    """An array argument of a C function.

    values: its numbers before the call; None if the result must not depend on them
    written: whether the function may change it
    The same Memory given twice in a call is the same array twice.
    """

    name: str
    shape: tuple[int, ...]
    values: np.ndarray | None
    written: bool


def read(name: str, values: np.ndarray) -> Memory:
    """An array that the function may only read."""
    return Memory(name, values.shape, values, written=False)


def changed(name: str, values: np.ndarray) -> Memory:
    """An array that the function reads and changes in place."""
    return Memory(name, values.shape, values, written=True)


def filled(name: str, shape: tuple[int, ...]) -> Memory:
    """An array that the function must fill. Its earlier numbers must not matter."""
    return Memory(name, shape, None, written=True)


STATIC = (
    "static and global variables are shared by all calls, and by threads that call at the same time: what a call needs "
    "stands in local variables, or in the arrays that it gets"
)

NOT_FREED = "what malloc gives must go back, on every way out of the function: free it"


OTHER_THREAD = "two threads call {0} at the same time, and {1} is not what it is for one alone"

SECONDS = 10
"""Of processor time, that the calls for one case may take; right answers take milliseconds."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """SIGPROF ends the process where a call in C does not end: verdict.py says so. No signal handler would run."""
    timer = getattr(signal, "setitimer", lambda *given: None)  # Windows has none: there the phase's limit holds alone
    timer(getattr(signal, "ITIMER_PROF", 0), SECONDS)
    try:
        yield
    finally:
        timer(getattr(signal, "ITIMER_PROF", 0), 0)


@cache
def _library() -> str:
    return str(load_part("stage3_c", "build").build().library)


def run(name: str, function: Callable[..., Any], *arguments: Any, library: str = "") -> dict[str, Any]:
    """Call a C function with an array in place of each Memory among `arguments`.

    library: the file that the function is in, if it is not stage 3's
    Returns the arrays that it may write, by their names, and its return value, if it has one, as "returned".
    The arrays to be filled have the dtype of the others.
    Raises Wrong if it wrote outside its arrays, if it changed an array that it may only read, if its result depends
    on numbers outside its arrays or on what an array held before, or if it leaves something in memory of its own.
    """
    kinds = (item.values.dtype.name for item in arguments if isinstance(item, Memory) and item.values is not None)
    dtype = next((kind for kind in kinds if kind.startswith("float")), "float64")
    with _time_limit():
        return _run(name, function, arguments, dtype, library)


def _run(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], dtype: str, library: str
) -> dict[str, Any]:
    static = guarded_memory.static(library or _library())
    before = static.content()
    first = _once(name, function, arguments, dtype, OUTSIDE, np.nan)
    if static.content() != before:
        raise Wrong(f"{name} writes to memory of its own, which is there after the call, too", cause=STATIC)
    second = _once(name, function, arguments, dtype, -OUTSIDE, HELD)
    if differing(first, second):
        third = _once(name, function, arguments, dtype, -OUTSIDE, np.nan)
        outside = differing(first, third)
        if outside:
            raise Wrong(f"{_its(name, outside)} depends on what lies outside the arrays", cause=FROM_OUTSIDE)
        raise depends_on_before(name, differing(first, second))
    if guarded_memory.can_guard():
        for where in ("behind", "before"):
            with Tally.trying_also(f", with memory that may not be read right {where} each array"):
                _guarded(function, arguments, dtype, where == "behind")()
    if repeated.is_repeating():
        left = guarded_memory.leaks(_guarded(function, arguments, dtype, True))
        if left:
            raise Wrong(f"{name} leaves about {left} bytes of memory behind with every call", cause=NOT_FREED)
        numbers = [argument for argument in arguments if isinstance(argument, int)]
        if library or load_part("stage3_c", "library").pool() not in numbers:
            by_two_threads(name, function, arguments, dtype)
    return first


def by_two_threads(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], dtype: str, calls: int = 20
) -> None:
    """Raises Wrong if calls of two threads at the same time, with other numbers each, disturb one another."""
    halved = {
        each: replace(each, values=each.values * 0.5)
        for each in arguments
        if isinstance(each, Memory) and each.values is not None and each.values.dtype.kind == "f"
    }
    both = arguments, tuple(halved.get(each, each) if isinstance(each, Memory) else each for each in arguments)
    alone = [_once(name, function, given, dtype, OUTSIDE, np.nan) for given in both]

    def output_that_differs(thread: int) -> str:
        results = (_once(name, function, both[thread], dtype, OUTSIDE, np.nan) for _ in range(calls))
        return next(filter(None, (differing(alone[thread], each) for each in results)), "")

    with ThreadPoolExecutor(2) as threads:
        for output in filter(None, threads.map(output_that_differs, range(2))):
            raise Wrong(OTHER_THREAD.format(name, output), cause=STATIC)


def _guarded(function: Callable[..., Any], arguments: tuple[Any, ...], dtype: str, behind: bool) -> Callable[[], Any]:
    """A call of the function on arrays beside pages that may not be read."""
    places: dict[Memory, np.ndarray] = {}
    for each in arguments:
        if isinstance(each, Memory) and each not in places:
            values = np.zeros(each.shape, dtype) if each.values is None else each.values
            places[each] = guarded_memory.guarded(len(places), values, behind)
    given = [places[each] if isinstance(each, Memory) else each for each in arguments]
    return lambda: function(*given)


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The name of the first output in which two calls differ, "" if there is none.

    Elements that neither call has written do not count.
    """
    for key, a in first.items():
        b = second[key]
        untouched = np.isnan(a) & (np.asarray(b) == HELD)
        if not np.all((np.asarray(a) == b) | (np.isnan(a) & np.isnan(b)) | untouched):
            return key
    return ""


def depends_on_before(name: str, output: str, cause: str = NEVER_SET) -> Wrong:
    """The error for a result that depends on what its memory held before."""
    return Wrong(f"{_its(name, output)} depends on what was in memory before the call", cause=cause)


def _its(name: str, output: str) -> str:
    return f"what {name} returns" if output == "returned" else f"{name}: {output}"


def _once(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], dtype: str, outside: float, held: float
) -> dict[str, Any]:
    places: dict[Memory, np.ndarray] = {}
    for each in arguments:
        if isinstance(each, Memory) and each not in places:
            kind = np.dtype(dtype) if each.values is None or each.values.dtype.kind == "f" else each.values.dtype
            # Labels in the margins are classes that exist: the function may use them as indices.
            edge = outside if kind.kind == "f" else float(outside > 0)
            places[each] = np.full(int(np.prod(each.shape)) + 2 * MARGIN, edge, kind)
            _inside(places[each], each)[...] = held if each.values is None else each.values
    before = {each: place.copy() for each, place in places.items()}
    returned = function(*(_inside(places[each], each) if isinstance(each, Memory) else each for each in arguments))
    for each, place in places.items():
        _check(name, each, before[each], place)
    written = {each.name: _inside(place, each) for each, place in places.items() if each.written}
    return written if returned is None else {"returned": returned, **written}


def _inside(place: np.ndarray, memory: Memory) -> np.ndarray:
    return place[MARGIN : len(place) - MARGIN].reshape(memory.shape)


def _check(name: str, memory: Memory, before: np.ndarray, after: np.ndarray) -> None:
    """Raises Wrong if the function has changed memory that it may not change."""
    moved = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after)))
    what, end = f"{memory.name} {memory.shape}", len(after) - MARGIN
    behind, ahead = moved[moved >= end], moved[moved < MARGIN]
    if behind.size:
        got = f"{behind.size} written, the first {behind[0] - end + 1} after the last of {memory.name}"
        raise Wrong(f"{name} writes past the end of {what}", expected="no element", got=got, cause=PAST_THE_END)
    if ahead.size:
        got = f"{ahead.size} written, the last {MARGIN - ahead[-1]} before the first of {memory.name}"
        cause = "an index is negative, which for size_t means huge: does something count below 0?"
        raise Wrong(f"{name} writes before the beginning of {what}", expected="no element", got=got, cause=cause)
    if moved.size and not memory.written:
        raise Wrong(
            f"{name} changes {what}, which it may only read",
            cause=f"write the result elsewhere: the caller still needs {memory.name}",
        )
