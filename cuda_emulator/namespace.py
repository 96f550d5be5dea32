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

from .intrinsics import intrinsics
from .runtime import device, transfers
from .runtime import streams as streams_module
from .runtime.arguments import In, InOut, Out
from .runtime.decorators import declare_device, jit
from .runtime.devicearray import DeviceNDArray
from .runtime.places import launch_error
from .runtime.reduce import Reduce

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
)
TYPES = (
    *("boolean", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "byte", "intp"),
    *("uintp", "intc", "uintc", "float32", "float64", "complex64", "complex128", "void", "none"),
    *("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16", "double", "int_", "uint"),
    *("char", "uchar", "short", "ushort", "long_", "ulong", "longlong", "ulonglong", "size_t", "ssize_t"),
)

#: The package that takes numba-cuda's place: `from numba_cuda_mlir import cuda`.
SUCCESSOR = "numba_cuda_mlir"

#: Host functions of numba-cuda that the emulator does not support, each with the reason.
REFUSED = {
    **dict.fromkeys(
        ("vectorize", "guvectorize"),
        "makes a ufunc for a GPU: write a kernel with @cuda.jit, or compile for the CPU with numba.vectorize()",
    ),
    **dict.fromkeys(
        ("compile", "compile_ptx", "compile_all", "compile_for_current_device", "compile_ptx_for_current_device"),
        "makes code for a GPU; kernel.emulated_source() shows what the emulator makes",
    ),
    **dict.fromkeys(
        ("from_cuda_array_interface", "open_ipc_array"),
        "reads the memory of a GPU, which the emulator does not see: bring the array to the host first",
    ),
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
        raise AttributeError(f"the emulator's cuda has no {name!r}")


def _build() -> Namespace:
    cuda = Namespace("numba.cuda", "CUDA for Python, emulated on the CPU.")
    vars(cuda).update(
        __groundup_emulator__=True,
        __spec__=importlib.machinery.ModuleSpec("numba.cuda", None, is_package=True),
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
        implementation="groundup",
    )
    return cuda


def _refusal(name: str, reason: str) -> Any:
    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise launch_error(f"{name} is not supported by the emulator: it {reason}")

    refused.__name__ = name.rpartition(".")[2]
    return refused


cuda = _build()


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


def _modules() -> dict[str, Any]:
    """{name: function that makes the module} for every module below numba.cuda that can be imported."""
    vectorize = REFUSED["vectorize"]
    return {
        "numba.cuda.random": lambda: _module("numba.cuda.random", **_public(cuda.random)),
        "numba.cuda.libdevice": lambda: _module("numba.cuda.libdevice", **_public(cuda.libdevice)),
        "numba.cuda.types": lambda: _module("numba.cuda.types", **_public(numba_types)),
        "numba.cuda.reduction": lambda: _module("numba.cuda.reduction", Reduce=Reduce),
        "numba.cuda.cudadrv": lambda: _module("numba.cuda.cudadrv", __path__=[]),
        "numba.cuda.cudadrv.error": lambda: _module(
            "numba.cuda.cudadrv.error", CudaSupportError=device.CudaSupportError
        ),
        "numba.cuda.cudadrv.devicearray": lambda: _module(
            "numba.cuda.cudadrv.devicearray",
            DeviceNDArray=DeviceNDArray,
            is_cuda_ndarray=lambda obj: isinstance(obj, DeviceNDArray),
        ),
        # numba.vectorize(target="cuda") imports its builders from here.
        "numba.cuda.vectorizers": lambda: _module(
            "numba.cuda.vectorizers",
            CUDAVectorize=_refusal('numba.vectorize(target="cuda")', vectorize),
            CUDAGUFuncVectorize=_refusal('numba.guvectorize(target="cuda")', vectorize),
        ),
    }


def _in_numba(name: str) -> str:
    """The name that a module of numba-cuda's successor has below numba.cuda."""
    return name.replace(f"{SUCCESSOR}.cuda.", "numba.cuda.").replace(f"{SUCCESSOR}.", "numba.cuda.")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Handles every import below numba.cuda while the emulator replaces it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(("numba.cuda.", f"{SUCCESSOR}.")):
            return None
        if _in_numba(fullname) not in _modules():
            raise ModuleNotFoundError(
                f"{fullname} is not supported by the emulator: it is a part of numba-cuda that talks to a GPU; kernels "
                "and arrays need `from numba import cuda` only",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname.endswith(".cudadrv"))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module: ModuleType = _modules()[_in_numba(spec.name)]()
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: create_module has filled the module."""


_finder = _Finder()
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
    sys.meta_path.insert(0, _finder)
    sys.modules["numba.cuda"] = sys.modules[f"{SUCCESSOR}.cuda"] = cuda
    sys.modules[SUCCESSOR] = _module(SUCCESSOR, cuda=cuda, types=numba_types, __path__=[])
    vars(numba)["cuda"] = cuda


def uninstall() -> None:
    """Undo `install`."""
    global _replaced, _had_attribute
    if _replaced is None:
        return
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
