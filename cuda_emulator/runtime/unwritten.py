"""Global memory that nobody has written: which bytes of a cuda.device_array still hold what the allocation gave.

A GPU's fresh memory holds arbitrary values. The emulator fills it once (poison.py), and notes the allocation here.
Copies from the host and assignments mark what they write. In check mode each order of a launch gets other values in
the bytes that are left, so that a result that depends on them differs; an element that holds these values after every
order is still unwritten. Other launches do not show what they write: after one of them its arrays are known no more.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..poison import kind_of

_known: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray | None]] = {}
"""For the id of an allocation: the allocation, and a bool for each of its bytes; None if all are unwritten."""


def note_fresh(array: np.ndarray) -> None:
    """Note that nobody has written to this array yet."""
    owner = _owner(array)
    number = id(owner)
    _known[number] = weakref.ref(owner, lambda _: _known.pop(number, None)), None


def note_written(array: np.ndarray) -> None:
    """Note that every element of this array, a view of an allocation, was written."""
    mask = _bytes_mask(array) if _known else None
    if mask is not None:
        mask[...] = False


def forget(values: Iterable[Any]) -> None:
    """Forget the allocations of a launch's arrays: what the launch writes is not known."""
    if not _known:
        return
    for value in values:
        if isinstance(value, tuple):
            forget(value)
        elif isinstance(value, np.ndarray | np.void):
            _known.pop(id(_owner(value)), None)


def unwritten_bytes(array: np.ndarray) -> np.ndarray | None:
    """A bool for each byte between an array's first and last, in the order of their addresses; None if all are written.

    The array must have at least one element.
    """
    owner = _owner(array)
    mask = _mask_of(owner)
    if mask is None or not mask.any():
        return None
    first, end = np.lib.array_utils.byte_bounds(array)
    start = np.lib.array_utils.byte_bounds(owner)[0]
    return mask[first - start : end - start]


def _owner(array: Any) -> np.ndarray:
    """The array that owns the memory of a view, or of a record."""
    owner: np.ndarray = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def _mask_of(owner: np.ndarray) -> np.ndarray | None:
    found = _known.get(id(owner))
    if found is None:
        return None
    reference, mask = found
    if mask is None:
        mask = np.ones(owner.nbytes, np.bool_)
        _known[id(owner)] = reference, mask
    return mask


def _bytes_mask(array: np.ndarray) -> np.ndarray | None:
    """The mask's bytes of each element, (*array.shape, itemsize); None for an allocation that is not known."""
    owner = _owner(array)
    mask = _mask_of(owner)
    if mask is None or not array.size:
        return None
    first = array.__array_interface__["data"][0] - np.lib.array_utils.byte_bounds(owner)[0]
    return np.ndarray((*array.shape, array.itemsize), np.bool_, mask, first, (*array.strides, 1))


def _bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of each element, (*array.shape, itemsize), in the same memory."""
    return array[..., None].view(np.uint8)


@dataclass
class _Part:
    """An argument with elements that nobody had written before the launch.

    fresh: where these elements are; left: those of them that no run has written so far
    first, filled: the bytes of all elements before the launch, and at the start of the latest run
    """

    name: str
    array: np.ndarray
    mask: np.ndarray
    fresh: np.ndarray
    left: np.ndarray
    first: np.ndarray
    filled: np.ndarray


class Unwritten:
    """The elements of a launch's arrays that nobody had written before it.

    arrays: (name, array) of each argument
    """

    def __init__(self, arrays: Sequence[tuple[str, np.ndarray]]) -> None:
        self._parts: list[_Part] = []
        for name, array in arrays if _known else ():
            mask = _bytes_mask(array) if kind_of(array.dtype) is not None else None
            if mask is not None and mask.any():
                fresh, first = np.asarray(mask.all(-1)), _bytes(array).copy()
                self._parts.append(_Part(name, array, mask, fresh, fresh.copy(), first, first))

    @property
    def names(self) -> list[str]:
        """The names of the arguments that have such elements."""
        return [part.name for part in self._parts]

    def fill(self, poison: int, names: Sequence[str]) -> None:
        """Before a run: put its values into these elements of the named arguments. poison: one of poison.POISONS"""
        for part in self._parts:
            if part.name in names:
                kind = kind_of(part.array.dtype)
                assert kind is not None
                _bytes(part.array)[part.fresh] = poison >> 8 * kind & 0xFF
        for part in self._parts:  # arguments may overlap
            part.filled = _bytes(part.array).copy()

    def settle(self) -> None:
        """After a run: an element that holds the values of this run, and did so in every run before, was not written.

        It gets its value from before the launch back, so that the results of two runs can be compared.
        """
        for part in self._parts:
            held = _bytes(part.array)
            part.left &= (held == part.filled).all(-1)
            held[part.left] = part.first[part.left]

    def note(self) -> None:
        """At the end of the launch: all elements have been written but for those that are left."""
        for part in self._parts:
            part.mask &= part.left[..., None]
