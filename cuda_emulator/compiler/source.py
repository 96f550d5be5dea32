"""Step 1: read a function's source, its syntax tree and the values of its names."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
import tokenize
from collections.abc import Callable
from typing import Any

from ..errors import KernelError

#: The lines of a function with its decorators, and the line number of the first.
Lines = tuple[list[str], int]


def read_lines(function: Callable[..., Any]) -> Lines | None:
    """The current lines of a function; None if they cannot be read.

    Call it when the function is defined: later its file may have been edited, or its notebook cell run again.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return None
    name = function.__code__.co_name
    # A function made by exec has no text of its own; Python 3.13 may return the text of `python -c` instead.
    if name.isidentifier() and not any(re.match(rf"\s*(async\s+)?def\s+{name}\b", line) for line in lines):
        return None
    return lines, first


class FunctionSource:
    """The source of one kernel or device function.

    function: the learner's Python function; lines: the result of read_lines, if it was called before
    name, filename: of the function; first_line: the line of its first decorator, or of its def
    tree: the def statement; its line numbers are those of the file
    parameters: the names of its arguments
    names: the values of its global and captured names at the last `read_names`; a captured name without a value is
        missing
    readings: the number of `read_names` calls
    stored: every name that the body assigns, with the parameters: these are local and never looked up outside
    """

    def __init__(self, function: Callable[..., Any], lines: Lines | None = None) -> None:
        self.function = function
        self.name = function.__name__
        self.filename = function.__code__.co_filename
        lines = lines or read_lines(function)
        if lines is None:
            raise KernelError(
                f"the source of {self.name!r} cannot be read: the emulator compiles a kernel from its text, so define "
                "it in a file or in a notebook's cell"
            )
        self.first_line = lines[1]
        self.text = textwrap.dedent("".join(lines[0]))
        definitions = ast.parse(self.text).body
        if len(definitions) != 1 or not isinstance(definitions[0], ast.FunctionDef):
            raise KernelError(
                f"{self.name!r} must be a function that starts with def", filename=self.filename, line=self.first_line
            )
        self.tree = definitions[0]
        ast.increment_lineno(self.tree, self.first_line - 1)
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error("a kernel takes plain arguments: no *args, no **kwargs, no defaults", self.tree)
        self.parameters = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        self.stored = set(self.parameters) | {
            node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.readings = 0
        self.read_names()

    def read_names(self) -> None:
        """Read the values of the global and captured names again."""
        found = dict(vars(builtins))
        found.update(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # assigned only after the kernel was defined
                found.pop(name, None)
        self.names = found
        self.readings += 1

    def error(self, message: str, node: ast.AST | int | None) -> KernelError:
        """A KernelError that points to `node`, or to a line of the file."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.first_line)
        return KernelError(message, filename=self.filename, line=line, kernel=self.name)
