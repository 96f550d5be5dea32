"""Step mode: each CUDA thread is a Python generator that runs the learner's own lines.

A thread runs alone until its next barrier, shuffle or vote, where it yields. When all threads of that collective have
reached it, they receive its results and run on. All threads run in one OS thread, one at a time: so print shows lines
in order, pdb stops at the right place, and a traceback shows the learner's line. Step mode is slow (about 200,000 lines
a second) and simple: the compiled code is tested against it, and the two share the look-up of names only.

    run_kernel          runs all blocks of a launch, one after another
    _run_block          runs the threads of one block from collective to collective; pauses at a barrier across the grid
    _meet_in_warps      finds the threads at shuffles and votes that can go on
    _meet_at_barrier    the same for a barrier of the whole block
"""

from __future__ import annotations

import ast
import functools
import random
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from types import CodeType, GeneratorType
from typing import Any

import numpy as np

from ..compiler import diagnoses
from ..compiler.reading.names import is_cuda
from ..compiler.reading.source import FunctionSource
from ..errors import KernelError, KernelWarning
from ..intrinsics import BARRIERS, GRID_BARRIER, Intrinsic
from ..runtime.together import unmet
from . import step_numbers
from .step_namespace import LAST, Dim3, Namespace, Thread
from .step_numbers import plain
from .step_rewrite import CUDA, FUNCTION, NUMBERS, compile_step, device_source, synchronises
from .step_warps import BLOCK_ANSWERS, WARP, answers, members

#: "forward", "reverse", or a seed: then threads and blocks are shuffled, and the threads again after each collective.
Order = str | int
#: The place where a thread waits: the code of every function that it is in, and the lines and columns of its call.
Position = tuple[tuple[CodeType, Any], ...]


@functools.lru_cache(maxsize=256)
def _compiled(source: FunctionSource, is_kernel: bool, readings: int) -> CodeType:
    """The rewritten function. readings: how often its names were read; the rewriting depends on their values."""
    return compile_step(source, is_kernel)


