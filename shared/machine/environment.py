"""What this machine is: the facts that every measurement must be read with, and that `groundup doctor` reports.

A time without its machine is worth nothing a month later, so every results file carries `environment()`.
Each question is one small function that answers None where the machine does not say; nothing here raises
for a missing program or file.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from shared.contract import stage_facts
from shared.machine import hardware
from shared.machine.hardware import run_quietly

PACKAGE = "groundup"
IDLE_LOAD = 0.5
"""A load average above this means that something else is computing, or was until a moment ago."""

BLAS_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that decide how many threads NumPy's `@` uses."""

THREAD_VARIABLES = (*BLAS_THREAD_VARIABLES, "GROUNDUP_THREADS")
"""Those and stage 3's own; a measurement must name the ones that are set."""

LIBRARIES = ("numba", "numba-cuda", "llvmlite", "matplotlib", "torch", "cupy", "cupy-cuda12x", "cupy-cuda13x")
"""Distributions that what is measured depends on; CuPy has one for each CUDA."""


def environment() -> dict[str, Any]:
    """The facts to record beside a measurement, ready for JSON; docs/benchmarks/schema.md says what each is.

    Stage 3's compiler, flags, SIMD width and threads and stage 4's backend and device are told where those were loaded,
    so ask after loading the stages.
    """
    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "architecture": platform.machine(),
        "logical_cores": os.cpu_count(),
        "physical_cores": hardware.physical_cores(),
        "caches": hardware.caches(),
        "memory": hardware.memory(),
        "governor": hardware.governor(),
        "turbo": hardware.turbo(),
        "hypervisor": hardware.hypervisor(),
        "gpus": nvidia_gpus(),
        "os": operating_system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "blas": blas(),
        "libraries": {name: version for name in LIBRARIES if (version := installed_version(name))},
        "stage3_c": stage_facts("stage3_c"),
        "stage4_numba_cuda": stage_facts("stage4_numba_cuda"),
        "load_average": load_average(),
        "thread_variables": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        "groundup": installed_version(PACKAGE),
        "revision": git_revision(),
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
    """What must stand beside whatever `environment()`'s machine measured of stage 4; None where it ran on a GPU, or
    did not run."""
    if not facts.get("stage4_numba_cuda", {}).get("emulated"):
        return None
    return "stage 4's CUDA kernels were emulated on the CPU: its times say nothing about a GPU"


def busy(facts: Mapping[str, Any]) -> str | None:
    """A warning where `environment()`, asked before a measurement, found the machine at work; None where it was idle.

    A second program costs a BLAS with a thread on every core far more than its share: the product is as slow as its
    slowest thread, and that one waits for whole time slices of the scheduler.
    """
    load = facts["load_average"]
    if load is None or load <= IDLE_LOAD:
        return None
    return (
        f"the machine was not idle before the start (load average {load:.2f}): times may be wrong, those of products "
        "on several threads most of all; measure again when nothing else runs"
    )


def load_average() -> float | None:
    """How many processes wanted a core during the last minute, on average; None on Windows, which does not count."""
    if not hasattr(os, "getloadavg"):
        return None
    return round(os.getloadavg()[0], 2)


def cpu_name() -> str | None:
    """The processor's name as its maker writes it, or None where the system does not tell."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return " ".join(value.split())
    if sys.platform == "darwin":
        return run_quietly(["sysctl", "-n", "machdep.cpu.brand_string"])
    return platform.processor() or None


def usable_cores() -> int:
    """The number of cores that this process may use: a container or taskset may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def operating_system() -> str:
    """The system's name and version: 'Debian GNU/Linux 12 (bookworm)', 'macOS 14.5', 'Windows 11'."""
    if sys.platform == "linux":
        try:
            return platform.freedesktop_os_release()["PRETTY_NAME"]
        except (OSError, KeyError):  # a system without /etc/os-release, or with one that lacks the name
            return f"Linux {platform.release()}"
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def blas() -> str:
    """The library behind NumPy's `@` with its version, as NumPy's build records it."""
    try:
        details = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):  # a NumPy built by other means may not carry the record
        return "unknown BLAS"
    name, version = details.get("name") or "unknown BLAS", details.get("version") or ""
    return f"{name} {version}".strip() if version != "unknown" else name


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def git_revision() -> str | None:
    """The commit of the checkout this package runs from, with '+' where files differ from it; None outside one.

    Only a checkout whose top folder is this package's own counts: an installation inside some other project's
    repository (a virtual environment in it, say) would otherwise report that project's commit.
    """
    root = Path(__file__).resolve().parents[2]
    top = run_quietly(["git", "-C", str(root), "rev-parse", "--show-toplevel"])
    if top is None or Path(top).resolve() != root:
        return None
    commit = run_quietly(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    if commit is None:
        return None
    return commit + ("+" if run_quietly(["git", "-C", str(root), "status", "--porcelain"]) else "")


def nvidia_gpus() -> list[dict[str, str]]:
    """The NVIDIA GPUs the driver sees: name, driver version and memory of each; empty without nvidia-smi or a GPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    rows = [line.split(", ") for line in (run_quietly(query) or "").splitlines()]
    return [{"name": row[0], "driver": row[1], "memory": row[2]} for row in rows if len(row) == 3]
