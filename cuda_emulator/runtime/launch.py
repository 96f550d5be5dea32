"""One launch of a compiled kernel: on one core or several, in the calling thread or on worker threads.

A short launch runs in the calling thread, since waking a worker takes about as long as a small kernel. The expected
time is the number of CUDA threads times the time for each in the last launch. A kernel with a loop of unknown length
may take longer at any time, or never end: it always runs on a worker, so that Ctrl-C can end it.
"""

from __future__ import annotations

import contextvars
import time
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numba.core.errors import NumbaError

from ..errors import KernelError, KernelWarning
from ..helpers.status import Stopped, new_status
from ..hooks import progress
from .grid_barriers import Together
from .limits import Extent
from .places import calling_line
from .workers import Fault, Run, run_on_workers

SHORT = 200e-6
"""Seconds below which a launch of a kernel without such loops runs in the calling thread; Ctrl-C waits for its end."""

WORTH_SHARING = 300e-6
"""Seconds from which several cores are used."""

CHUNKS = 8
"""Chunks of blocks for each core: several, because blocks may take different times."""


class Compiled(Protocol):
    """The attributes of compile.CompiledKernel that a launch uses."""

    @property
    def run(self) -> Any:
        """The compiled function; its arguments are listed in compile.CompiledKernel."""

    @property
    def constants(self) -> tuple[np.ndarray, ...]:
        """Arrays that are passed after the arguments."""

    @property
    def source(self) -> str:
        """The generated Python."""

    @property
    def places(self) -> Sequence[tuple[str, int, str]]:
        """(file, line, text) of each place that `status` refers to by number."""

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of a block."""

    @property
    def may_loop(self) -> bool:
        """Whether it has a loop with an unknown number of iterations."""

    @property
    def prints(self) -> bool:
        """Whether it prints."""

    @property
    def cooperative(self) -> bool:
        """Whether its blocks meet at barriers across the grid."""

    @property
    def waits(self) -> bool:
        """Whether it has a loop that waits for another thread."""

    def together(self, grid: Extent, block: Extent, dynamic_bytes: int) -> Together | None:
        """The state of a launch whose blocks meet at barriers across the grid; else None."""

    def failure(self, status: np.ndarray, grid: Extent, block: Extent) -> KernelError:
        """The error in a status array."""

    def absent_lane(self, status: np.ndarray, grid: Extent, block: Extent, difference: str) -> KernelError:
        """The error for results that depend on a lane that takes no part in a shuffle, as the status says."""

    def notes(self, status: np.ndarray) -> list[str]:
        """The warnings after a run."""


class Ready:
    """A compiled kernel, and the time that one CUDA thread takes.

    name: the kernel's name
    seconds: time of one CUDA thread on one core in the last launch; None until the second launch, since the first one
        may include compilation
    """

    def __init__(self, compiled: Compiled, name: str) -> None:
        self.compiled, self.name = compiled, name
        self.launches = 0
        self.seconds: float | None = None


def launch(ready: Ready, arguments: list[Any], grid: Extent, block: Extent, dynamic_bytes: int, cores: int) -> None:
    """Run every block of the grid.

    arguments: the values of arguments.Arguments; grid, block: checked before; cores: 1 runs the blocks in order
    Raises the KernelError of the lowest block with an error. Shows the run's warnings as KernelWarning.
    """
    compiled = ready.compiled
    blocks = grid[0] * grid[1] * grid[2]
    threads = blocks * (block[0] * block[1] * block[2])
    everything = (*arguments, *compiled.constants, grid, block)
    together = compiled.together(grid, block, dynamic_bytes)
    last = () if together is None else together.arguments

    def run(first: int, end: int, status: np.ndarray) -> None:
        compiled.run(*everything, first, end, dynamic_bytes, status, *last)

    expected = None if ready.seconds is None else ready.seconds * threads
    cores_used = 1 if compiled.prints or (expected is not None and expected < WORTH_SHARING) else min(cores, blocks)
    start = time.perf_counter()
    at_once = cores_used == 1 and not compiled.may_loop and expected is not None and expected < SHORT
    statuses: list[np.ndarray] = []
    try:
        while True:
            statuses += _run_here(run, blocks) if at_once else _share_out(run, blocks, cores_used, compiled.prints)
            if together is None or not together.go_on():
                break
    except Fault as fault:
        error = explained(ready, fault, grid, block)
        raise error from error.__cause__
    if ready.launches:
        ready.seconds = (time.perf_counter() - start) * cores_used / threads
    else:
        progress("")  # of its compilation
    ready.launches += 1
    for status in statuses:
        warn(compiled.notes(status))


def _run_here(run: Run, blocks: int) -> list[np.ndarray]:
    """Run all blocks in the calling thread."""
    status = new_status()
    try:
        run(0, blocks, status)
    except Exception as error:
        raise Fault(error, status) from None
    return [status]


def _share_out(run: Run, blocks: int, cores: int, prints: bool) -> list[np.ndarray]:
    """Run all blocks on worker threads."""
    chunk = blocks if cores == 1 else -(-blocks // (cores * CHUNKS))
    # In this thread's context, a kernel's print() writes into the notebook cell that launched it.
    return run_on_workers(_in_this_context(run) if prints else run, blocks, chunk, cores)


def _in_this_context(run: Run) -> Run:
    context = contextvars.copy_context()
    return lambda first, end, status: context.run(run, first, end, status)


def explained(ready: Ready, fault: Fault, grid: Extent, block: Extent) -> BaseException:
    """The error to raise: a KernelError, or the cause itself for MemoryError and KeyboardInterrupt."""
    cause = fault.cause
    if isinstance(cause, Stopped):
        return ready.compiled.failure(fault.status, grid, block)
    if isinstance(cause, KernelError | MemoryError) or not isinstance(cause, Exception):
        return cause
    filename, line = calling_line()
    if isinstance(cause, NumbaError):
        message = f"{ready.name} could not be compiled by Numba: {str(cause).strip()}"
    else:
        message = f"{ready.name} raised {type(cause).__name__}" + (f": {cause}" if str(cause) else "")
    error = KernelError(message, filename=filename, line=line, kernel=ready.name)
    error.__cause__ = cause
    return error


_registry: dict[Any, Any] = {}


def warn(notes: list[str]) -> None:
    """Show each note as a KernelWarning at the launch's line; Python's default filter shows it once for each line."""
    for note in notes:
        filename, line = calling_line()
        warnings.warn_explicit(note, KernelWarning, filename or "<unknown>", line or 0, registry=_registry)