def run_kernel(
    source: FunctionSource,
    arguments: Sequence[Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_bytes: int,
    *,
    order: Order = "forward",
    divergence: str = "error",
    poison: bool = True,
    numbers: Any = step_numbers,
) -> None:
    """Run a kernel in Python, thread by thread.

    arguments: NumPy arrays (changed in place), numbers, tuples of them
    grid, block: blocks and threads along x, y, z
    dynamic_bytes: bytes of dynamic shared memory, for shared arrays of shape 0
    order: order of the threads between two collectives, and of the blocks: "forward", "reverse", or a seed to shuffle
    divergence: the reaction to a barrier that only some threads of a block reach: "error", or "warn" and go on
    poison: whether fresh shared and local memory holds poison values like NaN (poison.py); else zeros
    numbers: the module of arithmetic, or an object with its functions that watches them

    Raises KernelError for the kernel's mistakes. An exception that Python raises in one of its lines is passed on, with
    a note that names the thread.
    """
    if not isinstance(order, int) and order not in ("forward", "reverse"):
        raise ValueError(f"order: expected 'forward', 'reverse' or a seed, got {order!r}")
    if divergence not in ("error", "warn"):
        raise ValueError(f"divergence: expected 'error' or 'warn', got {divergence!r}")
    cuda = Namespace(Dim3(*grid), Dim3(*block), dynamic_bytes, poison, source.name)
    function = _loader(cuda, numbers)(source, True)
    arranged = _arranger(order)
    values = [plain(argument) for argument in arguments]
    with np.errstate(all="ignore"):
        count, running = grid[0] * grid[1] * grid[2], {}
        try:
            for number in arranged(list(range(count))):
                cuda.new_block()
                place = _place(number, grid)
                threads = [Thread(i, _place(i, block), place) for i in range(block[0] * block[1] * block[2])]
                pauses = _run_block(source, function, values, threads, cuda, arranged, divergence)
                waits = next(pauses, None)
                if waits is not None:
                    running[number] = pauses, cuda.memory, waits
            while running:
                if len(running) < count:
                    _, _, waits = running[min(running)]
                    ended = _place(next(number for number in range(count) if number not in running), grid)
                    raise _error(unmet(f"cuda.{GRID_BARRIER}", len(running), count, tuple(ended)), waits, source)
                for number in arranged(list(running)):
                    pauses, cuda.memory, _ = running.pop(number)
                    waits = next(pauses, None)
                    if waits is not None:
                        running[number] = pauses, cuda.memory, waits
        finally:
            for pauses, _, _ in running.values():
                pauses.close()


def _place(linear: int, extent: tuple[int, int, int]) -> Dim3:
    x, y, _ = extent
    return Dim3(linear % x, linear // x % y, linear // (x * y))


def _arranger(order: Order) -> Callable[[list[Any]], list[Any]]:
    """A function that puts threads or blocks in the chosen order."""
    if isinstance(order, str):
        return list if order == "forward" else lambda items: items[::-1]
    generator = random.Random(order)
    return lambda items: generator.sample(items, len(items))


def _loader(cuda: Namespace, numbers: Any) -> Callable[[FunctionSource, bool], Callable[..., Any]]:
    """A function (source, whether it is the kernel) -> rewritten function for this run."""
    loaded: dict[FunctionSource, Callable[..., Any]] = {}

    def load(source: FunctionSource, is_kernel: bool) -> Callable[..., Any]:
        if source not in loaded:
            names: dict[str, Any] = {name: cuda if is_cuda(value) else value for name, value in source.names.items()}
            names |= {name: cuda.at_path(value.path) for name, value in names.items() if isinstance(value, Intrinsic)}
            names |= {CUDA: cuda, NUMBERS: numbers, FUNCTION: device}
            exec(_compiled(source, is_kernel, source.readings), names)
            loaded[source] = names[source.tree.name]  # the name in the `def` statement; __name__ may have been changed
        return loaded[source]

    def device(value: Any) -> Callable[..., Any]:
        source = device_source(value)
        assert source is not None  # the rewriter has checked it
        return load(source, False)

    return load


def _run_block(
    source: FunctionSource,
    function: Callable[..., Any],
    values: list[Any],
    threads: list[Thread],
    cuda: Namespace,
    arranged: Callable[[list[Any]], list[Any]],
    divergence: str,
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
            ready = _meet_in_warps(threads, source)
            if not ready:
                ready = _meet_at_barrier(threads, source, divergence)
                if ready and _name(ready[0]) == GRID_BARRIER:
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
        problem.add_note(f"in {thread}")
        raise
    finally:
        cuda.thread = None


# ---- the places where threads wait


def _frames(thread: Thread) -> Iterator[Any]:
    """The frames of a waiting thread: the kernel's, then those of the device functions that it has called."""
    generator: Any = thread.generator
    while isinstance(generator, GeneratorType):
        yield generator.gi_frame
        generator = generator.gi_yieldfrom


def _position(thread: Thread) -> Position:
    return tuple((frame.f_code, _places(frame.f_code)[frame.f_lasti // 2]) for frame in _frames(thread))


@functools.lru_cache(maxsize=256)
def _places(code: CodeType) -> list[Any]:
    """For each instruction, its position in the source; the instruction's number if Python runs without columns.

    Positions are compared, because Python compiles the test of a `while` twice, and both are the same call.
    """
    return [
        number if place[2] is None else place  # place: first line, last line, first column, last column
        for number, place in enumerate(code.co_positions())
    ]


def _line(thread: Thread) -> tuple[str, int]:
    """File and line of the collective where the thread waits."""
    *_, frame = _frames(thread)
    return frame.f_code.co_filename, frame.f_lineno


def _name(thread: Thread) -> str:
    assert thread.request is not None
    return thread.request[0]


def _groups(threads: list[Thread]) -> dict[Position, list[Thread]]:
    """{place: threads that wait there}."""
    groups: dict[Position, list[Thread]] = {}
    for thread in threads:
        groups.setdefault(_position(thread), []).append(thread)
    return groups


def _error(message: str, thread: Thread, source: FunctionSource) -> KernelError:
    """A KernelError at the line where the thread waits."""
    *calls, (filename, line) = ((frame.f_code.co_filename, frame.f_lineno) for frame in _frames(thread))
    return KernelError(message, filename=filename, line=line, kernel=source.name, called_from=calls)


# ---- warps


def _meet_in_warps(threads: list[Thread], source: FunctionSource) -> list[Thread]:
    """Execute the shuffles and votes that all their lanes have reached, and return these lanes.

    Raises KernelError if no lane can ever go on.
    """
    going: list[Thread] = []
    stuck: list[tuple[Thread, list[Thread], list[Thread]]] = []
    for start in range(0, len(threads), WARP):
        warp = threads[start : start + WARP]
        alive = [thread for thread in warp if thread.left is None]
        at_collective = [thread for thread in alive if _name(thread) not in (*BARRIERS, GRID_BARRIER)]
        groups = list(_groups(at_collective).values())
        released = [thread for group in groups for thread in _meet(group, warp, stuck, source)]
        if not released:
            # activemask does not wait: it counts the lanes that are there when no other lane can go on.
            released = next((group for group in groups if _name(group[0]) == "activemask"), [])
            _answer(released)
        going += released
    if not going and stuck:
        raise _missing_lanes(*stuck[0], source)
    return going


def _meet(
    group: list[Thread],
    warp: list[Thread],
    stuck: list[tuple[Thread, list[Thread], list[Thread]]],
    source: FunctionSource,
) -> list[Thread]:
    """The threads of one warp at one call that can go on: all lanes of their masks have reached the call.

    The others are added to `stuck`.
    """
    if _name(group[0]) == "activemask":
        return []
    here = [thread.linear for thread in group]
    complete = []
    for thread in group:
        mask = members(_arguments(thread))
        if not mask >> thread.linear % WARP & 1:
            raise _error(diagnoses.not_a_member(f"cuda.{_name(thread)}", [mask], str(thread)), thread, source)
        awaited = [lane for lane in warp if mask >> lane.linear % WARP & 1 and _counts(lane, thread, source)]
        if all(lane.linear in here for lane in awaited):
            complete.append(thread)
        else:
            stuck.append((thread, awaited, group))
    _answer(complete)
    return complete


def _arguments(thread: Thread) -> tuple[Any, ...]:
    assert thread.request is not None
    return thread.request[1:]


def _answer(lanes: list[Thread]) -> None:
    """Set the results of a collective for these lanes, which are all at the same call."""
    if lanes:
        results = answers(_name(lanes[0]), {thread.linear % WARP: _arguments(thread) for thread in lanes})
        for thread in lanes:
            thread.answer = plain(results[thread.linear % WARP])


def _missing_lanes(thread: Thread, awaited: list[Thread], group: list[Thread], source: FunctionSource) -> KernelError:
    here = [lane for lane in awaited if lane in group]
    other = next(lane for lane in awaited if lane not in group)
    sentence = diagnoses.warp_members(f"cuda.{_name(thread)}", [len(awaited), len(here), 0], str(thread))
    return _error(f"{sentence}. {_whereabouts(other)}", thread, source)


def _whereabouts(thread: Thread) -> str:
    """A sentence about the place of a missing thread."""
    who = f"Thread {tuple(thread.index)}"
    if thread.left is None:
        return f"{who} waits at cuda.{_name(thread)}() in line {_line(thread)[1]}"
    return f"{who} has reached the kernel's end" if thread.left == LAST else f"{who} returned in line {thread.left}"


# ---- barriers


def _meet_at_barrier(threads: list[Thread], source: FunctionSource, divergence: str) -> list[Thread]:
    """Return all live threads of the block, if they wait at one barrier."""
    waiting = [thread for thread in threads if thread.left is None]
    if not waiting:
        return []
    here = _groups(waiting)[_position(waiting[0])]
    others = [thread for thread in threads if thread not in here and _counts(thread, here[0], source)]
    if others:
        counts = [len(here), len(here) + len(others), 0]
        sentence = diagnoses.divergent_barrier(f"cuda.{_name(here[0])}", counts, f"block {tuple(here[0].block)}")
        error = _error(f"{sentence}. {_whereabouts(others[0])}", here[0], source)
        if divergence == "error":
            raise error
        warnings.warn(str(error), KernelWarning, stacklevel=5)
    values = [_arguments(thread)[0] for thread in waiting if _arguments(thread)]
    for thread in waiting:
        thread.answer = BLOCK_ANSWERS[_name(thread)](values)
    return waiting


def _counts(thread: Thread, here: Thread, source: FunctionSource) -> bool:
    """Whether the barrier or the warp's collective where `here` waits needs `thread`.

    A thread that returned in an earlier line is not needed. A thread that returned in a later line did not execute the
    collective. A device may accept that, since finished threads do not count, but not all threads reach the collective:
    so it is an error. If a loop contains both lines, the return may belong to an earlier iteration: then the thread is
    not needed.
    """
    if thread.left is None:
        return True
    line = next(_frames(here)).f_lineno
    return thread.left > line and not any(
        loop.lineno <= line and thread.left <= (loop.end_lineno or 0)
        for loop in ast.walk(source.tree)
        if isinstance(loop, ast.For | ast.While)
    )
