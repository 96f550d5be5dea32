"""The project's Python files as the tests of its structure see them: who imports whom, and how long each file is."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
PACKAGES = (*FLOORS, "cuda_emulator", "groundup", "shared")


@dataclass(frozen=True)
class Import:
    """One import: the module that has it, the module of ours that it names, and the line."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported} (line {self.line})"


def sources() -> dict[str, str]:
    """The text of every module of the project's packages, by its dotted name; a package's own name is its __init__."""
    return {module_name(path): path.read_text(encoding="utf-8") for package in PACKAGES for path in files(package)}


def files(folder: str) -> Iterator[Path]:
    """Every Python file below a folder of the project."""
    return iter(sorted((ROOT / folder).rglob("*.py")))


def module_name(path: Path) -> str:
    """shared/data/idx.py -> shared.data.idx; shared/data/__init__.py -> shared.data"""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(texts: Mapping[str, str]) -> list[Import]:
    """Every import between those modules: at the top, inside a function, for a type checker, or by import_module with a
    name that stands in the source."""
    packages = {module.rpartition(".")[0] for module in texts} | set(PACKAGES)
    found = []
    for module, text in texts.items():
        folder = module if module in packages else module.rpartition(".")[0]
        for name, line in _names(text, folder):
            target = _module_of(name, texts)
            if target and target != module:
                found.append(Import(module, target, line))
    return sorted(set(found), key=lambda each: (each.importer, each.line, each.imported))


@cache
def _names(text: str, folder: str) -> list[tuple[str, int]]:
    """The dotted names that a file imports, with their lines."""
    return [(name, getattr(node, "lineno", 0)) for node in ast.walk(ast.parse(text)) for name in _named(node, folder)]


def _named(node: ast.AST, folder: str) -> list[str]:
    """The dotted names that a node imports, made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = folder.split(".")[: len(folder.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        name = node.args[0].value
        if function in ("import_module", "__import__") and isinstance(name, str):
            return [f"{folder}{name}" if name.startswith(".") else name]
    return []


def _module_of(name: str, texts: Mapping[str, str]) -> str:
    """The module of ours that a dotted name lies in: `shared.data.idx.read_idx` -> `shared.data.idx`; "" for others."""
    while name and name not in texts:
        name = name.rpartition(".")[0]
    return name


def circles(arrows: list[Import]) -> list[list[str]]:
    """The groups of modules that import each other in a loop, by Tarjan's algorithm."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows:
        graph.setdefault(arrow.importer, set()).add(arrow.imported)
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], index[other])
        if lowest[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def lines_of_code(text: str) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    tree = ast.parse(text)
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    prose = {line for node in strings for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose)
