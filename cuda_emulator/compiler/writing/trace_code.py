"""Step 7 of a traced kernel, one thread's part: each access, condition and operation also calls a function that records
it.

trace_tree.py has the block's part, helpers/trace.py has the recording functions, and runtime/tracing.py runs the kernel
and reads the events.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numba.core import types

from ...helpers.trace import NO_SLOT
from ..trees import call, constant, copied, index_parts, load, subscript, unguarded, walk
from .thread_code import ThreadCode, is_shape, rounds_of
from .trace_tables import TraceTables

SIMPLE, DIVISION, SPECIAL, DOUBLE = range(4)
"""The kinds of counters of a line. DOUBLE: those of the other three whose result is float64."""

OPERATIONS = {
    **dict.fromkeys((ast.Add, ast.Sub, ast.Mult), SIMPLE),
    **dict.fromkeys((ast.Div, ast.FloorDiv, ast.Mod), DIVISION),
    ast.Pow: SPECIAL,
}
METADATA = frozenset({"shape", "size", "ndim", "strides", "itemsize", "dtype", "nbytes", "T", "view", "reshape"})
"""Attributes of an array that read no element."""

NOT_OPERATIONS = frozenset({"isnan", "isinf", "isfinite", "trunc", "floor", "ceil", "fabs", "copysign", "abs"})


class TracedCode(ThreadCode):
    """Writes one thread's statements with events.

    loops: the numbers of the loops around the current statement
    for_block: whether the block executes the current statement once for all threads
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tables: TraceTables = self.sites.tables
        self.loops: list[int] = []
        self.for_block = False
        self.counting = not self.variant.accesses_only
        self.is_device = self.types is None
        self.counted_again: set[str] = set()
        self.moved = False
        self.subscripted = {
            part.value.id
            for part in walk(self.unit.body)
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
        }

    # ---------------------------------------------------------------- places and keys

    def site(self, node: ast.AST, kind: str, array: str = "", space: str = "") -> ast.Constant:
        """The number of a new site."""
        where = self.place(node)
        function = getattr(node, "function", self.unit.source.name)
        self.tables.sites.append(
            (*where, getattr(node, "col_offset", 0), kind, array, self.said(node), function, space)
        )
        return constant(len(self.tables.sites) - 1)

    def place(self, node: ast.AST) -> tuple[str, int]:
        """(file, line) of a node."""
        return self.sites.place(node, self.unit.source.filename)

    def said(self, node: ast.AST) -> str:
        """The learner's text of the expression; if it is not in the source as a whole, its normal form."""
        text = written(self.unit.source, node) if not hasattr(node, "filename") else None
        if text is None:
            plain = copied(node)
            for part in ast.walk(plain):
                if isinstance(part, ast.Name):
                    part.id = self.unit.learners_name(part.id)
            text = ast.unparse(plain)
        return " ".join(text.split())

    def key(self) -> ast.expr:
        """The key that lanes have in common when they execute this place together."""
        path = load("_path") if self.is_device else constant(0)
        if self.variant.accesses_only:
            return constant(0)
        thread = constant(0) if self.for_block else load("_thread")
        if not self.loops:
            return path
        return call("_key_of", load("_status"), thread, path, *(constant(loop) for loop in self.loops))

    def new_loop(self) -> int:
        """The number of a new loop."""
        self.tables.loops += 1
        return self.tables.loops - 1

    @contextmanager
    def in_loop(self, number: int) -> Iterator[None]:
        """Within the `with`, statements are in that loop."""
        self.loops.append(number)
        yield
        self.loops.pop()

    @contextmanager
    def once_for_block(self) -> Iterator[None]:
        """Within the `with`, statements are executed once for all threads, and use no memory."""
        outer, self.for_block = self.for_block, True
        yield
        self.for_block = outer

    def lines(self, statements: Sequence[ast.stmt]) -> list[str]:
        """The generated lines for some statements; one statement may become several."""
        done: list[str] = []
        for statement in statements:
            new = self.visit(copied(statement))
            for part in new if isinstance(new, list) else [new]:
                done += ast.unparse(ast.fix_missing_locations(part)).split("\n")
        return done

    def text_again(self, name: str, node: ast.expr) -> str:
        """The text of a value that several regions compute again; its operations are counted once."""
        outer, self.counting = self.counting, self.counting and name not in self.counted_again
        self.counted_again.add(name)
        text = self.text(node)
        self.counting = outer
        return text

    # ---------------------------------------------------------------- accesses

    def visit_Subscript(
        self, node: ast.Subscript, field: str | None = None, ctx: ast.expr_context | None = None
    ) -> Any:
        """Check the index of `array[index]`, and record an event if it is one element."""
        ctx = ctx or node.ctx
        if is_shape(node.value) or isinstance(node.value, ast.Tuple):
            return super().visit_Subscript(node)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):  # a record's field
            if isinstance(node.value, ast.Subscript):
                node.value = self.visit_Subscript(node.value, node.slice.value, ctx)
            return node
        base = node.value
        while isinstance(base, ast.Subscript):
            base = base.value
        base = unguarded(base)
        array = self.unit.learners_name(ast.unparse(base))
        whole = any(isinstance(part, ast.Slice) for part in index_parts(node.slice))
        kind = "store" if isinstance(ctx, ast.Store) else "load"
        whole = whole or any(isinstance(p, ast.Constant) and p.value in (None, ...) for p in index_parts(node.slice))
        if whole:
            if kind == "store":
                self.untraced(node, "it stores several elements at once")
            return super().visit_Subscript(node)
        if self.unit.moves > 1 and self.moved:  # the first access is recorded for all of them
            return super().visit_Subscript(node)
        self.moved = True
        owner = viewed(base)
        name = owner.id if isinstance(owner, ast.Name) else ""
        site = self.site(node, kind, array, self.space_of(name))
        access = super().visit_Subscript(node)
        assert isinstance(access, ast.Subscript)
        return self.tallied(access, site) if name in self.unit.local else self.with_event(access, kind, site, field)

    def with_event(self, access: ast.Subscript, kind: str, site: ast.Constant, field: str | None) -> ast.Subscript:
        """The access; its index is an argument of the call that records the event and returns the index."""
        array = copied(access.value)
        for inner in ast.walk(array):
            if hasattr(inner, "ctx"):
                inner.ctx = ast.Load()
        what = constant(self.unit.moves if self.unit.moves > 1 else field)
        function = "_traced_store" if kind == "store" else "_traced"
        # The argument of a device function may be a thread's own array, whose accesses are counted only.
        slot = self.tables.counter(("local", int(str(site.value)), 0)) if self.is_device else NO_SLOT
        given = (load("_status"), site, load("_thread"), self.key(), what, constant(slot))
        access.slice = call(function, array, access.slice, *given)
        return access

    def tallied(self, access: ast.Subscript, site: ast.Constant) -> ast.Subscript:
        """Count an access to a thread's own array. It needs no event, since no other thread can access the array."""
        if self.variant.accesses_only:
            return access
        slot = self.tables.counter(("local", int(str(site.value)), 0))
        access.slice = call("_tallied", access.slice, load("_status"), constant(slot))
        return access

    def space_of(self, name: str) -> str:
        """The memory of the array with this name; "" if it is unknown."""
        if name in self.unit.shared:
            return "shared"
        if name in self.unit.local:
            return "local"
        if name in self.unit.constants:
            return "constant"
        return "" if self.is_device else "global"

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Record an access to a record's field as an access to the field alone."""
        if isinstance(node.value, ast.Subscript) and not is_shape(node.value.value):
            node.value = self.visit_Subscript(node.value, node.attr, node.ctx)
            return node
        if isinstance(node.value, ast.Name) and node.attr in METADATA:
            node.value = super().visit_Name(node.value)
            return node
        return super().visit_Attribute(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """After a store to memory, record whether it changed the value."""
        # `b = a` gives an array another name and reads no element.
        node.value = super().visit_Name(node.value) if isinstance(node.value, ast.Name) else self.visit(node.value)
        target = node.targets[0]
        node.targets = [self.visit(each) for each in node.targets]
        own = (
            isinstance(target, ast.Subscript)
            and isinstance(target.value, ast.Name)
            and target.value.id in self.unit.local
        )
        if isinstance(target, ast.Subscript | ast.Attribute) and self.unit.moves == 1 and not own:
            return [node, ast.Expr(value=call("_stored", load("_status")))]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A whole array in an expression: its element accesses happen inside Numba and create no events."""
        if isinstance(node.ctx, ast.Load) and self.is_array(node.id):
            self.untraced(node, "the whole array is used in one expression")
        return super().visit_Name(node)

    def is_array(self, name: str) -> bool:
        """Whether a variable is known to be an array."""
        if name in self.unit.arrays or name in self.unit.constants:
            return True
        if self.types is None:
            return name in self.unit.parameters and name in self.subscripted
        return isinstance(self.types.get(name), types.Array)

    def untraced(self, node: ast.AST, reason: str) -> None:
        """List an expression that uses memory without an event."""
        self.tables.not_traced.append((*self.place(node), self.said(node), reason))

    def atomic(self, name: str, node: ast.Call) -> ast.expr:
        """Record one event for an atomic."""
        given = unguarded(node.args[0])
        array = self.unit.learners_name(ast.unparse(given))
        base = given.id if isinstance(given, ast.Name) else ""
        site = self.site(node, "atomic", array, self.space_of(base))
        made = super().atomic(name, node)
        assert isinstance(made, ast.Call)
        indexed = self.with_event(subscript(made.args[0], [made.args[1]], ast.Load()), "atomic", site, None)
        made.args[1] = indexed.slice
        if name in ("_atomic_add", "_atomic_sub"):
            made.args[0] = self.count(made.args[0], node, SIMPLE)
        return made

    # ---------------------------------------------------------------- operations and calls

    def count(self, value: ast.expr, node: ast.AST, kind: int) -> ast.expr:
        """The value; the call around it counts an operation if the value is a floating-point number.

        The value may also be the array that an atomic changes, whose type decides about the operation.
        """
        if not self.counting:
            return value
        slots = [constant(self.tables.counter((*self.place(node), each))) for each in (kind, DOUBLE)]
        times = load("_threads") if self.for_block else constant(1)
        return call("_counted", value, load("_status"), *slots, times)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Count an arithmetic operation."""
        kind = OPERATIONS.get(type(node.op))
        made = super().visit_BinOp(node)
        return made if kind is None else self.count(made, node, kind)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Count a math function; pass the number of the call to a device function."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self.contexts:
            plain = super().visit_Name  # an array argument is traced where its elements are accessed
            arguments = [plain(each) if isinstance(each, ast.Name) else self.visit(each) for each in node.args]
            return ast.Call(func=node.func, args=[*arguments, *map(self.context, self.contexts[name])], keywords=[])
        if name == "len" and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            node.args = [super().visit_Name(node.args[0])]  # its length is known without reading an element
            return node
        made = super().visit_Call(node)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if node.func.value.id in ("math", "cmath") and node.func.attr not in NOT_OPERATIONS:
                return self.count(made, node, SPECIAL)
        elif name == "_fma":
            return self.count(self.count(made, node, SIMPLE), node, SIMPLE)
        return made

    def context(self, name: str) -> ast.expr:
        """The value of a hidden argument of a device function."""
        if name != "_path":
            return load(name)
        self.tables.calls += 1
        # The path combines the number of the call with the iterations of the loops around it. The factor makes it
        # different from an iteration number.
        return ast.BinOp(left=self.key(), op=ast.Add(), right=constant(self.tables.calls * 0x1F3D5B79A2C4E687 % 2**61))

    # ---------------------------------------------------------------- conditions and loops

    def test(self, node: ast.expr, at: ast.AST) -> ast.expr:
        """A condition with an event, if each thread evaluates it."""
        if self.for_block or self.variant.accesses_only or isinstance(node, ast.Constant):
            return self.visit(node)
        site = self.site(at, "branch")
        made = self.visit(node)
        return call("_branched", call("bool", made), load("_status"), site, load("_thread"), self.key())

    def visit_If(self, node: ast.If) -> Any:
        """Record the condition of an `if`."""
        shown = node.test
        node.test = self.test(node.test, shown)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a body; one statement may become several."""
        done: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            done += new if isinstance(new, list) else [new]
        return done

    def visit_While(self, node: ast.While) -> Any:
        """Record the condition of a `while`, and let the loop be stopped from outside."""
        number = self.new_loop()
        with self.in_loop(number):
            shown = node.test
            running = call("_go_on", load("_status"))
            always = isinstance(node.test, ast.Constant) and node.test.value is True
            test = self.test(node.test, shown)
            node.test = running if always else ast.BoolOp(op=ast.And(), values=[running, test])
            node.body = self.block(node.body)
        return self.looped(node, number)

    def visit_For(self, node: ast.For) -> Any:
        """Count the iterations of a `for`. If threads may differ in their number, record a condition before each."""
        number = self.new_loop()
        fixed = rounds_of(node) != float("inf") or self.for_block or self.variant.accesses_only
        shown = copied(node.iter)
        # Outside the loop: a range is evaluated once, so its reads belong to no iteration.
        node.iter = self.visit(node.iter)
        with self.in_loop(number):
            before: list[ast.stmt] = [ast.Expr(value=call("_go_on", load("_status")))]
            if not fixed:
                site = self.site(shown, "branch")
                # A `for` has no test to wrap. Its `else` runs where the test would fail, and not after a break.
                for outcome, into in ((True, before), (False, node.orelse)):
                    told = call("_branched", constant(outcome), load("_status"), site, load("_thread"), self.key())
                    into.append(ast.Expr(value=told))
            node.body = [*before, *self.block(node.body)]
        if node.orelse:  # the test that ends the loop belongs to the next iteration
            node.orelse.insert(0, self.round_call("_next_round", number))
        return self.looped(node, number)

    def looped(self, node: ast.For | ast.While, number: int) -> list[ast.stmt]:
        """The loop with its iterations counted, unless the block executes it once for all threads."""
        if self.for_block or self.variant.accesses_only:
            return [node]
        # At the head of the body: a `continue` passes over its end.
        node.body.insert(0, self.round_call("_next_round", number))
        return [self.round_call("_enter_round", number), node]

    def round_call(self, function: str, number: int) -> ast.stmt:
        """A statement that starts or continues the count of iterations."""
        return ast.Expr(value=call(function, load("_status"), load("_thread"), constant(number)))


def written(source: Any, node: ast.AST) -> str | None:
    """The text of a node in the function's source; None if it is not there as a whole."""
    if not getattr(node, "end_col_offset", 0):
        return None
    lines = source.text.split("\n")
    first, last = node.lineno - source.first_line, node.end_lineno - source.first_line  # type: ignore[attr-defined]
    if not 0 <= first <= last < len(lines):
        return None
    part = "\n".join(lines[first : last + 1]).encode()
    end = len(part) - len(lines[last].encode()) + node.end_col_offset  # type: ignore[attr-defined]
    return part[node.col_offset : end].decode()  # type: ignore[attr-defined]


def viewed(node: ast.expr) -> ast.expr:
    """The array behind an expression: `x` of `x.view(np.uint32)`, which is the same memory."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "view":
        node = node.func.value
    return node
