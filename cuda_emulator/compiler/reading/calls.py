"""Calls in normal form: CUDA's own functions, device functions, and functions that Numba supports."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING

from ...errors import KernelError
from ...helpers.half import learn_float16
from ...intrinsics import (
    ATOMICS,
    AXES,
    BITS,
    COLLECTIVES,
    FENCES,
    FP16,
    GRID_BARRIER,
    INDEX,
    LOADS,
    SHUFFLES,
    STORES,
    THIS_GRID,
    Intrinsic,
    not_supported,
)
from ..functions import DeviceFunction
from ..trees import Collective, call, constant, expression, load, placed, store
from . import groups, inline, names
from .signatures import by_position
from .statics import static_expression

if TYPE_CHECKING:
    from .normalise import Normaliser

#: Numbers of arguments of the collectives that differ from those of their family.
COUNTS = {
    "syncthreads": (0,),
    GRID_BARRIER: (0,),
    "activemask": (0,),
    "syncwarp": (0, 1),
    **dict.fromkeys(SHUFFLES, (3,)),
}
INDEX_VARIABLES = frozenset(stem + axis for stem in ("_t", "_b", "_bd", "_gd") for axis in AXES)


def rewritten(normaliser: Normaliser, node: ast.Call) -> ast.expr:
    """The normal form of a call."""
    if isinstance(node.func, ast.Attribute) and groups.holds_group(normaliser, node.func.value):
        if node.func.attr != "sync":
            raise without_support(normaliser, f"{THIS_GRID}().{node.func.attr}()", node)
        if isinstance(node.func.value, ast.Call):
            groups.group_of(normaliser, node.func.value)
        return collective(normaliser, GRID_BARRIER, node)
    function = names.look_up(normaliser.source, node.func)
    if isinstance(function, Intrinsic):
        return intrinsic_call(normaliser, function.path, by_position(normaliser.source, function.path, node))
    if isinstance(function, DeviceFunction):
        return inline.device_call(normaliser, function, node)
    if isinstance(function, FunctionType) and static_expression(function) is None:
        raise normaliser.error(
            f"{ast.unparse(node.func)!r} is a plain Python function; a kernel can call it once it is marked "
            "@cuda.jit(device=True)",
            node,
        )
    bare = not node.args and not node.keywords
    if isinstance(node.func, ast.Attribute) and node.func.attr == "bit_count" and bare and function is names.UNKNOWN:
        return call("_popc", normaliser.expression(node.func.value))  # of an int; Numba's CPU has no such method
    if function is print:
        normaliser.unit.prints = True
    target, *new = normaliser.in_order([node.func, *node.args, *(keyword.value for keyword in node.keywords)])
    arguments, values = new[: len(node.args)], new[len(node.args) :]
    keywords = [ast.keyword(arg=old.arg, value=value) for old, value in zip(node.keywords, values, strict=True)]
    return ast.Call(func=target, args=arguments, keywords=keywords)


def intrinsic_call(normaliser: Normaliser, path: str, node: ast.Call) -> ast.expr:
    """The normal form of cuda.X(...)."""
    if path in COLLECTIVES:
        return collective(normaliser, path, node)
    if path in FENCES:
        normaliser.unit.fence |= path in ("threadfence", "threadfence_system")
        return constant(None)
    if path == THIS_GRID:
        return groups.group_of(normaliser, node)
    if path in ("grid", "gridsize"):
        return grid(normaliser, path, node)
    if path in STORES:
        return stored(normaliser, path, node)
    if path == "const.array_like" and len(node.args) == 1:
        return normaliser.expression(node.args[0])
    if path in ("shared.array", "local.array"):
        raise normaliser.error(f"cuda.{path}(shape, dtype) must be assigned to a name, in a statement of its own", node)
    if node.keywords:
        raise normaliser.error(f"cuda.{path}() takes its arguments by position in the emulator", node)
    arguments = normaliser.in_order(node.args)
    if path in LOADS and len(arguments) == 2:
        return ast.Subscript(value=arguments[0], slice=arguments[1], ctx=ast.Load())
    if path in LOADS:
        raise normaliser.error(f"cuda.{path}() takes an array and an index, got {len(arguments)} arguments", node)
    if path.startswith("atomic.") and path[7:] in ATOMICS:
        expected = 4 if path == "atomic.cas" else 3
        if len(arguments) != expected:
            raise normaliser.error(f"cuda.{path}() takes {expected} arguments, got {len(arguments)}", node)
        return call(f"_atomic_{path[7:]}", *arguments)
    if path in BITS:
        if path == "lanemask_lt":
            arguments = [load("_lane")]
        if path not in ("fma", "selp"):
            # A thread's index has 32 bits on a device, and the result of these functions depends on the width.
            arguments = [call("np.int32", argument) if is_index(argument) else argument for argument in arguments]
        return call(f"_{path}", *arguments)
    if path.startswith("fp16.") and path[5:] in FP16:
        return half_call(normaliser, path, arguments, node)
    if path in INDEX:
        raise normaliser.error(f"cuda.{path} is not a function; write cuda.{path}.x", node)
    raise without_support(normaliser, path + "()", node)


def half_call(normaliser: Normaliser, path: str, arguments: list[ast.expr], node: ast.Call) -> ast.expr:
    """A function of cuda.fp16, as an expression."""
    computed = expression(FP16[path[5:]])
    wanted = sorted({part.id for part in ast.walk(computed) if isinstance(part, ast.Name)} & set("abc"))
    if len(arguments) != len(wanted):
        raise normaliser.error(f"cuda.{path}() takes {len(wanted)} arguments, got {len(arguments)}", node)
    learn_float16()
    halves = {name: call("np.float16", each) for name, each in zip(wanted, arguments, strict=True)}
    filled = Filled(halves).visit(computed)
    return filled if isinstance(filled, ast.Compare) else call("np.float16", filled)


class Filled(ast.NodeTransformer):
    """An expression with other expressions in place of some names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The expression of this name, if there is one."""
        return self.values.get(node.id, node)


def is_index(node: ast.expr) -> bool:
    """Whether `node` is an index variable alone, like threadIdx.x or blockDim.y."""
    return isinstance(node, ast.Name) and node.id in INDEX_VARIABLES


def without_support(normaliser: Normaliser, path: str, node: ast.AST) -> KernelError:
    """The error for a part of cuda that the emulator does not support."""
    return normaliser.error(not_supported(path), node)


def stored(normaliser: Normaliser, path: str, node: ast.Call) -> ast.expr:
    """A store with a cache hint, like cuda.stcg(array, i, value), as array[i] = value."""
    if normaliser.lazy or len(node.args) != 3:
        raise normaliser.error(f"cuda.{path}(array, i, value) takes three arguments, in a statement of its own", node)
    array, index, value = normaliser.in_order(node.args)
    target = ast.Subscript(value=array, slice=index, ctx=ast.Store())
    normaliser.before.append(placed(ast.Assign(targets=[target], value=value), node))
    return constant(None)


def grid(normaliser: Normaliser, path: str, node: ast.Call) -> ast.expr:
    """cuda.grid(n) or cuda.gridsize(n), computed from the thread and block indices."""
    dimensions = names.constant(normaliser.source, node.args[0]) if len(node.args) == 1 else None
    if dimensions not in (1, 2, 3):
        raise normaliser.error(f"cuda.{path}() takes the number of dimensions: 1, 2 or 3, written as a constant", node)
    pattern = "_b{0} * _bd{0} + _t{0}" if path == "grid" else "_gd{0} * _bd{0}"
    parts = [expression(pattern.format(axis)) for axis in AXES[:dimensions]]
    return parts[0] if dimensions == 1 else ast.Tuple(elts=parts, ctx=ast.Load())


def collective(normaliser: Normaliser, path: str, node: ast.Call) -> ast.expr:
    """Move a barrier, shuffle or vote into a statement of its own; return the variable with its result."""
    if normaliser.lazy:
        raise normaliser.error(
            f"cuda.{path}() inside 'a if c else b', 'and' or 'or' is not supported by the emulator: not every "
            "thread may reach it. Call it in a statement of its own, before",
            node,
        )
    block_wide = path.startswith("syncthreads")
    wanted = COUNTS.get(path, (1,) if block_wide else (2,))
    if len(node.args) not in wanted or node.keywords:
        count = " or ".join(map(str, wanted))
        raise normaliser.error(
            f"cuda.{path}() takes {count} arguments, got {len(node.args) + len(node.keywords)}", node
        )
    operands: list[ast.expr] = []
    for position, argument in enumerate(normaliser.in_order(node.args)):
        is_value = position == (0 if block_wide else 1)  # the operand that differs from thread to thread
        plain = isinstance(argument, ast.Constant) and not is_value
        operands.append(argument if plain else normaliser.in_variable("operand", argument, node))
    results = [normaliser.unit.fresh("result") for _ in range(result_count(path))]
    normaliser.before.append(placed(Collective(path, operands, [store(name) for name in results], node.lineno), node))
    if not results:
        return constant(None)
    if len(results) == 1:
        return load(results[0])
    return ast.Tuple(elts=[load(name) for name in results], ctx=ast.Load())


def result_count(path: str) -> int:
    """The number of values that a collective returns to each thread."""
    return {"syncthreads": 0, GRID_BARRIER: 0, "syncwarp": 0, "match_all_sync": 2}.get(path, 1)
