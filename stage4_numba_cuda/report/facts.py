"""What the GPU report was measured on: the device, its driver, and every library that had a part in it."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from shared.machine.environment import environment, nvidia_gpus

from ..backend import BACKEND, cuda
from .part import Part

DISTRIBUTIONS = (
    *("numba", "numba-cuda", "llvmlite", "cuda-bindings", "cuda-core", "nvidia-cublas", "nvidia-cuda-nvvm"),
    *("nvidia-nvvm", "nvidia-nvjitlink", "numpy", "torch", "cupy-cuda13x", "cupy-cuda12x", "matplotlib", "pytest"),
)

ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "l2_bytes": "L2_CACHE_SIZE",
    "shared_bytes_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
}
"""What is asked of the device, by the names of cuDeviceGetAttribute."""


def run(part: Part) -> None:
    """Device, driver, versions, the machine, the revision, the day."""
    part.facts = {
        "backend": BACKEND.name,
        "reason": BACKEND.reason,
        "device": device(),
        "versions": versions(),
        "environment": environment(),
    }
    part.add(BACKEND.line(), **part.facts["device"])


def device() -> dict[str, Any]:
    """The GPU: its name, compute capability, driver, and what it says of itself; on the CPU, the CPU's stand-in."""
    found = cuda.get_current_device()
    name = found.name.decode() if isinstance(found.name, bytes) else str(found.name)
    facts: dict[str, Any] = {"name": name, "compute_capability": ".".join(map(str, found.compute_capability))}
    if BACKEND.emulated:
        return facts
    facts |= {key: getattr(found, attribute, None) for key, attribute in ATTRIBUTES.items()}
    return facts | {"cards": nvidia_gpus()}


def versions() -> dict[str, str]:
    """The installed ones among the libraries that matter, by distribution."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
