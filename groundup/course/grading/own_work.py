"""Whether an answer is the learner's own: the check `way` of every task looks at what the function calls.

A result does not tell who computed it. matmul_ijk that calls matmul_ikj has the right product, and so has a product of
lists that NumPy has multiplied. What is looked at is the function itself and the functions and macros that the learner
has added to the file and that it calls.

    in C          no other function of groundup.h, except those in MAY_CALL
    in Python     nothing from another stage or another library: only what the project's file imports, the standard
                  library, and the stage's own files. Which names of these have the result already is for the task's own
                  check; checks/source.py looks for them
    in a kernel   no other kernel of the file; device functions are there to be called
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from groundup.course.assembly import C_FOLDER, C_VARIABLE
from groundup.course.checks.check import ORDER, Check, Tally, Wrong
from groundup.course.checks.source import local_variables
from groundup.course.learner.c_source import c_function, code_of
from groundup.course.learner.functions import is_c, lines_of
from groundup.course.learner.project_files import solution_file
from groundup.course.manifest import ROOT, Task
from shared.contract import STAGES

MAY_CALL: dict[str, frozenset[str]] = {
    "6.3": frozenset({"add_bias"}),
    "7.3": frozenset({"softmax"}),
    "8.4": frozenset({"first_bad_label", "network_forward", "network_backward", "loss_by_number", "optimize"}),
}
"""By task, the functions of groundup.h that an answer in C may call: they do a part of the work, not all of it."""

HEADER = "groundup.h"

WORD = r"[A-Za-z_]\w*"

PLAIN_PYTHON = (
    "this stage is plain Python: take lists, loops and the standard library. Another library, or another stage, "
    "would do the exercise for you"
)

ANOTHER = "another library, or another stage, would do the exercise for you: take what the file imports already"

OTHER_KERNEL = "a kernel is launched, and not called by another one: write the work of this one here"

LOOKING_UP = {"globals", "eval", "exec", "__import__"}
"""Functions that find another one by a text, so that no name of it stands in the source."""

LOADERS = {"importlib", "pkgutil", "runpy", "subprocess"}
"""Modules of the standard library that bring in others."""


def with_own_work(checks: list[Check], task: Task) -> list[Check]:
    """The checks of a task; `way` looks first at what the function calls. A task without that check gets it."""
    look = _in_c(task) if is_c(task.file) else _in_python(task)
    ways = [check for check in checks if check.name == "way"]
    if not ways:
        later = ORDER[ORDER.index("way") :]
        place = next((i for i, check in enumerate(checks) if check.name in later), len(checks))
        return [*checks[:place], Check("way", look), *checks[place:]]

    def run(tally: Tally) -> None:
        look(tally)
        ways[0].run(tally)

    return [Check("way", run) if check is ways[0] else check for check in checks]


STATIC = (
    "a static variable is one for all calls, and for all threads that call at the same time: let it be local, or const"
)


def _in_c(task: Task) -> Callable[[Tally], None]:
    def look(tally: Tally) -> None:
        body = text_of(task.file, task.function).partition("{")[2]
        static = re.search(r"\bstatic\b(?!\s+const\b)", body)
        tally.holds(not static, f"{task.function} has a static variable", cause=STATIC)
        declared = declared_functions()
        for name, through in named_in(task):
            by = f"{task.function} calls {name}" + (f", in {through}" if through else "")
            cause = f"{name} is another function of the project, and does the work of this one: write it yourself"
            called = name in declared and name not in {task.function, *MAY_CALL.get(task.id, ())}
            tally.holds(not called, by, cause=cause)

    return look


def declared_functions() -> set[str]:
    """The functions that groundup.h declares, by the name in NAME(...)."""
    code = code_of((ROOT / C_FOLDER / HEADER).read_text(encoding="utf-8"))
    found = set(re.findall(r"\bNAME\((\w+)\)\s*\(", code))
    activations = set(re.findall(r"\bDECLARE_ACTIVATION\((\w+)\);", code))
    return found | activations | {f"{name}_backward" for name in activations}


def named_in(task: Task) -> Iterator[tuple[str, str]]:
    """The functions of groundup.h that are named in a function in C, and in what the learner has added and it uses.

    A function of the header is NAME(softmax) or softmax_f64; a variable may have the name itself, such as `peak`.
    Yields (the function's name; the name of the helper or macro that it stands in, "" for the function itself).
    """
    text, original = _assembled(task.file), solution_file(task.file)
    todo, seen, naming = [(task.function, "")], {task.function}, {"NAME"}
    while todo:
        name, through = todo.pop()
        code = code_of(_definition(text, name))
        for word in re.findall(WORD, code):
            if word not in seen and _definition(text, word) and not _definition(original, word):
                seen.add(word)
                todo.append((word, word))
                if re.search(r"##|\bNAME\b", _definition(text, word)):
                    naming.add(word)
        for called, inner in re.findall(rf"({WORD})[ \t\n]*\(([^()]*)\)", code):
            if called in naming:
                yield from ((word, through) for word in re.findall(WORD, inner))
        yield from ((word, through) for word in re.findall(rf"({WORD})_f(?:32|64)\b", code))


def text_of(file: str, function: str) -> str:
    """A function in C, without its comments."""
    return code_of(_definition(_assembled(file), function))


def words_of(file: str, function: str) -> list[str]:
    """Every word of a function in C, its declaration among them, as often as it stands there."""
    return re.findall(WORD, text_of(file, function))


def _assembled(file: str) -> str:
    """The text of a C file with the learner's function in it; the project's where nothing is graded."""
    folder = Path(os.environ.get(C_VARIABLE) or ROOT / C_FOLDER)
    return (folder / Path(file).name).read_text(encoding="utf-8")


def _definition(text: str, name: str) -> str:
    """The text of a function or macro; "" if the file defines none of that name."""
    macro = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b((?:[^\n]*\\\n)*[^\n]*)", text, re.MULTILINE)
    if macro:
        return macro[1]
    try:
        first, _, last = c_function(text, name)
    except ValueError:
        return ""
    return "".join(lines_of(text)[first - 1 : last])


def _in_python(task: Task) -> Callable[[Tally], None]:
    def look(tally: Tally) -> None:
        spec = importlib.util.find_spec(task.file.removesuffix(".py").replace("/", "."))
        text = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
        original = ast.parse(solution_file(task.file))
        tree = ast.parse(text)
        allowed = {module.partition(".")[0] for module, _ in _imports(original).values()} | _at_hand(task)
        imported = _imports(tree)
        cause = PLAIN_PYTHON if task.stage == STAGES[0] else ANOTHER
        kernels = _kernels(original) - {task.function}
        tally.count += 1
        for node, helper in reached(tree, original, task):
            module, name = imported.get(node.id, ("", ""))
            root = module.partition(".")[0]
            if node.id in LOOKING_UP or (module and root not in allowed and not _is_standard(root)):
                used = f"{name} of {module}" if name else module or node.id
                raise Wrong(f"{helper or task.function} uses {used}", cause=cause, line=node.lineno)
            if node.id in kernels:
                sentence = f"{helper or task.function} calls {node.id}, which is another kernel"
                raise Wrong(sentence, cause=OTHER_KERNEL, line=node.lineno)

    return look


def _kernels(tree: ast.Module) -> set[str]:
    """The names of the kernels that a file defines with @cuda.jit; device functions are decorated with a call."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "cuda.jit" in map(ast.unparse, node.decorator_list)
    }


