"""Step 7a: write the statements of one thread, with checked indices, local arrays and hidden arguments."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from ..analysis.infer import HIDDEN
from ..analysis.uniformity import is_range
from ..trees import (
    ASSIGNED,
    LENT,
    call,
    constant,
    copied,
    expression,
    index_parts,
    load,
    loaded_names,
    subscript,
    unguarded,
    walk,
)
from ..unit import Unit
from .trace_tables import TraceTables

CHECKED = ("_status", "_block", "_thread")
INTEGERS = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
#: A loop with more iterations than this, those of the loops around it included, can be stopped from outside.
LONG = 1e6


@dataclass(frozen=True)
class Variant:
    """The variant of a kernel to compile.

    bounds: check every index, fill fresh memory with poison values, and let loops be stopped from outside
    check: run threads and blocks in an order that the launch gives, and refuse negative indices and variables without
        a value
    fastmath: let the compiler reorder floating-point operations: the kernel's own fastmath=True
    divergence: the reaction to a barrier that only a part of the threads reaches: "error" or "warn"
    trace: record an event for every access, condition and collective (trace_code.py), and refuse the same
    negative: in check mode, "refused"; "read" where only reads may wrap, from another place if the status says so; or
        "meant", where all do
    accesses_only: of a traced kernel, record accesses and barriers only, as the search for races needs them, and leave
        negative indices to the launch that follows it
    """

    bounds: bool = True
    check: bool = False
    fastmath: bool = False
    divergence: str = "error"
    trace: bool = False
    accesses_only: bool = False
    negative: str = "refused"

    @property
    def refuses_negative(self) -> bool:
        """Whether a computed negative index, which counts from the end, ends the launch."""
        return self.negative != "meant" and (self.check or (self.trace and not self.accesses_only))

    @property
    def refuses_unassigned(self) -> bool:
        """Whether the read of a variable that the thread has not assigned ends the launch."""
        return self.check or self.trace


class FileName(str):
    """The name of a file, written as FILES[number] in the tables of a generated source (compiler/cache.py)."""

    number: int

    def __repr__(self) -> str:
        return f"FILES[{self.number}]"


@dataclass
class Sites:
    """A table of source places, (file, line, text): the running code reports a place by its number.

    files: the files in which the kernel and the functions that it calls are written
    """

    files: list[str]
    places: list[tuple[str, int, str]] = field(default_factory=list)
    tables: TraceTables = field(default_factory=TraceTables)

    def place(self, node: ast.AST, filename: str) -> tuple[str, int]:
        """(file, line) of a node. filename: the file of the function that it is in, unless the node was inlined."""
        file = FileName(getattr(node, "filename", filename))
        file.number = self.files.index(file)
        return file, getattr(node, "lineno", 0)

    def number(self, node: ast.AST, subject: str, filename: str | None = None) -> int:
        """The number of a place. filename: the file of its function; None for the kernel's own file."""
        place = (*self.place(node, filename or self.files[0]), subject)
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)


