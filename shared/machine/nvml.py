"""How busy the NVIDIA GPUs are, asked of the driver's library NVML through the optional package nvidia-ml-py.

    GpuMeter    the GPUs of this machine, or the reason why they cannot be asked

Nothing here raises: a training goes on whatever the driver says.
"""

from __future__ import annotations

import importlib
from typing import Any

from shared.machine.gpu import gpu_hardware
from shared.machine.software import has_module

MODULE = "pynvml"
"""The module of nvidia-ml-py."""


class GpuMeter:
    """Asks NVML about every GPU.

    names: of the GPUs, in NVML's order; reason: why there is none here, a sentence; "" where there is one
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.reason = ""
        self._handles: list[Any] = []
        self._nvml: Any = None
        if gpu_hardware() is False:
            self.reason = "this machine has no NVIDIA GPU"
        elif not has_module(MODULE):
            self.reason = "the package nvidia-ml-py is not installed, so no GPU was asked: pip install nvidia-ml-py"
        else:
            self._open()

    def use(self) -> list[list[float]] | None:
        """[busy, bytes] of each GPU: the share of the last moments, from 0 to 1, in which it computed, and the memory
        in use, of all programs together. None where there is no GPU, or the driver no longer answers."""
        if not self._handles:
            return None
        busy, memory = self._nvml.nvmlDeviceGetUtilizationRates, self._nvml.nvmlDeviceGetMemoryInfo
        try:
            return [[busy(each).gpu / 100, memory(each).used] for each in self._handles]
        except self._nvml.NVMLError as error:
            self._handles, self.reason = [], f"NVML stopped answering: {error}"
            return None

    def _open(self) -> None:
        try:
            self._nvml = importlib.import_module(MODULE)
        except ImportError as error:  # an installation that is damaged
            self.reason = f"the package nvidia-ml-py cannot be imported: {error}"
            return
        try:
            self._nvml.nvmlInit()
            handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
            names = [self._nvml.nvmlDeviceGetName(each) for each in handles]
        except self._nvml.NVMLError as error:
            self.reason = f"NVML does not answer: {error}"
            return
        self._handles = handles
        self.names = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]
        if not handles:
            self.reason = "the driver sees no NVIDIA GPU"
