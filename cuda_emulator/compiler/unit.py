"""What the compiler knows about one kernel, filled in step by step."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types

from .functions import DeviceFunction
from .source import FunctionSource


@dataclass(frozen=True)
class ArrayDeclaration:
    """A shared or local array of a kernel. shape (0,): dynamic shared memory."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    line: int

    @property
    def nbytes(self) -> int:
        """Its size; 0 for dynamic shared memory."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass
class Unit:
    """One kernel (or plain device function) in normal form.

    parameters: the argument names, as the generated source spells them
    argument_types: the types they are launched with; empty for a device function, which is compiled for any
    body: its statements in normal form (normalise.py says what that is)
    shared, local: the arrays it declares, by name
    constants: global arrays it reads, by the name of the hidden argument that brings them
    devices: the plain device functions that it calls, by the name in the generated source
    prints: whether anything in it prints; fence: whether it calls cuda.threadfence()
    moves: of a device function that stands for one wide access (functions.py): how many elements, else 1
    warnings: what to tell the learner once, when the kernel is compiled: (line, sentence)
    raised: the texts of `assert` and `raise` statements
    spelled: the learner's name for each variable that had to get another
    """

    source: FunctionSource
    parameters: list[str] = field(default_factory=list)
    argument_types: tuple[types.Type, ...] = ()
    body: list[ast.stmt] = field(default_factory=list)
    shared: dict[str, ArrayDeclaration] = field(default_factory=dict)
    local: dict[str, ArrayDeclaration] = field(default_factory=dict)
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    devices: dict[str, DeviceFunction] = field(default_factory=dict)
    prints: bool = False
    fence: bool = False
    moves: int = 1
    warnings: list[tuple[int, str]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """A variable name that nothing else has: `_value1`, `_value2`, ... (learners' names never start with _)."""
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

    def learners_name(self, name: str) -> str:
        """How the learner spells a variable of the generated source."""
        return self.spelled.get(name, name)
