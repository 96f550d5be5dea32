"""The syntax of the kernel's source: where a barrier can stand, what an update computes, and how an array is declared.

The advice of the lens (race_advice.py, cost_advice.py) names lines and expressions; it reads them here. A question
whose answer is not in the source, or a source that is no whole function, gets None or an empty answer.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .profile import Profile

Place = tuple[str, int]
"""A file and a line."""

ATOMICS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
}
"""The operators that have a function in cuda.atomic."""


@dataclass(frozen=True)
class Step:
    """A statement on the way from the function to a line: the list of statements that holds it, and its owner."""

    owner: ast.AST
    body: Sequence[ast.stmt]
    statement: ast.stmt


def trees(profile: Profile) -> dict[tuple[str, int], ast.Module]:
    """{(file, first line): syntax tree} of the kernel and its device functions, with the lines of their files."""
    found = {}
    for file, first, lines in profile.source:
        tree = _parsed(first, "\n".join(lines))
        if tree is not None:
            found[file, first] = tree
    return found


@lru_cache(maxsize=64)
def _parsed(first: int, text: str) -> ast.Module | None:
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:  # a part of a larger expression
        return None
    ast.increment_lineno(tree, first - 1)
    return tree


def path(profile: Profile, place: Place) -> list[Step]:
    """The statements around a line, the outermost first; empty if the line is in no listed function."""
    for (file, _), tree in trees(profile).items():
        if file == place[0] and tree.body and tree.body[0].lineno <= place[1] <= (tree.body[-1].end_lineno or 0):
            return list(_down(tree, place[1]))
    return []


def _down(owner: ast.AST, line: int) -> Iterator[Step]:
    for body in _bodies(owner):
        for statement in body:
            if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                yield Step(owner, body, statement)
                yield from _down(statement, line)
                return


def _bodies(owner: ast.AST) -> list[list[ast.stmt]]:
    return [body for name in ("body", "orelse") if isinstance(body := getattr(owner, name, None), list)]


def innermost(profile: Profile, place: Place) -> ast.stmt | None:
    """The smallest statement that contains the line."""
    steps = path(profile, place)
    return steps[-1].statement if steps else None


def common(profile: Profile, first: Place, second: Place) -> list[tuple[Step, Step]]:
    """The steps to both lines as far as they are in the same list of statements."""
    pairs = list(zip(path(profile, first), path(profile, second), strict=False))
    return [pair for pair in pairs if pair[0].body is pair[1].body]


def common_loop(profile: Profile, first: Place, second: Place) -> ast.For | ast.While | None:
    """The innermost loop around both lines."""
    loops = [
        one.statement
        for one, other in common(profile, first, second)
        if one.statement is other.statement and isinstance(one.statement, ast.For | ast.While)
    ]
    return loops[-1] if loops else None


def same(one: str, other: str) -> bool:
    """Whether two texts are the same expression."""
    return _normal(one) == _normal(other)


def _normal(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text.strip(), mode="eval"))
    except SyntaxError:
        return text.strip()


@dataclass(frozen=True)
class Update:
    """The new value of an element, as a function of its old one. operator: a name in cuda.atomic, or "" for others."""

    operator: str
    value: str


def update_of(profile: Profile, place: Place, element: str) -> Update | None:
    """The update of `element` at a line: `s[0] += x`, `s[0] = s[0] + x`, `if x > s[0]: s[0] = x`, or with a variable
    that holds the old value. None if the new value does not depend on the old one.
    """
    steps = path(profile, place)
    statement = steps[-1].statement if steps else None
    if isinstance(statement, ast.AugAssign) and same(ast.unparse(statement.target), element):
        return Update(ATOMICS.get(type(statement.op), ""), ast.unparse(statement.value))
    if not isinstance(statement, ast.Assign) or not any(same(ast.unparse(each), element) for each in statement.targets):
        return None
    old = {_normal(element), *_copies(steps[0].statement, element)}
    if any(ast.unparse(part) in old for part in ast.walk(statement.value) if isinstance(part, ast.expr)):
        return _operation(statement.value, old)
    for step in steps:
        test = step.statement.test if isinstance(step.statement, ast.If) else None
        if test is not None and any(ast.unparse(part) in old for part in ast.walk(test) if isinstance(part, ast.expr)):
            return _comparison(test, old, ast.unparse(statement.value))
    return None


def _copies(function: ast.stmt, element: str) -> list[str]:
    """The variables that are assigned the element's value."""
    return [
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and same(ast.unparse(node.value), element)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _operation(value: ast.expr, old: set[str]) -> Update:
    if isinstance(value, ast.BinOp):
        left, right = ast.unparse(value.left), ast.unparse(value.right)
        operator = ATOMICS.get(type(value.op), "")
        if left in old:
            return Update(operator, right)
        if right in old and operator != "sub":
            return Update(operator, left)
    if isinstance(value, ast.Call) and len(value.args) == 2 and ast.unparse(value.func).split(".")[-1] in _CHOICES:
        others = [ast.unparse(each) for each in value.args if ast.unparse(each) not in old]
        return Update(_CHOICES[ast.unparse(value.func).split(".")[-1]], ", ".join(others))
    return Update("", ast.unparse(value))


_CHOICES = {"max": "max", "min": "min", "fmax": "max", "fmin": "min"}


def _comparison(test: ast.expr, old: set[str], value: str) -> Update:
    """`if value > old` is a maximum, `if value < old` a minimum."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
        greater = isinstance(test.ops[0], ast.Gt | ast.GtE)
        less = isinstance(test.ops[0], ast.Lt | ast.LtE)
        if left == value and right in old and (greater or less):
            return Update("max" if greater else "min", value)
        if right == value and left in old and (greater or less):
            return Update("min" if greater else "max", value)
    return Update("", value)


def atomic_call(element: str, update: Update) -> str:
    """The call of cuda.atomic that does the update of `s[0]`: "cuda.atomic.add(s, 0, x)"; "" if there is none."""
    node = ast.parse(element, mode="eval").body
    if not update.operator or not isinstance(node, ast.Subscript):
        return ""
    index = ast.unparse(node.slice)
    index = f"({index})" if isinstance(node.slice, ast.Tuple) and not index.startswith("(") else index
    return f"cuda.atomic.{update.operator}({ast.unparse(node.value)}, {index}, {update.value})"


def shared_array(profile: Profile, name: str) -> tuple[Place, ast.Call] | None:
    """The declaration of a shared array: its place, and the call cuda.shared.array(...)."""
    for (file, _), tree in trees(profile).items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func).endswith("shared.array")
            ):
                return (file, node.lineno), node.value
    return None


def declared_shape(call: ast.Call) -> ast.expr | None:
    """The expression of the shape in cuda.shared.array(...)."""
    named = next((each.value for each in call.keywords if each.arg == "shape"), None)
    return call.args[0] if call.args else named
