"""Step 1: read a function's source, its syntax tree and the values of its names."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from ...errors import KernelError
from .exec_text import text_of_exec
from .loop_else import without_loop_else

#: The name of a lambda in generated source and in messages.
LAMBDA = "a_lambda"
#: The lines of a function with its decorators, and the line number of the first.
Lines = tuple[list[str], int]


class Written:
    """Where a function is written: the text of its file or notebook cell as it was when the function was defined.

    Make it at that time: later the file may have been edited, or the cell run again. Where the function ends in the
    text is looked for only when its lines are asked for. Python does that word by word: for all of stage 4's kernels
    that takes as long as the rest of importing them, and a program launches a few.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.text: list[str] = []
        self.first = 0
        with suppress(OSError, TypeError, SyntaxError):
            self.text, self.first = inspect.findsource(inspect.unwrap(function))
        code = inspect.unwrap(function).__code__
        if code.co_filename.startswith("<"):  # other code may have had the name "<string>" before, and be in linecache
            text = text_of_exec(code)
            if text is not None:
                self.text, self.first = text.splitlines(keepends=True), code.co_firstlineno - 1

    @cached_property
    def lines(self) -> Lines | None:
        """The lines of the function; None if they cannot be read."""
        if not self.text:
            return None
        name = self.function.__code__.co_name
        if name == "<lambda>":
            return read_lambda(self.function, self.text)
        try:
            lines = inspect.getblock(self.text[self.first :])
        except (SyntaxError, tokenize.TokenError):
            return None
        # A function made by exec has no text of its own; Python 3.13 may return the text of `python -c` instead.
        if name.isidentifier() and not any(re.match(rf"\s*(async\s+)?def\s+{name}\b", line) for line in lines):
            return None
        return lines, self.first + 1


def read_lambda(function: Callable[..., Any], text: list[str]) -> Lines | None:
    """A lambda as the line of a `def` that does the same; None if it cannot be told from the others on its line."""
    try:
        tree = ast.parse("".join(text))
    except SyntaxError:
        return None
    first = function.__code__.co_firstlineno
    here = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == first]
    alike = {ast.unparse(node): node for node in here if is_code_of(node, function)}
    if len(alike) != 1:
        return None
    node = next(iter(alike.values()))
    return [f"def {LAMBDA}({ast.unparse(node.args)}): return {ast.unparse(node.body)}\n"], first


def is_code_of(node: ast.Lambda, function: Callable[..., Any]) -> bool:
    """Whether Python makes the function's instructions from this lambda, when no other function is around it."""
    code = function.__code__
    if code.co_freevars:  # names of the function around it: its instructions are others
        return True
    made = eval(compile(ast.Expression(body=node), "<lambda>", "eval"), {}).__code__ if not node.args.defaults else code
    return (made.co_code, made.co_consts, made.co_names) == (code.co_code, code.co_consts, code.co_names)


class FunctionSource:
    """The source of one kernel or device function.

    function: the learner's Python function; written: where it was written when it was defined, if that is known
    name, filename: of the function; first_line: the line of its first decorator, or of its def
    tree: the def statement; its line numbers are those of the file
    parameters: the names of its arguments
    names: the values of its global and captured names at the last `read_names`; a captured name without a value is
        missing
    readings: the number of `read_names` calls
    stored: every name that the body assigns, with the parameters: these are local and never looked up outside
    defaults: {parameter: its default value}, of the last parameters
    nested: {name: function} of the functions that the body defines; None until nested.py has found them
    captured: the variables of the function around it that a nested function uses: its last parameters
    """

    captured: tuple[str, ...] = ()

    def __init__(self, function: Callable[..., Any], written: Written | None = None) -> None:
        self.function = function
        self.name = LAMBDA if function.__name__ == "<lambda>" else function.__name__
        self.filename = function.__code__.co_filename
        lines = (written.lines if written is not None else None) or Written(function).lines
        if lines is None:
            raise KernelError(
                f"the source of {self.name!r} cannot be read: the emulator compiles a kernel from its text, so define "
                "it in a file or in a notebook's cell; for a kernel made by exec(), keep the text in a variable of the "
                "function that calls exec(), or put it into linecache.cache"
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
        without_loop_else(self.tree)
        self.parameters = self.plain_parameters(self.tree.args)
        values = function.__defaults__ or ()
        self.defaults: dict[str, Any] = dict(zip(self.parameters[::-1], values[::-1], strict=False))
        self.stored = set(self.parameters) | stored_in(self.tree.body)
        self.nested: dict[str, Any] | None = None
        self.readings = 0
        self.read_names()

    def plain_parameters(self, arguments: ast.arguments) -> list[str]:
        """The names of the parameters. Raises KernelError for *args and its like."""
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise self.error("a kernel takes plain arguments: no *args, no **kwargs, none by keyword only", self.tree)
        return [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]

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


FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Every node of some statements; of a function defined in them the first node only, without what is in it."""
    for node in body:
        yield node
        if not isinstance(node, FUNCTIONS):
            yield from own_nodes(list(ast.iter_child_nodes(node)))


def stored_in(body: Sequence[ast.AST]) -> set[str]:
    """Every name that some statements assign, or define with def."""
    names = {node.id for node in own_nodes(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.name for node in own_nodes(body) if isinstance(node, ast.FunctionDef)}
