"""Data of a few GPUs from their makers, for the roofline and the occupancy of a kernel.

    device("rtx 4090").bandwidth        1.008e12 bytes a second

Peaks are boost clock x cores x 2, since a fused multiply-add is two operations. The roofline (roofline.py) uses them;
no kernel reaches them. The limits of a multiprocessor are in occupancy.py, by compute capability. LAUNCH,
LATENCY and PASSES are the least time of a launch, of a load and of a pass of the banks, on every device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..occupancy import Capability

FMA = 2
"""Floating-point operations of a fused multiply-add."""

LAUNCH = 1.2e-6
"""Seconds that a device spends on a kernel that does nothing: measured by this project, with CUDA graphs, which save
the host's part."""

LAUNCH_SOURCE = "an empty kernel in a CUDA graph, measured on an H100 SXM5 with driver 580.159 on 2026-11-22"

LATENCY = 400
"""Cycles from a load of global memory that no cache serves to its value."""

LATENCY_SOURCE = "table 3 of https://pmc.ncbi.nlm.nih.gov/articles/PMC10448217/, the same for V100, A100 and H100"

PASSES = 1
"""Passes of the banks that a multiprocessor's shared memory makes in a cycle."""

PASSES_SOURCE = "CUDA C++ Programming Guide: each of the 32 banks has a bandwidth of 32 bits per clock cycle"


@dataclass(frozen=True)
class Device:
    """A GPU.

    cores: CUDA cores (float32) of the whole device; float64_per_float32: float64 units for each of these
    clock: boost clock in hertz; bandwidth: of its memory, in bytes a second
    source: the maker's document
    """

    name: str
    full_name: str
    capability: Capability
    multiprocessors: int
    cores: int
    float64_per_float32: float
    clock: float
    bandwidth: float
    source: str

    def peak(self, dtype: str) -> float:
        """Operations a second in "float32" or "float64", without tensor cores. Raises ValueError for another dtype."""
        if dtype not in ("float32", "float64"):
            raise ValueError(f"dtype: expected 'float32' or 'float64', got {dtype!r}")
        share = self.float64_per_float32 if dtype == "float64" else 1.0
        return self.cores * share * self.clock * FMA


DEVICES = (
    Device(
        "T4", "NVIDIA T4, 16 GB", (7, 5), 40, 2560, 1 / 32, 1.590e9, 320e9,
        "NVIDIA Turing GPU Architecture (whitepaper WP-09183-001), https://images.nvidia.com/aem-dam/en-zz/Solutions/"
        "design-visualization/technologies/turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf",
    ),
    Device(
        "RTX 3080", "NVIDIA GeForce RTX 3080, 10 GB", (8, 6), 68, 8704, 1 / 64, 1.710e9, 760e9,
        "NVIDIA Ampere GA102 GPU Architecture (whitepaper), "
        "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
    ),
    Device(
        "RTX 4090", "NVIDIA GeForce RTX 4090, 24 GB", (8, 9), 128, 16384, 1 / 64, 2.520e9, 1008e9,
        "NVIDIA Ada GPU Architecture (whitepaper), "
        "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    Device(
        "A100", "NVIDIA A100 SXM4, 80 GB", (8, 0), 108, 6912, 1 / 2, 1.410e9, 2039e9,
        "NVIDIA A100 Tensor Core GPU Architecture (whitepaper), https://images.nvidia.com/aem-dam/en-zz/Solutions/"
        "data-center/nvidia-ampere-architecture-whitepaper.pdf; bandwidth: NVIDIA A100 80GB data sheet",
    ),
    Device(
        "H100", "NVIDIA H100 SXM5, 80 GB", (9, 0), 132, 16896, 1 / 2, 1.980e9, 3352e9,
        "NVIDIA H100 Tensor Core GPU Architecture (whitepaper), "
        "https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper",
    ),
)  # fmt: skip
"""Oldest first. The full name tells the variant: other variants have other clocks and memories."""

DEFAULT = "H100"
"""The fastest of them."""


def device(name: str | None = None) -> Device:
    """The device with this name. Spaces and capitals are ignored, and a part is enough: "rtx4090", "3080".

    name: None for DEFAULT. Raises ValueError with a list of the names if none or several fit.
    """
    wanted = _letters(DEFAULT if name is None else name)
    found = [each for each in DEVICES if wanted in (_letters(each.name), _letters(each.full_name))]
    if not found and wanted:
        found = [each for each in DEVICES if wanted in _letters(each.full_name)]
    if len(found) != 1:
        known = ", ".join(each.name for each in DEVICES)
        fitting = f"{len(found)} devices fit" if found else "no device is called"
        raise ValueError(f"device: {fitting} {name!r}; choose one of {known}")
    return found[0]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
