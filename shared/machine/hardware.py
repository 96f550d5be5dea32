"""Processor and memory, as the operating system describes them: Linux in files, macOS by `sysctl`, Windows hardly.

Each function answers None where the system does not tell. root: where the file system begins; the tests bring
their own.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from shared.machine.processes import output_of

ROOT = Path("/")
CPU0 = "sys/devices/system/cpu/cpu0"
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
CONTAINER_MEMORY = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
)
"""A container's folder, its limit, what it has taken, and the name of what of that are copies of files: for the second
and the first version of Linux's control groups."""

MAC_CACHES = {
    "l1dcachesize": (1, "data"),
    "l1icachesize": (1, "instruction"),
    "l2cachesize": (2, "unified"),
    "l3cachesize": (3, "unified"),
}


def cpu_name(root: Path = ROOT) -> str | None:
    """The processor's name as its maker writes it."""
    for line in content(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    if sys.platform == "darwin":
        return output_of(["sysctl", "-n", "machdep.cpu.brand_string"])
    return platform.processor() or None


def usable_cores() -> int:
    """The number of cores that this process may use: a container or taskset may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """How many processes wanted a core during the last minute, on average; Windows does not count them."""
    if not hasattr(os, "getloadavg"):
        return None
    return round(os.getloadavg()[0], 2)


def caches(root: Path = ROOT) -> list[dict[str, Any]] | None:
    """The caches that the first core uses, nearest first: level, type ("data", "instruction", "unified"), bytes, and
    how many logical cores share it (None where nothing tells)."""
    if sys.platform == "darwin":
        return _mac_caches()
    found = []
    for folder in (root / CPU0 / "cache").glob("index*"):
        level, kind, size = (_text(folder / name) for name in ("level", "type", "size"))
        amount = _bytes(size)
        if level and level.isdecimal() and kind and amount:
            shared = cores_in(_text(folder / "shared_cpu_list"))
            entry = {"level": int(level), "type": kind.lower(), "bytes": amount, "shared_by": shared}
            found.append(entry)
    return sorted(found, key=lambda each: (each["level"], each["type"])) or None


def _mac_caches() -> list[dict[str, Any]] | None:
    found = []
    for name, (level, kind) in MAC_CACHES.items():
        # Processors with two sorts of cores describe the fast ones here; under the plain name stand the others.
        size = _sysctl(f"hw.perflevel0.{name}") or _sysctl(f"hw.{name}")
        if size:
            found.append({"level": level, "type": kind, "bytes": size, "shared_by": None})
    return found or None


def memory() -> int | None:
    """The machine's main memory, in bytes; a container may be given less."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(names):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def free_memory(root: Path = ROOT) -> int | None:
    """Bytes of main memory that a program can still have without another one losing its own, as Linux estimates them;
    fewer where a container has a limit."""
    available = _number_after("MemAvailable:", root / "proc/meminfo")
    found = [] if available is None else [available * 1024]
    for folder, limit, used, cache in CONTAINER_MEMORY:
        most, taken = _text(root / folder / limit), _text(root / folder / used)
        if most and taken and most.isdecimal() and taken.isdecimal():  # "max": there is no limit
            files = _number_after(cache, root / folder / "memory.stat") or 0  # given up as soon as memory is needed
            found.append(max(0, int(most) - int(taken) + files))
    return min(found, default=None)


def _number_after(name: str, path: Path) -> int | None:
    """The number behind a name that begins a line of a file."""
    for line in content(path).splitlines():
        first, *rest = line.split() or [""]
        if first == name and rest and rest[0].isdecimal():
            return int(rest[0])
    return None


def physical_cores(root: Path = ROOT) -> int | None:
    """How many cores the processors have; each may be two or more logical ones."""
    if sys.platform == "darwin":
        return _sysctl("hw.physicalcpu")
    siblings = {_text(path) for path in (root / CPU0).parent.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return len(siblings - {None}) or None


def governor(root: Path = ROOT) -> str | None:
    """What decides about the processor's frequency, as Linux names it: "performance", "powersave", "schedutil"."""
    return _text(root / CPU0 / "cpufreq/scaling_governor")


def turbo(root: Path = ROOT) -> bool | None:
    """Whether the processor may exceed its base frequency while it is cool enough; only Linux tells."""
    cpu = (root / CPU0).parent
    off, on = _text(cpu / "intel_pstate/no_turbo"), _text(cpu / "cpufreq/boost")
    if off in ("0", "1"):
        return off == "0"
    return on == "1" if on in ("0", "1") else None


def hypervisor(root: Path = ROOT) -> bool | None:
    """Whether this is a virtual machine, whose cores others may be using too."""
    if sys.platform == "darwin":
        present = _sysctl("kern.hv_vmm_present")
        return None if present is None else bool(present)
    flags = [
        line.partition(":")[2].split()
        for line in content(root / "proc/cpuinfo").splitlines()
        if line.startswith("flags")
    ]
    return "hypervisor" in flags[0] if flags else None


def cores_in(text: str | None) -> int | None:
    """How many cores a list like "0-3,8" of Linux names."""
    try:
        bounds = [[int(number) for number in part.split("-")] for part in (text or "").split(",")]
    except ValueError:
        return None
    return sum(part[-1] - part[0] + 1 for part in bounds)


def _bytes(text: str | None) -> int | None:
    """Linux's "32K" or "1M" in bytes."""
    if not text:
        return None
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1] in UNITS else (text, 1)
    return int(number) * unit if number.isdecimal() else None


def _sysctl(name: str) -> int | None:
    answer = output_of(["sysctl", "-n", name])
    return int(answer) if answer and answer.isdecimal() else None


def _text(path: Path) -> str | None:
    return content(path).strip() or None


def content(path: Path) -> str:
    """The text of a file; "" where the file is missing or may not be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
