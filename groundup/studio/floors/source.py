"""A function's text, found in the installed files. Nothing is copied: what the page shows is what runs.

python(stage, file, name)    a function or a method of a stage, "relu" or "Dense.forward"
c(name)                      a C function of stage 3, with the comment above it
kernel(name)                 a function of stage 4's kernels, "activations.relu_of"
helpers(function), chain     the functions of the same file that it calls, and what these lead to
worker                       which of them does the work
said, sentence, head         the lines of a text that explain, the first of them, and its declaration
ladder(stage, room)          a ladder's rungs: {rung: the name of its function}
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from groundup.course.learner.functions import FunctionMissing, dedented, find, function_text, lines_of
from shared.contract import STAGES
from shared.machine.processes import ROOT

STAGE3, STAGE4 = STAGES[2], STAGES[3]

LADDERS = {"matmul": "LADDER", "convolution": "CONVOLUTION_LADDER", "steps": "STEP_LADDER"}
"""File -> the name of the ladder in it. Stage 4's ladder of steps is in STEPS4."""

STEPS4 = "plans/choice"


CHECKING = (
    "_check",
    "check",
    "_prepare",
    "_as_",
    "_with_labels",
    "_unwrapped",
    "_unmasked",
    "unmasked",
    "_is_sequence",
    "matrix_shape",
)
"""How the names of functions begin that check and convert arguments."""


@dataclass(frozen=True)
class Found:
    """A function's text. file: from the folder of the packages; line: its first; text: without its own indentation

    language: "python", "c" or "kernel"
    """

    name: str
    file: str
    line: int
    text: str
    language: str


BASES = {"network": ("network_base", "NetworkBase"), "optimizers": ("optimizer_base", "OptimizerBase")}
"""File of a stage -> file in shared and class there, which has the methods that are the same on every stage."""


@cache
def python(stage: str, file: str, name: str, language: str = "python") -> Found | None:
    """A function of a stage's file, or a method of the class from which its class is derived; None where there is none
    of that name. file: without .py"""
    path = _path(stage, file)
    text = _text(path)
    if text is None:
        return None
    try:
        place = find(text, name, path)
    except FunctionMissing:
        kind, _, method = name.rpartition(".")
        if kind and file in BASES and stage != "shared":
            base, base_kind = BASES[file]
            found = python("shared", base, f"{base_kind}.{method}", language)
            return None if found is None else replace(found, name=name)
        return None
    return Found(name, path, place.first, dedented(function_text(text, place)), language)


def kernel(name: str) -> Found | None:
    """A function of stage 4's kernels; name: "file.function"."""
    file, _, function = name.partition(".")
    return python(f"{STAGE4}/kernels", file, function, "kernel")


@cache
def c(name: str) -> Found | None:
    """A C function of stage 3, with the comment above it; None where there is none of that name.

    name: with its file before it, "matmul_packed.tile", where several files have one
    """
    given, _, name = name.rpartition(".")
    file = f"{STAGE3}/csrc/{given}.c" if given else _c_files().get(name)
    if file is None:
        return None
    text = _text(file) or ""
    place = find(text, name, file)
    lines = lines_of(text)
    first = _comment_above(lines, place.first)
    return Found(name, file, first, "".join(lines[first - 1 : place.last]), "c")


@cache
def _c_files() -> dict[str, str]:
    """The C functions of stage 3, each with its file."""
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / STAGE3 / "csrc").glob("*.c")}
    defined = re.compile(r"^(?!return|else)[a-z][\w *]*?\b(?:NAME\()?(\w+)\)?\([^;]*?\)\s*\{", re.MULTILINE)
    return {name: file for file in sorted(files) for name in defined.findall(_text(file) or "")}


def called_in_c(function: Found) -> list[Found]:
    """The C functions whose names stand in a C function."""
    names = dict.fromkeys(re.findall(r"\w+", function.text.partition("{")[2]))
    found = [each for name in names if name != function.name and (each := c(name)) is not None]
    return [each for each in found if not each.file.endswith("/pool.c") and each.text.count("\n") > 2]


