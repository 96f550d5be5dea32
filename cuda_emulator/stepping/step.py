"""Step mode: each CUDA thread is a Python generator that runs the learner's own lines.

A thread runs alone until its next barrier, shuffle or vote, where it yields. When all threads of that collective have
reached it, they receive its results and run on. All threads run in one OS thread, one at a time: so print shows lines
in order, pdb stops at the right place, and a traceback shows the learner's line. Step mode is slow (about 200,000 lines
a second) and simple: the compiled code is tested against it, and the two share the look-up of names only.

    run_kernel          runs all blocks of a launch, one after another
    _run_block          runs the threads of one block from collective to collective; pauses at a barrier across the grid
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Generator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ..compiler.reading.source import FunctionSource
from ..errors import KernelError
from ..intrinsics import GRID_BARRIER
from ..runtime.grid_barriers import unmet
from ..runtime.limits import SHARED_BYTES
from . import step_numbers
from .loading import loader
from .step_namespace import LAST, Dim3, Namespace, Thread, dim3_at
from .step_numbers import plain
from .step_rewrite import compile_step, synchronises
from .waiting_threads import collective, error_at, meet_at_barrier, meet_in_warps

#: "forward", "reverse", or a seed: then threads and blocks are shuffled, and the threads again after each collective.
Order = str | int

#: Called with a block's threads and those of them that have met at a collective, before they go on.
Met = Callable[[Sequence[Thread], Sequence[Thread]], None]


def _compiled(source: FunctionSource, is_kernel: bool) -> CodeType:
    """The rewritten function."""
    return _compiled_after(source, is_kernel, source.readings)


@functools.lru_cache(maxsize=256)
def _compiled_after(source: FunctionSource, is_kernel: bool, readings: int) -> CodeType:
    """readings: how often its names were read; the rewriting depends on their values"""
    return compile_step(source, is_kernel)


def run_kernel(
    source: FunctionSource,
    arguments: Sequence[Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_bytes: int,
    *,
    most_shared: int = SHARED_BYTES,
    order: Order = "forward",
    divergence: str = "error",
    poison: bool = True,
    numbers: Any = step_numbers,
    met: Met | None = None,
) -> None:
    """Run a kernel in Python, thread by thread.

    arguments: NumPy arrays (changed in place), numbers, tuples of them
    grid, block: blocks and threads along x, y, z
    dynamic_bytes: bytes of dynamic shared memory, for shared arrays of shape 0
    most_shared: the most bytes of shared memory that a block may have, these and its shared arrays
    order: order of the threads between two collectives, and of the blocks: "forward", "reverse", or a seed to shuffle
    divergence: the reaction to a barrier that only some threads of a block reach: "error", or "warn" and go on
    poison: whether fresh shared and local memory holds poison values like NaN (poison.py); else zeros
    numbers: the module of arithmetic, or an object with its functions that watches them
    met: told of every barrier, shuffle and vote; None if nobody asks

    Raises KernelError for the kernel's mistakes. Any other exception that Python raises in one of its lines is passed
    on, with a note that names the thread.
    """
    if not isinstance(order, int) and order not in ("forward", "reverse"):
        raise ValueError(f"order: expected 'forward', 'reverse' or a seed, got {order!r}")
    if divergence not in ("error", "warn"):
        raise ValueError(f"divergence: expected 'error' or 'warn', got {divergence!r}")
    cuda = Namespace(Dim3(*grid), Dim3(*block), dynamic_bytes, poison, source.name, most_shared)
    function = loader(cuda, numbers, _compiled)(source, True)
    arranged = _arranger(order)
    values = [plain(argument) for argument in arguments]
    with np.errstate(all="ignore"):
        count, running = grid[0] * grid[1] * grid[2], {}
        try:
            for number in arranged(list(range(count))):
                cuda.new_block()
                place = dim3_at(number, grid)
                threads = [Thread(i, dim3_at(i, block), place) for i in range(block[0] * block[1] * block[2])]
                pauses = _run_block(source, function, values, threads, cuda, arranged, divergence, met)
                waits = next(pauses, None)
                if waits is not None:
                    running[number] = pauses, cuda.memory, waits
            while running:
                if len(running) < count:
                    _, _, waits = running[min(running)]
                    ended = dim3_at(next(number for number in range(count) if number not in running), grid)
                    raise error_at(unmet(f"cuda.{GRID_BARRIER}", len(running), count, tuple(ended)), waits, source)
                for number in arranged(list(running)):
                    pauses, cuda.memory, _ = running.pop(number)
                    waits = next(pauses, None)
                    if waits is not None:
                        running[number] = pauses, cuda.memory, waits
        finally:
            for pauses, _, _ in running.values():
                pauses.close()


def _arranger(order: Order) -> Callable[[list[Any]], list[Any]]:
    """A function that puts threads or blocks in the chosen order."""
    if isinstance(order, str):
        return list if order == "forward" else lambda items: items[::-1]
    generator = random.Random(order)
    return lambda items: generator.sample(items, len(items))


def _run_block(
    source: FunctionSource,
    function: Callable[..., Any],
    values: list[Any],
    threads: list[Thread],
    cuda: Namespace,
    arranged: Callable[[list[Any]], list[Any]],
    divergence: str,
    met: Met | None,
) -> Generator[Thread, None, None]:
    """Run a block. At a barrier across the grid it yields one of the threads there."""
    if not synchronises(source):
        for thread in arranged(threads):
            _advance(thread, cuda, lambda: function(*values))
        return
    for thread in threads:
        thread.generator = function(*values)
    ready = threads
    try:
        while ready:
            for thread in arranged(ready):
                assert thread.generator is not None
                _advance(thread, cuda, functools.partial(thread.generator.send, thread.answer))
            ready = meet_in_warps(threads, source)
            if not ready:
                ready = meet_at_barrier(threads, source, divergence)
            if ready and met is not None:
                met(threads, ready)
            if ready and collective(ready[0]) == GRID_BARRIER:
                yield ready[0]
    finally:  # else an error's traceback keeps the other threads half-way, and a debugger meets them later
        for thread in threads:
            assert thread.generator is not None
            thread.generator.close()


def _advance(thread: Thread, cuda: Namespace, run: Callable[[], Any]) -> None:
    """Run a thread until it waits at a collective or leaves the kernel."""
    cuda.thread, thread.request, thread.answer = thread, None, None
    try:
        thread.request = run()
        if thread.generator is None:
            thread.left = LAST
    except StopIteration as end:
        thread.left = LAST if end.value is None else end.value
    except KernelError:
        raise
    except Exception as problem:
        unassigned = cuda.unassigned(problem)
        if unassigned is not None:
            raise unassigned from problem
        problem.add_note(f"in {thread}")
        raise
    finally:
        cuda.thread = None
