"""The arithmetic of a kernel: is it float32 where its arrays are, and how often does it call exp?

    only_float32    a check: no operation of the learner's is float64
    at_most         for only_float32: how often the threads of a launch may compute something
    Counted         the operations of a launch

The kernel runs in the emulator's step mode, which gives every result the type that Numba gives it and compiles nothing.
So a bare 0.0, an int that meets a float32 and a shared array of float64 are seen where they are computed, with their
line. On a GPU and in the simulator nothing of this is seen.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from cuda_emulator.inspection import (
    FunctionSource,
    constant,
    device_source,
    look_up,
    step,
    step_numbers,
    step_rewrite,
    tracing,
)
from groundup.course.checks.check import Tally
from groundup.course.grading.calling.kernel_causes import function_at, is_assembled, learners_line, record_of
from groundup.course.grading.calling.kernel_launches import Launch, backend, filled, of_the_project, threads

UNTYPED = ("exact", "strong", "plain", "convert")
"""Functions of step_numbers that compute nothing."""

LITERAL = "a bare 1.0 is a float64: write a.dtype.type(1), or type(z)(1) for a single number z, a 1 of the other's type"

MEETS_INT = (
    "where a float32 meets a whole number or a float64 constant, the result is a float64: convert that number first, "
    "a.dtype.type(2) * x, x / a.dtype.type(rows)"
)

MAKES_FLOAT64 = "float(…) and the constants of math are float64: a.dtype.type(…) makes a number of the array's type"

SLOWER = "a float64 costs most GPUs 32 or 64 times as much"

Place = tuple[CodeType, int]
"""A place in the code of a kernel: (its code, the instruction)."""


@dataclass(frozen=True)
class Operation:
    """A floating-point operation of a kernel. what: add, exp, …; line, text: of its outermost learner's line."""

    what: str
    file: str
    line: int
    text: str


class Counted:
    """The module step_numbers, watched: floating-point operations by name, and the float64 ones by their place.

    counts: how often each operation with a result of floating point was done: "add", "mul", …, "exp"
    wide: the first float64 operation that is no constant; None if there is none
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wide: Operation | None = None
        self._constant: dict[Place, bool] = {}

    def __getattr__(self, name: str) -> Any:
        function = getattr(step_numbers, name)
        if name in UNTYPED or not callable(function):
            return function

        def watched(*operands: Any) -> Any:
            result = function(*operands)
            if isinstance(result, float | np.floating):
                what = getattr(operands[0], "__name__", name) if callable(operands[0]) else name
                self.counts[what] += 1
                if type(result) is float and self.wide is None:
                    self._note(what, sys._getframe(1))
            return result

        setattr(self, name, watched)
        return watched

    def _note(self, what: str, frame: Any) -> None:
        place = frame.f_code, frame.f_lasti
        if place not in self._constant:
            self._constant[place] = is_constant(frame)
        if self._constant[place]:
            return
        own = frame
        while own is not None and not is_learners(own):  # a float64 that the learner hands to the project's function
            own = own.f_back
        at = own if own is not None else frame
        file, line = at.f_code.co_filename, at.f_lineno
        self.wide = Operation(what, file, line, linecache.getline(file, line).strip())


def is_learners(frame: Any) -> bool:
    """Whether a frame stands in a line of the learner's."""
    file = frame.f_code.co_filename
    record = record_of(file) if step_rewrite.CUDA in frame.f_globals and is_assembled(file) else None
    return record is not None and record.place(file, frame.f_lineno) is not None


def is_constant(frame: Any) -> bool:
    """Whether the expression that a frame computes is one of literals and global names, which costs nothing."""
    first, last, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if None in (first, last, start, end) or first != last:
        return False
    text = linecache.getline(frame.f_code.co_filename, first).encode()[start:end].decode()
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False  # a statement: x += 1.0
    return all(
        not isinstance(node, ast.Call | ast.Subscript)
        and (not isinstance(node, ast.Name) or (node.id in frame.f_globals and node.id not in frame.f_locals))
        for node in ast.walk(tree)
    )


