"""Step 2: the kernel in normal form, a smaller language that the later steps can take apart.

    what the learner writes                     normal form
    cuda.threadIdx.x, cuda.grid(1)              _tx, _bx * _bdx + _tx
    TILE, config.TILE, float32                  16, 16, np.float32
    x, y = cuda.grid(2); M, K = A.shape         one assignment for each name
    acc += v; A[i] += v                         acc = acc + v; A[i] = A[i] + v
    v += cuda.shfl_down_sync(m, v, 4) * 2       a Collective statement of its own, its result in a variable
    cuda.shared.array(...)                      an entry in unit.shared; no statement
    helper(x) that synchronises                 its statements, in place (inline.py)

A collective leaves its expression, so whatever Python would have evaluated before it and could change meanwhile (a
load, an atomic) is put in a variable first: the order of evaluation stays the learner's.

Here is what all rewriting shares; the rules are in expressions.py, calls.py, statements.py, assignments.py and
declarations.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from numba import types

from ..errors import KernelError
from . import expressions, statements
from .source import FunctionSource
from .statics import RESERVED
from .trees import JUMPS, assign, contains, load, placed
from .unit import Unit


def normalise(source: FunctionSource, argument_types: tuple[types.Type, ...] = ()) -> Unit:
    """The normal form of a kernel. KernelError, with file and line, where it uses what the emulator cannot run.

    argument_types: what it is launched with, for `cuda.shared.array(shape, a.dtype)`; may be left out where no array's
    type depends on them
    """
    return _normalised(Normaliser(Unit(source, argument_types=argument_types), source))


def normalise_device(source: FunctionSource, stack: tuple[FunctionSource, ...]) -> Unit:
    """The normal form of a device function that does not synchronise. stack: the functions whose calls led to it."""
    return _normalised(Normaliser(Unit(source), source, stack=stack, is_device=True))


def _normalised(normaliser: Normaliser) -> Unit:
    unit, source = normaliser.unit, normaliser.source
    unit.parameters = [normaliser.rename(name) for name in source.parameters]
    unit.body = normaliser.statements(source.tree.body)
    return unit


class Normaliser:
    """Rewrites one function into `unit`.

    prefix: put before its variables' names where the function is inlined into another
    stack: the functions whose calls led to this one
    is_device: whether `return value` is allowed
    aliases: parameters that stand for the caller's arrays, where it is inlined
    before: statements that have to run before the one at hand
    lazy: above 0 inside an operand that Python may skip
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

    def for_inlined(self, source: FunctionSource) -> Normaliser:
        """What rewrites a device function whose statements go into this unit, under names of their own."""
        prefix = self.unit.fresh(source.name)[1:] + "_"
        return Normaliser(self.unit, source, prefix, (*self.stack, self.source), is_device=True)

    def error(self, message: str, node: ast.AST) -> KernelError:
        """A KernelError that points to `node`."""
        return self.source.error(message, node)

    def rename(self, name: str) -> str:
        """How the generated source spells the learner's variable."""
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
        """The type of the kernel's argument that `name` is, also under its name in an inlined function; else None."""
        given = dict(zip(self.unit.parameters, self.unit.argument_types, strict=False))
        spelled = self.rename(name)
        learners = self.unit.learners_name(spelled)
        assigned = any(
            isinstance(part, ast.Name) and part.id == learners and isinstance(part.ctx, ast.Store)
            for part in ast.walk(self.unit.source.tree)
        )
        return None if assigned else given.get(spelled)

    def kept(self, stem: str, value: ast.expr, node: ast.AST) -> ast.expr:
        """Put `value` in a variable, before the statement at hand; the variable."""
        name = self.unit.fresh(stem)
        self.before.append(placed(assign(name, value), node))
        return placed(load(name), node)

    # ---------------------------------------------------------------- the two ways in, which call each other's rules

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A list of statements in normal form."""
        done: list[ast.stmt] = []
        for statement in body:
            outer, self.before = self.before, []
            new = statements.rewritten(self, statement)
            done += [placed(part, statement) for part in [*self.before, *new]]
            self.before = outer
            if isinstance(statement, JUMPS):  # what follows is never reached
                break
        return done or [placed(ast.Pass(), body[0])] if body else []

    def expression(self, node: ast.expr) -> ast.expr:
        """`node` in normal form. Collectives in it become statements in self.before."""
        return placed(expressions.rewritten(self, node), node)

    def skippable(self, node: ast.expr) -> ast.expr:
        """An operand that Python may skip: no collective may be in it."""
        self.lazy += 1
        try:
            return self.expression(node)
        finally:
            self.lazy -= 1

    def in_order(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Several operands in normal form. Where one brings a collective, the earlier ones that read memory are kept in
        variables, so that they are still read before it."""
        done: list[ast.expr] = []
        for node in nodes:
            mark = len(self.before)
            new = self.expression(node)
            if len(self.before) > mark:
                for position, earlier in enumerate(done):
                    if contains(earlier, (ast.Subscript, ast.Call)):
                        kept = self.unit.fresh("kept")
                        self.before.insert(mark, placed(assign(kept, earlier), node))
                        mark += 1
                        done[position] = placed(load(kept), node)
            done.append(new)
        return done
