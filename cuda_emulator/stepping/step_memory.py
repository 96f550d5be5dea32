"""Memory in step mode: the learner's own NumPy arrays, with a check of every index."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.diagnoses import out_of_bounds
from ..errors import KernelError
from ..poison import poison_value
from .step_numbers import convert, exact, plain, strong

#: The number of axes that a message shows.
AXES = 3
Complain = Callable[[str], KernelError]


def fresh_array(shape: Any, dtype: np.dtype[Any], poison: bool) -> np.ndarray:
    """New memory, filled with poison values or zeros."""
    return np.full(shape, poison_value(dtype), dtype) if poison else np.zeros(shape, dtype)


class Checked:
    """An array in an index expression `name[...]` of a kernel. It is made for one use.

    array: the indexed array
    name: the expression before the bracket, for messages
    complain: makes an error that points to the current line; where: returns the name of the current thread
    """

    __slots__ = ("array", "complain", "name", "where")

    def __init__(self, array: np.ndarray, name: str, complain: Complain, where: Callable[[], str]) -> None:
        self.array, self.name, self.complain, self.where = array, name, complain, where

    def __getitem__(self, index: Any) -> Any:
        # As a recarray, a record's fields are attributes too.
        array = self.array.view(np.recarray) if self.array.dtype.names else self.array
        try:
            return plain(array[index])
        except (IndexError, TypeError, ValueError) as problem:
            raise self._refused(index, problem) from None

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            number = isinstance(value, int | float | np.integer | np.floating) and self.array.dtype.kind in "iu"
            self.array[index] = convert(self.array.dtype, value) if number else strong(value)
        except (IndexError, TypeError, ValueError) as problem:
            raise self._refused(index, problem) from None

    def _refused(self, index: Any, problem: Exception) -> KernelError:
        parts = index if isinstance(index, tuple) else (index,)
        shape = self.array.shape
        whole = all(isinstance(part, int | np.integer) for part in parts)
        if isinstance(problem, IndexError) and whole and len(parts) <= len(shape) <= AXES:
            outside = (not -extent <= part < extent for part, extent in zip(parts, shape, strict=False))
            detail = [list(outside).index(True), *_padded(parts), *_padded(shape)]
            return self.complain(out_of_bounds(self.name, detail, self.where()))
        return self.complain(
            f"{self.name}[{index}] does not fit {self.name}, which has shape {shape}: {problem}; in {self.where()}"
        )


def _padded(numbers: tuple[Any, ...]) -> list[int]:
    """The first three numbers, filled up with zeros."""
    return [int(number) for number in (*numbers, 0, 0, 0)[:AXES]]


def _nan_aware(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda old, value: value if (old != old and value == value) or better(value, old) else old


#: (old, value) -> new value of the element. max and min do not replace a NaN; nanmax and nanmin treat it as missing.
ATOMIC_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "max": lambda old, value: value if value > old else old,
    "min": lambda old, value: value if value < old else old,
    "nanmax": _nan_aware(operator.gt),
    "nanmin": _nan_aware(operator.lt),
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "exch": lambda old, value: value,
}


class Atomics:
    """`cuda.atomic`. One thread runs at a time, so every operation is atomic."""

    def __getattr__(self, name: str) -> Callable[[Checked, Any, Any], Any]:
        if name not in ATOMIC_RULES:
            raise AttributeError(f"cuda.atomic has no {name!r}")
        rule = ATOMIC_RULES[name]

        def operate(cell: Checked, index: Any, value: Any) -> Any:
            old = cell[index]
            kind = cell.array.dtype
            changed = rule(kind.type(exact(old)), convert(kind, value)) if kind.kind == "f" else None
            # Integers are computed exactly, then wrapped around.
            cell[index] = convert(kind, rule(exact(old), exact(convert(kind, value))) if changed is None else changed)
            return old

        return operate

    def cas(self, cell: Checked, index: Any, expected: Any, value: Any) -> Any:
        """Write `value` if the element equals `expected`; return its old value."""
        old = cell[index]
        if exact(old) == exact(convert(cell.array.dtype, expected)):
            cell[index] = convert(cell.array.dtype, value)
        return old

    def compare_and_swap(self, cell: Checked, expected: Any, value: Any) -> Any:
        """cas on element 0."""
        return self.cas(cell, 0, expected, value)
