"""The facts of this machine as a record that stands beside every measurement.

A time without its machine is worth nothing a month later, so every results file carries `environment()`. What is in it
is asked in hardware.py, software.py and gpu.py.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shared.contract import stage_facts
from shared.machine import gpu, hardware, software

IDLE_LOAD = 0.5
"""A load average above this means that something else is computing, or was until a moment ago."""

LIBRARIES = ("numba", "numba-cuda", "llvmlite", "matplotlib", "torch", "cupy", "cupy-cuda12x", "cupy-cuda13x")
"""Distributions that what is measured depends on; CuPy has one for each CUDA."""


def environment() -> dict[str, Any]:
    """The facts to record beside a measurement, ready for JSON; docs/benchmarks/schema.md says what each is.

    Stage 3's compiler, flags, SIMD width and threads and stage 4's backend and device are in it if those stages are
    loaded, so call this after loading the stages.
    """
    import numpy as np

    return {
        "cpu": hardware.cpu_name(),
        "cores": hardware.usable_cores(),
        "architecture": platform.machine(),
        "logical_cores": os.cpu_count(),
        "physical_cores": hardware.physical_cores(),
        "caches": hardware.caches(),
        "memory": hardware.memory(),
        "governor": hardware.governor(),
        "turbo": hardware.turbo(),
        "hypervisor": hardware.hypervisor(),
        "gpus": nvidia_gpus(),
        "os": software.operating_system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "blas": software.blas(),
        "libraries": software.installed_versions(LIBRARIES),
        "stage3_c": stage_facts("stage3_c"),
        "stage4_numba_cuda": stage_facts("stage4_numba_cuda"),
        "load_average": hardware.load_average(),
        "thread_variables": {name: os.environ[name] for name in software.THREAD_VARIABLES if name in os.environ},
        "slowing_variables": {name: os.environ[name] for name in software.SLOWING_VARIABLES if name in os.environ},
        "groundup": software.installed_version(software.PACKAGE),
        "revision": software.git_revision(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def describe(facts: Mapping[str, Any]) -> str:
    """One line of `environment()` for the foot of a chart or a table: CPU, cores, a GPU where stage 4 ran on one,
    Python, NumPy, BLAS, day."""
    cores, stage4 = facts["cores"], facts.get("stage4_numba_cuda", {})
    parts = [
        facts["cpu"] or facts["architecture"],
        f"{cores} core{'' if cores == 1 else 's'}",
        *([stage4["device"]] if stage4.get("backend") == "gpu" else []),
        facts["python"],
        f"NumPy {facts['numpy']} ({facts['blas']})",
        facts["date"][:10],
    ]
    return " · ".join(parts)


def emulation(facts: Mapping[str, Any]) -> str | None:
    """The warning that must stand beside times of stage 4 whose kernels were emulated; None where they ran on a GPU, or
    not at all."""
    if not facts.get("stage4_numba_cuda", {}).get("emulated"):
        return None
    return "stage 4's CUDA kernels were emulated on the CPU: its times say nothing about a GPU"


def busy(facts: Mapping[str, Any]) -> str | None:
    """A warning where `environment()`, asked before a measurement, found the machine at work; None where it was idle.

    A second program costs a BLAS with a thread on every core far more than its share: the product is as slow as its
    slowest thread, and that one waits for whole time slices of the scheduler.
    """
    load = facts.get("load_average")
    if load is None or load <= IDLE_LOAD:
        return None
    return (
        f"the machine was not idle before the start (load average {load:.2f}): times may be wrong, those of products "
        "on several threads most of all; measure again when nothing else runs"
    )


def slowed(facts: Mapping[str, Any]) -> str | None:
    """A warning where an environment variable makes a library slower than the machine is; None where none is set."""
    found = facts.get("slowing_variables")
    if not found:
        return None
    settings = ", ".join(f"{name}={value}" for name, value in found.items())
    return (
        f"{settings} in the environment can make NumPy, PyTorch, Numba or stage 3 slower than they are on this "
        "machine: unset it before you measure"
    )


def nvidia_gpus() -> list[dict[str, str]]:
    """The NVIDIA GPUs that the driver sees: name, driver version and memory of each."""
    return [{"name": each.name, "driver": each.driver, "memory": each.memory} for each in gpu.nvidia_gpus()]
