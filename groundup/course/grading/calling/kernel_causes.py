"""Why a launch of a learner's kernel failed: the emulator's error as a Wrong with its line and its most frequent cause.

    explained           a KernelError as Wrong
    inputs_kept         refuses a kernel that changes an array which it should only read
    nothing_to_add_to   refuses `c[i] += …` on an array that holds nothing yet
    own_line            the line of the learner's file

Where the numbers do not tell a cause, the source does: an index beyond the edge has another cause where no condition
asks about it (guards.py) than where one compares with `<=`.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from groundup.course import assembly
from groundup.course.checks.check import Wrong
from groundup.course.grading.calling.guards import Guards
from groundup.course.manifest import ROOT
from shared.contract import STAGES

NO_GUARD = "no guard: threads beyond the edge read or write, too; ask first whether there is a number for this thread"

ONE_TOO_FAR = "the guard lets one too many through: n elements have the indices 0 to n - 1, so i < n, and not i <= n"

OTHER_GUARD = "the guard lets this index through: is the index right, and is it compared with the size of its own axis?"

BELOW_ZERO = (
    "the guard lets an index below 0 through, which counts from the end. Is the index right? If it may be below 0, as "
    "in the padding of an image, ask whether it is at least 0, too"
)

NO_GUARD_FOR = (
    "no guard for this index: no condition around this line asks about {}, so threads beyond the edge read or write, "
    "too; ask first whether there is a number for this thread"
)

WHOLE_INDEX = "an index has to be a whole number, and / makes a float of two whole numbers: // divides without a rest"

NO_VALUE = (
    "a variable that not every thread has assigned: does this line belong into the `if` or the loop above it, or does "
    "the variable need a first value before that?"
)

BARRIER = (
    "a barrier in an `if`, in a loop that some threads leave earlier, or behind a return: every thread of a block has "
    "to reach it, those beyond the edge as well"
)


def is_assembled(file: str) -> bool:
    """Whether a file is an assembled one, with the learner's functions: it lies outside the project's folders."""
    path = Path(file)
    return not any(path.is_relative_to(ROOT / folder) for folder in (*STAGES, "shared", "groundup", "cuda_emulator"))


def own_line(file: str | None, line: int | None) -> int | None:
    """The line, if it is one of the learner's file; else None."""
    return line if file and is_assembled(file) else None


@cache
def record_of(file: str) -> assembly.Assembly | None:
    """The record of the assembly that an assembled file belongs to."""
    found = (folder / assembly.RECORD for folder in Path(file).parents)
    return next((assembly.load(path) for path in found if path.is_file()), None)


def learners_line(file: str, line: int) -> str:
    """ "line 12" with the number in the learner's file; of a line that is not the learner's, its text."""
    record = record_of(file)
    if record is None:
        return f"line {line}"
    place = record.place(file, line)
    if place:
        return f"line {place[1]}"
    text = linecache.getline(file, line).strip()
    return f"the project's line `{text}`" if text else "a line of the project's own"


def explained(error: Any) -> Wrong:
    """A KernelError of the emulator as Wrong, with its most frequent cause."""
    cause, said = "", error.sentence
    if "is out of bounds" in said or "counts from the end" in said:
        cause = cause_of_index(error)
    elif "live threads of" in said or "synchronises, and returns" in said:
        cause = BARRIER
    elif "has no value yet" in said:
        cause = NO_VALUE
    elif ("item(" in said and "float" in said) or "only integers" in said:
        cause = WHOLE_INDEX
    # The message says no place and no source line: the verdict names both, in the learner's file.
    line = own_line(error.filename, error.line)
    if line is None:
        return Wrong(str(error), cause=cause)
    said = re.sub(r"(?<= in )line (\d+)", lambda found: learners_line(error.filename, int(found[1])), said)
    wrong = Wrong(said, cause=cause, line=line, file=error.filename)
    wrong.called_from = error.called_from
    return wrong


def cause_of_index(error: Any) -> str:
    """The most likely cause of an index outside an array, from the conditions around the line it stands in."""
    function = function_at(error.filename, error.line)
    array, axis = (re.match(pattern, error.sentence) for pattern in (r"(\w+)\[", r".*? along axis (\d)"))
    if function is None or array is None:
        return NO_GUARD
    guards = Guards(function, array[1], error.line, int(axis[1]) if axis else None)
    if not guards.any:
        return NO_GUARD
    if not guards.concerned:
        return NO_GUARD_FOR.format(guards.written)
    asked = [part for condition in guards.concerned for part in ast.walk(condition) if isinstance(part, ast.expr)]
    if _just_beyond(error.sentence) and any(map(_SizesIn(function).lets_one_more, asked)):
        return ONE_TOO_FAR
    if "counts from the end" in error.sentence and not any(map(_asks_for_zero, asked)):
        return BELOW_ZERO
    return OTHER_GUARD + (" Or are row and column exchanged?" if axis else "")