def helpers(function: Found) -> list[Found]:
    """The functions of the same file that a Python function calls, but for those that only look at its arguments."""
    stage, _, file = function.file.removesuffix(".py").rpartition("/")
    owner = f"{function.name.rpartition('.')[0]}." if "." in function.name else ""
    names = []
    for node in ast.walk(ast.parse(function.text)):
        if isinstance(node, ast.Call) and (name := _called(node)):
            names.append((node.lineno, node.col_offset, name.replace("self.", owner)))
    ordered = dict.fromkeys(name for _, _, name in sorted(names) if name != function.name and not _checks(name))
    return [each for name in ordered if (each := python(stage, file, name, function.language)) is not None]


def chain(function: Found) -> list[Found]:
    """A function, those of its file that it calls, and what the first of them passes on to, if it does nothing else."""
    found = [function, *helpers(function)]
    while passes_on(found[-1]) and len(found) < 4 and (more := [each for each in helpers(found[-1]) if each not in found]):
        found += more
    return found


def worker(functions: list[Found]) -> int:
    """Which function of a chain does the work: the first that does not only pass on."""
    return next((at for at, each in enumerate(functions) if not passes_on(each)), len(functions) - 1)


def passes_on(function: Found) -> bool:
    """Whether a Python function does nothing but check its arguments and call another one."""
    statements = [each for each in _definition(function).body if not _is_check(each)]
    return len(statements) == 1 and _called(getattr(statements[0], "value", None)) != ""


def said(function: Found) -> range:
    """The lines, from 0, that are a docstring, or in C the comment above the function."""
    if function.language == "c":
        return range(function.text[: function.text.find("*/")].count("\n") + 1 if function.text[:2] == "/*" else 0)
    node = _definition(function)
    return range(node.body[0].lineno - 1, node.body[0].end_lineno or 0) if ast.get_docstring(node) else range(0)


def sentence(function: Found) -> str:
    """The first line of a Python function's docstring."""
    return (ast.get_docstring(_definition(function)) or "").partition("\n")[0]


def head(function: Found) -> range:
    """The lines, from 0, of its declaration, without decorators."""
    if function.language == "c":
        first = len(said(function))
        return range(first, first + function.text.split("\n", first)[first].partition("{")[0].count("\n") + 1)
    node = _definition(function)
    return range(node.lineno - 1, node.body[0].lineno - 1)


def _definition(function: Found) -> ast.FunctionDef:
    (node,) = ast.parse(function.text).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _called(node: ast.AST | None) -> str:
    """The name of what a call calls, "self.name" for a method of its own; "" for another object's."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
        return f"self.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""


def _checks(name: str) -> bool:
    return name.rpartition(".")[2].startswith(CHECKING)


def _is_check(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Constant) or (not isinstance(statement, ast.Return) and _checks(_called(value)))


def ladder(stage: str, file: str) -> dict[str, str]:
    """Rung -> the name of its function, slowest first, of a stage's ladder; {} where the stage has none."""
    text = _text(_path(stage, file))
    for node in ast.walk(ast.parse(text)) if text else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            rungs = [(key, value) for key, value in pairs if isinstance(key, ast.Constant)]
            if node.target.id == LADDERS[file]:
                return {str(key.value): value.id for key, value in rungs if isinstance(value, ast.Name)}
    return {}


def _comment_above(lines: list[str], first: int) -> int:
    """The first line of the C comment that ends directly above a line; the line itself where there is none."""
    if first < 2 or not lines[first - 2].rstrip().endswith("*/"):
        return first
    at = first - 1
    while at > 1 and "/*" not in lines[at - 1]:
        at -= 1
    return at


def _path(stage: str, file: str) -> str:
    return f"{stage}/{STEPS4 if (stage, file) == (STAGE4, 'steps') else file}.py"


@cache
def _text(file: str) -> str | None:
    path: Path = ROOT / file
    return path.read_text(encoding="utf-8") if path.is_file() else None
