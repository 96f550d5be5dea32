"""The settings of the emulator: which checks kernels run with, and on how many cores.

    from cuda_emulator import options

    with options(check=True):            # or GROUNDUP_EMULATOR=check, or `groundup run --check`
        kernel[blocks, threads](a, b)

GROUNDUP_EMULATOR is a list of words with commas between (nobounds, check, step, source, warn); GROUNDUP_THREADS is a
number of cores.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The settings of a launch.

    bounds: refuse indices outside an array, and let Ctrl-C end a kernel's loops; off only for benchmarks
    check: run each launch in several orders of threads and blocks, and compare the results
    step: run the kernel's own lines in Python: slow, but print and pdb work
    show_source: print the generated source of each kernel once, when it is compiled
    threads: the number of cores that a launch may use; 1 runs the blocks in order; None means all usable cores
    divergence: "error" or "warn": the reaction to a barrier that only a part of the block reaches
    seed: seed of the shuffled orders in check mode
    """

    bounds: bool = True
    check: bool = False
    step: bool = False
    show_source: bool = False
    threads: int | None = None
    divergence: str = "error"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("bounds", "check", "step", "show_source"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}: expected True or False, got {getattr(self, name)!r}")
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise ValueError(
                f"threads: expected a number of cores of at least 1, or None for all, got {self.threads!r}"
            )
        if self.divergence not in ("error", "warn"):
            raise ValueError(f"divergence: expected 'error' or 'warn', got {self.divergence!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed: expected a whole number of at least 0, got {self.seed!r}")
        if self.check and self.step:
            raise ValueError("check and step are two ways to run a kernel: choose one of them")

    @property
    def cores(self) -> int:
        """The number of cores that a launch may use."""
        return self.threads or usable_cores()


#: The words of GROUNDUP_EMULATOR, and the settings that each of them changes.
WORDS: dict[str, dict[str, Any]] = {
    "nobounds": {"bounds": False},
    "check": {"check": True},
    "step": {"step": True},
    "source": {"show_source": True},
    "warn": {"divergence": "warn"},
}


def usable_cores() -> int:
    """The number of cores that this process may use: a container or taskset may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def from_environment() -> Settings:
    """The settings from GROUNDUP_EMULATOR and GROUNDUP_THREADS. Raises ValueError for an unknown word or number."""
    changes: dict[str, Any] = {}
    for word in os.environ.get("GROUNDUP_EMULATOR", "").replace(",", " ").split():
        if word not in WORDS:
            raise ValueError(
                f"GROUNDUP_EMULATOR: expected some of {', '.join(WORDS)} with commas between, got {word!r}"
            )
        changes |= WORDS[word]
    threads = os.environ.get("GROUNDUP_THREADS", "").strip()
    if threads:
        if not threads.isdecimal() or int(threads) < 1:
            raise ValueError(f"GROUNDUP_THREADS: expected a whole number of at least 1, got {threads!r}")
        changes["threads"] = int(threads)
    return Settings(**changes)


_defaults: Settings | None = None
_chosen: ContextVar[Settings | None] = ContextVar("groundup_emulator_settings", default=None)


def current() -> Settings:
    """The settings in force: those of the innermost `options` of this thread, else those of the program."""
    global _defaults
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    if _defaults is None:
        _defaults = from_environment()
    return _defaults


def set_defaults(settings: Settings | None) -> None:
    """Set the settings of the whole program, for all its threads; None returns to those of the environment."""
    global _defaults
    _defaults = settings


@contextlib.contextmanager
def options(**changes: Any) -> Iterator[Settings]:
    """Change some settings for the launches inside the `with`, in this thread.

    changes: fields of Settings. Raises TypeError for an unknown field, ValueError for a value that it cannot have.
    """
    known = [field.name for field in fields(Settings)]
    for name in changes:
        if name not in known:
            raise TypeError(f"options: expected some of {', '.join(known)}, got {name!r}")
    token = _chosen.set(replace(current(), **changes))
    try:
        yield current()
    finally:
        _chosen.reset(token)
