"""What another package adds to the emulator: a profiler, which `kernel.profile(...)` calls.

The emulator records what a kernel does (runtime/tracing.py), and leaves it to a profiler to explain the record. A
profiler is a function `profiler(kernel, griddim, blockdim, *arguments, sharedmem=0, **options)`. A package offers one
in two ways:

    register_profiler(function)                         when it is imported
    [project.entry-points."cuda_emulator.profilers"]    in its pyproject.toml: found without an import
    NAME = "package.module:function"
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINTS = "cuda_emulator.profilers"

Profiler = Callable[..., Any]

_profiler: Profiler | None = None


def register_profiler(profiler: Profiler | None) -> None:
    """Use this profiler from now on; None forgets the one in use, and the next call searches again."""
    global _profiler
    _profiler = profiler


def find_profiler() -> Profiler | None:
    """The registered profiler, else the first that an installed package offers, else None."""
    if _profiler is None:
        for entry_point in entry_points(group=ENTRY_POINTS):
            register_profiler(entry_point.load())
            break
    return _profiler
