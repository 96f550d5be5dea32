"""The module `cuda` for scripts and kernels; install() makes it replace numba.cuda."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

import numba
from numba import types as numba_types
from numba.np.ufunc import decorators

from .compiler.reading.exec_text import note_texts_of_exec
from .intrinsics import intrinsics
from .runtime import device, transfers
from .runtime import streams as streams_module
from .runtime.arguments import In, InOut, Out
from .runtime.decorators import declare_device, jit
from .runtime.places import launch_error
from .runtime.reduce import Reduce
from .surface import contents

DEVICE_API = (
    *("is_available", "is_supported_version", "cuda_error", "detect", "list_devices", "get_current_device"),
    *("select_device", "current_context", "close", "defer_cleanup", "profile_start", "profile_stop", "profiling"),
    *("gpus", "runtime", "CudaSupportError", "MemoryInfo"),
)
STREAM_API = (
    *("stream", "default_stream", "legacy_default_stream", "per_thread_default_stream", "external_stream"),
    *("event", "event_elapsed_time", "synchronize"),
)
TRANSFER_API = (
    *("to_device", "device_array", "device_array_like", "pinned_array", "pinned_array_like", "mapped_array"),
    *("mapped_array_like", "managed_array", "pinned", "mapped", "is_cuda_array", "as_cuda_array"),
    "from_cuda_array_interface",
)
_TARGET = "cuda_emulator"  # of ufuncs, in Numba's registry

TYPES = (
    *("boolean", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "byte", "intp"),
    *("uintp", "intc", "uintc", "float16", "float32", "float64", "complex64", "complex128", "void", "none"),
    *("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "double", "int_", "uint"),
    *("char", "uchar", "short", "ushort", "long_", "ulong", "longlong", "ulonglong", "size_t", "ssize_t"),
)

#: The package that takes numba-cuda's place: `from numba_cuda_mlir import cuda`.
SUCCESSOR = "numba_cuda_mlir"

#: Host functions of numba-cuda that the emulator does not support, each with the reason.
REFUSED = {
    **dict.fromkeys(
        ("compile", "compile_ptx", "compile_all", "compile_for_current_device", "compile_ptx_for_current_device"),
        "makes code for a GPU; kernel.emulated_source() shows what the emulator makes",
    ),
    "open_ipc_array": "reads the memory of a GPU, which the emulator does not see: bring the array to the host first",
    "set_memory_manager": "selects the allocator of a GPU's memory; the emulator keeps its arrays in Python's memory",
}


class Namespace(ModuleType):
    """The type of the module `cuda`: the error for an unknown name mentions the emulator."""

    def __getattr__(self, name: str) -> Any:
        if name in ("random", "libdevice"):
            # Imported at first use: a program without random numbers does not pay for it.
            module = importlib.import_module(f".runtime.{name}", __package__)
            setattr(self, name, module)
            return module
        if not name.startswith("_") and contents(name, self) is not None:  # cuda.cudadrv, cuda.testing, ...
            return importlib.import_module(f"numba.cuda.{name}") if _replaced is not None else _below(name)
        raise AttributeError(f"the emulator's cuda has no {name!r}")


def _for_cuda(decorator: Any) -> Any:
    """numba.vectorize or numba.guvectorize with the emulator as target.

    It is a target by itself: "cuda" asks for numba.cuda, which is the emulator's in its place alone.
    """
    single = decorator is numba.vectorize
    known = (decorators.Vectorize if single else decorators.GUVectorize).target_registry

    def made(*arguments: Any, **options: Any) -> Any:
        if _TARGET not in known:
            from .runtime.ufuncs import CUDAGUFuncVectorize, CUDAVectorize

            known[_TARGET] = CUDAVectorize if single else CUDAGUFuncVectorize
        return decorator(*arguments, **{**options, "target": _TARGET})

    return made


def _refusal(name: str, reason: str) -> Any:
    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise launch_error(f"{name} is not supported by the emulator: it {reason}")

    refused.__name__ = name.rpartition(".")[2]
    return refused


def _below_cuda(name: str) -> str:
    """The name of a module without the package's, numba.cuda or that of numba-cuda's successor."""
    for package in ("numba.cuda.", f"{SUCCESSOR}.cuda.", f"{SUCCESSOR}."):
        if name.startswith(package):
            return name.removeprefix(package)
    return name


def _below(name: str, full_name: str = "") -> ModuleType:
    """The module with this name below numba.cuda."""
    module = ModuleType(full_name or f"numba.cuda.{name}")
    vars(module).update(contents(name, cuda) or {})
    if "__path__" in vars(module):

        def imported(attribute: str) -> Any:
            """cuda.cudadrv.driver, without an import of its own."""
            try:
                return importlib.import_module(f"{module.__name__}.{attribute}")
            except ModuleNotFoundError as error:
                raise AttributeError(f"the emulator's {module.__name__} has no {attribute!r}") from error

        vars(module)["__getattr__"] = imported
    return module


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Handles every import below numba.cuda while the emulator replaces it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(("numba.cuda.", f"{SUCCESSOR}.")):
            return None
        if contents(_below_cuda(fullname), cuda) is None:
            raise ModuleNotFoundError(
                f"{fullname} is not supported by the emulator: it is a part of numba-cuda that talks to a GPU; kernels "
                "and arrays need `from numba import cuda` only",
                name=fullname,
            )
        package = "__path__" in (contents(_below_cuda(fullname), cuda) or {})
        return importlib.machinery.ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name in sys.modules:  # numba.cuda itself, looked for by startup.py
            return sys.modules[spec.name]
        return _below(_below_cuda(spec.name), spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: create_module has filled the module."""


