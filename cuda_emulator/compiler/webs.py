"""Step 3: a name for every independent use of a variable.

Learners reuse names: `i` counts one loop and then another, `v` is first a float and later an int. Each group of
assignments that can reach a common use is a web, and gets a name of its own. So a variable that is recomputed is not
carried through the kernel as if it were one, each web has one type, and one assignment alone can be told from several.

The definitions that reach a use are found by following the statements in order; loops until nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .trees import Collective
from .unit import Unit

Reaching = dict[str, frozenset[int]]


def split_webs(unit: Unit) -> None:
    """Rename the unit's variables, in place, so that each web has its own name. The first web keeps the name."""
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
    """Follows the statements; joins the definitions that reach a common use."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[str, ast.AST | None]] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.parents: dict[int, int] = {}
        self.seen: set[int] = set()
        self.occurrences: list[tuple[ast.Name, int]] = []
        self.loops: list[tuple[list[Reaching], list[Reaching]]] = []  # what leaves by break, by continue

    def find(self, definition: int) -> int:
        """The web that a definition is in."""
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
        """Note which definition a name in the tree belongs to, once."""
        if id(node) not in self.seen:
            self.seen.add(id(node))
            self.occurrences.append((node, definition))

    def use(self, node: ast.AST, state: Reaching) -> None:
        """Every variable that is read in `node`."""
        for part in ast.walk(node):
            if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load) or part.id not in state:
                continue
            reaching = sorted(state[part.id])
            for other in reaching[1:]:
                self.parents[self.find(other)] = self.find(reaching[0])
            self.occurrence(part, reaching[0])

    def define(self, target: ast.AST, state: Reaching) -> None:
        """Every variable that is assigned in `target`."""
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                number = self.definition(part.id, part)
                self.occurrence(part, number)
                state[part.id] = frozenset([number])

    def statements(self, body: Sequence[ast.stmt], state: Reaching | None) -> Reaching | None:
        """What reaches the end of `body`; None where nothing does. Statements after a jump are never reached."""
        for statement in body:
            if state is None:
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.stmt, state: Reaching) -> Reaching | None:
        """What reaches the point after the statement."""
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
        """A loop: its head is reached from before it, from the end of its body, and from every `continue`."""
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
    """What reaches a point that several paths lead to."""
    reached = [state for state in states if state is not None]
    if not reached:
        return None
    result = dict(reached[0])
    for state in reached[1:]:
        for name, definitions in state.items():
            result[name] = result.get(name, frozenset()) | definitions
    return result
