"""Calls of device functions: a function that synchronises is inlined, any other stays a function.

A function with a barrier, a shuffle or a vote cannot run for one thread after another: the kernel has to be cut at that
statement. So the function's statements replace the call, with renamed variables.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numba import types

from ...errors import KernelError
from ...intrinsics import COLLECTIVES, Intrinsic
from ..functions import DeviceFunction
from ..trees import assign, call, constant, copied, load, placed
from ..unit import Unit
from . import groups, names
from .source import FunctionSource, own_nodes
from .statics import describe_kind, static_expression

if TYPE_CHECKING:
    from .normalise import Normaliser

FOR_COMPILERS = (Intrinsic, DeviceFunction, types.Type, np.dtype)
"""Values that exist only while a kernel is compiled."""


class Caller(Protocol):
    """What rewrites the function with the call: of the compiler, or of step mode."""

    source: FunctionSource

    def error(self, message: str, node: ast.AST) -> KernelError:
        """A KernelError that points to `node`."""


def must_inline(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> bool:
    """Whether the function, or a function that it calls, contains a collective or a shared array."""
    for node in own_nodes(source.tree.body):
        if not isinstance(node, ast.Call):
            continue
        path = names.cuda_path(source, node.func)
        if path in COLLECTIVES or path == "shared.array" or groups.is_barrier(source, node):
            return True
        function = names.look_up(source, node.func)
        is_new = isinstance(function, DeviceFunction) and function.source not in (*seen, source)
        if is_new and must_inline(function.source, (*seen, source)):
            return True
    return False


def device_call(caller: Normaliser, function: DeviceFunction, node: ast.Call) -> ast.expr:
    """The expression that replaces a call of a device function."""
    source = function.source
    if any(source.tree is known.tree for known in (*caller.stack, caller.source)):
        raise caller.error(f"{source.name!r} calls itself; recursion is not supported by the emulator", node)
    arguments = by_position(caller, source, node)
    bound = constant_arguments(caller, source, arguments)
    if bound:
        arguments = [argument for name, argument in zip(source.parameters, arguments, strict=True) if name not in bound]
        function = copy.copy(function)
        function.__dict__["source"] = source = BoundSource(source, bound)
    if not must_inline(source):
        return call(device_name(caller.unit, function), *caller.in_order(arguments))
    if caller.lazy:
        raise caller.error(
            f"{source.name!r} synchronises, so a call inside 'a if c else b', 'and' or 'or' is not supported by the "
            "emulator; call it in a statement of its own, before",
            node,
        )
    return inlined(caller, source, arguments, node)


class BoundSource(FunctionSource):
    """A device function with some of its arguments bound to constants, which it then reads like global names."""

    def __init__(self, source: FunctionSource, bound: dict[str, Any]) -> None:
        vars(self).update(vars(source))
        self.bound = bound
        self.parameters = [name for name in source.parameters if name not in bound]
        self.stored = source.stored - bound.keys()
        self.read_names()

    def read_names(self) -> None:
        """Read the values of the global and captured names again; those of the arguments stay."""
        super().read_names()
        self.names.update(self.bound)


def constant_arguments(caller: Caller, source: FunctionSource, arguments: list[ast.expr]) -> dict[str, Any]:
    """{parameter: value} of the arguments that are constants, if one of them is a function or a type: no variable of
    the generated source can hold that. Empty for all other calls."""
    if source.captured or source.nested:
        return {}
    assigned = {
        part.id for part in ast.walk(source.tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    bound: dict[str, Any] = {}
    for name, argument in zip(source.parameters, arguments, strict=True):
        value = names.UNKNOWN if getattr(argument, "finished", False) else names.look_up(caller.source, argument)
        if value is names.UNKNOWN and isinstance(argument, ast.Tuple):
            value = names.constant(caller.source, argument)
        if name not in assigned and isinstance(value, (*FOR_COMPILERS, bool, int, float, tuple, np.generic)):
            bound[name] = value
    functions = (value for value in bound.values() if isinstance(value, DeviceFunction))
    if any(function.source.captured for function in functions):
        return {}
    return bound if any(isinstance(value, FOR_COMPILERS) for value in bound.values()) else {}


def by_position(caller: Caller, source: FunctionSource, node: ast.Call) -> list[ast.expr]:
    """The call's arguments in the order of the function's parameters."""
    parameters = source.parameters[: len(source.parameters) - len(source.captured)]
    given = dict(zip(parameters, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in parameters or keyword.arg in given:
            raise caller.error(f"{source.name}() has no argument {keyword.arg!r}, or it is given twice", node)
        given[keyword.arg] = keyword.value
    for name, value in source.defaults.items():
        if name not in given:
            given[name] = default_value(caller, source, name, value, node)
    if len(node.args) > len(parameters) or len(given) != len(parameters):
        came = len(node.args) + len(node.keywords)
        raise caller.error(
            f"{source.name}() takes {len(parameters)} arguments ({', '.join(parameters)}), got {came}",
            node,
        )
    return [given[name] for name in parameters] + [placed(load(name), node) for name in source.captured]


def default_value(caller: Caller, source: FunctionSource, name: str, value: Any, node: ast.Call) -> ast.expr:
    """The expression for an argument that a call leaves out."""
    found = static_expression(value)
    if found is None:
        raise caller.error(
            f"{source.name}() is called without {name!r}, whose default value is {describe_kind(value)}: a kernel can "
            "use numbers, tuples of them and None; give the argument in the call",
            node,
        )
    found.finished = True  # type: ignore[attr-defined]
    return placed(found, node)


def device_name(unit: Unit, function: DeviceFunction) -> str:
    """The name of a plain device function in the generated source; adds the function to the unit."""
    for name, known in unit.device_functions.items():
        if known is function:
            return name
    name = f"_device_{function.source.name}"
    while name in unit.device_functions:
        name += "_"
    unit.device_functions[name] = function
    return name


def inlined(caller: Normaliser, source: FunctionSource, arguments: list[ast.expr], node: ast.Call) -> ast.expr:
    """Put the function's statements before the caller's statement; return the expression with its result."""
    body = copied(source.tree).body
    returns = [part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Return)]
    if returns and (len(returns) > 1 or returns[0] is not body[-1]):
        first = next(statement for statement in returns if statement is not body[-1])
        raise source.error(
            f"{source.name!r} synchronises, and returns before its end; such a device function must have one return, "
            "as its last statement: anything else is not supported by the emulator",
            first,
        )
    inner = caller.for_inlined(source)
    for name, argument in zip(source.parameters, caller.in_order(arguments), strict=True):
        assigned = sum(
            isinstance(p, ast.Name) and p.id == name and isinstance(p.ctx, ast.Store) for p in ast.walk(source.tree)
        )
        # An array is passed by reference, and so can be a number that does not change.
        if isinstance(argument, ast.Name) and not assigned:
            inner.aliases[name] = argument.id
        else:
            caller.before.append(placed(assign(inner.rename(name), argument), node))
    last = body.pop() if returns else None
    caller.before += in_file(inner.whole(body), source)
    if not isinstance(last, ast.Return) or last.value is None:
        return constant(None)
    inner.before = []
    value = inner.expression(last.value)
    result = inner.rename("result")
    caller.before += in_file([*inner.before, placed(assign(result, value), last)], source)
    return load(result)


def in_file(statements: list[ast.stmt], source: FunctionSource) -> list[ast.stmt]:
    """Mark the statements with their function's file and name, for messages."""
    for statement in statements:
        for part in ast.walk(statement):
            if not hasattr(part, "filename"):
                part.filename, part.function = source.filename, source.name  # type: ignore[attr-defined]
    return statements
