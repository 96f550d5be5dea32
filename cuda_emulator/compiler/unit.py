"""The compiler's data about one kernel; each step adds to it."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types

from .functions import DeviceFunction
from .reading.source import FunctionSource
from .trees import Collective, contains


@dataclass(frozen=True)
class ArrayDeclaration:
    """A shared or local array of a kernel. The shape (0,) means dynamic shared memory; sliced: only a part is used."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    line: int
    sliced: bool = False

    @property
    def nbytes(self) -> int:
        """Its size; 0 for dynamic shared memory."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass
class Unit:
    """One kernel (or plain device function) in normal form.

    parameters: the argument names in the generated source
    argument_types: the types of the launch's arguments; empty for a device function, which works for all types
    body: its statements in normal form (defined in normalise.py)
    shared, local: the arrays that it declares, by name
    constants: the global arrays that it reads, by the name of the hidden argument that passes them
    device_functions: the plain device functions that it calls, by their names in the generated source
    groups: the variables that hold the group of all blocks (groups.py)
    prints: whether it calls print(); fence: whether it calls cuda.threadfence()
    moves: number of elements of a device function that stands for one wide access (functions.py), else 1
    warnings: (line, sentence) of each warning to show when the kernel is compiled
    raised: the texts of `assert` and `raise` statements
    spelled: {name in the generated source: the learner's name}, for each renamed variable
    """

    source: FunctionSource
    parameters: list[str] = field(default_factory=list)
    argument_types: tuple[types.Type, ...] = ()
    body: list[ast.stmt] = field(default_factory=list)
    shared: dict[str, ArrayDeclaration] = field(default_factory=dict)
    local: dict[str, ArrayDeclaration] = field(default_factory=dict)
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    device_functions: dict[str, DeviceFunction] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    prints: bool = False
    fence: bool = False
    moves: int = 1
    warnings: list[tuple[int, str]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """An unused variable name: `_value1`, `_value2`, ... (the learner's names never start with _ here)."""
        self._numbers[stem] = self._numbers.get(stem, 0) + 1
        return f"_{stem}{self._numbers[stem]}"

    @property
    def arrays(self) -> dict[str, ArrayDeclaration]:
        """Shared and local arrays together."""
        return {**self.shared, **self.local}

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of one block, in bytes."""
        return sum(array.nbytes for array in self.shared.values())

    def strided(self, name: str) -> bool:
        """Whether an array is a part of a larger one, with an entry for each thread: a local array of a kernel that is
        cut at collectives."""
        return name in self.local and contains(self.body, Collective)

    def learners_name(self, name: str) -> str:
        """The learner's name of a variable of the generated source."""
        return self.spelled.get(name, name)
