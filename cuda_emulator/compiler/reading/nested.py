"""Functions that a kernel defines inside: `def` and lambda.

A nested function is compiled like a device function of its own. What it uses of the function around it, it gets as
further arguments: the call passes the values that these variables have at that moment, which is also when Python would
read them.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from ..functions import DeviceFunction
from .loop_else import without_loop_else
from .source import FunctionSource, own_nodes, stored_in


class NestedSource(FunctionSource):
    """The source of a function that another one defines. node: its def, or its lambda; name: what it is called.

    is_searched: whether `nested` has the functions that it defines itself, besides those around it
    """

    is_searched = False

    def __init__(self, outer: FunctionSource, node: ast.FunctionDef | ast.Lambda, name: str) -> None:
        self.outer, self.function, self.filename = outer, outer.function, outer.filename
        self.name, self.first_line = name, node.lineno
        body = copy.deepcopy(node.body)
        if isinstance(body, ast.expr):
            body = [ast.copy_location(ast.Return(value=body), node)]
        self.tree = ast.copy_location(
            ast.FunctionDef(name=name, args=copy.deepcopy(node.args), body=body, decorator_list=[]), node
        )
        ast.fix_missing_locations(self.tree)
        without_loop_else(self.tree)
        self.text = ast.unparse(self.tree)
        self.parameters = self.plain_parameters(node.args)
        self.stored = set(self.parameters) | stored_in(self.tree.body)
        around = {name: value for name, value in (outer.nested or {}).items() if name not in self.stored}
        self.captured = self.find_captured(around)
        self.parameters += self.captured
        self.stored |= {*self.captured, *around}
        self.nested = around
        self.defaults: dict[str, Any] = {}
        self.readings = 0
        self.read_names()

    def find_captured(self, around: dict[str, Any]) -> tuple[str, ...]:
        """The variables of the function around it that it uses, also through other nested functions that it calls.

        around: the nested functions that were defined before it
        """
        found: dict[str, None] = {}
        for part in ast.walk(self.tree):
            if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load) or part.id in self.stored:
                continue
            if part.id in around:
                found.update(dict.fromkeys(around[part.id].source.captured))
            elif part.id in self.outer.stored:
                found[part.id] = None
        return tuple(found)

    def read_names(self) -> None:
        """Read the values of the global and captured names again: those of the function around it."""
        self.outer.read_names()
        self.names = self.outer.names
        self.readings += 1


class NestedFunction(DeviceFunction):
    """A function that a kernel defines inside."""

    def __init__(self, source: NestedSource) -> None:
        self.py_func, self.options, self.moves = source.function, {}, 1
        self.__dict__["source"] = source


def nested_functions(source: FunctionSource) -> dict[str, Any]:
    """{name: function} of the functions that a function's body defines, and of those defined around it.

    Raises KernelError for a name that is a function and something else, since its calls have to find one function.
    """
    if source.nested is None or (isinstance(source, NestedSource) and not source.is_searched):
        source.nested = {} if source.nested is None else source.nested
        if isinstance(source, NestedSource):
            source.is_searched = True
        for name, node, function in definitions(source):
            check_definition(source, name, node, function)
            source.nested[name] = NestedFunction(NestedSource(source, function, name))
    return source.nested


def definitions(source: FunctionSource) -> list[tuple[str, ast.stmt, ast.FunctionDef | ast.Lambda]]:
    """(name, statement, def or lambda) of each function that a function's body defines."""
    found: list[tuple[str, ast.stmt, ast.FunctionDef | ast.Lambda]] = []
    for node in own_nodes(source.tree.body):
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, node, node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found += [(target.id, node, node.value) for target in node.targets if isinstance(target, ast.Name)]
    return found


def check_definition(source: FunctionSource, name: str, node: ast.stmt, function: ast.FunctionDef | ast.Lambda) -> None:
    """Refuse what cannot be told at a call: a function that is assigned again, decorated, or has default values."""
    if stores(source, name) > 1:
        what = f"{name!r} is defined in the kernel and assigned again"
        instead = "Give each function its own name"
    elif isinstance(node, ast.FunctionDef) and node.decorator_list:
        what, instead = f"{name!r} has a decorator inside a kernel", "Leave it out, or define the function outside"
    elif function.args.defaults:
        what, instead = f"{name!r} has default values inside a kernel", "Give every argument in the call"
    else:
        return
    raise source.error(f"{what}: that is not supported by the emulator. {instead}", node)


def stores(source: FunctionSource, name: str) -> int:
    """The number of times that a function's body assigns or defines a name."""
    nodes = list(own_nodes(source.tree.body))
    assigned = sum(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in nodes)
    return assigned + sum(isinstance(node, ast.FunctionDef) and node.name == name for node in nodes)