_finder = _Finder()


def _build() -> Namespace:
    cuda = Namespace("numba.cuda", "CUDA for Python, emulated on the CPU.")
    vars(cuda).update(
        __groundup_emulator__=True,
        __spec__=importlib.machinery.ModuleSpec("numba.cuda", _finder, is_package=True),
        __path__=[],  # a package to Python: `import numba.cuda.random` looks into it
        __file__=__file__,
        **intrinsics(),
        **{name: getattr(device, name) for name in DEVICE_API},
        **{name: getattr(streams_module, name) for name in STREAM_API},
        **{name: getattr(transfers, name) for name in TRANSFER_API},
        **{name: getattr(numba_types, name) for name in TYPES},
        **{name: _refusal(f"cuda.{name}", reason) for name, reason in REFUSED.items()},
        types=numba_types,
        jit=jit,
        declare_device=declare_device,
        In=In,
        Out=Out,
        InOut=InOut,
        reduce=Reduce,
        Reduce=Reduce,
        literal_unroll=numba.literal_unroll,
        vectorize=_for_cuda(numba.vectorize),
        guvectorize=_for_cuda(numba.guvectorize),
        HAS_NUMBA=True,
        implementation="groundup",
    )
    return cuda


cuda = _build()

_replaced: dict[str, ModuleType] | None = None
_had_attribute: Any = None


def install() -> None:
    """Make `from numba import cuda` return the emulator, in every module, even if numba-cuda is installed.

    A module that imported numba.cuda before keeps that one, so call this first.
    """
    global _replaced, _had_attribute
    if _replaced is not None:
        return
    _replaced = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_replaced(name)}
    _had_attribute = vars(numba).get("cuda")
    note_texts_of_exec(True)
    sys.meta_path.insert(0, _finder)
    sys.modules["numba.cuda"] = sys.modules[f"{SUCCESSOR}.cuda"] = cuda
    sys.modules[SUCCESSOR] = successor = ModuleType(SUCCESSOR)
    vars(successor).update(
        cuda=cuda,
        types=numba_types,
        __path__=[],
        __spec__=importlib.machinery.ModuleSpec(SUCCESSOR, _finder, is_package=True),
    )
    vars(numba)["cuda"] = cuda


def uninstall() -> None:
    """Undo `install`."""
    global _replaced, _had_attribute
    if _replaced is None:
        return
    note_texts_of_exec(False)
    sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if _is_replaced(name)]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    if _had_attribute is None:
        del vars(numba)["cuda"]
    else:
        vars(numba)["cuda"] = _had_attribute
    _replaced = _had_attribute = None


def _is_replaced(name: str) -> bool:
    return name in ("numba.cuda", SUCCESSOR) or name.startswith(("numba.cuda.", f"{SUCCESSOR}."))
