"""Step 5: cut the kernel at its collectives, and find what each thread has to carry over the cuts.

A region is a run of statements without a collective: the block executes it as a loop over its threads. Between
regions stand the things that the block does as a whole:

    ForBlock      a statement with uniform variables only: executed once
    Decision      an `if` that all threads decide alike; Loop: a loop that all threads run alike
    MaskedIf      an `if` that threads decide for themselves, with a collective in it: it sets a mask, and what is
                  inside runs for the threads in the mask
    MaskedLoop    a loop of that kind: it runs until no thread is left in its mask
    Leave         a return, break or continue of the threads in a mask: they are taken out of the masks
    Meeting       the collective itself

A variable that a region reads before it writes comes from an earlier region: each thread has its own, so it becomes
an array with one entry per thread. Unless it can be computed again where it is read (recompute.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.core import types

from .recompute import Flow, find_recomputed
from .trees import LOOPS, Collective, loaded_names, placed, stored_names, walk
from .uniformity import THREAD_NAMES, Uniformity
from .unit import Unit

ALIVE = "_alive"


@dataclass
class Region:
    """Statements that each thread executes on its own.

    mask: the threads that execute it; None: all
    reads: what must come from earlier regions; writes: what it may assign; always: what it certainly assigns
    """

    statements: list[ast.stmt]
    mask: str | None
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    always: set[str] = field(default_factory=set)


@dataclass
class ForBlock:
    """A statement that is executed once for the block."""

    statement: ast.stmt


@dataclass
class Decision:
    """A uniform `if`."""

    statement: ast.If
    body: list[Any]
    orelse: list[Any]


@dataclass
class Loop:
    """A uniform loop."""

    statement: ast.For | ast.While
    body: list[Any]


@dataclass
class Jump:
    """return, break or continue, by all threads."""

    word: str


@dataclass
class MaskedIf:
    """An `if` under masks: test, then the threads of `then`, then those of `orelse`."""

    test: Region
    then: str
    orelse: str | None
    body: list[Any]
    other: list[Any]


@dataclass
class MaskedLoop:
    """A `while` under masks. active: threads still in the loop; current: of these, those in this round."""

    test: Region
    active: str
    current: str
    body: list[Any]


@dataclass
class Leave:
    """The threads in `mask` are taken out of the masks `cleared`."""

    mask: str
    cleared: list[str]


@dataclass
class Meeting:
    """A collective, met by the threads in `mask`."""

    collective: Collective
    mask: str | None


@dataclass
class Masks:
    """Where the builder is: the mask in force, the masks around it, and the loop that break and continue concern."""

    mask: str | None = None
    around: list[str] = field(default_factory=list)
    loop: tuple[str, str, int] | None = None  # active, current, how many masks were around the loop


class Regions:
    """The kernel as a tree of the parts above.

    tree: the parts in order
    carried: variables with one value per thread that live across a cut, in order of appearance
    recomputed: variables that are computed again where they are read, with their expressions
    masks: the names of all masks; uses_alive: whether threads may return before the others
    """

    def __init__(self, unit: Unit, uniformity: Uniformity, variable_types: Mapping[str, types.Type | None]) -> None:
        self.unit, self.uniformity, self.types = unit, uniformity, variable_types
        self.masks: list[str] = []
        self.regions: list[Region] = []
        self.uses_alive = uniformity.leaves
        self.returned = False  # whether some thread may have returned already, at this place of the top level
        self.met = {
            name.id: None
            for part in walk(unit.body)
            if isinstance(part, Collective)
            for name in [*part.operands, *part.results]
            if isinstance(name, ast.Name) and name.id in uniformity.varying
        }
        self.recomputed = find_recomputed(unit, variable_types, uniformity.varying, self.met.keys())
        self.tree = self.build(unit.body, Masks())
        self.carried = self.find_carried()

    def new_mask(self) -> str:
        """A name for a mask."""
        self.masks.append(self.unit.fresh("mask"))
        return self.masks[-1]

    # ---------------------------------------------------------------- the tree

    def build(self, body: Sequence[ast.stmt], at: Masks) -> list[Any]:
        """The parts that `body` becomes under the masks `at`."""
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
            elif at.mask is None and self.uniformity.for_the_block(node):
                # Before the statements at hand, where they allow it: a cut here would be a barrier that nobody wrote.
                if stored_names(node) & (loaded_names(run) | stored_names(run)):
                    flush()
                parts.append(ForBlock(node))
            elif not self.is_recomputed(node):
                run.append(node)
        flush()
        return parts

    def is_recomputed(self, node: ast.stmt) -> bool:
        """Whether the statement assigns a variable that every region computes for itself."""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        return isinstance(target, ast.Name) and target.id in self.recomputed

    def mask_in_force(self, at: Masks) -> str | None:
        """The mask of what comes next: none until a thread may have returned."""
        if at.mask is None and self.uses_alive and self.returned:
            return ALIVE
        return at.mask

    def region(self, statements: list[ast.stmt], mask: str | None) -> Region:
        """A region, with what it reads and writes."""
        region = Region(statements, mask)
        flow = Flow()
        region.always = flow.statements(statements, set())
        region.reads, region.writes = flow.reads, flow.writes
        self.regions.append(region)
        return region

    def structural(self, node: ast.stmt, at: Masks) -> list[Any]:
        """The parts of a statement that the block runs as a whole."""
        if isinstance(node, Collective):
            return [Meeting(node, self.mask_in_force(at))]
        if isinstance(node, ast.If):
            return [self.masked_if(node, at) if node in self.uniformity.masked else self.decision(node, at)]
        if isinstance(node, LOOPS):
            if any(isinstance(part, ast.Return) for part in walk(node.body)):
                self.returned = self.returned or self.uses_alive
            if node in self.uniformity.masked:
                return [self.masked_loop(node, at)]
            inside = Masks(at.mask, at.around, None)
            return [Loop(node, self.build(node.body, inside))]
        mask = self.mask_in_force(at)
        word = type(node).__name__.lower()
        if at.mask is None:  # all threads that are left do it
            return [Jump(word)]
        if word == "return":
            return [Leave(str(mask), [ALIVE, *at.around])]
        if at.loop is None:
            return [Jump(word)]
        active, _, depth = at.loop
        cleared = [name for name in at.around[depth:] if word == "break" or name != active]
        return [Leave(str(mask), cleared)]

    def decision(self, node: ast.If, at: Masks) -> Decision:
        """A uniform `if`."""
        returned = self.returned
        body = self.build(node.body, at)
        after_body, self.returned = self.returned, returned
        orelse = self.build(node.orelse, at)
        self.returned = self.returned or after_body
        return Decision(node, body, orelse)

    def masked_if(self, node: ast.If, at: Masks) -> MaskedIf:
        """An `if` that threads decide for themselves."""
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
        """A loop whose rounds threads count for themselves; a `for` has become a `while` by now."""
        assert isinstance(node, ast.While)
        active, current = self.new_mask(), self.new_mask()
        outer = self.mask_in_force(at)
        test = self.region([placed(ast.Expr(value=node.test), node.test)], active)
        test.mask = outer
        inside = Masks(current, [*at.around, active, current], (active, current, len(at.around)))
        return MaskedLoop(test, active, current, self.build(node.body, inside))

    # ---------------------------------------------------------------- variables

    def find_carried(self) -> list[str]:
        """Varying variables that a region reads before it writes them."""
        own = set(self.recomputed) | set(self.unit.local) | THREAD_NAMES
        carried: dict[str, None] = dict(self.met)
        for region in self.regions:
            reads = region.reads | {
                name for value in self.recomputed_in(region).values() for name in loaded_names(value)
            }
            carried.update(dict.fromkeys(sorted(n for n in reads & self.uniformity.varying if n not in own)))
        return list(carried)

    def recomputed_in(self, region: Region) -> dict[str, ast.expr]:
        """What a region computes anew, each after what it needs."""
        ordered: dict[str, ast.expr] = {}

        def add(name: str) -> None:
            if name in self.recomputed and name not in ordered:
                for needed in sorted(loaded_names(self.recomputed[name])):
                    add(needed)
                ordered[name] = self.recomputed[name]

        for name in sorted(region.reads):
            add(name)
        return ordered
