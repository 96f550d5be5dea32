"""Look up the names in a kernel: a part of `cuda`, a constant, a function, or a variable.

Numba freezes globals when it compiles, and so does the emulator: `TILE`, `config.TILE` and captured variables are
looked up once, and their values become part of the generated source.
"""

from __future__ import annotations

import ast
import zlib
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.core.dispatcher import Dispatcher

from ...intrinsics import Intrinsic
from ...runtime.devicearray import of_interface
from ..functions import DeviceFunction
from .nested import nested_functions
from .source import FunctionSource

#: The result of a look-up for a name that has no value before the kernel runs.
UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()


def captured_array(value: Any) -> np.ndarray[Any, Any] | None:
    """The memory of a global array: a read-only copy of a NumPy array (Numba freezes it), the device array's own
    memory, also behind another library's __cuda_array_interface__. None for anything else."""
    if isinstance(value, np.ndarray):
        frozen = value.copy()
        frozen.flags.writeable = False
        return frozen
    memory = getattr(value, "_array", None) if getattr(value, "__cuda_ndarray__", False) else None
    if memory is None and isinstance(interface := getattr(value, "__cuda_array_interface__", None), dict):
        memory = of_interface(interface, "an array that a kernel reads by name")._array
    return memory if isinstance(memory, np.ndarray) else None


def array_name(text: str, value: np.ndarray[Any, Any]) -> str:
    """The name of a global array in the generated source. Arrays with one name and different contents get two names.

    value: the result of captured_array. For a device array, whose contents may change, dtype and shape decide
    """
    contents = b"device" if value.flags.writeable else np.ascontiguousarray(value).tobytes()
    number = zlib.crc32(f"{value.dtype}{value.shape}".encode() + contents)
    return f"_const_{text.replace('.', '_')}_{number:08x}"


def is_cuda(value: Any) -> bool:
    """Whether `value` is a `cuda` namespace: the emulator's own, or numba.cuda."""
    if not isinstance(value, ModuleType):
        return False
    return getattr(value, "__groundup_emulator__", False) is True or value.__name__ in (
        "numba.cuda",
        "numba_cuda_mlir.cuda",
    )


def callable_in_kernels(value: Any) -> Any:
    """Convert a function of numba.jit, or a kernel of @cuda.jit, to a device function; return other values unchanged.

    A kernel may call both under numba-cuda, too.
    """
    if not isinstance(value, Dispatcher) and not getattr(value, "is_cuda_kernel", False):
        return value
    if value not in _functions:
        _functions[value] = DeviceFunction(value.py_func)
    return _functions[value]


_functions: WeakKeyDictionary[Any, DeviceFunction] = WeakKeyDictionary()


def read_again(source: FunctionSource, seen: tuple[FunctionSource, ...] = ()) -> None:
    """Read the global and captured names of a function, and of every device function that it calls, again."""
    source.read_names()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            value = look_up(source, node)
            if isinstance(value, DeviceFunction) and value.source not in (*seen, source):
                read_again(value.source, (*seen, source))


def look_up(source: FunctionSource, node: ast.expr) -> Any:
    """The value that a constant, a name or a dotted name has before the kernel runs; else UNKNOWN."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id in source.stored:
            return nested_functions(source).get(node.id, UNKNOWN)
        return callable_in_kernels(source.names.get(node.id, UNKNOWN))
    if isinstance(node, ast.Attribute):
        owner = look_up(source, node.value)
        if owner is UNKNOWN:
            return UNKNOWN
        if is_cuda(owner) and not hasattr(owner, node.attr):
            return Intrinsic(node.attr)
        if isinstance(owner, Intrinsic):
            return Intrinsic(f"{owner.path}.{node.attr}")
        return callable_in_kernels(getattr(owner, node.attr, UNKNOWN))
    return UNKNOWN


def cuda_path(source: FunctionSource, node: ast.expr) -> str | None:
    """ "atomic.add" for an expression that means cuda.atomic.add, by any imported name; else None."""
    value = look_up(source, node)
    return value.path if isinstance(value, Intrinsic) else None


def constant(source: FunctionSource, node: ast.expr) -> Any:
    """The value of an expression of constants, like `TILE * (TILE + 1)` or `(BM, BK)`; else UNKNOWN.

    A variable of the function that is assigned once, to such a value, is a constant too: `n = 32`.
    """
    scope = dict(source.names)
    for part in ast.walk(node):
        if isinstance(part, ast.Call | ast.Lambda | ast.ListComp | ast.NamedExpr):
            return UNKNOWN
        if isinstance(part, ast.Name):
            local = part.id in source.stored
            value = local_constant(source, part.id) if local else look_up(source, part)
            if value is UNKNOWN:
                return UNKNOWN
            if local:
                scope[part.id] = value
    try:
        return eval(compile(ast.Expression(body=node), source.filename, "eval"), scope)
    except Exception:  # whatever the expression raises, it is no constant; the caller has the message for that
        return UNKNOWN


def known_test(source: FunctionSource, test: ast.expr) -> bool | None:
    """Whether the test of a branch is true, if it is a constant: a global or captured number, or `operation is None` of
    a captured function. None if only the running kernel knows: anything of `cuda`, memory of the device, variables."""
    for part in ast.walk(test):
        value = look_up(source, part) if isinstance(part, ast.Name) else None
        if isinstance(part, ast.Name) and part.id in source.stored:
            return None
        if isinstance(value, Intrinsic) or is_cuda(value) or getattr(value, "__cuda_ndarray__", False):
            return None
    value = constant(source, test)
    return bool(value) if value is None or isinstance(value, bool | int | float | str | tuple | np.generic) else None


def local_constant(source: FunctionSource, name: str) -> Any:
    """The value of a variable whose only assignment is a constant expression; else UNKNOWN."""
    if name in source.parameters:
        return UNKNOWN
    stores = [
        n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    if len(stores) != 1:
        return UNKNOWN
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and node.targets == stores:
            itself = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value))
            return UNKNOWN if itself else constant(source, node.value)
    return UNKNOWN
