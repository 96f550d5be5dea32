"""The modules below numba.cuda that a program may import, besides `cuda` itself.

What numba-cuda has there for programs and for their tests: random numbers, libdevice, types, errors to catch, the
classes and decorators of `numba.cuda.testing`. Parts that make code for a GPU are not here.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba import types as numba_types
from numba.core import config
from numba.core import errors as numba_errors
from numba.np import numpy_support

from .runtime import device
from .runtime.devicearray import DeviceNDArray, DeviceRecord
from .runtime.reduce import Reduce


class CudaDriverError(Exception):
    """An error of CUDA's driver. There is no driver, so it is never raised; programs may catch it."""


class CudaAPIError(CudaDriverError):
    """A call of CUDA's driver that failed; never raised."""


class CudaRuntimeError(Exception):
    """An error of CUDA's runtime; never raised."""


class LinkerError(RuntimeError):
    """An error of the linker for GPUs; never raised."""


class NvvmError(Exception):
    """An error of the compiler for GPUs; never raised."""


class NvvmSupportError(ImportError):
    """The compiler for GPUs is missing; never raised."""


class CUDATestCase(unittest.TestCase):
    """numba.cuda.testing's class for tests of kernels."""

    FLOAT16_RTOL = np.finfo(np.float16).eps
    """How far results of float16 may be apart."""


class ForeignArray:
    """A device array as another library would hand it over: only its __cuda_array_interface__ is seen."""

    def __init__(self, arr: Any) -> None:
        self._arr = arr
        self.__cuda_array_interface__ = arr.__cuda_array_interface__


def skip_on_cudasim(reason: str) -> Any:
    """Skip a test where NUMBA_ENABLE_CUDASIM says that Numba's simulator is on."""
    return unittest.skipIf(config.ENABLE_CUDASIM, reason)


def skip_unless_cudasim(reason: str) -> Any:
    """The opposite."""
    return unittest.skipUnless(config.ENABLE_CUDASIM, reason)


def _unchanged(function: Any) -> Any:
    return function


def _for_any_reason(reason: str) -> Any:
    return _unchanged


def _needs(what: str) -> Callable[[Any], Any]:
    return unittest.skip(f"needs {what}")


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


def _public(module: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


_DEVICEARRAY = {
    "DeviceNDArray": DeviceNDArray,
    "DeviceNDArrayBase": DeviceNDArray,
    "DeviceRecord": DeviceRecord,
    "is_cuda_ndarray": lambda obj: isinstance(obj, DeviceNDArray),
}
_ERRORS = {
    **{each.__name__: each for each in (CudaDriverError, CudaRuntimeError, NvvmError, NvvmSupportError)},
    "CudaSupportError": device.CudaSupportError,
}
_TESTING = {
    **{each.__name__: each for each in (CUDATestCase, ForeignArray, skip_on_cudasim, skip_unless_cudasim)},
    "unittest": unittest,
    "cc_X_or_above": lambda major, minor: device.get_current_device().compute_capability >= (major, minor),
    "xfail_unless_cudasim": _unchanged,
    **{f"skip_unless_cc_{cc}": _unchanged for cc in (50, 53, 60, 75, 80, 90)},
    **dict.fromkeys(("skip_unless_conda_cudatoolkit", "skip_if_external_memmgr", "skip_on_arm"), _for_any_reason),
    **dict.fromkeys(("skip_under_cuda_memcheck", "skip_with_nvdisasm", "skip_on_wsl2"), _for_any_reason),
    **dict.fromkeys(("skip_if_nvjitlink_missing", "skip_on_nvjitlink_13_1_sm_120"), _for_any_reason),
    "skip_without_nvdisasm": lambda reason: unittest.skip(reason),
    "skip_on_standalone_numba_cuda": _unchanged,
    "skip_if_cuda_includes_missing": _needs("CUDA's headers"),
    "skip_if_curand_kernel_missing": _needs("CUDA's headers"),
    "skip_if_cudadevrt_missing": _unchanged,
}


def contents(name: str, cuda: Any) -> dict[str, Any] | None:
    """What the module with this name holds, without "numba.cuda." in front; None if there is no such module."""
    driver = {each.__name__: each for each in (CudaDriverError, CudaAPIError, LinkerError)}
    if name in ("random", "libdevice"):
        return _public(getattr(cuda, name))
    if name == "vectorizers":  # numba.vectorize(target="cuda") imports its builders from here
        from .runtime.ufuncs import CUDAGUFuncVectorize, CUDAVectorize

        return {"CUDAVectorize": CUDAVectorize, "CUDAGUFuncVectorize": CUDAGUFuncVectorize}
    known: dict[str, dict[str, Any]] = {
        "types": _public(numba_types),
        "reduction": {"Reduce": Reduce},
        "cudadrv": {"__path__": []},
        "cudadrv.driver": {**driver, "driver": None},
        "cudadrv.drvapi": {},
        "cudadrv.error": _ERRORS,
        "cudadrv.devicearray": _DEVICEARRAY,
        "devicearray": _DEVICEARRAY,
        "errors": {**_public(numba_errors)},
        "testing": _TESTING,
        "config": _public(config),
        "core": {"__path__": [], "config": config, "errors": numba_errors},
        "core.config": _public(config),
        "core.errors": _public(numba_errors),
        "misc": {"__path__": []},
        "misc.special": {"literal_unroll": numba.literal_unroll},
        "np": {"__path__": []},
        "np.numpy_support": _public(numpy_support),
        "extending": _public(numba.extending),
    }
    return known.get(name)