class ThreadCode(ast.NodeTransformer):
    """Rewrites the normal form into the generated source for one thread.

    variable_types: types of the kernel's variables; None inside a device function, whose types depend on the call
    per_thread: whether a local array is stored with an additional last axis for the thread: `_all_acc[i, j, _thread]`
    contexts: {name of a device function: its hidden arguments}
    """

    def __init__(
        self,
        unit: Unit,
        variant: Variant,
        sites: Sites,
        variable_types: Mapping[str, types.Type | None] | None,
        contexts: Mapping[str, Sequence[str]],
        per_thread: bool,
    ) -> None:
        self.unit, self.variant, self.sites = unit, variant, sites
        self.types, self.contexts, self.per_thread = variable_types, contexts, per_thread
        self.rounds = 1.0  # number of iterations of all loops around this place; infinite if it is unknown
        self.left_to_numba = False  # whether there is an index that only Numba's own check covers

    def lines(self, statements: Sequence[ast.stmt]) -> list[str]:
        """The generated lines for some statements."""
        new = [ast.fix_missing_locations(self.visit(copied(statement))) for statement in statements]
        return [line for statement in new for line in ast.unparse(statement).split("\n")]

    def text(self, node: ast.expr) -> str:
        """The generated text for an expression."""
        return ast.unparse(ast.fix_missing_locations(self.visit(copied(node))))

    def text_again(self, name: str, node: ast.expr) -> str:
        """The generated text for the value of a recomputed variable, `name`."""
        return self.text(node)

    # ---------------------------------------------------------------- accesses

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Check the index of `array[index]`."""
        whole, parts = self.flattened(node)
        parts = [self.visit(part) for part in parts]
        base = unguarded(whole)
        if not isinstance(base, ast.Name) or self.is_no_array(base.id, parts):
            self.left_to_numba |= not isinstance(base, ast.Name | ast.Tuple) and not is_shape(base)
            return ast.Subscript(value=self.visit(whole), slice=joined(parts), ctx=node.ctx)
        name = self.unit.learners_name(base.id)
        if whole is not base:
            base = self.visit(whole)
        elif self.per_thread and base.id in self.unit.local:
            # A row of the array, as acc[i]: the thread's axis comes behind all of the array's own.
            missing = len(self.unit.local[base.id].shape) - len(parts)
            parts = [*parts, *(ast.Slice() for _ in range(missing)), load("_thread")]
            base = load(f"_all_{base.id}")
        if any(isinstance(part, ast.Constant) and part.value in (None, ...) for part in parts):
            self.left_to_numba = True  # np.newaxis or `...`: Numba finds the axis of each part
            return subscript(base, parts, node.ctx)
        if not self.variant.bounds or all(isinstance(part, ast.Slice) for part in parts):
            return subscript(base, parts, node.ctx)
        return ast.Subscript(value=base, slice=self.checked(node, base, name, parts), ctx=node.ctx)

    def flattened(self, node: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
        """The array and the index parts: A[i][j] gives A and [i, j] if A has at least two axes, else A[i] and [j]."""
        chain: list[ast.Subscript] = [node]
        while isinstance(chain[-1].value, ast.Subscript):
            chain.append(chain[-1].value)
        whole = chain[-1].value
        base = unguarded(whole)
        parts = [part for link in reversed(chain) for part in index_parts(link.slice)]
        plain = not any(
            isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and isinstance(p.value, str)) for p in parts
        )
        # In two steps only the first index would have a name to check it by, and Numba would check the second.
        if len(chain) > 1 and isinstance(base, ast.Name) and plain and len(parts) <= self.dimensions(base.id):
            return whole, parts
        return node.value, index_parts(node.slice)

    def dimensions(self, name: str) -> int:
        """The number of axes of an array; 0 if it is unknown."""
        if name in self.unit.arrays:
            return len(self.unit.arrays[name].shape)
        kind = self.types.get(name) if self.types is not None else None
        return kind.ndim if isinstance(kind, types.Array) else 0

    def is_no_array(self, name: str, parts: list[ast.expr]) -> bool:
        """Whether the subscripted value is certainly a tuple or a record, and no array."""
        if len(parts) == 1 and isinstance(parts[0], ast.Constant) and not isinstance(parts[0].value, int):
            return True
        if self.types is None or name in self.unit.arrays or name in self.unit.constants:
            return False
        return not isinstance(self.types.get(name), types.Array)

    def checked(self, node: ast.AST, base: ast.expr, name: str, parts: list[ast.expr]) -> ast.expr:
        """`_at(array.shape, index, ...)`, which checks the index. name: the learner's name of the array."""
        written = all(is_literal(part) for part in parts if is_negative(part))
        strict = self.variant.refuses_negative and not (written and any(map(is_negative, parts)))
        reads = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        may_wrap = strict and reads and self.variant.negative == "read"
        function = "_at_shifted" if may_wrap else "_at_strict" if strict else "_at"
        site = constant(self.sites.number(node, name, self.unit.source.filename))
        index = joined([as_call(part) if isinstance(part, ast.Slice) else part for part in parts])
        return call(function, self.shape_of(base), index, load("_status"), site, load("_block"), load("_thread"))

    def shape_of(self, base: ast.expr) -> ast.expr:
        """The array's shape: a literal for a declared array, so that the compiler can remove needless checks."""
        if not isinstance(base, ast.Name):
            return call("_extents", base)
        declared = self.unit.arrays.get(base.id.removeprefix("_all_") if self.per_thread else base.id)
        if declared is not None and declared.shape != (0,):
            own = [load("_threads")] if base.id != declared.name else []
            return ast.Tuple(elts=[*(constant(n) for n in declared.shape), *own], ctx=ast.Load())
        if self.types is not None or declared is not None:
            return ast.Attribute(value=base, attr="shape", ctx=ast.Load())
        return call("_extents", base)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Refuse A.flat, whose index would not be checked."""
        if node.attr == "flat":
            raise self.unit.source.error(
                f"{ast.unparse(node)} is not supported by the emulator; index the array itself, or its .ravel()", node
            )
        self.generic_visit(node)
        return node

    # ---------------------------------------------------------------- calls

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Check the index of an atomic; pass hidden arguments to device functions and errors."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name.startswith("_atomic_"):
            return self.atomic(name, node)
        if name in (ASSIGNED, LENT):
            return self.guarded(name, node)
        self.generic_visit(node)
        # Of a number out of range LLVM leaves the result undefined: each read of it could see another.
        if name == "int" or (isinstance(node.func, ast.Attribute) and node.func.attr in INTEGERS):
            return call("_frozen", node)
        if name in self.contexts:
            node.args += [load(needed) for needed in self.contexts[name]]
        elif name == "_raise":
            assert isinstance(node.args[0], ast.Constant)
            what = self.unit.raised[int(str(node.args[0].value))]
            site = self.sites.number(node, what, self.unit.source.filename)
            return call("_raise_error", load("_status"), constant(site), load("_block"), load("_thread"))
        return node

    def guarded(self, name: str, node: ast.Call) -> ast.expr:
        """The generated call around a variable that may have no value yet."""
        has, variable = node.args
        assert isinstance(variable, ast.Name)
        site = self.sites.number(node, self.unit.learners_name(variable.id), self.unit.source.filename)
        at = (load("_status"), constant(site), load("_block"), load("_thread"))
        if name == ASSIGNED and not self.variant.refuses_unassigned:
            name = f"{ASSIGNED}_or_poison"
        return call(name, has, variable, *at)

    def atomic(self, name: str, node: ast.Call) -> ast.expr:
        """The generated call of an atomic, like `_atomic_add(array, index, value)`."""
        whole = node.args[0]
        base = unguarded(whole)
        name_of_array = self.unit.learners_name(ast.unparse(base))
        values = [self.visit(argument) for argument in node.args[1:]]
        if name == "_atomic_compare_and_swap":  # of the array's first element
            axes = max(1, self.dimensions(base.id)) if isinstance(base, ast.Name) else 1
            name, values = "_atomic_cas", [joined([constant(0)] * axes), *values]
        parts = index_parts(values[0])
        if whole is not base:
            base = self.visit(whole)
        elif isinstance(base, ast.Name) and self.per_thread and base.id in self.unit.local:
            base = load(f"_all_{base.id}")
            parts = [*parts, load("_thread")]
        elif not isinstance(base, ast.Name):
            self.left_to_numba = True  # the expression of the array may contain an index
            base = self.visit(base)
        index = self.checked(node, base, name_of_array, parts) if self.variant.bounds else joined(parts)
        return call(name, base, index, *values[1:])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Freeze the result of a shift by a variable: for a large one LLVM leaves it undefined."""
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift | ast.RShift) and not isinstance(node.right, ast.Constant):
            return call("_frozen", node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a whole local array (an argument of a device function) by the thread's own part."""
        if self.per_thread and node.id in self.unit.local:
            axes = ", ".join([":"] * len(self.unit.local[node.id].shape))
            return expression(f"_all_{node.id}[{axes}, _thread]")
        return node

    def visit_For(self, node: ast.For) -> Any:
        """Let a loop with many iterations, or an unknown number of them, be stopped from outside."""
        outer, self.rounds = self.rounds, self.rounds * rounds_of(node)
        endless = self.rounds > LONG
        self.generic_visit(node)
        self.rounds = outer
        if self.variant.bounds and endless:
            node.body.insert(0, ast.Expr(value=call("_go_on", load("_status"))))
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Let the loop be stopped from outside."""
        self.generic_visit(node)
        if self.variant.bounds:
            running = call("_go_on", load("_status"))
            always = isinstance(node.test, ast.Constant) and node.test.value is True
            node.test = running if always else ast.BoolOp(op=ast.And(), values=[running, node.test])
        return node


def rounds_of(node: ast.For) -> float:
    """The number of iterations of a loop over range() with literal arguments; infinity for any other loop."""
    if not is_range(node.iter) or not isinstance(node.iter, ast.Call) or loaded_names(node.iter.args):
        return math.inf
    try:
        return float(len(range(*(ast.literal_eval(argument) for argument in node.iter.args))))
    except (ValueError, OverflowError):  # an expression of numbers; more iterations than len() can return
        return math.inf


def as_call(node: ast.Slice) -> ast.expr:
    """`start:stop:step` as `slice(start, stop, step)`, for an argument of a function."""
    parts = [node.lower or constant(None), node.upper or constant(None), *([node.step] if node.step else [])]
    return call("slice", *parts)


def is_shape(node: ast.expr) -> bool:
    """Whether `node` is `x.shape` or `x.strides`."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "strides")


def joined(parts: list[ast.expr]) -> ast.expr:
    """The index with these parts."""
    return parts[0] if len(parts) == 1 else ast.Tuple(elts=parts, ctx=ast.Load())


def is_negative(node: ast.expr) -> bool:
    """Whether `node` is a negated expression."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def is_literal(node: ast.expr) -> bool:
    """Whether `node` is a literal number with a sign. A literal -1 is intended; a computed one may be a mistake."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def context_of(unit: Unit, contexts: Mapping[str, Sequence[str]], variant: Variant) -> list[str]:
    """The hidden arguments of a device function: the indices and tables that it and its callees use."""
    needed = loaded_names(unit.body)
    for part in walk(unit.body):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            needed |= set(contexts.get(part.func.id, ()))
    wanted = [name for name in HIDDEN if name in needed]
    if variant.trace:
        return [*CHECKED, "_path", *(name for name in wanted if name not in (*CHECKED, "_path"))]
    told = ("_raise", ASSIGNED, LENT)
    if variant.bounds or any(isinstance(p, ast.Call) and getattr(p.func, "id", "") in told for p in walk(unit.body)):
        wanted = [*CHECKED, *(name for name in wanted if name not in CHECKED)]
    elif "_status" in needed:
        wanted = ["_status", *wanted]
    return wanted
