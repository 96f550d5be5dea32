"""Makes a failing kernel small: takes statements out, and blocks apart, for as long as it goes on failing.

`shrunk(text, fails)` is delta debugging on the syntax tree: first large runs of statements, then single ones, then each
`if` and loop is replaced by what is in it. `fails(text)` says whether a candidate still fails in the same way.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Fails = Callable[[str], bool]


def shrunk(text: str, fails: Fails, most: int = 200) -> str:
    """The smallest text found with at most `most` trials."""
    trials = 0

    def still_fails(candidate: str) -> bool:
        nonlocal trials
        trials += 1
        return trials <= most and fails(candidate)

    changed = True
    while changed and trials < most:
        changed = False
        for make in (_without_runs, _unwrapped):
            smaller = _first(text, make, still_fails)
            while smaller is not None:
                text, changed = smaller, True
                smaller = _first(text, make, still_fails)
    return text


def _first(text: str, make: Callable[[ast.Module], Iterator[ast.Module]], fails: Fails) -> str | None:
    for candidate in make(ast.parse(text)):
        smaller = ast.unparse(ast.fix_missing_locations(candidate)) + "\n"
        if smaller != text and fails(smaller):
            return smaller
    return None


def _bodies(tree: ast.Module) -> Iterator[tuple[list[int], list[ast.stmt]]]:
    """Every list of statements in the kernel, with the way to it. Device functions stay whole, or go: half of one may
    fail for reasons of its own."""
    helpers = [node for node in tree.body if isinstance(node, ast.FunctionDef)][:-1]
    whole = {part for helper in helpers for part in ast.walk(helper)}
    for number, node in enumerate(ast.walk(tree)):
        if node in whole:
            continue
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While):
            yield [number, 0], node.body
            if getattr(node, "orelse", []):
                yield [number, 1], node.orelse  # type: ignore[union-attr]


def _at(tree: ast.AST, way: list[int]) -> list[ast.stmt]:
    node = list(ast.walk(tree))[way[0]]
    return node.orelse if way[1] else node.body  # type: ignore[attr-defined]


def _without_runs(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree without a run of statements: half of a list, a quarter, ..., one."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions[:-1]:
        yield ast.Module(body=[node for node in tree.body if node is not function], type_ignores=[])
    longest = max(len(body) for _, body in _bodies(tree))
    length = max(1, longest // 2)
    while length:
        for way, body in _bodies(tree):
            for start in range(len(body) - length, -1, -length):
                smaller = copy.deepcopy(tree)
                kept = _at(smaller, way)
                del kept[start : start + length]
                if not kept and not way[1]:
                    kept.append(ast.Pass())
                if kept != [ast.Pass()] or not isinstance(body[0], ast.Pass):
                    yield smaller
        length //= 2


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree with an `if` or a loop replaced by its body, or by its else."""
    for way, body in _bodies(tree):
        for place, statement in enumerate(body):
            if isinstance(statement, ast.If | ast.For | ast.While):
                for part in ("body", "orelse") if statement.orelse else ("body",):
                    smaller = copy.deepcopy(tree)
                    inside = _at(smaller, way)
                    inside[place : place + 1] = getattr(inside[place], part)
                    yield smaller
