"""Finds the lines of a function in a source file, and makes its stub.

An exercise is a function of the project with its body removed. The stub is made from the function, and the learner's
function takes the same place in the file, so nothing is written twice. For that it is enough to know which lines a
function takes and where its body begins, in Python and in C.

A function's name is `relu`, `Dense.forward`, or `tiled.product` for a function that another one defines. In C it is the
name that stands in NAME(...), or the plain name if there is no NAME.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from groundup.course.learner.c_source import c_function


class FunctionMissing(ValueError):
    """The file has no function of that name, or cannot be parsed.

    line: the line of the syntax error, from 1; None if the function is missing
    shown: its text, with a caret below the place; "" if there is none
    """

    def __init__(self, message: str, line: int | None = None, shown: str = "") -> None:
        super().__init__(message)
        self.line, self.shown = line, shown


@dataclass(frozen=True)
class Place:
    """The lines of a function, from 1.

    first: the first decorator, else the `def`; in C the start of the declaration
    body: the first line that a stub replaces
    last: the last line; in C the closing brace
    """

    first: int
    body: int
    last: int


def find(text: str, name: str, file: str, keep: int = 0) -> Place:
    """The lines of a function in the text of a file.

    file: the file's name, which tells its language
    keep: how many statements of the body (in C: lines) a stub keeps, because they check arguments and are no exercise
    Raises FunctionMissing if the function is not there, or the file cannot be parsed.
    """
    return _find_in_c(text, name, file, keep) if is_c(file) else _find_in_python(text, name, file, keep)


def is_c(file: str) -> bool:
    """Whether a file is C; its name tells."""
    return PurePath(file).suffix in (".c", ".h")


def function_text(text: str, place: Place) -> str:
    """The function's lines, with its decorators."""
    return "".join(lines_of(text)[place.first - 1 : place.last])


def replaced(text: str, place: Place, function: str) -> str:
    """The file's text with another text in the place of the function."""
    lines = lines_of(text)
    return "".join([*lines[: place.first - 1], function, *lines[place.last :]])


def stub(text: str, name: str, file: str, message: str, keep: int = 0) -> str:
    """The function's text with its body removed. The declaration and the docstring stay; an error names the task."""
    place = find(text, name, file, keep)
    lines = lines_of(text)
    head = lines[place.first - 1 : place.body - 1]
    if is_c(file):
        return "".join([*head, f'#error "{message}"\n', lines[place.last - 1]])
    margin = re.match(r"\s*", lines[place.body - 1])
    indent = margin[0] if margin else ""
    return "".join([*head, f'{indent}raise NotImplementedError("{message}")\n'])


def stub_line(function: str, week: int, number: int) -> int:
    """The line of a function's text, from 1, that still holds the stub's error; 0 if none does.

    Only the task's number is compared, because a title may change from version to version. A comment does not count.
    """
    task = re.escape(f"week {week}, task {number}: ")
    for line, text in enumerate(lines_of(function), start=1):
        if re.match(rf'\s*(raise NotImplementedError\(|#error )"{task}', text):
            return line
    return 0


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    """The syntax tree of a file, to be read only: a file is asked for each of its exercises in turn."""
    return ast.parse(text)


def _find_in_python(text: str, name: str, file: str, keep: int) -> Place:
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        said = f"{type(error).__name__}: {error.msg}"
        row = (error.text or "").rstrip("\n")
        shown = f"    {row}\n    {' ' * ((error.offset or 1) - 1)}^" if row else ""
        raise FunctionMissing(f"{file}, line {error.lineno}: {said}", error.lineno, shown) from None
    except (RecursionError, MemoryError):
        raise FunctionMissing(f"{file} is nested too deeply for Python") from None
    except ValueError as error:  # a zero byte, for some versions of Python
        raise FunctionMissing(f"{file}: {error}") from None
    body: list[ast.stmt] = tree.body
    definition: ast.AST | None = None
    for part in name.split("."):
        matches = [
            statement
            for statement in body
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.name == part
        ]
        if not matches:
            raise FunctionMissing(f"{file} has no function {name}")
        definition = matches[-1]  # the last definition is the one that counts
        body = matches[-1].body
    if not isinstance(definition, ast.FunctionDef):
        raise FunctionMissing(f"{file}: {name} is not a function")
    statements = body[1:] if _is_docstring(body[0]) else body
    if keep and len(statements) <= keep:
        raise FunctionMissing(f"{file}: {name} has {len(statements)} statements, expected more than {keep}")
    first = min([definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)])
    last = definition.end_lineno or definition.lineno
    begin = statements[keep].lineno if statements else last
    return Place(first, _with_comments(text, begin, first), last)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _with_comments(text: str, line: int, first: int) -> int:
    """The line of the first comment directly above a statement. Such comments tell the solution, so a stub has none."""
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
    """The lines of a text, each with a newline, the last one too.

    str.splitlines is not used: it also splits at a form feed and at Unicode's separators, and Python and C do not.
    """
    lines = [line + "\n" for line in text.split("\n")]
    return lines[:-1] if text.endswith("\n") or not text else lines


def dedented(function: str) -> str:
    """A function's text without its own indentation, as it is shown."""
    return textwrap.dedent(function)
