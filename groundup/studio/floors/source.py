"""A function's text, found in the installed files. Nothing is copied: what the page shows is what runs.

functions(stage, file, name)  a function of a stage, what it leads to, and which of them does the work
ladder(stage, file)           a ladder's rungs: {rung: the name of its function}
said, head                    the lines of a text that explain it, and its declaration

below.json has for each stage what lies below a function: first what does the work, "itself" if nothing else does,
then the rest. "C dense.add_bias" is a C function of stage 3, "kernel dense.add_bias" one of stage 4's kernels, each
after its file, and any other name is a function of the same Python file.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from groundup.course.learner.functions import FunctionMissing, dedented, find, function_text, lines_of
from shared.machine.processes import ROOT

BELOW: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("below.json").read_text(encoding="utf-8"))

LADDERS = {"matmul": "LADDER", "convolution": "CONVOLUTION_LADDER", "steps": "STEP_LADDER"}
"""File -> the name of the ladder in it."""

BASES = {"network": ("network_base", "NetworkBase"), "optimizers": ("optimizer_base", "OptimizerBase")}
"""File of a stage -> file in shared and class there, which has the methods that are the same on every stage."""


@dataclass(frozen=True)
class Found:
    """A function's text. file: from the folder of the packages; line: its first; text: without its own indentation

    language: "Python", "C" or "kernel"
    """

    name: str
    file: str
    line: int
    text: str
    language: str


def functions(stage: str, file: str, name: str) -> tuple[list[Found], int]:
    """(the function and all that lies below it, which of these does the work); ([], 0) where the stage has none."""
    found = python(_path(stage, file), name)
    if found is None:
        return [], 0
    work, *rest = BELOW[stage].get(f"{file}.{name}", ["itself"])
    below = [each for each in (work, *rest) if each != "itself"]
    texts = [_below(stage, file, each) for each in below]
    if missing := [each for each, text in zip(below, texts, strict=True) if text is None]:
        raise ValueError(f"below.json: {stage} has no {', '.join(missing)}, which should lie below {file}.{name}")
    return [found, *(text for text in texts if text)], 0 if work == "itself" else 1


def _below(stage: str, file: str, name: str) -> Found | None:
    language, _, place = name.rpartition(" ")
    folder, _, function = place.partition(".")
    if language == "C":
        return c(f"{stage}/csrc/{folder}.c", function)
    if language == "kernel":
        return python(f"{stage}/kernels/{folder}.py", function, language)
    return python(_path(stage, file), name)


@cache
def python(path: str, name: str, language: str = "Python") -> Found | None:
    """A function, or a method of the class from which its class is derived; None where there is none of that name."""
    text = _text(path)
    try:
        place = find(text, name, path)
    except FunctionMissing:
        kind, _, method = name.rpartition(".")
        base, base_kind = BASES.get(Path(path).stem, ("", ""))
        if not kind or not base:
            return None
        found = python(f"shared/{base}.py", f"{base_kind}.{method}", language)
        return found and replace(found, name=name)
    return Found(name, path, place.first, dedented(function_text(text, place)), language)


@cache
def c(path: str, name: str) -> Found | None:
    """A C function with the comment above it; None where there is none of that name."""
    text = _text(path)
    try:
        place = find(text, name, path)
    except FunctionMissing:
        return None
    lines, first = lines_of(text), place.first
    if first > 1 and lines[first - 2].rstrip().endswith("*/"):
        first = next(at for at in range(first - 1, 0, -1) if "/*" in lines[at - 1])
    return Found(name, path, first, "".join(lines[first - 1 : place.last]), "C")


def said(function: Found) -> range:
    """The lines, from 0, that are a docstring, or in C the comment above the function."""
    if function.language == "C":
        return range(function.text[: function.text.find("*/")].count("\n") + 1 if function.text[:2] == "/*" else 0)
    node = _definition(function)
    return range(node.body[0].lineno - 1, node.body[0].end_lineno or 0) if ast.get_docstring(node) else range(0)


def head(function: Found) -> range:
    """The lines, from 0, of its declaration, without decorators."""
    if function.language == "C":
        first = len(said(function))
        return range(first, first + function.text.split("\n", first)[first].partition("{")[0].count("\n") + 1)
    node = _definition(function)
    return range(node.lineno - 1, node.body[0].lineno - 1)


def _definition(function: Found) -> ast.FunctionDef:
    (node,) = ast.parse(function.text).body
    assert isinstance(node, ast.FunctionDef)
    return node


def ladder(stage: str, file: str) -> dict[str, str]:
    """Rung -> the name of its function, slowest first, of a stage's ladder; {} where the stage has none."""
    for node in ast.parse(_text(_path(stage, file))).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == LADDERS[file]:
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {ast.literal_eval(key): ast.unparse(value) for key, value in pairs if key is not None}
    return {}


def _path(stage: str, file: str) -> str:
    return f"{stage}/{'plans/choice' if (stage, file) == ('stage4_numba_cuda', 'steps') else file}.py"


@cache
def _text(file: str) -> str:
    """A file's text, "" where the stage has none."""
    return (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
