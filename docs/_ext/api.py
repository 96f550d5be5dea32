"""Reference pages from docstrings, read from the source and never imported.

    ```{api} stage2_numpy.dense stage2_numpy.matmul
    ```

Each module becomes a section with its docstring, and each public function and class a section in it, with its signature
and its docstring. The headings are found by the book's search.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

ROOT = Path(__file__).resolve().parents[2]


BEGINS = re.compile(r"\n(?=[\w*]+(?:, [\w*]+)*: |Raises |Returns )")
"""Before a line of a docstring that names arguments, errors or the result."""

WIDTH = 88
"""Of a signature in one line; a longer one has a line for each argument."""

ARGUMENT = re.compile(r"(?:'[^']*'|\{[^{}]*\}|\([^()]*\)|\[(?:[^\[\]]|\[[^\[\]]*\])*\]|[^,])+")
"""An argument of a signature: a comma between brackets or quotes does not end it."""


class Api(SphinxDirective):
    """The directive. Its argument: modules, by their names."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for name in self.arguments[0].split():
            path = ROOT.joinpath(*name.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if not path.is_file():
                raise self.error(f"api: there is no module {name}")
            self.env.note_dependency(str(path))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            section = self._section(name, name)
            section += self._text(ast.get_docstring(tree) or "")
            for node in tree.body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                    section += self._entry(name, node)
            made.append(section)
        return made

    def _entry(self, module: str, node: ast.FunctionDef | ast.ClassDef) -> nodes.section:
        section = self._section(node.name, f"{module}.{node.name}")
        section += nodes.literal_block("", "\n".join(_signatures(node)), language="python")
        section += self._text(ast.get_docstring(node) or "")
        return section

    def _section(self, title: str, name: str) -> nodes.section:
        identifier = make_id(self.env, self.state.document, "", name)
        return nodes.section("", nodes.title("", title), ids=[identifier], names=[name])

    def _text(self, docstring: str) -> list[nodes.Node]:
        """A docstring's parts: what is indented and what begins with >>> keeps its lines, an argument begins one."""
        made: list[nodes.Node] = []
        for part in inspect.cleandoc(docstring).split("\n\n"):
            if part.startswith(">>>"):
                made.append(nodes.literal_block("", part, language="pycon"))
            elif any(line.startswith("    ") for line in part.splitlines()):
                made.append(nodes.literal_block("", part, language="text"))
            elif part.strip():
                made += [nodes.paragraph("", "", *_words(line)) for line in BEGINS.split(part)]
        return made


def _words(text: str) -> list[nodes.Node]:
    """A text with what stands between backticks as code."""
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    return [nodes.literal("", part) if number % 2 else nodes.Text(part) for number, part in enumerate(parts)]


def _signatures(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """A function's line; a class's, and those of its public methods."""
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        line = f"def {node.name}({ast.unparse(node.args)}){returns}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"def {node.name}("
            yield from (f"    {argument.strip()}," for argument in ARGUMENT.findall(ast.unparse(node.args)))
            yield f"){returns}"
        return
    bases = ", ".join(map(ast.unparse, node.bases))
    yield f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name == "__init__" or not each.name.startswith("_")):
            yield from (f"    {line}" for line in _signatures(each))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
