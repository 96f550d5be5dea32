"""`@cuda.jit` with all options of numba-cuda."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from numba.core import config, sigutils
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaInvalidConfigWarning

from ..compiler.functions import DeviceFunction
from .dispatcher import Kernel
from .places import definition_error, launch_error
from .signatures import argument_types

#: Options for a device's compiler. They have no effect on a CPU.
NO_EFFECT = (
    "debug",
    "opt",
    "lineinfo",
    "cache",
    "lto",
    "max_registers",
    "shared_memory_carveout",
    "forceinline",
    "abi",
)
OPTIONS = ("device", "inline", "fastmath", "launch_bounds", "link", "extensions", "boundscheck", *NO_EFFECT)


def jit(func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
    """Make a kernel from a function, or with device=True a function that kernels can call.

    func_or_sig: the function. Or a signature ("void(float32[:], int32)", a tuple of types, numba's Signature), or a
        list of signatures; then the result is a decorator: `@cuda.jit("void(float32[:])")`
    options: those of numba-cuda. `fastmath` lets the compiler reorder sums; `launch_bounds` limits the threads of a
        block; the others are accepted and have no effect without a device
    Raises TypeError for an unknown option or a value that is no function, KernelError for what cannot be emulated.
    """
    _check_options(options)
    _warn_of_debug(options)
    if func_or_sig is None:
        return lambda function: _made(function, device, options, None)
    if isinstance(func_or_sig, list) or sigutils.is_signature(func_or_sig):
        given = func_or_sig if isinstance(func_or_sig, list) else [func_or_sig]
        signatures = [argument_types(signature, device) for signature in given]
        return lambda function: _made(function, device, options, signatures)
    return _made(func_or_sig, device, options, None)


def declare_device(*arguments: Any, **options: Any) -> Any:
    """Raises KernelError: it declares a function with code for a GPU."""
    raise launch_error(
        "cuda.declare_device() declares a function written in CUDA C++ or PTX, which the emulator cannot run: "
        "write it in Python with @cuda.jit(device=True)"
    )


def _check_options(options: dict[str, Any]) -> None:
    for name in options:
        if name in ("argtypes", "restype", "bind"):
            raise TypeError(f"cuda.jit: the option {name!r} was removed from numba-cuda: give the signature first")
        if name not in OPTIONS:
            raise TypeError(f"cuda.jit: unknown option {name!r}; it takes {', '.join(OPTIONS)}")
    if options.get("link"):
        raise launch_error(
            "cuda.jit: link= names code for a GPU (PTX, CUDA C++), which the emulator cannot run: "
            "write it in Python with @cuda.jit(device=True)"
        )
    if options.get("extensions"):
        raise launch_error("cuda.jit: extensions= is not supported by the emulator: pass NumPy arrays and numbers")
    if options.get("boundscheck"):
        raise launch_error(
            "cuda.jit: boundscheck=True is refused by numba-cuda; leave it out: the emulator always checks indices"
        )
    if options.get("inline", "never") not in ("never", "always", True, False):
        raise launch_error(f"cuda.jit: inline: expected 'never' or 'always', got {options['inline']!r}")
    bounds = options.get("launch_bounds")
    parts = bounds if isinstance(bounds, tuple) else (bounds,)
    if bounds is not None and not (1 <= len(parts) <= 3 and all(isinstance(part, int) and part > 0 for part in parts)):
        raise launch_error(
            f"cuda.jit: launch_bounds: expected the largest number of threads in a block, or a tuple that starts with "
            f"it, got {bounds!r}"
        )


def _warn_of_debug(options: dict[str, Any]) -> None:
    """numba-cuda's warnings about `debug`, where it and its companions are not what Numba's settings say."""
    debug, opt = options.get("debug"), options.get("opt")
    debug = config.CUDA_DEBUGINFO_DEFAULT if debug is None else debug
    said = []
    if debug and (config.OPT != 0 if opt is None else opt):
        said.append(
            "debug=True with opt=True is not supported by CUDA and may crash there: set debug=False or opt=False"
        )
    if debug and options.get("lineinfo"):
        said.append("debug and lineinfo are mutually exclusive: lineinfo alone leaves the code as it is")
    for sentence in said:
        warnings.warn(f"cuda.jit: {sentence}", NumbaInvalidConfigWarning, stacklevel=3)


def _made(function: Any, device: bool, options: dict[str, Any], signatures: list[tuple[Any, ...]] | None) -> Any:
    if device and isinstance(function, Dispatcher):  # made by numba.jit
        function = function.py_func
    if device and isinstance(function, DeviceFunction):
        return function
    _check_function(function, device)
    count = function.__code__.co_argcount
    for signature in signatures or ():
        if len(signature) != count:
            raise definition_error(
                f"{function.__name__} takes {count} arguments, its signature names {len(signature)}", function
            )
    if device:
        return DeviceFunction(function, options | ({"signatures": signatures} if signatures else {}))
    return Kernel(function, options, signatures)


def _check_function(function: Callable[..., Any], device: bool) -> None:
    noun = "a device function" if device else "a kernel"
    if isinstance(function, Kernel | DeviceFunction):
        raise definition_error(
            f"{function.py_func.__name__} is already made by @cuda.jit: apply the decorator once", function.py_func
        )
    if inspect.isclass(function):
        raise TypeError(f"cuda.jit: {noun} must be a function that starts with def, got the class {function.__name__}")
    if isinstance(function, staticmethod | classmethod):
        raise TypeError("cuda.jit: put @staticmethod above @cuda.jit, so that cuda.jit sees the function itself")
    if not inspect.isfunction(function):
        raise TypeError(
            f"cuda.jit: {noun} must be a function that starts with def, or a signature must come first; "
            f"got {function!r}, a {type(function).__name__}"
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise definition_error(f"{noun} cannot be async: leave the word out", function)
    if inspect.isgeneratorfunction(function):
        raise definition_error(f"{noun} cannot yield: write results into an array", function)
    if function.__name__ == "<lambda>" and not device:
        raise definition_error("a kernel cannot be a lambda: write it with def", function)
