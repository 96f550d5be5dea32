"""Step 4: find the variables and conditions that are the same for all threads of a block (uniform), and those that may
differ (varying).

A uniform variable needs one value for the block. A uniform `if` or loop is entered by all threads or by none, so the
block can run it as a whole, with a barrier inside. A varying variable needs a value for each thread; a varying
condition around a barrier or a shuffle needs a mask (regions.py).

At first only the thread's own indices are varying. Then every variable that depends on a varying one is marked, until
nothing changes. A uniform variable that is marked varying by mistake costs time, never correctness: so every expression
that reads memory or calls a device function is varying.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..trees import (
    JUMPS,
    LOOPS,
    Collective,
    assign,
    constant,
    expression,
    has_grid_barrier,
    load,
    placed,
    stored_names,
    walk,
)
from ..unit import Unit

THREAD_NAMES = frozenset({"_tx", "_ty", "_tz", "_thread", "_lane"})
UNIFORM_ATTRIBUTES = frozenset({"shape", "size", "ndim", "strides", "itemsize"})
#: Functions without side effects whose result depends on the arguments only: they may be evaluated once for the block,
#: or several times.
PURE = frozenset({"range", "min", "max", "abs", "int", "float", "bool", "round", "len", "pow", "divmod", "complex"})


class Uniformity:
    """Finds the varying names, and the statements that the block has to run as a whole.

    varying: the names of variables that may differ between the threads of a block
    structural: the statements that contain a collective, a return, or a break or continue of a loop with one of these:
        the block runs them as a whole; each thread runs all other statements on its own
    masked: the structural ifs and loops that only some threads may enter
    leaves: whether a thread may return before the others
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.varying: set[str] = {*THREAD_NAMES, *unit.local}
        self.structural: set[ast.stmt] = set()
        self.masked: set[ast.stmt] = set()
        self.leaves = False
        self.varying |= {name.id for name in values_for_collectives(unit.body)}
        self.mark_structural(unit.body, in_structural_loop=False)
        while True:
            before = len(self.varying), len(self.masked)
            self.visit(unit.body, masked=False, loops=[])
            if (len(self.varying), len(self.masked)) == before:
                break

    def mark_structural(self, body: Sequence[ast.stmt], in_structural_loop: bool) -> bool:
        """Find the structural statements. Returns whether `body` has one."""
        found = False
        for node in body:
            is_one = isinstance(node, Collective | ast.Return)
            if isinstance(node, ast.Break | ast.Continue):
                is_one = in_structural_loop
            elif isinstance(node, ast.If):
                # Both calls are needed: each marks the statements of its branch.
                is_one = self.mark_structural(node.body, in_structural_loop)
                is_one |= self.mark_structural(node.orelse, in_structural_loop)
            elif isinstance(node, LOOPS):
                is_one = any(isinstance(part, Collective | ast.Return) for s in node.body for part in ast.walk(s))
                self.mark_structural(node.body, is_one)
            if is_one:
                self.structural.add(node)
                found = True
        return found

    def uniform(self, node: ast.expr) -> bool:
        """Whether an expression has one value for all threads of the block."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id not in self.varying
        if isinstance(node, ast.Attribute):
            return node.attr in UNIFORM_ATTRIBUTES or is_module(node.value) or self.uniform(node.value)
        if isinstance(node, ast.Subscript):
            of_shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides")
            of_numbers = isinstance(node.value, ast.Tuple) and self.uniform(node.value)
            return (of_shape or of_numbers) and self.uniform(node.slice)
        if isinstance(node, ast.Call):
            return is_pure_call(node) and all(self.uniform(argument) for argument in node.args)
        return all(self.uniform(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))

    def runs_once_per_block(self, node: ast.stmt) -> bool:
        """Whether one execution serves all threads of the block: the statement is uniform and uses no memory."""
        if isinstance(node, ast.Assign):
            names = all(isinstance(target, ast.Name) for target in node.targets)
            return names and self.uniform(node.value) and not stored_names(node) & self.varying
        if isinstance(node, ast.If):
            return self.uniform(node.test) and all(self.runs_once_per_block(s) for s in [*node.body, *node.orelse])
        if isinstance(node, ast.While):
            return self.uniform(node.test) and all(self.runs_once_per_block(s) for s in node.body)
        if isinstance(node, ast.For):
            fixed = isinstance(node.target, ast.Name) and node.target.id not in self.varying
            return (
                fixed
                and is_range(node.iter)
                and self.uniform(node.iter)
                and all(map(self.runs_once_per_block, node.body))
            )
        return isinstance(node, ast.Break | ast.Continue | ast.Pass)

    def visit(self, body: Sequence[ast.stmt], masked: bool, loops: list[ast.stmt]) -> None:
        """Mark names that differ between threads as varying. masked: whether only some threads get here."""
        for node in body:
            if node not in self.structural:
                if masked or not self.runs_once_per_block(node):
                    self.varying |= stored_names(node)
            elif isinstance(node, Collective):
                # syncthreads_count and its like give one result to all threads; a vote gives one to a warp, a shuffle
                # to a lane.
                if masked or not node.path.startswith("syncthreads"):
                    self.varying |= stored_names(node)
            elif isinstance(node, ast.If):
                inner = masked or not self.uniform(node.test)
                if inner:
                    self.masked.add(node)
                self.visit(node.body, inner, loops)
                self.visit(node.orelse, inner, loops)
            elif isinstance(node, LOOPS):
                self.visit_loop(node, masked, loops)
            elif isinstance(node, JUMPS) and masked:
                self.visit_jump(node, loops)

    def visit_loop(self, node: ast.For | ast.While, masked: bool, loops: list[ast.stmt]) -> None:
        """Mark the names of a structural loop."""
        if isinstance(node, ast.For):
            if not is_range(node.iter) or not isinstance(node.target, ast.Name):
                raise self.unit.source.error(
                    "a loop that synchronises must say 'for NAME in range(...)'; anything else is not supported by the "
                    "emulator",
                    node,
                )
            same = self.uniform(node.iter) and node.target.id not in self.varying
        else:
            same = self.uniform(node.test)
        if masked or not same or node in self.masked:
            self.masked.add(node)
            masked = True
            self.varying |= stored_names(node)
        self.visit(node.body, masked, [*loops, node])

    def visit_jump(self, node: ast.stmt, loops: list[ast.stmt]) -> None:
        """A jump of some threads: the loops around it go on for the others, so they need masks."""
        if isinstance(node, ast.Return):
            self.leaves = True
            self.masked.update(loops)
        elif loops:
            self.masked.add(loops[-1])


def values_for_collectives(body: Sequence[ast.stmt]) -> list[ast.Name]:
    """The variables that threads pass to votes and shuffles: each thread has its own value, even if all are equal."""
    collectives = [part for part in walk(body) if isinstance(part, Collective) and part.path != "syncwarp"]
    values = [part.operands[0 if part.path.startswith("syncthreads") else 1] for part in collectives if part.operands]
    return [value for value in values if isinstance(value, ast.Name)]


def is_module(node: ast.expr) -> bool:
    """Whether `node` is one of the modules that the generated source imports."""
    return isinstance(node, ast.Name) and node.id in ("np", "math", "cmath", "operator")


def is_pure_call(node: ast.Call) -> bool:
    """Whether the called function has no side effects, and a result that depends on the arguments only."""
    if isinstance(node.func, ast.Name):
        return node.func.id in PURE and not node.keywords
    return isinstance(node.func, ast.Attribute) and is_module(node.func.value) and not node.keywords


def is_range(node: ast.expr) -> bool:
    """Whether `node` is range(...)."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def lower_masked_for_loops(unit: Unit, uniformity: Uniformity) -> bool:
    """Turn each masked `for` into a `while`, in place, because each thread counts for itself under a mask; and each
    `for` around a barrier across the grid, because a block leaves it there and comes back (pauses.py).

    Returns whether there was one.
    """
    return _lower(unit, uniformity, unit.body)


