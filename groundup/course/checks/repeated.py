"""Calls of one function as a network makes them: many times, on the same objects, with other sizes and other numbers.

An answer can be right once and wrong in the next call: it keeps the first x, the transpose of weights that change, or
arrays by the size of the first batch. The check `again` makes its calls inside `repeating()`. There

    handed(values)       an argument: in every other call the object that an earlier one got, with other numbers in it
    returned(result)     notes a result, to see at the end whether a later call has changed it
    same(key, make)      the object of the call before, such as a layer
    put(layer, ...)      gives it other weights: in place, and in every other call as new objects

Outside of it, each call gets new objects, and nothing is noted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong

_KEPT = "Is a value kept that changes between calls, such as x, the weights, or an array as large as the first batch?"

LEFT_BEHIND = f"alone, the same call is right: so an earlier call has left something behind. {_KEPT}"

MAY_BE_LEFT = f"a first call with such numbers was right: has an earlier call left something behind? {_KEPT}"

OVERWRITTEN = "each call makes its own result: one that is kept from call to call changes under its owner's hands"

CHANGED_LATER = "an argument was changed after the call that it was for"

NOT_YOURS = "what a call has got belongs to the caller: a later call must not write into it"

SHARED = "the caller may change one of the two later: the result consists of new {0}, not of those that came in"


class Entangled(Wrong):
    """A result that is not the caller's own, or an argument that a later call has changed."""


class Repetition:
    """What the calls so far have got and returned. number: of the call that runs, from 1 on."""

    def __init__(self) -> None:
        self.number = self._place = 0
        self._arguments: dict[Any, list[Any]] = {}
        self._kept: dict[Any, Any] = {}
        self._given: list[list[Any]] = []
        self._results: list[tuple[int, Any, Any]] = []

    def next_call(self) -> None:
        self.number += 1
        self._place = 0

    def handed(self, values: np.ndarray, convert: Callable[[np.ndarray], Any]) -> Any:
        self._place += 1
        key = (self._place, values.shape, values.dtype)
        if self.number % 2 or key not in self._arguments:
            self._arguments[key] = [convert(values), None]
            self._given.append(self._arguments[key])
        given = self._arguments[key]
        if given[1] is not None and not equal(*given):
            raise Entangled(CHANGED_LATER, cause=NOT_YOURS)
        overwrite(given[0], values)
        given[1] = copy.deepcopy(given[0])
        return given[0]

    def returned(self, result: Any) -> None:
        own(result, [given for given, _ in self._given])
        self._results.append((self.number, result, copy.deepcopy(result)))

    def same(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def compare(self, tally: Tally) -> None:
        """Raises Wrong if a later call has changed an earlier result, or one of the arguments."""
        for number, result, before in self._results:
            what = f"the result of call {number} has changed in a later call"
            tally.holds(equal(result, before), what, cause=OVERWRITTEN)
        for given, before in self._given:
            tally.holds(equal(given, before), CHANGED_LATER, cause=NOT_YOURS)


_running: list[Repetition] = []


@contextmanager
def repeating() -> Iterator[Repetition]:
    """Within this block calls get the objects of the calls before again."""
    _running.append(Repetition())
    try:
        yield _running[-1]
    finally:
        _running.pop()


@contextmanager
def alone() -> Iterator[None]:
    """A call within `repeating`, but with new objects."""
    before = _running[:]
    _running.clear()
    try:
        yield
    finally:
        _running[:] = before


def is_repeating() -> bool:
    return bool(_running)


def handed(values: np.ndarray, convert: Callable[[np.ndarray], Any] = np.copy) -> Any:
    """An argument for the learner's function. convert: makes the object that it takes."""
    return _running[-1].handed(values, convert) if _running else convert(values)


def own(result: Any, arguments: Sequence[Any]) -> None:
    """Raises Wrong if a result shares memory with one of these arguments."""
    mine, kind = _parts(result), "arrays" if isinstance(result, np.ndarray) else "lists"
    if any(_overlap(mine, _parts(each)) for each in arguments):
        raise Entangled("the result shares memory with an argument", cause=SHARED.format(kind))


def returned(result: Any, arguments: Sequence[Any]) -> None:
    """Note what the learner's function has returned. Raises Wrong if it shares memory with an argument."""
    if _running:
        own(result, arguments)
        _running[-1].returned(result)


def same(key: Any, make: Callable[[], Any]) -> Any:
    """An object that is made once, and stays for all calls that name this key."""
    return _running[-1].same(key, make) if _running else make()


def put(owner: Any, convert: Callable[[np.ndarray], Any] = np.copy, **values: np.ndarray) -> Any:
    """Give the attributes of an object these numbers: in place, and in every other call as new objects."""
    if _running:
        for name, each in values.items():
            if _running[-1].number % 2:
                setattr(owner, name, convert(each))
            else:
                overwrite(getattr(owner, name), each)
    return owner


def overwrite(there: Any, values: Any) -> None:
    """Write numbers into a matrix or row that exists: an array, or lists."""
    if isinstance(there, np.ndarray):
        there[...] = values
    elif there and isinstance(there[0], list):
        for row, numbers in zip(there, values, strict=True):
            overwrite(row, numbers)
    else:
        there[:] = np.asarray(values).tolist()


def _parts(value: Any) -> tuple[set[int], list[np.ndarray]]:
    """The identities of all lists in a value, and its arrays."""
    if isinstance(value, np.ndarray):
        return set(), [value]
    if not isinstance(value, list):
        return set(), []
    inner = [_parts(each) for each in value]
    return {id(value)}.union(*(ids for ids, _ in inner)), [array for _, arrays in inner for array in arrays]


def _overlap(one: tuple[set[int], list[np.ndarray]], other: tuple[set[int], list[np.ndarray]]) -> bool:
    return bool(one[0] & other[0]) or any(np.shares_memory(a, b) for a in one[1] for b in other[1])


def equal(one: Any, other: Any) -> bool:
    """Whether two values have the same numbers; one NaN is as good as another."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(equal, one, other))
    return bool(np.shape(one) == np.shape(other) and np.array_equal(one, other, equal_nan=True))
