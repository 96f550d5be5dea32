"""Calls of one function as a network makes them: many times, on the same objects, with other sizes and other numbers.

An answer can be right once and wrong in the next call: it keeps the first x, the transpose of weights that change, or
arrays by the size of the first batch. The check `again` makes its calls inside `repeating()`. There

    handed(values)       an argument: the object that an earlier call got, with other numbers in it
    returned(result)     notes a result, to see at the end whether a later call has changed it
    same(key, make)      the object of the call before, such as a layer
    put(layer, ...)      gives it other weights: in place, and in every other call as new objects

Outside of it, each call gets new objects, and nothing is noted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong

LEFT_BEHIND = (
    "alone, the same call is right: so an earlier call has left something behind. Is a value kept that changes between "
    "calls, such as x, the weights, or an array as large as the first batch?"
)

OVERWRITTEN = "each call makes its own result: one that is kept from call to call changes under its owner's hands"

SHARED = "the caller may change one of the two later: the result consists of new {0}, not of those that came in"


class Entangled(Wrong):
    """A result that is not the caller's own."""


class Repetition:
    """What the calls so far have got and returned. number: of the call that runs, from 1 on."""

    def __init__(self) -> None:
        self.number = self._argument = 0
        self._memory: dict[Any, Any] = {}
        self._before: list[list[Any]] = []
        self._results: list[tuple[int, Any, Any]] = []

    def next_call(self) -> None:
        self.number, self._argument = self.number + 1, 0

    def handed(self, values: np.ndarray, convert: Callable[[np.ndarray], Any]) -> Any:
        self._argument += 1
        key = (self._argument, values.shape, values.dtype)
        if key not in self._memory:
            self._memory[key] = convert(values)
            self._before.append([key, None])
        overwrite(self._memory[key], values)
        next(each for each in self._before if each[0] == key)[1] = copy.deepcopy(self._memory[key])
        return self._memory[key]

    def returned(self, result: Any) -> None:
        mine, kind = _parts(result), "arrays" if isinstance(result, np.ndarray) else "lists"
        for key, _ in self._before:
            if _overlap(mine, _parts(self._memory[key])):
                raise Entangled(f"the result shares memory with argument {key[0]}", cause=SHARED.format(kind))
        self._results.append((self.number, result, copy.deepcopy(result)))

    def same(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._memory:
            self._memory[key] = make()
        return self._memory[key]

    def compare(self, tally: Tally) -> None:
        """Raises Wrong if a later call has changed an earlier result, or one of the arguments."""
        for number, result, before in self._results:
            what = f"the result of call {number} has changed in a later call"
            tally.holds(equal(result, before), what, cause=OVERWRITTEN)
        for key, before in self._before:
            what = f"argument {key[0]} was changed after the call that it was for"
            tally.holds(equal(self._memory[key], before), what, cause=LEFT_BEHIND)


_running: list[Repetition] = []


@contextmanager
def repeating() -> Iterator[Repetition]:
    """Within it, calls get the same objects again."""
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


def returned(result: Any) -> None:
    """Note what the learner's function has returned. Raises Wrong if it shares memory with an argument."""
    if _running:
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