def _at_hand(task: Task) -> set[str]:
    """Packages that a stage takes for granted, whatever its file imports.

    Its own; from stage 2 on NumPy; and in stage 4 Numba, whose types kernels need, such as int32.
    """
    if task.stage not in STAGES:
        return {"numpy"}
    own, numpy, numba = {task.stage}, {"numpy"}, {"numba"}
    return own | (numpy if task.stage != STAGES[0] else set()) | (numba if task.stage == STAGES[3] else set())


def _is_standard(root: str) -> bool:
    return root in sys.stdlib_module_names and root not in LOADERS


def _imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """What each imported name stands for: (module, name in it; "" for the module). Relative imports are left out."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                found[each.asname or each.name.partition(".")[0]] = (each.name, "")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                found[each.asname or each.name] = (node.module, each.name)
    return found


def reached(tree: ast.Module, original: ast.Module, task: Task) -> Iterator[tuple[ast.Name, str]]:
    """Every name that the task's function reads, and the helpers that the learner has added to the file.

    Local variables are left out: in `momentum = numbers[KEEP_FIRST]` no kernel is called.
    Yields (the name's node; the helper that it stands in, "" for the function itself).
    """
    theirs = {node.name for node in ast.walk(original) if isinstance(node, ast.FunctionDef)}
    added: dict[str, ast.AST] = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name not in theirs
    }
    added |= {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    todo: list[tuple[ast.AST, str]] = [(_function_node(tree, task), "")]
    seen: set[str] = set()
    while todo:
        within, helper = todo.pop()
        local = local_variables(within)
        for node in ast.walk(within):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
                yield node, helper
                if node.id in added and node.id not in seen:
                    seen.add(node.id)
                    todo.append((added[node.id], node.id))


def _function_node(tree: ast.Module, task: Task) -> ast.AST:
    """The syntax of the task's function, such as `tiled.product`; the last definition counts."""
    found: ast.AST = tree
    for part in task.function.split("."):
        body: list[ast.stmt] = getattr(found, "body", [])
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part][-1]
    return found
