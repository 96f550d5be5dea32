"""The settings of the emulator: which checks kernels run with, and on how many cores.

    from cuda_emulator import options

    with options(check=True):            # or CUDA_EMULATOR=check, or `cuda-emulator check`
        kernel[blocks, threads](a, b)

CUDA_EMULATOR is 1, or a list of words with commas between (nobounds, check, step, source, warn, wrap);
CUDA_EMULATOR_THREADS is a number of cores. The older names GROUNDUP_EMULATOR and GROUNDUP_THREADS mean the same.
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
    wrap: computed negative indices are meant to count from the end: check mode does not name them
    seed: seed of the shuffled orders in check mode
    """

    bounds: bool = True
    check: bool = False
    step: bool = False
    show_source: bool = False
    threads: int | None = None
    divergence: str = "error"
    wrap: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("bounds", "check", "step", "show_source", "wrap"):
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


VARIABLE = "CUDA_EMULATOR"
PLAIN = ("0", "1", "on", "off", "yes", "no", "true", "false")
"""Values of the variable that say only whether the emulator is used (startup.py)."""

#: The words of CUDA_EMULATOR, and the settings that each of them changes.
WORDS: dict[str, dict[str, Any]] = {
    "nobounds": {"bounds": False},
    "check": {"check": True},
    "step": {"step": True},
    "source": {"show_source": True},
    "warn": {"divergence": "warn"},
    "wrap": {"wrap": True},
}


def usable_cores() -> int:
    """The number of cores that this process may use: a container or taskset may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def from_environment() -> Settings:
    """The settings from the environment variables. Raises ValueError for an unknown word or number."""
    changes: dict[str, Any] = {}
    for variable in ("GROUNDUP_EMULATOR", VARIABLE):
        for word in os.environ.get(variable, "").replace(",", " ").split():
            if word in PLAIN:
                continue
            if word not in WORDS:
                known = ", ".join(("1", *WORDS) if variable == VARIABLE else WORDS)
                raise ValueError(f"{variable}: expected some of {known} with commas between, got {word!r}")
            changes |= WORDS[word]
    for variable in ("GROUNDUP_THREADS", f"{VARIABLE}_THREADS"):
        threads = os.environ.get(variable, "").strip()
        if threads:
            if not threads.isdecimal() or int(threads) < 1:
                raise ValueError(f"{variable}: expected a whole number of at least 1, got {threads!r}")
            changes["threads"] = int(threads)
    return Settings(**changes)


def to_environment(settings: Settings) -> dict[str, str]:
    """The environment variables with which another process has these settings."""
    words = [word for word, fields in WORDS.items() if all(getattr(settings, k) == v for k, v in fields.items())]
    threads = {} if settings.threads is None else {f"{VARIABLE}_THREADS": str(settings.threads)}
    return {VARIABLE: ",".join(words) or "1", **threads}


def settings_for(
    check: bool = False,
    step: bool = False,
    source: bool = False,
    unchecked: bool = False,
    wrap: bool = False,
    threads: int | None = None,
) -> Settings:
    """The settings for a command's options, over those of the environment. Raises ValueError where two clash."""
    chosen = current()
    return replace(
        chosen,
        bounds=chosen.bounds and not unchecked,
        check=check or (chosen.check and not step),
        step=step or (chosen.step and not check),
        show_source=chosen.show_source or source,
        wrap=chosen.wrap or wrap,
        threads=threads if threads is not None else chosen.threads,
    )


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
