"""Expressions in normal form: names are resolved, and operands keep Python's order of evaluation."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...intrinsics import AXES, INDEX, Intrinsic
from ..functions import DeviceFunction
from ..trees import ASSIGNED, HAS, LENT, call, constant, load
from . import calls, names
from .statics import NEW_ARRAYS, describe_kind, static_expression
from .unassigned import read_at

if TYPE_CHECKING:
    from .normalise import Normaliser

SHORT = {"threadIdx": "_t", "blockIdx": "_b", "blockDim": "_bd", "gridDim": "_gd"}
PLAIN = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.Slice, ast.Starred)
NO_VALUE = "is a device function: call it; it cannot be stored or passed as an argument"
WITHOUT_SUPPORT = {
    ast.List: "a device has no lists; use a tuple, or cuda.local.array(shape, dtype)",
    ast.ListComp: "a device has no lists; use a loop and cuda.local.array(shape, dtype)",
    ast.Dict: "a device has no dictionaries",
    ast.Set: "a device has no sets",
    ast.Lambda: "a lambda that is used at once is not supported by the emulator; give it a name, and call that",
    ast.JoinedStr: "f-strings are not supported in a kernel; give print several arguments",
    ast.NamedExpr: "':=' is not supported by the emulator; assign in a statement of its own",
}


def rewritten(normaliser: Normaliser, node: ast.expr) -> ast.expr:
    """`node` in normal form. Its collectives become statements in normaliser.before."""
    if isinstance(node, ast.Constant):
        return node
    if isinstance(node, ast.Name | ast.Attribute):
        return name_or_attribute(normaliser, node)
    if isinstance(node, ast.Call):
        return calls.rewritten(normaliser, node)
    if isinstance(node, ast.Subscript):
        if isinstance(names.look_up(normaliser.source, node.value), DeviceFunction):
            raise normaliser.error(
                "a kernel cannot launch a kernel; called without [blocks, threads], it runs in the calling thread",
                node,
            )
        value, index = normaliser.in_order([node.value, node.slice])
        return ast.Subscript(value=value, slice=index, ctx=ast.Load())
    if isinstance(node, ast.IfExp):
        known = names.known_test(normaliser.source, node.test)
        if known is not None:
            return normaliser.expression(node.body if known else node.orelse)
        test = normaliser.expression(node.test)
        body, orelse = normaliser.skippable(node.body), normaliser.skippable(node.orelse)
        return ast.IfExp(test=test, body=body, orelse=orelse)
    if isinstance(node, ast.BoolOp):
        first = normaliser.expression(node.values[0])
        return ast.BoolOp(op=node.op, values=[first, *(normaliser.skippable(value) for value in node.values[1:])])
    if isinstance(node, ast.Compare) and any(
        isinstance(each, ast.Constant) and each.value is None for each in parts(node)
    ):
        known = names.known_test(normaliser.source, node)  # of a captured function: `operation is None`
        if known is not None:
            return constant(known)
    if isinstance(node, PLAIN):
        return with_children(normaliser, node)
    reason = WITHOUT_SUPPORT.get(type(node), f"{type(node).__name__} is not supported by the emulator")
    raise normaliser.error(reason, node)


def parts(node: ast.Compare) -> list[ast.expr]:
    """The operands of a comparison."""
    return [node.left, *node.comparators]


def with_children(normaliser: Normaliser, node: ast.expr) -> ast.expr:
    """`node` with its operands in normal form; they keep Python's order of evaluation."""
    fields = [(name, value) for name, value in ast.iter_fields(node) if isinstance(value, ast.expr | list)]
    operands: list[ast.expr] = []
    for _, value in fields:
        operands += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.expr)]
    done = iter(normaliser.in_order(operands))
    new = type(node)(**dict(ast.iter_fields(node)))
    for name, value in fields:
        if isinstance(value, list):
            setattr(new, name, [next(done) if isinstance(item, ast.expr) else item for item in value])
        else:
            setattr(new, name, next(done))
    return ast.copy_location(new, node)


def name_or_attribute(normaliser: Normaliser, node: ast.Name | ast.Attribute) -> ast.expr:
    """The normal form of a variable, of a global name, or of an attribute of one of them."""
    value = names.look_up(normaliser.source, node)
    if isinstance(node, ast.Name) and node.id in normaliser.source.stored and value is names.UNKNOWN:
        return variable(normaliser, node)
    if value is not names.UNKNOWN:
        return outside_value(normaliser, value, node)
    if isinstance(node, ast.Name):
        raise normaliser.error(f"the name {node.id!r} is not defined", node)
    owner = names.look_up(normaliser.source, node.value)
    if owner is not names.UNKNOWN and names.captured_array(owner) is None:
        raise normaliser.error(f"{ast.unparse(node.value)!r} has no attribute {node.attr!r}", node)
    return ast.Attribute(value=normaliser.expression(node.value), attr=node.attr, ctx=ast.Load())


def variable(normaliser: Normaliser, node: ast.Name) -> ast.expr:
    """The normal form of a variable; the call around it asks whether it has a value, if that is not certain."""
    name, read = normaliser.rename(node.id), read_at(node, node.id)
    for reads, function in ((normaliser.unassigned.reads, ASSIGNED), (normaliser.unassigned.lent, LENT)):
        if read in reads:
            return call(function, load(HAS + name), load(name))
    return load(name)


def outside_value(normaliser: Normaliser, value: Any, node: ast.expr) -> ast.expr:
    """The expression that replaces a global or captured variable in the generated source."""
    if isinstance(value, Intrinsic):
        return intrinsic_value(normaliser, value.path, node)
    captured = names.captured_array(value)
    if captured is not None:
        return load(constant_array(normaliser, captured, node))
    text = ast.unparse(node)
    if callable(value) and isinstance(value, Hashable) and value in NEW_ARRAYS:
        raise normaliser.error(
            f"{text} makes an array, and a device has no memory to allocate while a kernel runs; use "
            "cuda.local.array(shape, dtype) or cuda.shared.array(shape, dtype)",
            node,
        )
    replacement = static_expression(value)
    if replacement is not None:
        return replacement
    if isinstance(value, DeviceFunction):
        raise normaliser.error(f"{text!r} {NO_VALUE}", node)
    raise normaliser.error(
        f"{text!r} is {describe_kind(value)}; a kernel can use numbers, tuples of them, NumPy arrays, types, the "
        "functions of math and NumPy, and device functions",
        node,
    )


def constant_array(normaliser: Normaliser, value: np.ndarray[Any, Any], node: ast.expr) -> str:
    """The name of the hidden argument that passes a global array to the kernel.

    value: the array, from names.captured_array
    """
    text, unit = ast.unparse(node), normaliser.unit
    if value.dtype.kind not in "biufcV":
        raise normaliser.error(f"{text!r} is an array of {value.dtype}; a kernel can use numbers", node)
    name = names.array_name(text, value)
    if name not in unit.constants:
        unit.constants[name] = value
        unit.spelled[name] = text
    return name


def intrinsic_value(normaliser: Normaliser, path: str, node: ast.expr) -> ast.expr:
    """The normal form of cuda.X that is not called, like cuda.threadIdx.x."""
    first, _, last = path.partition(".")
    if first in INDEX and last in AXES:
        return load(SHORT[first] + last)
    if path == "laneid":
        return load("_lane")
    if path == "warpsize":
        return constant(32)
    if path in INDEX:
        raise normaliser.error(f"cuda.{path} has the fields .x, .y and .z: use one of them", node)
    raise calls.without_support(normaliser, path, node)
