"""What a name in a kernel stands for: one of CUDA's own, a constant, a function, or a variable.

Numba freezes globals when it compiles, and so does the emulator: `TILE`, `config.TILE` and a captured variable are
looked up once, and their values become part of the generated source.
"""

from __future__ import annotations

import ast
import zlib
from types import ModuleType
from typing import Any

import numpy as np

from .intrinsics import Intrinsic
from .source import FunctionSource

#: The answer for a name that has no value before the kernel runs.
UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()


def array_name(text: str, value: np.ndarray[Any, Any]) -> str:
    """What the generated source calls a global array: two of one name and different contents are told apart."""
    contents = zlib.crc32(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return f"_const_{text.replace('.', '_')}_{contents:08x}"


def is_cuda(value: Any) -> bool:
    """Whether `value` is a `cuda` namespace: the emulator's own, or numba.cuda."""
    if not isinstance(value, ModuleType):
        return False
    return getattr(value, "__groundup_emulator__", False) is True or value.__name__ == "numba.cuda"


def look_up(source: FunctionSource, node: ast.expr) -> Any:
    """The value that a constant, a name or a dotted name has before the kernel runs; else UNKNOWN."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return UNKNOWN if node.id in source.stored else source.names.get(node.id, UNKNOWN)
    if isinstance(node, ast.Attribute):
        owner = look_up(source, node.value)
        if owner is UNKNOWN:
            return UNKNOWN
        if is_cuda(owner) and not hasattr(owner, node.attr):
            return Intrinsic(node.attr)
        if isinstance(owner, Intrinsic):
            return Intrinsic(f"{owner.path}.{node.attr}")
        return getattr(owner, node.attr, UNKNOWN)
    return UNKNOWN


def cuda_path(source: FunctionSource, node: ast.expr) -> str | None:
    """`atomic.add` where `node` says cuda.atomic.add, however cuda was imported; None where it says something else."""
    value = look_up(source, node)
    return value.path if isinstance(value, Intrinsic) else None


def constant(source: FunctionSource, node: ast.expr) -> Any:
    """The value of an expression of constants, like `TILE * (TILE + 1)` or `(BM, BK)`; else UNKNOWN."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call | ast.Lambda | ast.ListComp | ast.NamedExpr):
            return UNKNOWN
        if isinstance(part, ast.Name) and look_up(source, part) is UNKNOWN:
            return UNKNOWN
    try:
        return eval(compile(ast.Expression(body=node), source.filename, "eval"), dict(source.names))
    except Exception:  # whatever the expression raises, it is no constant: its user says what it has to be
        return UNKNOWN
