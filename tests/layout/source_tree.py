"""The project's Python files as the tests of its layout see them: who imports whom, and how long each file is.

A file is parsed once, and only where a look at its text does not tell enough: parsing all takes seconds.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
PACKAGES = (*STAGES, "cuda_emulator", "groundup", "shared")
FOLDERS = (*PACKAGES, "tests", "docs", "examples", "scripts")


@dataclass(frozen=True)
class Import:
    """One import: the module that has it, the module of ours that it names, and the line."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported} (line {self.line})"


@cache
def sources(*folders: str) -> dict[str, str]:
    """The text of every module below these folders, by its dotted name; a package's own name is its __init__."""
    return {module_name(path): path.read_text(encoding="utf-8") for folder in folders for path in files(folder)}


def files(folder: str) -> Iterator[Path]:
    """Every Python file below a folder of the project."""
    return iter(sorted((ROOT / folder).rglob("*.py")))


def module_name(path: Path) -> str:
    """shared/data/idx.py -> shared.data.idx; shared/data/__init__.py -> shared.data"""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(texts: Mapping[str, str], modules: Iterable[str]) -> list[Import]:
    """Every import of one of the modules by one of the texts: at the top, inside a function, for a type checker, or by
    import_module with a name that is written in the source."""
    known = {*modules}
    packages = {module.rpartition(".")[0] for module in known} | {*PACKAGES}
    found = set()
    for module, text in texts.items():
        folder = module if module in packages else module.rpartition(".")[0]
        for name, line in _imported_names(text, folder):
            while name and name not in known:  # shared.data.idx.read_idx -> shared.data.idx; "" for what is not ours
                name = name.rpartition(".")[0]
            if name and name != module:
                found.add(Import(module, name, line))
    return sorted(found, key=lambda found: (found.importer, found.line, found.imported))


@cache
def _imported_names(text: str, folder: str) -> list[tuple[str, int]]:
    """The dotted names that a file imports, made absolute, with their lines."""
    calls = "import_module" in text or "__import__" in text
    found = []
    for node in ast.walk(ast.parse(text)) if calls else _statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = folder.split(".")[: len(folder.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found += [(f"{base}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            name = node.args[0].value
            if function in ("import_module", "__import__") and isinstance(name, str):
                found.append((f"{folder}{name}" if name.startswith(".") else name, node.lineno))
    return found


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement, without its expressions, which are ten times as many."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, field, ())


def circles(found: list[Import]) -> list[list[str]]:
    """The groups of modules that import each other in a loop, by Tarjan's algorithm."""
    graph: dict[str, set[str]] = {}
    for each in found:
        graph.setdefault(each.importer, set()).add(each.imported)
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups = []

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
                groups.append(sorted(group))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return groups


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """The strings that are a statement of their own."""
    for node in _statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def lines_of_code(text: str) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    strings = docstrings(ast.parse(text))
    prose = {line for node in strings for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose)
