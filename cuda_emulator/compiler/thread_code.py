"""Step 7a: what one thread executes, as text: accesses checked, local arrays where they live, context passed on."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from .infer import HIDDEN
from .trace_tables import TraceTables
from .trees import call, constant, copied, expression, index_parts, load, loaded_names, subscript, walk
from .uniformity import is_range
from .unit import Unit

CHECKED = ("_status", "_block", "_thread")
INTEGERS = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
#: Rounds of a loop, with those around it, that are over soon enough to wait for.
LONG = 1e6


@dataclass(frozen=True)
class Variant:
    """How a kernel is compiled.

    bounds: every access is checked, fresh memory poisoned, and loops can be stopped from outside
    check: threads and blocks run in an order given by the launch, and negative indices are refused
    fastmath: floating point may be rearranged, as the learner asked with fastmath=True
    divergence: what happens at a barrier that a part of the threads reaches, "error" or "warn"
    trace: every access, condition and collective leaves an event (trace_code.py)
    """

    bounds: bool = True
    check: bool = False
    fastmath: bool = False
    divergence: str = "error"
    trace: bool = False


@dataclass
class Sites:
    """The places that the running code can name: (file, line, what), found again by number."""

    filename: str
    places: list[tuple[str, int, str]] = field(default_factory=list)
    tables: TraceTables = field(default_factory=TraceTables)

    def number(self, node: ast.AST, what: str, filename: str | None = None) -> int:
        """The number of a place. filename: of the function that it stands in, None for the kernel's own file."""
        place = (getattr(node, "filename", filename or self.filename), getattr(node, "lineno", 0), what)
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)


