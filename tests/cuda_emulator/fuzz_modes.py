"""Runs one generated kernel in every way the emulator knows, and compares what comes out.

step        its own lines in Python, threads in order: what the others are compared with
reverse     the same, threads and blocks backwards; shuffled: in random orders. A difference means a race.
compiled    one core; check: in several orders; parallel: two cores; unchecked: no bounds checks
"""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cuda_emulator import options
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.errors import KernelError
from cuda_emulator.stepping.step import run_kernel
from tests.cuda_emulator.fuzz_kernels import arguments

NOT_SUPPORTED = "not supported by the emulator"
Launch = Callable[[ModuleType, list[Any]], None]


@dataclass(frozen=True)
class Outcome:
    """How a kernel fared. kind: ok, mismatch, race, refused or error."""

    kind: str
    mode: str = ""
    message: str = ""


def failed(outcome: Outcome) -> bool:
    """Whether this is a fault of the emulator (or of the generator)."""
    return outcome.kind != "ok" and not (outcome.kind == "refused" and NOT_SUPPORTED in outcome.message)


def _launch(**changes: Any) -> Launch:
    def launch(module: ModuleType, values: list[Any]) -> None:
        with options(**changes):
            module.k[module.GRID, module.BLOCK](*values)

    return launch


def _step(order: str | int) -> Launch:
    def launch(module: ModuleType, values: list[Any]) -> None:
        grid, block = ((*shape, 1, 1)[:3] for shape in (module.GRID, module.BLOCK))
        run_kernel(FunctionSource(module.k.py_func), values, grid, block, 0, order=order)

    return launch


MODES: dict[str, Launch] = {
    "step": _step("forward"),
    "reverse": _step("reverse"),
    "shuffled": _step(1),
    "compiled": _launch(threads=1),
    "check": _launch(check=True),
    "parallel": _launch(threads=2),
    "unchecked": _launch(bounds=False, threads=1),
}
STEP_MODES = ("step", "reverse", "shuffled")


@contextlib.contextmanager
def loaded(path: Path) -> Iterator[ModuleType]:
    """The module in that file."""
    linecache.checkcache()
    name = f"fuzzed_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def examine(path: Path, seed: int, modes: tuple[str, ...] = tuple(MODES)) -> Outcome:
    """Run the kernel in that file in these modes (`step` first), and tell how it fared."""
    with loaded(path) as module:
        expected: list[Any] | None = None
        for mode in modes:
            values = arguments(module, seed)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    MODES[mode](module, values)
            except KernelError as problem:
                return Outcome("error" if mode in STEP_MODES else "refused", mode, str(problem))
            except Exception as problem:
                return Outcome("error", mode, f"{type(problem).__name__}: {problem}")
            if expected is None:
                expected = values
            elif difference := _difference(module, expected, values):
                return Outcome("race" if mode in STEP_MODES else "mismatch", mode, difference)
    return Outcome("ok")


def _difference(module: ModuleType, expected: list[Any], values: list[Any]) -> str:
    """Where two runs differ, in words; empty where they do not."""
    names = module.k.py_func.__code__.co_varnames
    for name, before, after in zip(names, expected, values, strict=False):
        if not isinstance(before, np.ndarray):
            continue
        same = before == after
        if before.dtype.kind == "f":
            same = np.isclose(before, after, rtol=1e-5, atol=1e-6, equal_nan=True)
        if not np.all(same):
            index = tuple(int(i) for i in np.argwhere(~same)[0])
            return f"{name}{list(index)}: expected {before[index]}, got {after[index]} ({np.sum(~same)} differ)"
    return ""