def counted(kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Counted:
    """The operations of a launch. arguments: its arguments, which change. Emulator only."""
    numbers = Counted()
    configured = kernel.configure(launch.grid, launch.block)
    step.run_kernel(kernel.source, arguments, configured.griddim, configured.blockdim, 0, numbers=numbers)
    return numbers


@dataclass(frozen=True)
class AtMost:
    """How often each thread of the launch, on average, may do an operation. cause: why it may be more often."""

    what: str
    times: float
    cause: str


def only_float32(
    kernel: Any,
    launch: Launch,
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
    *limits: AtMost,
    remark: bool = False,
) -> Callable[[Tally], None]:
    """The check `types`: nothing is computed in float64.

    arguments: makes random arguments, as `launched` takes them: a few, and of floats only float32
    limits: how often an operation may be done
    remark: whether float64 is told, and passes
    """

    def check(tally: Tally) -> None:
        of_the_project(kernel)
        if backend() != "emulator":
            tally.holds(True, "a device does not tell the types")
            tally.note("float64 in the kernel was not looked for: only the emulator can (GROUNDUP_CUDA=emulator)")
            return
        tally.trying(f"the types of {kernel.__name__}{launch}")
        inputs = [filled(argument) for argument in arguments(np.random.default_rng(8))]
        operations = counted(kernel, launch, inputs)
        wide = operations.wide or literal_variable(kernel, inputs)
        if wide is not None and remark:
            tally.note(f"{learners_line(wide.file, wide.line)} computes in float64: {wide.text} ({cause_of(wide)})")
        sentence = f"{learners_line(wide.file, wide.line)} computes in float64: {wide.text}" if wide else ""
        tally.holds(
            wide is None or remark,
            sentence,
            expected="float32, as the arrays are",
            got="float64",
            cause=f"{cause_of(wide)}; {SLOWER}" if wide else "",
            line=wide.line if wide and is_assembled(wide.file) else None,
        )
        every = threads(launch)[0]
        for limit in limits:
            times = operations.counts[limit.what] / every
            tally.holds(
                times <= limit.times,
                f"{limit.what} is computed {times:.3g} times a thread",
                expected=f"at most {limit.times:.3g} times",
                got=f"{times:.3g} times",
                cause=limit.cause,
            )

    return check


def literal_variable(kernel: Any, arguments: Sequence[Any]) -> Operation | None:
    """A variable of the learner's that is a float64 for Numba, because one of its values is a literal.

    Step mode does not see it: there a variable has the type of its last value. In `largest = -1e30`, which is then
    compared with every number of a float32 array and replaced, Numba makes it a float64 from the begin. So it does with
    `value = 0.0`, which is replaced by `source[i]` only if there is such an element.
    """
    floats = {
        name
        for name, value in zip(kernel.parameters, arguments, strict=True)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }
    for source in (kernel.source, *tracing.called(kernel.source)):
        arrays = floats if source is kernel.source else _handed_on(kernel.source, source, floats)
        assigns = [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]
        computed = {
            part.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.BinOp | ast.AugAssign)
            or (isinstance(node, ast.Call) and "math." in ast.unparse(node.func))
            for part in ast.walk(node)
            if isinstance(part, ast.Name)
        }
        assigned = [node for node in assigns if isinstance(node.targets[0], ast.Name)]
        for node in assigned:
            name = ast.unparse(node.targets[0])
            value = constant(source, node.value)
            others = [stmt.value for stmt in assigned if stmt is not node and ast.unparse(stmt.targets[0]) == name]
            from_array = any(
                isinstance(part, ast.Subscript) and ast.unparse(part.value) in arrays
                for other in others
                for part in ast.walk(other)
            )
            wide = type(value) is float or (type(value) is int and from_array)
            record = record_of(source.filename) if is_assembled(source.filename) else None
            mine = record is not None and record.place(source.filename, node.lineno) is not None
            if mine and wide and others and (name in computed or from_array):
                return Operation("", source.filename, node.lineno, ast.unparse(node))
    return None


def _handed_on(kernel: FunctionSource, called: FunctionSource, arrays: set[str]) -> set[str]:
    """The parameters of a function for which the kernel that calls it hands on one of these arrays."""
    return {
        parameter
        for node in ast.walk(kernel.tree)
        if isinstance(node, ast.Call) and device_source(look_up(kernel, node.func)) is called
        for parameter, argument in zip(called.parameters, node.args, strict=False)
        if isinstance(argument, ast.Name) and argument.id in arrays
    }


def cause_of(wide: Operation) -> str:
    """Where a float64 comes from: a literal in the line, a variable that begins as one, or a whole number."""
    function = function_at(wide.file, wide.line)
    if function is None or not wide.what:
        return LITERAL
    within = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt)
        and node.lineno <= wide.line <= (node.end_lineno or 0)
        and not isinstance(node, ast.FunctionDef | ast.While | ast.For | ast.If)
    ]
    parts = [part for statement in within for part in ast.walk(statement)]
    if any(isinstance(part, ast.Constant) and type(part.value) is float for part in parts):
        return LITERAL
    if any(map(makes_float64, parts)):
        return MAKES_FLOAT64
    if any("float64" in ast.unparse(part) for part in parts if isinstance(part, ast.expr)):
        return "float64 is asked for in this line"
    read = {part.id for part in parts if isinstance(part, ast.Name)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, ast.unparse(node.value)
        starts = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float)
        added_to = any(isinstance(part, ast.AugAssign) and ast.unparse(part.target) == name for part in within) or any(
            isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == name for part in within
        )
        if name in read and ((starts and added_to) or type(getattr(node.value, "value", None)) is float):
            place = learners_line(wide.file, node.lineno)
            return (
                f"{name} begins as {value} in {place}, {kind_of(value)}: a.dtype.type(0) is a zero of the array's type"
            )
        if name in read and any(map(makes_float64, ast.walk(node.value))):
            return f"{name} begins as {value} in {learners_line(wide.file, node.lineno)}, a float64: {MAKES_FLOAT64}"
        if name in read and "float64" in value:
            return f"{name} is made of float64 in {learners_line(wide.file, node.lineno)}"
    return MEETS_INT


def makes_float64(node: ast.AST) -> bool:
    """Whether an expression is float(…) or a constant of the module math."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "float"
    return isinstance(node, ast.Attribute) and ast.unparse(node) in MATH_CONSTANTS


MATH_CONSTANTS = ("math.pi", "math.e", "math.tau", "math.inf", "math.nan")


def kind_of(literal: str) -> str:
    """What a literal is to Numba."""
    return "a float64" if not literal.lstrip("-").isdigit() else "a whole number, which with a float32 makes a float64"