class ThreadCode(ast.NodeTransformer):
    """Rewrites the normal form into what the generated source says for one thread.

    variable_types: of the kernel's variables; None inside a device function, where they are not known beforehand
    per_thread: whether local arrays live in arrays with one more axis, the thread's: `_all_acc[i, j, _thread]`
    contexts: what each device function needs to know besides its arguments
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
        self.rounds = 1.0  # how many rounds the loops around this place make, where that is written in numbers
        self.left_to_numba = False  # whether an access was met that only Numba's own check covers

    def lines(self, statements: Sequence[ast.stmt]) -> list[str]:
        """The text of some statements."""
        new = [ast.fix_missing_locations(self.visit(copied(statement))) for statement in statements]
        return [line for statement in new for line in ast.unparse(statement).split("\n")]

    def text(self, node: ast.expr) -> str:
        """The text of an expression."""
        return ast.unparse(ast.fix_missing_locations(self.visit(copied(node))))

    def text_again(self, name: str, node: ast.expr) -> str:
        """The text of what several regions compute anew for the variable `name`."""
        return self.text(node)

    # ---------------------------------------------------------------- accesses

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """array[index], checked."""
        base, parts = self.flattened(node)
        parts = [self.visit(part) for part in parts]
        if not isinstance(base, ast.Name) or self.is_no_array(base.id, parts):
            self.left_to_numba |= not isinstance(base, ast.Name | ast.Tuple) and not is_shape(base)
            return ast.Subscript(value=self.visit(base), slice=joined(parts), ctx=node.ctx)
        name = self.unit.learners_name(base.id)
        if self.per_thread and base.id in self.unit.local:
            missing = len(self.unit.local[base.id].shape) - len(parts)
            parts = [*parts, *(ast.Slice() for _ in range(missing)), load("_thread")]
            base = load(f"_all_{base.id}")
        if any(isinstance(part, ast.Constant) and part.value in (None, ...) for part in parts):
            self.left_to_numba = True  # what stands on which axis is Numba's business here
            return subscript(base, parts, node.ctx)
        if not self.variant.bounds or all(isinstance(part, ast.Slice) for part in parts):
            return subscript(base, parts, node.ctx)
        return ast.Subscript(value=base, slice=self.checked(node, base, name, parts), ctx=node.ctx)

    def flattened(self, node: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
        """A[i][j] as A, [i, j] where A has that many axes; the access as it is where not."""
        chain: list[ast.Subscript] = [node]
        while isinstance(chain[-1].value, ast.Subscript):
            chain.append(chain[-1].value)
        base = chain[-1].value
        parts = [part for link in reversed(chain) for part in index_parts(link.slice)]
        plain = not any(
            isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and isinstance(p.value, str)) for p in parts
        )
        if len(chain) > 1 and isinstance(base, ast.Name) and plain and len(parts) <= self.dimensions(base.id):
            return base, parts
        return node.value, index_parts(node.slice)

    def dimensions(self, name: str) -> int:
        """How many axes an array has, as far as is known."""
        if name in self.unit.arrays:
            return len(self.unit.arrays[name].shape)
        kind = self.types.get(name) if self.types is not None else None
        return kind.ndim if isinstance(kind, types.Array) else 0

    def is_no_array(self, name: str, parts: list[ast.expr]) -> bool:
        """Whether this is certainly an index into something else: a tuple, a record."""
        if len(parts) == 1 and isinstance(parts[0], ast.Constant) and not isinstance(parts[0].value, int):
            return True
        if self.types is None or name in self.unit.arrays or name in self.unit.constants:
            return False
        return not isinstance(self.types.get(name), types.Array)

    def checked(self, node: ast.AST, base: ast.expr, name: str, parts: list[ast.expr]) -> ast.expr:
        """at(array.shape, index, ...): the index, checked. name: what the learner calls the array."""
        written = all(is_literal(part) for part in parts if is_negative(part))
        function = "_at_strict" if self.variant.check and not (written and any(map(is_negative, parts))) else "_at"
        site = constant(self.sites.number(node, name, self.unit.source.filename))
        index = joined([as_call(part) if isinstance(part, ast.Slice) else part for part in parts])
        return call(function, self.shape_of(base), index, load("_status"), site, load("_block"), load("_thread"))

    def shape_of(self, base: ast.expr) -> ast.expr:
        """The shape to check against: a literal where it is declared, so that the compiler can see what always fits."""
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
        """A.flat is refused: nothing checks an index into it."""
        if node.attr == "flat":
            raise self.unit.source.error(
                f"{ast.unparse(node)} is not supported by the emulator; index the array itself, or its .ravel()", node
            )
        self.generic_visit(node)
        return node

    # ---------------------------------------------------------------- calls

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Atomics get a checked index; device functions and errors get their context."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name.startswith("_atomic_"):
            return self.atomic(name, node)
        self.generic_visit(node)
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

    def atomic(self, name: str, node: ast.Call) -> ast.expr:
        """_atomic_add(array, index, value)."""
        base = node.args[0]
        name_of_array = self.unit.learners_name(ast.unparse(base))
        values = [self.visit(argument) for argument in node.args[1:]]
        if name == "_atomic_compare_and_swap":  # of the array's first element
            axes = max(1, self.dimensions(base.id)) if isinstance(base, ast.Name) else 1
            name, values = "_atomic_cas", [joined([constant(0)] * axes), *values]
        parts = index_parts(values[0])
        if isinstance(base, ast.Name) and self.per_thread and base.id in self.unit.local:
            base = load(f"_all_{base.id}")
            parts = [*parts, load("_thread")]
        elif not isinstance(base, ast.Name):
            self.left_to_numba = True  # the way to the array may hold an index of its own
            base = self.visit(base)
        index = self.checked(node, base, name_of_array, parts) if self.variant.bounds else joined(parts)
        return call(name, base, index, *values[1:])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A shift by a number that is not known may have no answer; what it gives then has to be one number."""
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift | ast.RShift) and not isinstance(node.right, ast.Constant):
            return call("_frozen", node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A local array as a whole (given to a device function): the thread's own part of it."""
        if self.per_thread and node.id in self.unit.local:
            axes = ", ".join([":"] * len(self.unit.local[node.id].shape))
            return expression(f"_all_{node.id}[{axes}, _thread]")
        return node

    def visit_For(self, node: ast.For) -> Any:
        """A loop of many rounds, or of a number that is not known before it runs, can be stopped from outside."""
        outer, self.rounds = self.rounds, self.rounds * rounds_of(node)
        endless = self.rounds > LONG
        self.generic_visit(node)
        self.rounds = outer
        if self.variant.bounds and endless:
            node.body.insert(0, ast.Expr(value=call("_go_on", load("_status"))))
        return node

    def visit_While(self, node: ast.While) -> Any:
        """A loop that can be stopped from outside."""
        self.generic_visit(node)
        if self.variant.bounds:
            running = call("_go_on", load("_status"))
            always = isinstance(node.test, ast.Constant) and node.test.value is True
            node.test = running if always else ast.BoolOp(op=ast.And(), values=[running, node.test])
        return node


def rounds_of(node: ast.For) -> float:
    """How many rounds a loop over range(numbers) makes; infinitely many where it is anything else."""
    if not is_range(node.iter) or not isinstance(node.iter, ast.Call) or loaded_names(node.iter.args):
        return math.inf
    try:
        return float(len(range(*(ast.literal_eval(argument) for argument in node.iter.args))))
    except (ValueError, OverflowError):  # an expression of numbers; more rounds than len() can say
        return math.inf


def as_call(node: ast.Slice) -> ast.expr:
    """start:stop:step as slice(start, stop, step): for places where Python takes no colons."""
    parts = [node.lower or constant(None), node.upper or constant(None), *([node.step] if node.step else [])]
    return call("slice", *parts)


def is_shape(node: ast.expr) -> bool:
    """Whether this is the shape or strides of something."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "strides")


def joined(parts: list[ast.expr]) -> ast.expr:
    """An index of these parts."""
    return parts[0] if len(parts) == 1 else ast.Tuple(elts=parts, ctx=ast.Load())


def is_negative(node: ast.expr) -> bool:
    """Whether this is minus something."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def is_literal(node: ast.expr) -> bool:
    """Whether this is a number with a sign: -1 as the learner wrote it is meant; a computed one may be a mistake."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def context_of(unit: Unit, contexts: Mapping[str, Sequence[str]], variant: Variant) -> list[str]:
    """What a device function has to be told besides its arguments: the indices it uses, itself or in what it calls."""
    needed = loaded_names(unit.body)
    for part in walk(unit.body):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            needed |= set(contexts.get(part.func.id, ()))
    wanted = [name for name in HIDDEN if name in needed]
    if variant.trace:
        return [*CHECKED, "_path", *(name for name in wanted if name not in (*CHECKED, "_path"))]
    if variant.bounds or any(
        isinstance(p, ast.Call) and getattr(p.func, "id", "") == "_raise" for p in walk(unit.body)
    ):
        wanted = [*CHECKED, *(name for name in wanted if name not in CHECKED)]
    elif "_status" in needed:
        wanted = ["_status", *wanted]
    return wanted
