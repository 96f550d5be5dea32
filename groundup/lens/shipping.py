"""A kernel of the emulator, packed so that another process can hand it to numba-cuda's compiler.

A kernel's function is sent with all that its names stand for: its closure, the globals it reads, the device functions
it calls. That works for a script, a notebook's cell and a function made by another function alike, and nothing of the
learner's program is run again. On the way what belongs to the emulator becomes what it stands for:

    the emulator's `cuda`         ->  numba.cuda
    cuda.threadIdx and its kin    ->  the same name there
    a device function             ->  its Python function, through cuda.jit(device=True)

registers_worker.py unpacks it.
"""

from __future__ import annotations

import importlib
import io
import types
from typing import Any

from numba import cloudpickle

from cuda_emulator.compiler.functions import DeviceFunction
from cuda_emulator.intrinsics import Intrinsic

DEVICE_OPTIONS = ("inline", "fastmath", "forceinline")
"""Of a device function: what numba-cuda is told as well."""


def pack(function: Any, types_of_arguments: tuple[Any, ...], options: dict[str, Any]) -> bytes:
    """The function with what it needs, Numba's types of its arguments, and the options of its @cuda.jit.

    Raises what pickling raises, where a name stands for something that cannot leave this process.
    """
    file = io.BytesIO()
    _Packer(file).dump((function, types_of_arguments, options))
    return file.getvalue()


def unpack(packed: bytes) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What `pack` was given, in a process where numba.cuda is numba-cuda's."""
    return cloudpickle.loads(packed)


class _Packer(cloudpickle.CloudPickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.ModuleType) and getattr(obj, "__groundup_emulator__", False):
            return importlib.import_module, ("numba.cuda",)
        if isinstance(obj, Intrinsic):
            return real_name, (obj.path,)
        if isinstance(obj, DeviceFunction):
            module = obj.py_func.__module__ or ""
            if module.endswith(".kernels.ptx"):  # there, a device has instructions of its own in the function's place
                return real_attribute, (module, obj.py_func.__name__)
            kept = {name: obj.options[name] for name in DEVICE_OPTIONS if name in obj.options}
            return real_device_function, (obj.py_func, kept)
        return super().reducer_override(obj)


def real_name(path: str) -> Any:
    """numba-cuda's `cuda.shared.array` for "shared.array"."""
    found: Any = importlib.import_module("numba.cuda")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def real_attribute(module: str, name: str) -> Any:
    """What that module has under that name in this process."""
    return getattr(importlib.import_module(module), name)


def real_device_function(function: Any, options: dict[str, Any]) -> Any:
    """The function through numba-cuda's own decorator."""
    return importlib.import_module("numba.cuda").jit(device=True, **options)(function)
