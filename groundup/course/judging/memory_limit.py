"""The memory limit of a process that runs a learner's code. judge.py has the time limit.

Linux refuses memory beyond the limit, and the learner gets a MemoryError with a line. On other systems, and on Linux
for memory that was promised but not yet used, a thread looks how much the process holds, and ends it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20

LOOK_EVERY = 0.05
"""Seconds."""


def limit_memory(megabytes: int, exceeded: Callable[[], None]) -> None:
    """From now on this process may hold this many megabytes more than it holds now.

    exceeded: called by a thread when the process holds more, before it ends
    """
    start = resident_bytes()
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        # The address space, which is what RLIMIT_AS counts; the thread below looks at what is really held.
        most = pages * resource.getpagesize() + megabytes * MEGABYTE
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))

    def watch() -> None:
        while True:
            if resident_bytes() - start > megabytes * MEGABYTE:
                exceeded()
                os._exit(1)
            time.sleep(LOOK_EVERY)

    threading.Thread(target=watch, daemon=True).start()


def resident_bytes() -> int:
    """The memory that this process holds; on macOS the largest amount that it has held."""
    if sys.platform == "linux":
        import resource

        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    if sys.platform == "win32":
        return _resident_on_windows()
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


class _Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS of the Windows API."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("page_faults", ctypes.c_uint32),
        ("peak_working_set", ctypes.c_size_t),
        ("working_set", ctypes.c_size_t),
        ("rest", ctypes.c_size_t * 6),
    )


def _resident_on_windows() -> int:
    return working_set(vars(ctypes)["windll"].kernel32)  # there on Windows only


def working_set(kernel: Any) -> int:
    """The memory that this process holds by Windows' kernel32, in bytes."""
    counters = _Counters(size=ctypes.sizeof(_Counters))
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size)
    return int(counters.working_set)
