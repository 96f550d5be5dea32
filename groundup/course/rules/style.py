"""One remark on the style of a function that has passed, where there is one to make.

Only what is certain from the text alone is remarked on, and nothing in C. GROUNDUP_LEARN_STYLE=off turns it off.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from groundup.course.learner.functions import dedented, is_c
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from shared.contract import STAGES

VARIABLE = "GROUNDUP_LEARN_STYLE"


def remark(workspace: Workspace, task: Task) -> str:
    """ "line 12: what could be written otherwise", the first of its function; "" if there is none, or it is off."""
    if os.environ.get(VARIABLE) == "off" or is_c(task.file) or task.fault:
        return ""
    (function,) = ast.parse(dedented(workspace.function(task))).body
    found = min(_remarks(function, task), default=None)
    return f"line {workspace.place(task).first + found[0] - 1}: {found[1]}" if found else ""


def _remarks(function: ast.stmt, task: Task) -> Iterator[tuple[int, str]]:
    """(line of the function, remark)."""
    nodes = [*ast.walk(function)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    # view += … writes into the array that it is a view of.
    read |= {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    outside = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    classes = (inner for node in nodes if isinstance(node, ast.ClassDef) for inner in ast.walk(node))
    outside |= {node.id for node in classes if isinstance(node, ast.Name)}
    arrays = set(_arrays(nodes)) if task.stage == STAGES[1] or task.stage not in STAGES else set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.BinOp(), attr="copy"), args=[]):
                yield node.lineno, "the result of arithmetic is a new array already: no copy is needed"
            case ast.Call(func=ast.Attribute(value=ast.Name("np"), attr="copy"), args=[ast.BinOp()]):
                yield node.lineno, "the result of arithmetic is a new array already: np.copy is not needed"
            case ast.Call(func=ast.Name("list"), args=[ast.ListComp()]):
                yield node.lineno, "list(…) copies the list that the comprehension has just made: leave it out"
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() as how], comparators=[ast.Constant(value=None)]):
                yield node.lineno, f"None is compared by `is{' not' * isinstance(how, ast.NotEq)}`: == asks the object"
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in read | outside and name[0] != "_":
                yield node.lineno, f"{name} is never read"
            case ast.For(target=ast.Name(id=index), iter=ast.Call(func=ast.Name("range"))):
                if (array := _written_by_element(node, index)) in arrays:
                    yield node.lineno, f"a loop over the elements of {array}: NumPy computes all of them in one call"


def _arrays(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The names of what is an array, and no list of arrays: by its annotation, or because NumPy has made it."""
    for node in nodes:
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as kind) if ast.unparse(kind).split(" |")[0] in ARRAYS:
                yield name
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Attribute(value=ast.Name("np")))):
                yield name


ARRAYS = ("Array", "np.ndarray")


def _written_by_element(loop: ast.For, index: str) -> str:
    """The array of which such a loop writes element by element, from elements at the same place; "" for other loops."""
    match loop.body:
        case [ast.Assign(targets=[ast.Subscript(value=ast.Name(array), slice=ast.Name(place))], value=value)]:
            pass
        case [ast.AugAssign(target=ast.Subscript(value=ast.Name(array), slice=ast.Name(place)), value=value)]:
            pass
        case _:
            return ""
    nodes = [*ast.walk(value)]
    names = [node for node in nodes if _is_name(node, index)]
    at_place = [node for node in nodes if isinstance(node, ast.Subscript) and _is_name(node.slice, index)]
    plain = all(isinstance(node, PLAIN) for node in nodes)
    return array if place == index and plain and at_place and len(names) == len(at_place) else ""


PLAIN = (ast.BinOp, ast.operator, ast.Subscript, ast.Name, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
