"""Step 2: rewrite the kernel in normal form, a smaller language that is easier for the later steps.

    the learner's source                        normal form
    cuda.threadIdx.x, cuda.grid(1)              _tx, _bx * _bdx + _tx
    TILE, config.TILE, float32                  16, 16, np.float32
    x, y = cuda.grid(2); M, K = A.shape         one assignment for each name
    acc += v; A[i] += v                         acc = acc + v; A[i] = A[i] + v
    v += cuda.shfl_down_sync(m, v, 4) * 2       a Collective statement of its own, its result in a variable
    cuda.shared.array(...)                      an entry in unit.shared; no statement
    helper(x) that synchronises                 its statements, in place (inline.py)
    v, which may have no value yet              _assigned(_has_v, v) (unassigned.py)

A collective is moved out of its expression, in front of the statement. Python would have evaluated some operands before
it. Those whose value could change meanwhile (a load, an atomic) are put in variables first, so that the order of
evaluation does not change.

This file has the parts that all rules share. The rules are in expressions.py, calls.py, statements.py, assignments.py
and declarations.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from numba import types

from ...errors import KernelError
from ..trees import ASSIGNMENTS, HAS, JUMPS, assign, constant, contains, load, placed, stored_names
from ..unit import Unit
from . import expressions, statements
from .source import FunctionSource
from .statics import RESERVED
from .unassigned import find_unassigned


def normalise(source: FunctionSource, argument_types: tuple[types.Type, ...] = ()) -> Unit:
    """The normal form of a kernel. Raises KernelError, with file and line, for what the emulator does not support.

    argument_types: the types of the launch's arguments, for `cuda.shared.array(shape, a.dtype)`; () if no array's dtype
    depends on them
    """
    return _normalised(Normaliser(Unit(source, argument_types=argument_types), source))


def normalise_device(source: FunctionSource, stack: tuple[FunctionSource, ...]) -> Unit:
    """The normal form of a device function without collectives. stack: the functions whose calls led to it."""
    return _normalised(Normaliser(Unit(source), source, stack=stack, is_device=True))


def _normalised(normaliser: Normaliser) -> Unit:
    unit, source = normaliser.unit, normaliser.source
    unit.parameters = [normaliser.rename(name) for name in source.parameters]
    unit.body = normaliser.whole(source.tree.body)
    return unit


class Normaliser:
    """Rewrites one function into `unit`.

    prefix: put in front of the variables' names of an inlined function
    stack: the functions whose calls led to this one
    is_device: whether `return value` is allowed
    aliases: {parameter: the caller's variable} of an inlined function
    before: statements that have to run before the current one
    lazy: greater than 0 inside an operand that Python may skip
    unassigned: the reads of variables that may have no value yet
    """

    def __init__(
        self,
        unit: Unit,
        source: FunctionSource,
        prefix: str = "",
        stack: tuple[FunctionSource, ...] = (),
        is_device: bool = False,
    ) -> None:
        self.unit, self.source, self.prefix, self.stack, self.is_device = unit, source, prefix, stack, is_device
        self.aliases: dict[str, str] = {}
        self.before: list[ast.stmt] = []
        self.lazy = 0
        self.unassigned = find_unassigned(source)

    def for_inlined(self, source: FunctionSource) -> Normaliser:
        """A normaliser for a device function that is inlined into this unit, with its own names of variables."""
        prefix = self.unit.fresh(source.name)[1:] + "_"
        return Normaliser(self.unit, source, prefix, (*self.stack, self.source), is_device=True)

    def error(self, message: str, node: ast.AST) -> KernelError:
        """A KernelError that points to `node`."""
        return self.source.error(message, node)

    def rename(self, name: str) -> str:
        """The name of the learner's variable in the generated source."""
        if name in self.aliases:
            return self.aliases[name]
        spelled = self.prefix + name
        if spelled.startswith("_"):
            spelled = "u" + spelled
        while spelled in RESERVED or (spelled != name and spelled in self.source.stored and not self.prefix):
            spelled += "_"
        if spelled != name:
            self.unit.spelled[spelled] = name
        return spelled

    def argument_type(self, name: str) -> types.Type | None:
        """The type of the kernel's argument `name`, or of the argument that an inlined function calls so; else None."""
        given = dict(zip(self.unit.parameters, self.unit.argument_types, strict=False))
        spelled = self.rename(name)
        learners = self.unit.learners_name(spelled)
        assigned = any(
            isinstance(part, ast.Name) and part.id == learners and isinstance(part.ctx, ast.Store)
            for part in ast.walk(self.unit.source.tree)
        )
        return None if assigned else given.get(spelled)

    def in_variable(self, stem: str, value: ast.expr, node: ast.AST) -> ast.expr:
        """Assign `value` to a new variable before the current statement, and return the variable."""
        name = self.unit.fresh(stem)
        self.before.append(placed(assign(name, value), node))
        return placed(load(name), node)

    # ---------------------------------------------------------------- statements and expressions: the entry points

    def whole(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The body of the function in normal form. At its beginning, the variables that may have no value have none."""
        done = self.statements(body)
        return [placed(new, body[0]) for new in self.marks(self.unassigned.variables, False)] + done

    def marks(self, variables: AbstractSet[str], have: bool) -> list[ast.stmt]:
        """The statements that note, of those of these variables that may have no value, whether they have one."""
        noted = sorted(variables & self.unassigned.variables)
        return [assign(HAS + self.rename(name), constant(have)) for name in noted]

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A list of statements in normal form."""
        done: list[ast.stmt] = []
        for statement in body:
            outer, self.before = self.before, []
            new = statements.rewritten(self, statement)
            if isinstance(statement, ASSIGNMENTS) and statement.value is not None:
                new += self.marks(stored_names(statement), True)
            done += [placed(part, statement) for part in [*self.before, *new]]
            self.before = outer
            if isinstance(statement, JUMPS):  # the statements after it are never reached
                break
        return done or [placed(ast.Pass(), body[0])] if body else []

    def expression(self, node: ast.expr) -> ast.expr:
        """`node` in normal form. Its collectives become statements in self.before."""
        if getattr(node, "finished", False):  # the default value of an argument
            return node
        return placed(expressions.rewritten(self, node), node)

    def skippable(self, node: ast.expr) -> ast.expr:
        """The normal form of an operand that Python may skip; a collective in it is an error."""
        self.lazy += 1
        try:
            return self.expression(node)
        finally:
            self.lazy -= 1

    def in_order(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Several operands in normal form. If one contains a collective, earlier operands that read memory are put in
        variables, so that they are still read before the collective."""
        done: list[ast.expr] = []
        for node in nodes:
            mark = len(self.before)
            new = self.expression(node)
            if len(self.before) > mark:
                for position, earlier in enumerate(done):
                    if contains(earlier, (ast.Subscript, ast.Call)):
                        variable = self.unit.fresh("saved")
                        self.before.insert(mark, placed(assign(variable, earlier), node))
                        mark += 1
                        done[position] = placed(load(variable), node)
            done.append(new)
        return done
