"""What check mode says: where results differ, and why."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..errors import KernelError
from ..hooks import Detection, Found
from .places import definition_error

ROUNDING = 1024
"""Units in the last place that a float may differ by: the order of threads changes the rounding of sums by atomics."""

ROUNDING_OF_LARGEST = 64
"""Units in the last place of the array's largest value that a float may differ by: a small one may be the difference
of two large sums."""

SHOWN = 3
"""The number of further races that are listed below the first."""

Error = TypeVar("Error", bound=BaseException)


@dataclass(frozen=True)
class Difference:
    """The first element of an array that is not the same in two runs. count: the number of such elements"""

    array: str
    place: str
    forward: Any
    other: Any
    count: int
    dtype: np.dtype[Any]

    def text(self, order: str) -> str:
        """The sentence about a difference between two orders."""
        more = f" ({self.count} elements differ)" if self.count > 1 else ""
        return (
            f"the result depends on the order in which threads run: {self.place} is {self.forward!r} with threads and "
            f"blocks in order, and {self.other!r} with them {order}{more}"
        )

    def with_other_values(self) -> str:
        """The clause about a difference that comes from memory or lanes whose values nobody knows."""
        return f"{self.place} is {self.forward!r}, and {self.other!r} with other values"


def first_difference(arrays: Sequence[tuple[str, np.ndarray]], forward: Sequence[np.ndarray]) -> Difference | None:
    """The first difference between the arrays and the results of the forward order."""
    return next(differences(arrays, forward), None)


def differences(arrays: Sequence[tuple[str, np.ndarray]], forward: Sequence[np.ndarray]) -> Iterator[Difference]:
    """Of each array, and of each field of records, the first element that differs from the forward order's."""
    for (name, array), expected in zip(arrays, forward, strict=True):
        fields = array.dtype.names
        pairs = [(f"{name}.{each}", expected[each], array[each]) for each in fields] if fields else []
        for place, before, after in pairs or [(name, expected, array)]:
            if before.dtype.names:
                yield from differences([(place, after)], [before])
                continue
            differs = different(before, after)
            if differs.any():
                index = tuple(int(i) for i in np.argwhere(differs)[0])
                shown = f"{place}[{', '.join(map(str, index))}]" if index else place
                values = before[index].item(), after[index].item()
                yield Difference(name, shown, *values, int(differs.sum()), before.dtype)


def different(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A bool array: where two results differ by more than the rounding of sums in another order.

    Integers must be equal. Two NaNs count as equal.
    """
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    unit = np.finfo(a.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = np.abs(a)
        largest = magnitude[np.isfinite(magnitude)].max(initial=0.0)
        near = np.abs(a - b) <= unit * (ROUNDING * magnitude + ROUNDING_OF_LARGEST * largest)
    # Infinity minus infinity is NaN, and an infinite tolerance would accept every number.
    near &= np.isfinite(a) & np.isfinite(b)
    return np.asarray(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))


# ---------------------------------------------------------------- errors


def race_error(detection: Detection, kernel: str) -> KernelError:
    """The error for the races that a detector found: the first, with the others below it.

    A line that races with itself in several ways, such as in a block and between blocks, is told once.
    """
    told: dict[tuple[str, int, str], Found] = {}
    for race in detection.races:
        told.setdefault((race.file, race.line, race.array), race)
    first, *others = told.values()
    error = KernelError(first.sentence, filename=first.file, line=first.line, kernel=kernel)
    for other in others[:SHOWN]:
        error.add_note(f"also line {other.line}: {other.sentence}")
    if len(others) > SHOWN:
        error.add_note(f"and {len(others) - SHOWN} more")
    return noted(error, detection)


def unwritten_error(
    difference: Difference, detection: Detection | None, function: Callable[..., Any], argument: str = ""
) -> KernelError:
    """The error for a result that depends on the values of memory that nobody has written.

    argument: the name of an argument in global memory; "" for shared or local memory
    """
    shown = f"{difference.with_other_values()} in fresh memory"
    space = "global" if argument else "shared"
    reads = [read for read in detection.unwritten if read.space == space] if detection is not None else []
    if reads:
        first: Found = next((read for read in reads if read.array == argument), reads[0])
        name = getattr(function, "__name__", None)
        sentence = f"{first.sentence} The result depends on it: {shown}"
        return noted(KernelError(sentence, filename=first.file, line=first.line, kernel=name), detection)
    if argument:
        where, array = f"elements of {argument} that nobody has written", argument.partition("[")[0]
        lines = _lines(function, lambda node: _reads_from(node, array))
    else:
        where, lines = "shared or local memory that is read before it is written", _lines(function, _declares_memory)
    error = definition_error(
        f"the result depends on {where}: {shown}. On a device it holds what an earlier kernel left there: write every "
        "element before it is read",
        function,
        lines[0] if lines else None,
    )
    return noted(error, detection)


def depends_on_order(difference: Difference, order: str, function: Callable[..., Any]) -> KernelError:
    """The error for a result that depends on the order of threads; its line is the first that writes to the array."""
    name = difference.array.partition("[")[0]
    lines = _lines(function, lambda node: _writes_to(node, name))
    return definition_error(
        f"{difference.text(order)}. A device may run them in any order, so "
        "this is a race: put a cuda.syncthreads() between writing and reading shared memory, let each element be "
        "written by one thread, or use cuda.atomic",
        function,
        lines[0] if lines else None,
    )


def noted(error: Error, detection: Detection | None) -> Error:
    """The error, with the command that shows more."""
    if detection is not None and detection.more:
        error.add_note(f"{detection.more} shows more")
    return error


# ---------------------------------------------------------------- the source


def _lines(function: Callable[..., Any], wanted: Callable[[ast.AST], bool]) -> list[int]:
    """The lines of a function's file with a wanted statement; [] if its source cannot be read."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return []
    return sorted(first - 1 + node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and wanted(node))


def _declares_memory(node: ast.AST) -> bool:
    """Whether a statement is `name = cuda.shared.array(...)` or the same with cuda.local.array."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func).endswith(("shared.array", "local.array"))


def _writes_to(node: ast.AST, array: str) -> bool:
    """Whether a statement assigns an element of the array, or calls an atomic with it."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and _name(part.value) == array:
                return True
            if isinstance(part, ast.Call) and ".atomic." in ast.unparse(part.func) and part.args:
                return _name(part.args[0]) == array
    return False


def _reads_from(node: ast.AST, array: str) -> bool:
    """Whether a statement without a body reads an element of the array, or calls an atomic with it."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript) and _name(node.target) == array:
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
        return False
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and _name(part.value) == array:
            return True
        if isinstance(part, ast.Call) and ".atomic." in ast.unparse(part.func) and part.args:
            return _name(part.args[0]) == array
    return False


def _name(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
