"""Step 1: from a function to its source, its syntax tree, and what its names stand for."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..errors import KernelError


class FunctionSource:
    """The source of one kernel or device function.

    function: the Python function, as the learner wrote it
    name, filename: where it is; first_line: of its decorator or def, as the file counts
    tree: the def statement; its line numbers are those of the file
    parameters: the names of its arguments
    names: what its global and captured names stand for, as of now
    stored: every name that the body assigns (parameters included): never looked up outside
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self.filename = function.__code__.co_filename
        try:
            lines, self.first_line = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise KernelError(
                f"the source of {self.name!r} cannot be read: the emulator compiles a kernel from its text, so define "
                "it in a file or in a notebook's cell"
            ) from None
        self.text = textwrap.dedent("".join(lines))
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

    @cached_property
    def names(self) -> dict[str, Any]:
        """Globals and captured variables by name. A captured name that has no value yet is left out."""
        found = dict(vars(builtins))
        found.update(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # assigned only after the kernel was defined
                found.pop(name, None)
        return found

    def error(self, message: str, node: ast.AST | int | None) -> KernelError:
        """A KernelError that points to `node` (or to that line of the file)."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.first_line)
        return KernelError(message, filename=self.filename, line=line, kernel=self.name)
