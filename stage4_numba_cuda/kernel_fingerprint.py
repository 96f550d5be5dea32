"""A hash of everything that a kernel says: its own code, and all that it reaches by name.

Two functions have the same fingerprint where they compile to the same thing. It is made from bytecode, so comments and
blank lines do not matter, and from values: of globals, closures and defaults, and of the names of a module of ours that
a function mentions. Device functions and intrinsics are followed. What belongs to Python, Numba, llvmlite, NumPy or
CUDA counts by its name alone, since their versions stand beside the fingerprint (kernel_cache.py).
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FOREIGN = {"numba", "numba_cuda", "llvmlite", "numpy", "cuda", "math", "operator", "functools", "builtins", "typing"}
"""Top-level packages whose version says what is in them."""

PLAIN = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None), type(...), range)


class Unknown(ValueError):
    """A value from which nobody can tell whether it is the same in another process; the message names it."""


def fingerprint(function: Callable[..., Any], seen: tuple[Any, ...] = ()) -> str:
    """The hash of a Python function and of all that it reaches.

    Raises Unknown where it reaches something whose value cannot be told.
    """
    digest = hashlib.sha256()
    code = function.__code__
    digest.update(_code(code).encode())
    around = (*seen, function)
    for value in (function.__defaults__, function.__kwdefaults__):
        digest.update(meaning(value, around).encode())
    for name, value in sorted(_reached(function, code).items()):
        digest.update(f"{name}={meaning(value, around)}\n".encode())
    return digest.hexdigest()


def meaning(value: Any, seen: tuple[Any, ...] = ()) -> str:
    """A text for a value, the same in every process for equal values. Raises Unknown for what has none."""
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(meaning(item, seen) for item in value)})"
    if isinstance(value, set | frozenset):
        return f"set({sorted(meaning(item, seen) for item in value)})"
    if isinstance(value, Mapping):
        pairs = sorted((meaning(key, seen), meaning(item, seen)) for key, item in value.items())
        return f"mapping({pairs})"
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype} {value.shape} {content}"
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, types.ModuleType):
        top, _, rest = value.__name__.partition(".")
        # `from numba import types` gives numba.core.types or numba.types, by what was imported before.
        return f"module {top} {rest.rpartition('.')[2]}" if top in FOREIGN else f"module {value.__name__}"
    function = _function_in(value)
    if function is not None and not _is_foreign(function):
        if function in seen:
            return "itself"
        return f"{type(value).__name__} {fingerprint(function, seen)} {meaning(_options(value), seen)}"
    if _is_foreign(value) or _is_foreign(type(value)):
        return f"{type(value).__name__} {getattr(value, '__module__', '')} {_name(value)}"
    raise Unknown(f"it uses {value!r}, a {type(value).__qualname__}, whose value cannot be told apart from another")


def _function_in(value: Any) -> Any | None:
    """The Python function of a function, a device function or an intrinsic; None for everything else."""
    for name in ("py_func", "_defn"):
        if isinstance(inner := getattr(value, name, None), types.FunctionType):
            return inner
    return value if isinstance(value, types.FunctionType) else None


def _options(value: Any) -> Any:
    """The options of a device function's @cuda.jit."""
    return dict(getattr(value, "targetoptions", {}))


def _is_foreign(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in FOREIGN


def _name(value: Any) -> str:
    """What tells this value of a library from another of its kind: its qualified name, else its own text."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    text = str(value)
    if " at 0x" in text:  # an address, which is another one in the next process
        raise Unknown(f"it uses {text}, which has no name")
    return text


def _code(code: types.CodeType) -> str:
    """Bytecode, names and constants, with the code of functions inside; neither lines nor files."""
    constants = [
        _code(each) if isinstance(each, types.CodeType) else f"{type(each)} {each!r}" for each in code.co_consts
    ]
    parts = (code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)
    return repr((*parts, code.co_argcount, code.co_kwonlyargcount, constants))


def _names(code: types.CodeType) -> set[str]:
    """Every name that the code mentions, in functions inside it, too."""
    found = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _reached(function: Any, code: types.CodeType) -> dict[str, Any]:
    """Name -> value of the globals and closures that the code may use. Of a module of ours also each of its names that
    the code mentions: `ptx.load4` is two names to Python. A name too many makes a hash differ, and never two agree."""
    found: dict[str, Any] = {}
    names = _names(code)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a name that has no value yet
            found[name] = None
    found |= {name: function.__globals__[name] for name in names - set(found) if name in function.__globals__}
    for name, value in list(found.items()):
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] not in FOREIGN:
            found |= {f"{name}.{each}": getattr(value, each) for each in names if hasattr(value, each)}
    return found
