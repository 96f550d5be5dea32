"""A function's text, found in the installed files. Nothing is copied: what the page shows is what runs.

python(stage, file, name)    a function or a method of a stage, "relu" or "Dense.forward"
c(name)                      a C function of stage 3, with the comment above it
kernel(name)                 a function of stage 4's kernels, "activations.relu_of"
helpers(function)            the functions of the same file that it calls
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
    """A C function of stage 3, with the comment above it; None where there is none of that name."""
    mentioned = re.compile(rf"\b{re.escape(name)}\b")
    for path in sorted((ROOT / STAGE3 / "csrc").glob("*.[ch]")):
        file = path.relative_to(ROOT).as_posix()
        text = _text(file) or ""
        if not mentioned.search(text):
            continue
        try:
            place = find(text, name, file)
        except FunctionMissing:
            continue
        lines = lines_of(text)
        first = _comment_above(lines, place.first)
        return Found(name, file, first, "".join(lines[first - 1 : place.last]), "c")
    return None


def helpers(function: Found) -> list[Found]:
    """The functions of the same file that a Python function calls, but for those that only look at its arguments."""
    stage, _, file = function.file.removesuffix(".py").rpartition("/")
    owner = f"{function.name.rpartition('.')[0]}." if "." in function.name else ""
    names = []
    for node in ast.walk(ast.parse(function.text)):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                names.append((node.lineno, called.id))
            elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
                names.append((node.lineno, owner + called.attr))
    plain = [name for _, name in sorted(names) if not name.rpartition(".")[2].startswith(CHECKING)]
    ordered = dict.fromkeys(name for name in plain if name != function.name)
    return [each for name in ordered if (each := python(stage, file, name, function.language)) is not None]


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
