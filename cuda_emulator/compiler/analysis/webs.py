"""Step 3: give every independent use of a variable its own name.

Programmers reuse names: `i` counts one loop and then another, `v` is first a float and later an int. A group of
assignments that can reach a common use is called a web, and each web gets its own name. Afterwards a variable has one
type, it is carried from one region to the next only if its value is needed there, and a variable with a single
assignment is easy to recognise.

The assignments that reach a use are found by following the statements in order, a loop repeatedly until nothing
changes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..trees import Collective
from ..unit import Unit

Reaching = dict[str, frozenset[int]]


def split_webs(unit: Unit) -> None:
    """Rename the unit's variables, in place, so that each web has its own name. The first web keeps the old one."""
    finder = WebFinder()
    finder.statements(unit.body, {name: frozenset([finder.definition(name, None)]) for name in unit.parameters})
    first: dict[str, int] = {}
    taken = set(unit.parameters) | set(unit.arrays) | set(unit.constants) | {name for name, _ in finder.names.values()}
    spelled: dict[int, str] = {}
    for definition, (name, _) in finder.names.items():  # in program order
        web = finder.find(definition)
        if web in spelled:
            continue
        if name not in first:
            first[name] = web
            spelled[web] = name
            continue
        number = 2
        while f"{name}_{number}" in taken:
            number += 1
        spelled[web] = f"{name}_{number}"
        taken.add(spelled[web])
        unit.spelled[spelled[web]] = unit.learners_name(name)
    for node, definition in finder.occurrences:
        node.id = spelled[finder.find(definition)]


class WebFinder:
    """Follows the statements, and joins the definitions that reach a common use into webs."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[str, ast.AST | None]] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.parents: dict[int, int] = {}
        self.seen: set[int] = set()
        self.occurrences: list[tuple[ast.Name, int]] = []
        self.loops: list[tuple[list[Reaching], list[Reaching]]] = []  # the states at each break, and at each continue

    def find(self, definition: int) -> int:
        """The web of a definition."""
        while self.parents[definition] != definition:
            definition = self.parents[definition]
        return definition

    def definition(self, name: str, node: ast.AST | None) -> int:
        """The number of a definition; the same each time a loop is followed."""
        key = (name, id(node))
        if key not in self.numbers:
            self.numbers[key] = number = len(self.numbers)
            self.names[number] = (name, node)
            self.parents[number] = number
        return self.numbers[key]

    def occurrence(self, node: ast.Name, definition: int) -> None:
        """Record the definition that a name in the tree belongs to; once for each name."""
        if id(node) not in self.seen:
            self.seen.add(id(node))
            self.occurrences.append((node, definition))

    def use(self, node: ast.AST, state: Reaching) -> None:
        """Record every variable that `node` reads, and join the definitions that reach it."""
        for part in ast.walk(node):
            if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load) or part.id not in state:
                continue
            reaching = sorted(state[part.id])
            for other in reaching[1:]:
                self.parents[self.find(other)] = self.find(reaching[0])
            self.occurrence(part, reaching[0])

    def define(self, target: ast.AST, state: Reaching) -> None:
        """Record every variable that `target` assigns, as a new definition."""
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                number = self.definition(part.id, part)
                self.occurrence(part, number)
                state[part.id] = frozenset([number])

    def statements(self, body: Sequence[ast.stmt], state: Reaching | None) -> Reaching | None:
        """The definitions that reach the end of `body`; None if the end is never reached, because of a jump."""
        for statement in body:
            if state is None:
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: Reaching) -> Reaching | None:
        """The definitions that reach the point after the statement; None after a jump."""
        if isinstance(node, ast.Assign):
            self.use(node.value, state)
            for target in node.targets:
                self.use(target, state)  # the index of an element that is assigned
            for target in node.targets:
                self.define(target, state)
            return state
        if isinstance(node, Collective):
            for operand in node.operands:
                self.use(operand, state)
            for result in node.results:
                self.define(result, state)
            return state
        if isinstance(node, ast.If):
            self.use(node.test, state)
            return joined([self.statements(node.body, dict(state)), self.statements(node.orelse, dict(state))])
        if isinstance(node, ast.For | ast.While):
            return self.loop(node, state)
        if isinstance(node, ast.Break):
            self.loops[-1][0].append(state)
            return None
        if isinstance(node, ast.Continue):
            self.loops[-1][1].append(state)
            return None
        if isinstance(node, ast.Return):
            if node.value is not None:
                self.use(node.value, state)
            return None
        self.use(node, state)
        return state

    def loop(self, node: ast.For | ast.While, state: Reaching) -> Reaching | None:
        """The definitions after a loop. Its head is reached from above, from the body's end and each `continue`."""
        if isinstance(node, ast.For):
            self.use(node.iter, state)
        head: Reaching = state
        while True:
            self.loops.append(([], []))
            inside = dict(head)
            if isinstance(node, ast.For):
                self.define(node.target, inside)
            else:
                self.use(node.test, inside)
            end = self.statements(node.body, inside)
            breaks, continues = self.loops.pop()
            new_head = joined([head, end, *continues])
            assert new_head is not None
            if new_head == head:
                break
            head = new_head
        return joined([dict(head), *breaks])


def joined(states: Sequence[Reaching | None]) -> Reaching | None:
    """The definitions that reach a point where several paths join; None if none of the paths gets there."""
    reached = [state for state in states if state is not None]
    if not reached:
        return None
    result = dict(reached[0])
    for state in reached[1:]:
        for name, definitions in state.items():
            result[name] = result.get(name, frozenset()) | definitions
    return result