def _lower(unit: Unit, uniformity: Uniformity, body: list[ast.stmt]) -> bool:
    changed = False
    position = 0
    while position < len(body):
        node = body[position]
        for inner in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if inner:
                changed |= _lower(unit, uniformity, inner)
        if isinstance(node, ast.For) and (node in uniformity.masked or has_grid_barrier(node)):
            replacement = [placed(new, node) for new in _as_while(unit, node)]
            body[position : position + 1] = replacement
            position += len(replacement) - 1
            changed = True
        position += 1
    return changed


def _as_while(unit: Unit, node: ast.For) -> list[ast.stmt]:
    """`for target in range(start, stop, step)` as a `while` whose first statements take the next number."""
    assert isinstance(node.iter, ast.Call)
    assert isinstance(node.target, ast.Name)
    arguments = node.iter.args
    start, stop, step = {
        1: lambda: (constant(0), arguments[0], constant(1)),
        2: lambda: (arguments[0], arguments[1], constant(1)),
        3: lambda: (arguments[0], arguments[1], arguments[2]),
    }[len(arguments)]()
    index, end = unit.fresh("next"), unit.fresh("stop")
    before: list[ast.stmt] = [assign(index, start), assign(end, stop)]
    if isinstance(step, ast.Constant):
        test = expression(f"{index} < {end}")
    elif isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) and isinstance(step.operand, ast.Constant):
        test = expression(f"{index} > {end}")
    else:
        stride = unit.fresh("step")
        before.append(assign(stride, step))
        step = load(stride)
        test = expression(f"{index} < {end} if {stride} > 0 else {index} > {end}")
    # The count moves on before the body, which a `continue` may leave, and in a variable of its own, since the body may
    # assign the target.
    head: list[ast.stmt] = [
        ast.Assign(targets=[node.target], value=load(index)),
        assign(index, ast.BinOp(left=load(index), op=ast.Add(), right=step)),
    ]
    return [*before, ast.While(test=test, body=[*head, *node.body], orelse=[])]
