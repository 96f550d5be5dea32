"""Which device runs the kernels: an NVIDIA GPU, the emulator on the CPU, or Numba's simulator. Chosen once, at import.

    gpu          numba-cuda, on a real device
    emulator     the same kernels compiled for the CPU, on every machine (cuda_emulator/)
    simulator    Numba's own, about 25,000 multiply-adds a second: to step through a kernel with a debugger

GROUNDUP_CUDA names one of them; without it, a GPU is taken where numba-cuda finds one, and the emulator elsewhere.
Kernels, and the files that launch them, import `cuda` only from this file, so that one source runs on all three.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import Any

from . import copies, kernel_cache

VARIABLE = "GROUNDUP_CUDA"
NAMES = ("gpu", "emulator", "simulator")

WARNINGS = "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"

COMPILER = "compiler"
"""A fourth, for `groundup check --compile` alone: numba-cuda without a device, which compiles kernels and runs none."""

INSTALL = f'"{sys.executable}" -m pip install "numba-cuda[cu13]"'
"""What brings numba-cuda with its libraries; cu12 in place of cu13 for drivers before 580."""


class BackendError(RuntimeError):
    """The backend that was asked for cannot be had; the message says why and what to do.

    fix: the one command that mends it, where there is one
    """

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True)
class Backend:
    """name: gpu, emulator or simulator; cuda: the namespace its kernels use; reason: why this one, for people."""

    name: str
    cuda: Any
    reason: str

    @property
    def emulated(self) -> bool:
        """Whether its times say nothing about a GPU."""
        return self.name != "gpu"

    def line(self) -> str:
        """The one line that announces it."""
        return f"stage 4 runs its kernels on {TITLES[self.name]}: {self.reason}"


TITLES = {
    "gpu": "the GPU",
    "emulator": "the CPU, emulated",
    "simulator": "the CPU, in Numba's simulator",
    COMPILER: "no device",
}


def choose(asked: str | None = None) -> Backend:
    """The backend of that name, or the best that this machine has where it is None.

    Raises BackendError for an unknown name, and where the one that was asked for cannot be had.
    """
    if asked is None:
        cuda, missing = find_gpu()
        if cuda is not None:
            return Backend("gpu", cuda, device_name(cuda))
        return Backend("emulator", _emulator(), f"{missing}; {VARIABLE}=gpu insists on a GPU")
    if asked == COMPILER:
        return Backend(COMPILER, _compiler(), "numba-cuda compiles them, and nothing is run")
    if asked not in NAMES:
        raise BackendError(f"{VARIABLE} is {asked!r}; choose one of {', '.join(NAMES)}")
    if asked == "gpu":
        cuda, missing = find_gpu()
        if cuda is None:
            raise BackendError(
                f"{VARIABLE}=gpu, but {missing}; unset {VARIABLE}, or set it to emulator, to run on the CPU",
                _remedy(missing),
            )
        return Backend("gpu", cuda, device_name(cuda))
    if asked == "simulator":
        return Backend("simulator", _simulator(), f"{VARIABLE}=simulator asks for it")
    return Backend("emulator", _emulator(), f"{VARIABLE}=emulator asks for it")


def find_gpu() -> tuple[Any, str]:
    """(numba.cuda, "") where it can run kernels here; else (None, what is missing)."""
    if importlib.util.find_spec("numba_cuda") is None:
        return None, "numba-cuda is not installed"
    if getattr(sys.modules.get("numba.cuda"), "__groundup_emulator__", False):
        return None, "the emulator was installed in numba.cuda's place"
    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError as error:  # numba-cuda without the libraries of either CUDA version
        return None, f"numba-cuda cannot be imported ({_first_line(error)})"
    if cuda.config.ENABLE_CUDASIM:
        return None, "NUMBA_ENABLE_CUDASIM puts Numba's simulator in numba-cuda's place"
    if not cuda.is_available():
        reason = cuda.cuda_error()
        return None, f"numba-cuda finds no GPU ({_first_line(reason)})" if reason else "numba-cuda finds no GPU"
    try:
        device_name(cuda)
    except Exception as error:  # numba-cuda's own kinds of error: a GPU that another program keeps to itself, say
        return None, f"numba-cuda cannot use the GPU ({_first_line(error)})"
    return cuda, ""


def device_name(cuda: Any) -> str:
    """'NVIDIA H100 80GB HBM3, compute capability 9.0'."""
    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    major, minor = device.compute_capability
    return f"{name}, compute capability {major}.{minor}"


def _emulator() -> Any:
    return importlib.import_module("cuda_emulator").cuda


def _compiler() -> Any:
    if importlib.util.find_spec("numba_cuda") is None:  # Numba's own numba.cuda, which is there, makes other code
        raise BackendError(f"{VARIABLE}={COMPILER}, but numba-cuda is not installed", INSTALL)
    return importlib.import_module("numba.cuda")


def _simulator() -> Any:
    from numba.core import config

    loaded = sys.modules.get("numba.cuda")
    emulated = getattr(loaded, "__groundup_emulator__", False)
    if loaded is not None and (emulated or not config.ENABLE_CUDASIM):
        raise BackendError(
            f"{VARIABLE}=simulator comes too late: numba.cuda was imported before; set it before Python starts"
        )
    config.ENABLE_CUDASIM = 1
    return importlib.import_module("numba.cuda")


def _remedy(missing: str) -> str | None:
    return INSTALL if "not installed" in missing or "cannot be imported" in missing else None


def _first_line(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def prepare_gpu(cuda: Any) -> None:
    """What numba-cuda needs before the first kernel: a cache on disk, arrays that can be copied, and no warning for
    each grid of fewer than 128 blocks. Such a grid is right for a small network, and the user could not change it.

    NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=1 brings the warnings back.
    """
    kernel_cache.install(cuda)
    copies.install(cuda.cudadrv.devicearray.DeviceNDArray, cuda.to_device)
    if WARNINGS not in os.environ:
        cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0


BACKEND = choose(os.environ.get(VARIABLE) or None)
cuda = BACKEND.cuda
if BACKEND.name == "gpu":
    prepare_gpu(cuda)
