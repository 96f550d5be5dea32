"""Pack a kernel of the emulator, so that another process can compile it with numba-cuda.

The kernel's function is sent with the values of its names: its closure, the globals that it reads, the device functions
that it calls. So the learner's program is not run again; and it works for a script, for a notebook's cell and for a
function made by another function. Objects of the emulator are replaced:

    the emulator's `cuda`               ->  numba.cuda
    an intrinsic like cuda.threadIdx    ->  the same name of numba.cuda
    a device function                   ->  its Python function, through cuda.jit(device=True)

registers_worker.py unpacks it.
"""

from __future__ import annotations

import importlib
import io
import types
from typing import Any

from numba import cloudpickle

from cuda_emulator.inspection import DeviceFunction, Intrinsic

DEVICE_OPTIONS = ("inline", "fastmath", "forceinline")
"""Options of a device function that are passed on to numba-cuda."""


def pack(function: Any, types_of_arguments: tuple[Any, ...], options: dict[str, Any]) -> bytes:
    """Pack the function with the values of its names, Numba's types of its arguments, and the options of its @cuda.jit.

    Raises the exceptions of pickling, if a value cannot be sent to another process.
    """
    file = io.BytesIO()
    _Packer(file).dump((function, types_of_arguments, options))
    return file.getvalue()


def unpack(packed: bytes) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The arguments of `pack`, in a process in which numba.cuda is numba-cuda."""
    return cloudpickle.loads(packed)


class _Packer(cloudpickle.CloudPickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.ModuleType) and getattr(obj, "__groundup_emulator__", False):
            return importlib.import_module, ("numba.cuda",)
        if isinstance(obj, Intrinsic):
            return real_name, (obj.path,)
        if isinstance(obj, DeviceFunction):
            module = obj.py_func.__module__ or ""
            if module.endswith(".kernels.ptx"):  # on a device, these functions are replaced by instructions
                return real_attribute, (module, obj.py_func.__name__)
            options = {name: obj.options[name] for name in DEVICE_OPTIONS if name in obj.options}
            return real_device_function, (obj.py_func, options)
        return super().reducer_override(obj)


def real_name(path: str) -> Any:
    """The object of numba-cuda with this path: `cuda.shared.array` for "shared.array"."""
    found: Any = importlib.import_module("numba.cuda")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def real_attribute(module: str, name: str) -> Any:
    """The attribute of that module in this process."""
    return getattr(importlib.import_module(module), name)


def real_device_function(function: Any, options: dict[str, Any]) -> Any:
    """The device function that numba-cuda makes from the function."""
    return importlib.import_module("numba.cuda").jit(device=True, **options)(function)
