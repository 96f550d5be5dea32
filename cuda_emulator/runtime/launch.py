"""One launch of a compiled kernel: on one core or several, in the calling thread or on workers.

A launch that is expected to be over soon runs right here, since waking a thread takes about as long as a small kernel.
What to expect is what the launches before it took for each thread of theirs. A kernel with a loop whose length is not
written in its source may take longer any time, or for ever: it always runs on a worker, so that Ctrl-C can end it.
"""

from __future__ import annotations

import contextvars
import time
import warnings
from typing import Any, Protocol

import numpy as np
from numba.core.errors import NumbaError

from ..errors import KernelError, KernelWarning
from ..helpers.status import Stopped, new_status
from .limits import Extent
from .places import calling_line
from .workers import Fault, Run, run_on_workers

SHORT = 200e-6
"""Seconds below which a launch of a kernel without such loops runs in the calling thread: Ctrl-C waits for its end."""

WORTH_SHARING = 300e-6
"""Seconds from which several cores are used."""

CHUNKS = 8
"""Parts that each core's share of the blocks is given out in: blocks need not all take the same time."""


class Compiled(Protocol):
    """What a launch needs of compile.CompiledKernel."""

    @property
    def run(self) -> Any:
        """The function; compile.CompiledKernel says how it is called."""

    @property
    def constants(self) -> tuple[np.ndarray, ...]:
        """Arrays that it gets after its arguments."""

    @property
    def source(self) -> str:
        """The generated Python."""

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of a block."""

    @property
    def may_loop(self) -> bool:
        """Whether a loop of it may be longer in one launch than in another."""

    @property
    def prints(self) -> bool:
        """Whether it prints."""

    def failure(self, status: np.ndarray, grid: Extent, block: Extent) -> KernelError:
        """What went wrong, from a status array."""

    def notes(self, status: np.ndarray) -> list[str]:
        """What to warn of after a run."""


class Ready:
    """A compiled kernel and how long its threads take.

    name: the kernel's name
    seconds: of one thread of the grid on one core, at the last launch; None before the second: the first may compile
    """

    def __init__(self, compiled: Compiled, name: str) -> None:
        self.compiled, self.name = compiled, name
        self.launches = 0
        self.seconds: float | None = None


def launch(ready: Ready, arguments: list[Any], grid: Extent, block: Extent, dynamic_bytes: int, cores: int) -> None:
    """Run every block of the grid.

    arguments: as arguments.Arguments makes them; grid, block: checked; cores: 1 runs the blocks in order
    Raises KernelError for the fault of the lowest block that has one. Warns with KernelWarning of what the run noticed.
    """
    compiled = ready.compiled
    blocks = grid[0] * grid[1] * grid[2]
    threads = blocks * (block[0] * block[1] * block[2])
    everything = (*arguments, *compiled.constants, grid, block)

    def run(first: int, end: int, status: np.ndarray) -> None:
        compiled.run(*everything, first, end, dynamic_bytes, status)

    expected = None if ready.seconds is None else ready.seconds * threads
    use = 1 if compiled.prints or (expected is not None and expected < WORTH_SHARING) else min(cores, blocks)
    start = time.perf_counter()
    try:
        if use == 1 and not compiled.may_loop and expected is not None and expected < SHORT:
            status = new_status()
            statuses = [status]
            try:
                run(0, blocks, status)
            except Exception as error:
                raise Fault(error, status) from None
        else:
            chunk = blocks if use == 1 else -(-blocks // (use * CHUNKS))
            # What a kernel prints belongs to this thread's notebook cell.
            work = _in_this_context(run) if compiled.prints else run
            statuses = run_on_workers(work, blocks, chunk, use)
    except Fault as fault:
        told = explained(ready, fault, grid, block)
        raise told from told.__cause__
    if ready.launches:
        ready.seconds = (time.perf_counter() - start) * use / threads
    ready.launches += 1
    for status in statuses:
        warn(compiled.notes(status))


def _in_this_context(run: Run) -> Run:
    context = contextvars.copy_context()
    return lambda first, end, status: context.run(run, first, end, status)


def explained(ready: Ready, fault: Fault, grid: Extent, block: Extent) -> BaseException:
    """The error to tell: a KernelError, except where memory ran out or the thread was told to end."""
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
    """Each note as a KernelWarning that points to the launch; by Python's default filter, once for each place."""
    for note in notes:
        filename, line = calling_line()
        warnings.warn_explicit(note, KernelWarning, filename or "<unknown>", line or 0, registry=_registry)