def _asks_for_zero(node: ast.expr) -> bool:
    """Whether an expression is a comparison with 0, as in 0 <= row, or makes a number unsigned, as in uint32(row)."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2].startswith("uint")
    return isinstance(node, ast.Compare) and any(
        ast.unparse(side) in ("0", "-1") for side in (node.left, *node.comparators)
    )


def _just_beyond(sentence: str) -> bool:
    """Whether an index is the size of its axis: the first that is too large."""
    found = re.match(r"\S+?\[(.+?)\] is out of bounds(?: along axis (\d))?: \S+ has shape \((.*?),?\)", sentence)
    if not found:
        return False
    axis = int(found[2] or 0)
    index, shape = (re.findall(r"-?\d+", text) for text in (found[1], found[3]))
    return len(index) == len(shape) > axis and index[axis] == shape[axis]


class _SizesIn:
    """The expressions of a function that are the size of something."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.names: set[str] = set()
        for _ in range(2):  # rows, columns = z.shape; then count = rows * columns
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and self.is_size(node.value):
                    stored = [part for target in node.targets for part in ast.walk(target)]
                    self.names |= {part.id for part in stored if isinstance(part, ast.Name)}

    def is_size(self, node: ast.expr) -> bool:
        """Whether the expression is made of `.size`, `.shape`, len() or a variable that is."""
        return not isinstance(node, ast.IfExp) and any(
            (isinstance(part, ast.Attribute) and part.attr in ("size", "shape"))
            or (isinstance(part, ast.Name) and part.id in {*self.names, "len"})
            for part in ast.walk(node)
        )

    def is_one_more(self, node: ast.expr) -> bool:
        """Whether the expression is a size plus 1."""
        return (
            isinstance(node, ast.BinOp)
            and ast.unparse(node).endswith(" + 1")
            and not any(isinstance(part, ast.FloorDiv) for part in ast.walk(node))  # a number of rounds
            and self.is_size(node.left)
        )

    def lets_one_more(self, node: ast.expr) -> bool:
        """Whether it is i <= n, i < n + 1, n >= i or range(n + 1); or i > n or n < i, which then guard a return."""
        if isinstance(node, ast.Call):
            return ast.unparse(node.func) == "range" and any(map(self.is_one_more, node.args))
        if not isinstance(node, ast.Compare):
            return False
        sides = [node.left, *node.comparators]
        return any(
            (self.is_size(right) and not self.is_size(left) and isinstance(op, ast.LtE | ast.Gt))
            or (self.is_size(left) and not self.is_size(right) and isinstance(op, ast.GtE | ast.Lt))
            or (self.is_one_more(right) and isinstance(op, ast.Lt))
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        )


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def function_at(file: str | None, line: int | None) -> ast.FunctionDef | None:
    """The innermost function of a Python file around this line; None if there is none."""
    if not file or not line or not Path(file).is_file():
        return None
    around = (
        node
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    )
    return max(around, key=lambda node: node.lineno, default=None)


def inputs_kept(names: Sequence[str], before: Sequence[Any], after: Sequence[Any], written: Sequence[bool]) -> None:
    """Raises Wrong if an array that the kernel should only read holds other numbers after the launch."""
    for name, old, new, writes in zip(names, before, after, written, strict=True):
        if isinstance(old, np.ndarray) and not writes and not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            cause = f"the caller still needs what {name} holds: write into the output alone"
            raise Wrong(f"{name} was changed by the kernel, which should only read it", cause=cause)


def nothing_to_add_to(kernel: Any, names: Sequence[str], results: Sequence[Any]) -> None:
    """Raises Wrong if an output holds NaN, and all that the kernel ever does is to change what it held before.

    names, results: of the arguments that hold nothing before the launch
    """
    source = getattr(kernel, "source", None)
    if source is None:  # not the emulator's
        return
    for name, result in zip(names, results, strict=True):
        stores = list(_stores(source.tree, name)) if np.isnan(result).all() else []
        if stores and all(reads for _, reads in stores):
            line, _ = stores[0]
            told = learners_line(source.filename, line) if is_assembled(source.filename) else f"line {line}"
            raise Wrong(
                f"{told} adds to what {name} holds, and {name} holds nothing yet: NaN plus a number is NaN",
                cause=f"write the finished number, {name}[…] = …; what is still added up belongs in a variable",
                line=own_line(source.filename, line),
            )


def _stores(tree: ast.AST, name: str) -> Iterator[tuple[int, bool]]:
    """(line, whether it reads the array as well) for each statement that stores into this array."""

    def is_of(node: ast.AST) -> bool:
        return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name

    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and is_of(node.target):
            yield node.lineno, True
        elif isinstance(node, ast.Assign) and any(map(is_of, node.targets)):
            same = {ast.unparse(target) for target in node.targets}
            yield node.lineno, any(is_of(part) and ast.unparse(part) in same for part in ast.walk(node.value))
        elif isinstance(node, ast.Call) and any(isinstance(each, ast.Name) and each.id == name for each in node.args):
            atomic = "atomic." in ast.unparse(node.func)
            yield node.lineno, atomic  # any other function that is given the array may write it
