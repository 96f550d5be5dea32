"""What a test takes from our modules is there: wide tests, which few runs have, would else break silently."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.layout.source_tree import PACKAGES, sources
from tests.wide import wide


def names_of(text: str) -> set[str] | None:
    """The names that a module has, wherever in it they get their value; None if only running it would tell."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == "__getattr__":
                return None
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            given = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            if "*" in given:
                return None
            found |= given
    return found


class KnownNames:
    """The names of every module: our packages' and the tests' own."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.known: dict[str, set[str] | None] = {}

    def has(self, module: str, name: str) -> bool:
        if module not in self.known:
            self.known[module] = names_of(self.texts[module])
        names = self.known[module]
        return names is None or name in names or name.startswith("__") or f"{module}.{name}" in self.texts

    def missing(self, text: str) -> Iterator[str]:
        """module.name (line) of what a test imports, reads or replaces, and is not there."""
        modules: dict[str, str] = {}
        nodes = list(ast.walk(ast.parse(text)))
        for node in nodes:
            if isinstance(node, ast.Import):
                modules |= {
                    alias.asname: alias.name for alias in node.names if alias.asname and alias.name in self.texts
                }
            if not isinstance(node, ast.ImportFrom) or node.module not in self.texts:
                continue
            for alias in node.names:
                if f"{node.module}.{alias.name}" in self.texts:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if not self.has(node.module, alias.name):
                    yield f"{node.module}.{alias.name} (line {node.lineno})"
        for node in nodes:  # a name that has another meaning somewhere in the file is left out
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                modules.pop(node.id, None)
            elif isinstance(node, ast.arg):
                modules.pop(node.arg, None)
        for node in nodes:
            for owner, name in taken(node):
                if owner in modules and not self.has(modules[owner], name):
                    yield f"{modules[owner]}.{name} (line {node.lineno})"  # type: ignore[attr-defined]


def taken(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(owner, name) of `owner.name`, and of `monkeypatch.setattr(owner, "name", ...)`, whose name has to be there."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
        yield node.value.id, node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setattr", "delattr"):
        owner, name, *_ = [*node.args, None, None]
        if isinstance(owner, ast.Name) and isinstance(name, ast.Constant) and not node.keywords:
            yield owner.id, str(name.value)


@wide
def test_every_name_that_a_test_takes_from_a_module_is_there() -> None:
    known = KnownNames(sources(*PACKAGES, "tests"))
    missing = [f"{test}: {name}" for test, text in sources("tests").items() for name in known.missing(text)]
    assert missing == []
