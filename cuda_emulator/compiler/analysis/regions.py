"""Step 5: cut the kernel at its collectives, and find the variables that each thread carries over the cuts.

A region is a sequence of statements without a collective: the block executes it as a loop over its threads. Between
regions are the parts that the block executes as a whole:

    OncePerBlock    a statement with uniform variables only, executed once
    UniformIf       an `if` with one outcome for all threads; UniformLoop: a loop with the same iterations for all
    MaskedIf        an `if` around a collective whose outcome differs between threads: it sets a mask, and its body runs
                    for the threads in the mask
    MaskedLoop      a loop around a collective whose iterations differ between threads: it ends when its mask is empty
    Leave           a return, break or continue of the threads in a mask: they are removed from the masks
    CollectiveCall  the collective itself

A variable that a region reads before it writes has its value from an earlier region. Each thread has its own value, so
the variable becomes an array with an entry for each thread, unless its value can be computed again (recompute.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from ..trees import LOOPS, Collective, loaded_names, placed, stored_names, walk
from ..unit import Unit
from .recompute import Flow, find_recomputed
from .uniformity import THREAD_NAMES, Uniformity

ALIVE = "_alive"


@dataclass
class Region:
    """Statements that each thread executes on its own.

    mask: the mask of the threads that execute it; None for all threads
    reads: variables with a value from an earlier region; writes: variables that it may assign
    always: variables that it certainly assigns
    """

    statements: list[ast.stmt]
    mask: str | None
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    always: set[str] = field(default_factory=set)


@dataclass
class OncePerBlock:
    """A statement that is executed once for the block."""

    statement: ast.stmt


@dataclass
class UniformIf:
    """A uniform `if`."""

    statement: ast.If
    body: list[Any]
    orelse: list[Any]


@dataclass
class UniformLoop:
    """A uniform loop."""

    statement: ast.For | ast.While
    body: list[Any]


@dataclass
class Jump:
    """return, break or continue, by all threads."""

    word: str


@dataclass
class MaskedIf:
    """An `if` under masks: the test, then `body` for the mask `then`, then `other` for the mask `orelse`."""

    test: Region
    then: str
    orelse: str | None
    body: list[Any]
    other: list[Any]


@dataclass
class MaskedLoop:
    """A `while` under masks. active: mask of the threads in the loop; current: of those still in this iteration."""

    test: Region
    active: str
    current: str
    body: list[Any]


@dataclass
class Leave:
    """The threads in `mask` are removed from the masks `cleared`."""

    mask: str
    cleared: list[str]


@dataclass
class CollectiveCall:
    """A collective that the threads in `mask` execute; None for all threads."""

    collective: Collective
    mask: str | None


@dataclass
class Masks:
    """The current mask, the masks around it, and the masked loop that break and continue refer to."""

    mask: str | None = None
    around: list[str] = field(default_factory=list)
    loop: tuple[str, str, int] | None = None  # active, current, number of masks around the loop


class Regions:
    """The kernel as a tree of the parts above.

    tree: the parts in order
    carried: variables with a value for each thread that is needed after a cut, in order of appearance
    recomputed: {variable: expression} for variables that are computed again in each region that reads them
    in_collectives: varying variables that collectives read or write
    masks: the names of all masks; uses_alive: whether a thread may return before the others
    """

    def __init__(self, unit: Unit, uniformity: Uniformity, variable_types: Mapping[str, types.Type | None]) -> None:
        self.unit, self.uniformity, self.types = unit, uniformity, variable_types
        self.masks: list[str] = []
        self.regions: list[Region] = []
        self.uses_alive = uniformity.leaves
        self.returned = False  # whether a thread may have returned before the current statement
        self.in_collectives = {
            name.id: None
            for part in walk(unit.body)
            if isinstance(part, Collective)
            for name in [*part.operands, *part.results]
            if isinstance(name, ast.Name) and name.id in uniformity.varying
        }
        self.recomputed = find_recomputed(unit, variable_types, uniformity.varying, self.in_collectives.keys())
        self.tree = self.build(unit.body, Masks())
        self.carried = self.find_carried()

    def new_mask(self) -> str:
        """The name of a new mask."""
        self.masks.append(self.unit.fresh("mask"))
        return self.masks[-1]

    # ---------------------------------------------------------------- the tree

    def build(self, body: Sequence[ast.stmt], at: Masks) -> list[Any]:
        """The parts of `body` under the masks `at`."""
        parts: list[Any] = []
        run: list[ast.stmt] = []

        def flush() -> None:
            if run:
                parts.append(self.region(list(run), self.mask_in_force(at)))
                run.clear()

        for node in body:
            if node in self.uniformity.structural:
                flush()
                parts += self.structural(node, at)
            elif at.mask is None and self.uniformity.runs_once_per_block(node):
                # If possible it goes before the collected statements: a cut here would act as a barrier.
                if stored_names(node) & (loaded_names(run) | stored_names(run)):
                    flush()
                parts.append(OncePerBlock(node))
            elif not self.is_recomputed(node):
                run.append(node)
        flush()
        return parts

    def is_recomputed(self, node: ast.stmt) -> bool:
        """Whether the statement assigns a variable that each region computes again."""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        return isinstance(target, ast.Name) and target.id in self.recomputed

    def mask_in_force(self, at: Masks) -> str | None:
        """The mask of the next part; at the top level there is none until a thread may have returned."""
        if at.mask is None and self.uses_alive and self.returned:
            return ALIVE
        return at.mask

    def region(self, statements: list[ast.stmt], mask: str | None) -> Region:
        """A new region with the names that it reads and writes."""
        region = Region(statements, mask)
        flow = Flow()
        region.always = flow.statements(statements, set())
        region.reads, region.writes = flow.reads, flow.writes
        self.regions.append(region)
        return region

    def structural(self, node: ast.stmt, at: Masks) -> list[Any]:
        """The parts of a structural statement."""
        if isinstance(node, Collective):
            return [CollectiveCall(node, self.mask_in_force(at))]
        if isinstance(node, ast.If):
            return [self.masked_if(node, at) if node in self.uniformity.masked else self.decision(node, at)]
        if isinstance(node, LOOPS):
            if any(isinstance(part, ast.Return) for part in walk(node.body)):
                # Before the body is built: its second iteration begins without the threads that returned in the first.
                self.returned = self.returned or self.uses_alive
            if node in self.uniformity.masked:
                return [self.masked_loop(node, at)]
            inside = Masks(at.mask, at.around, None)
            return [UniformLoop(node, self.build(node.body, inside))]
        mask = self.mask_in_force(at)
        word = type(node).__name__.lower()
        if at.mask is None:  # all remaining threads jump
            return [Jump(word)]
        if word == "return":
            return [Leave(str(mask), [ALIVE, *at.around])]
        if at.loop is None:
            return [Jump(word)]
        active, _, depth = at.loop
        # After a continue the threads are still active: the next iteration begins with them.
        cleared = [name for name in at.around[depth:] if word == "break" or name != active]
        return [Leave(str(mask), cleared)]

    def decision(self, node: ast.If, at: Masks) -> UniformIf:
        """The part for a uniform `if`."""
        returned = self.returned
        body = self.build(node.body, at)
        # A return in the body is none to the threads of the else, which are not in the body.
        after_body, self.returned = self.returned, returned
        orelse = self.build(node.orelse, at)
        self.returned = self.returned or after_body
        return UniformIf(node, body, orelse)

    def masked_if(self, node: ast.If, at: Masks) -> MaskedIf:
        """The part for an `if` whose outcome differs between threads."""
        then = self.new_mask()
        orelse = self.new_mask() if node.orelse else None
        test = self.region([placed(ast.Expr(value=node.test), node.test)], self.mask_in_force(at))
        around = [*at.around, then, *([orelse] if orelse else [])]
        body = self.build(node.body, Masks(then, around, at.loop))
        other = self.build(node.orelse, Masks(orelse, around, at.loop)) if node.orelse else []
        if any(isinstance(part, ast.Return) for part in walk(node)):
            self.returned = True
        return MaskedIf(test, then, orelse, body, other)

    def masked_loop(self, node: ast.For | ast.While, at: Masks) -> MaskedLoop:
        """The part for a loop whose iterations differ between threads; a `for` has become a `while` before."""
        assert isinstance(node, ast.While)
        active, current = self.new_mask(), self.new_mask()
        outer = self.mask_in_force(at)
        test = self.region([placed(ast.Expr(value=node.test), node.test)], active)
        test.mask = outer
        inside = Masks(current, [*at.around, active, current], (active, current, len(at.around)))
        return MaskedLoop(test, active, current, self.build(node.body, inside))

    # ---------------------------------------------------------------- variables

    def find_carried(self) -> list[str]:
        """The varying variables that a region reads before it writes them."""
        own = set(self.recomputed) | set(self.unit.local) | THREAD_NAMES
        carried: dict[str, None] = dict(self.in_collectives)
        for region in self.regions:
            reads = region.reads | {
                name for value in self.recomputed_in(region).values() for name in loaded_names(value)
            }
            # Sorted: the order of a set changes with the process, and the generated text would change with it.
            carried.update(dict.fromkeys(sorted(n for n in reads & self.uniformity.varying if n not in own)))
        return list(carried)

    def recomputed_in(self, region: Region) -> dict[str, ast.expr]:
        """The variables that a region computes again, in an order in which each comes after those it depends on."""
        ordered: dict[str, ast.expr] = {}

        def add(name: str) -> None:
            if name in self.recomputed and name not in ordered:
                for needed in sorted(loaded_names(self.recomputed[name])):
                    add(needed)
                ordered[name] = self.recomputed[name]

        for name in sorted(region.reads):
            add(name)
        return ordered
