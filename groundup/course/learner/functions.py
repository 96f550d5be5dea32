"""Where a function stands in a source file, and how it becomes a stub.

An exercise is a function of the project with its body removed. Nothing is written twice: the stub is made from the
function, and what the learner writes is put back in the same place. So all that is needed of a file, Python or C, is
which lines a function takes and where its body begins.

A function is named as Python does: `relu`, `Dense.forward`, or `tiled.product` for one that another defines. In C it is
the name that stands in NAME(...), or the plain name where there is no NAME.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import PurePath

from groundup.course.learner.c_source import c_function


class FunctionMissing(ValueError):
    """The file has no function of that name, or cannot be read as a program at all.

    line: where the trouble is, from 1; None where the function is nowhere
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Place:
    """The lines of a function, from 1, both ends included.

    first: of its first decorator, or its `def`; in C of its declaration
    body: of the first line that is replaced in a stub; last: of its end (in C the line of the closing brace)
    """

    first: int
    body: int
    last: int


def find(text: str, name: str, file: str, keep: int = 0) -> Place:
    """The place of a function in the text of a file.

    file: the file's name, which tells the language; keep: how many statements (in C lines) of the body a stub keeps:
    checks of the arguments, which are no exercise
    Raises FunctionMissing where it is not there, or the file cannot be parsed.
    """
    return _find_in_c(text, name, file, keep) if is_c(file) else _find_in_python(text, name, file, keep)


def is_c(file: str) -> bool:
    """Whether a file is C, by its name."""
    return PurePath(file).suffix in (".c", ".h")


def function_text(text: str, place: Place) -> str:
    """The function's lines, decorators included, each with its newline."""
    return "".join(lines_of(text)[place.first - 1 : place.last])


def replaced(text: str, place: Place, function: str) -> str:
    """The file's text with the function's lines replaced by other ones."""
    lines = lines_of(text)
    return "".join([*lines[: place.first - 1], function, *lines[place.last :]])


def stub(text: str, name: str, file: str, message: str, keep: int = 0) -> str:
    """The function's text with its body removed: the declaration, the docstring, and an error that names the task."""
    place = find(text, name, file, keep)
    lines = lines_of(text)
    head = lines[place.first - 1 : place.body - 1]
    if is_c(file):
        return "".join([*head, f'#error "{message}"\n', lines[place.last - 1]])
    margin = re.match(r"\s*", lines[place.body - 1])
    indent = margin[0] if margin else ""
    return "".join([*head, f'{indent}raise NotImplementedError("{message}")\n'])


def stub_line(function: str, week: int, number: int) -> int:
    """The line of a function's text, from 1, in which the error of its stub still stands; 0 where it does not.

    A title may change from one version to the next, and a learner may keep the line as a comment.
    """
    task = re.escape(f"week {week}, task {number}: ")
    for line, text in enumerate(lines_of(function), start=1):
        if re.match(rf'\s*(raise NotImplementedError\(|#error )"{task}', text):
            return line
    return 0


def _find_in_python(text: str, name: str, file: str, keep: int) -> Place:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        said = f"{type(error).__name__}: {error.msg}"
        raise FunctionMissing(f"{file}, line {error.lineno}: {said}", error.lineno) from None
    body: list[ast.stmt] = tree.body
    found: ast.AST | None = None
    for part in name.split("."):
        matches = [
            each
            for each in body
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and each.name == part
        ]
        if not matches:
            raise FunctionMissing(f"{file} has no function {name}")
        found = matches[-1]  # the last definition is the one that counts
        body = matches[-1].body
    if not isinstance(found, ast.FunctionDef):
        raise FunctionMissing(f"{file}: {name} is not a function")
    statements = body[1:] if _is_docstring(body[0]) else body
    if keep and len(statements) <= keep:
        raise FunctionMissing(f"{file}: {name} has {len(statements)} statements, expected more than {keep}")
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    last = found.end_lineno or found.lineno
    begin = statements[keep].lineno if statements else last
    return Place(first, _with_comments(text, begin, first), last)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _with_comments(text: str, line: int, first: int) -> int:
    """The line of the first comment directly above a statement: it tells the solution, so it goes with the body."""
    lines = lines_of(text)
    while line - 1 > first and lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


def _find_in_c(text: str, name: str, file: str, keep: int) -> Place:
    try:
        first, brace, last = c_function(text, name)
    except ValueError as error:
        raise FunctionMissing(f"{file}: {error}") from None
    if brace == last:
        return Place(first, last, last)
    return Place(first, min(brace + 1 + keep, last), last)


def lines_of(text: str) -> list[str]:
    """The lines with their newlines; the last one has one, too.

    Not str.splitlines, which also ends a line at a form feed and at Unicode's separators: Python and C do not.
    """
    lines = [line + "\n" for line in text.split("\n")]
    return lines[:-1] if text.endswith("\n") or not text else lines


def dedented(function: str) -> str:
    """The text of a function with its own indentation removed, for showing."""
    return textwrap.dedent(function)
