"""Kernels that run line by line, in the emulator's step mode, which compiles nothing.

    line_by_line    one launch, which also ends a loop that never ends
    followed        a check of the memory: which thread touches which element, and do a warp's lanes stay side by side

A kernel with shuffles takes five seconds to compile, and a wrong answer is mostly found in the first few numbers. So
Python runs the lines of these kernels, one thread after the other, and the elements that each thread touches are
written down on the way. A barrier or a shuffle that not all threads reach is reported with its line.

On a GPU, and in the simulator, these launches are those of kernel_launches.py.
"""

from __future__ import annotations

import _thread
import ast
import math
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

import cuda_emulator as emulator
from cuda_emulator import KernelError
from cuda_emulator.inspection import cuda_path, running_thread, step, step_rewrite, tracing
from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.calling.kernel_causes import explained, own_line
from groundup.course.grading.calling.kernel_launches import (
    ENDLESS,
    INDEX,
    ONE_ELEMENT,
    Launch,
    backend,
    filled,
    last_launch,
    launched,
    of_the_project,
    other_launch,
    written,
)
from groundup.course.grading.calling.kernel_memory import NO_ATOMICS, same_bits
from groundup.course.grading.calling.shared_work import Work, of_touches, share_work

SECONDS = 8
"""The time limit of a launch, of the processor's time. A right one takes a few hundredths of a second, or tenths where
blocks have many threads; on a busy machine a second of the clock may be a tenth of that."""

LOOK_EVERY = 0.2
"""Seconds between two looks at the processor's time."""

WARP = 32

WRONG_MASK = (
    "the mask of a shuffle says which lanes take part, and all 32 do: 0xffffffff. Each of these has to reach the call"
)


LANES_AWAY = (
    "lanes of the warp do not come: an `if`, a loop that ends earlier for them, or a return keeps them from the "
    "shuffle, which may stand in a function that is called there. All 32 have to reach it: take the call out of the "
    "branch, and let lanes without a column bring a value that changes nothing"
)


NOT_SIDE_BY_SIDE = (
    "lanes far apart: neighbouring lanes have to take neighbouring columns, j = lane, lane + 32, …, so that a warp "
    "reads whole sectors"
)


OTHERS_READ = (
    "a thread reads what another one writes, and nothing orders the two: a shuffle hands over registers, not memory. "
    "Keep it in a variable, or work it out again"
)


READ_AGAIN = "the result goes to memory and is read back: keep it in a variable until it is finished, and write it once"


ONCE = (
    "memory is the limit of this kernel: read each number once, into a variable, and write it once, when it is finished"
)


NOT_SHARED_OUT = (
    "each lane does the whole row: 32 lanes share a row, lane by lane its own columns, and the warp's functions put "
    "together what they found"
)


FETCHED_AGAIN = "each number is fetched once by a block, into its tile, and then read from there: `product` does so"


class Touch(NamedTuple):
    """A thread loads or stores an element, at a place in the code."""

    stores: bool
    thread: tuple[Any, int]
    place: tuple[Any, int]
    line: int
    element: tuple[int, ...]


class Followed(np.ndarray):
    """An array that writes down which thread reaches which element, if `touches` is a list."""

    touches: list[Touch] | None

    def __array_finalize__(self, parent: Any) -> None:
        self.touches = getattr(parent, "touches", None)

    def __getitem__(self, index: Any) -> Any:
        self._note(False, index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(True, index)
        super().__setitem__(index, value)

    def _note(self, stores: bool, index: Any) -> None:
        if self.touches is None:
            return
        running = running_thread(sys._getframe(2))
        if running is not None:
            frame, thread = running
            parts = index if isinstance(index, tuple) else (index,)
            if any(part is None or part is ... or isinstance(part, slice) for part in parts):
                what = "a thread reaches several elements at once"
                raise Wrong(what, cause=INDEX, line=own_line(frame.f_code.co_filename, frame.f_lineno))
            element = tuple(map(int, parts))
            place = frame.f_code, frame.f_lasti
            self.touches.append(Touch(stores, (thread.block, thread.linear), place, frame.f_lineno, element))


def line_by_line(kernel: Any, launch: Launch, *arguments: Any) -> Any:
    """One launch on the emulator, line by line in Python, with the arguments and results of `launched`."""
    if other_launch or backend() != "emulator":
        return launched(kernel, launch, *arguments)
    of_the_project(kernel)
    _single_numbers(kernel)
    given = [filled(each) for each in arguments]
    before = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    with explaining(), time_limit(), emulator.options(step=True):
        kernel[launch.grid, launch.block](*given)
    results = written(kernel, arguments, before, given)
    last_launch[:] = kernel, launch, arguments, results
    return results[0] if len(results) == 1 else tuple(results)


def followed(
    kernel: Any,
    launch: Launch,
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
    *,
    side_by_side: Sequence[int] = (),
    written_once: Sequence[int] = (),
    shared_out: Sequence[int] = (),
    fetched_once: Sequence[int] = (),
    once: Sequence[int] = (),
    work: Sequence[Work] = (),
) -> Callable[[Tally], None]:
    """The check `memory`: no thread touches an element that another one writes, and the kernel compiles.

    arguments: makes random arguments, as `launched` takes them. Shared memory is not supported, because this check
        does not
        know its barriers.
    side_by_side: places of arguments. The lanes of a warp must take neighbouring columns of these arrays. A line that
        some
        of the 32 lanes run more often than others is not judged, so the number of columns should be a multiple of 32.
    written_once: places of arguments that the kernel may write, but not read
    shared_out: places of matrices whose rows a warp shares out among its lanes: none may take all columns for itself
    fetched_once: places of arguments of which a block may load each element once
    once: places of arguments of which each element may be read once, and written once
    work: the share of one thread
    """

    def check(tally: Tally) -> None:
        inputs = arguments(np.random.default_rng(6))
        tally.trying(f"the memory of {kernel.__name__}{launch}")
        tally.looks_at(kernel, launch, [filled(argument) for argument in inputs])
        if backend() != "emulator":
            same_bits(tally, kernel, launch, inputs)
            return
        _no_atomics(tally, kernel)
        touches = _touches(kernel, launch, [filled(argument) for argument in inputs])
        for name, those in touches:
            _nobody_shares(tally, name, those)
        configured = kernel.configure(launch.grid, launch.block)
        for share in work:
            name, those = touches[share.place or 0]
            of = of_touches(name, np.shape(filled(inputs[share.place or 0])), those, share.kind, configured.griddim)
            share_work(tally, share, of, math.prod(configured.griddim), math.prod(configured.blockdim))
        for place in side_by_side:
            _side_by_side(tally, *touches[place])
        for place in written_once:
            name, those = touches[place]
            read = next((touch for touch in those if not touch.stores), None)
            sentence = f"{name}[{_index(read.element)}] is read by the kernel that writes it" if read else ""
            tally.holds(read is None, sentence, cause=READ_AGAIN, line=read.line if read else None)
        for place in shared_out:
            _shared_out(tally, *touches[place], inputs[place])
        for place in once:
            _once(tally, *touches[place])
        for place in fetched_once:
            _fetched_once(tally, *touches[place])
        with explaining():
            kernel.emulated_source(*(filled(argument) for argument in inputs))
        tally.holds(True, "it compiles")

    return check


def _single_numbers(kernel: Any) -> None:
    """Raises Wrong for a statement that stores into several elements at once."""
    for node in ast.walk(kernel.source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            index = node.slice
            if any(isinstance(part, ast.Slice) for part in (index.elts if isinstance(index, ast.Tuple) else [index])):
                what = f"every thread computes with whole arrays: {ast.unparse(node)}"
                raise Wrong(what, cause=INDEX, line=own_line(kernel.source.filename, node.lineno))


@contextmanager
def explaining() -> Iterator[None]:
    """Turns an error of the emulator into Wrong, with its most frequent cause."""
    try:
        yield
    except KernelError as error:
        raise _with_mask(explained(error)) from error
    except Wrong as wrong:
        raise _with_mask(wrong) from wrong.__cause__


def _with_mask(wrong: Wrong) -> Wrong:
    if "names 32 live lanes" in wrong.what:
        wrong.cause = LANES_AWAY
    elif "the mask 0x" in wrong.what or "in its mask" in wrong.what:
        wrong.cause = WRONG_MASK
    return wrong


@contextmanager
def time_limit() -> Iterator[None]:
    """End an endless loop, and report its line."""
    over, done, start = threading.Event(), threading.Event(), time.process_time()

    def watch() -> None:
        while not done.wait(LOOK_EVERY):
            if time.process_time() - start > SECONDS:
                over.set()
                _thread.interrupt_main()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not over.is_set():
            raise
        name, trace, last = step_rewrite.CUDA, interrupt.__traceback__, None
        while trace is not None:
            last = trace if name in trace.tb_frame.f_globals else last
            trace = trace.tb_next
        place = (last.tb_frame.f_code.co_filename, last.tb_lineno) if last else (None, None)
        wrong = explained(KernelError(f"it did not end within {SECONDS} seconds", filename=place[0], line=place[1]))
        wrong.cause = ENDLESS
        raise wrong from None
    finally:
        done.set()


def _touches(kernel: Any, launch: Launch, given: Sequence[Any]) -> list[tuple[str, list[Touch]]]:
    """(name, touches) of every argument, one thread after the other; a number is never touched."""
    found: list[tuple[str, list[Touch]]] = []
    watched: list[Any] = []
    for name, value in zip(kernel.parameters, given, strict=True):
        found.append((name, []))
        if isinstance(value, np.ndarray):
            value = value.view(Followed)
            cast(Followed, value).touches = found[-1][1]
        watched.append(value)
    configured = kernel.configure(launch.grid, launch.block)
    with explaining(), time_limit():
        step.run_kernel(kernel.source, watched, configured.griddim, configured.blockdim, 0)
    return found


def _no_atomics(tally: Tally, kernel: Any) -> None:
    """Raises Wrong for an atomic operation, in the kernel or in a function that it calls."""
    calls = [
        (source, node)
        for source in (kernel.source, *tracing.called(kernel.source))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and (cuda_path(source, node.func) or "").startswith("atomic.")
    ]
    what = f"there is an atomic operation: {ast.unparse(calls[0][1])}" if calls else ""
    line = own_line(calls[0][0].filename, calls[0][1].lineno) if calls else None
    tally.holds(not calls, what, cause=NO_ATOMICS, line=line)


def _nobody_shares(tally: Tally, name: str, touches: Sequence[Touch]) -> None:
    """Raises Wrong if two threads touch an element and one of them writes it. Nothing orders the two."""
    writers: dict[tuple[int, ...], Touch] = {}
    for touch in (each for each in touches if each.stores):
        other = writers.setdefault(touch.element, touch)
        _apart(tally, name, touch, other, "writes, too", ONE_ELEMENT)
    for touch in touches:
        if not touch.stores and touch.element in writers:
            _apart(tally, name, touch, writers[touch.element], "writes", OTHERS_READ)


def _apart(tally: Tally, name: str, touch: Touch, writer: Touch, does: str, cause: str) -> None:
    same = touch.thread == writer.thread
    what = (
        ""
        if same
        else f"race: thread {touch.thread[1]} of block {tuple(touch.thread[0])} touches "
        f"{name}[{_index(touch.element)}], which thread {writer.thread[1]} of block {tuple(writer.thread[0])} {does}"
    )
    tally.holds(same, what, cause=cause, line=None if same else touch.line)


def _side_by_side(tally: Tally, name: str, touches: Sequence[Touch]) -> None:
    """Raises Wrong if lanes of a warp, in the same round of a line, do not reach neighbouring columns.

    All lanes may read the same number: it is fetched once. Their order within the columns does not matter.
    """
    places: dict[Any, dict[int, list[Touch]]] = defaultdict(lambda: defaultdict(list))
    for touch in touches:
        block, thread = touch.thread
        places[touch.place, block, thread // WARP][thread % WARP].append(touch)
    for lanes in places.values():
        if len(lanes) < WARP or len({len(those) for those in lanes.values()}) > 1:
            continue
        for rounds in zip(*(lanes[lane] for lane in sorted(lanes)), strict=True):
            first, elements = rounds[0], [touch.element for touch in rounds]
            start = first.thread[1]
            neighbours = [(*first.element[:-1], first.element[-1] + touch.thread[1] - start) for touch in rounds]
            columns = sorted(element[-1] for element in elements)
            in_a_row = len({element[:-1] for element in elements}) == 1
            good = in_a_row and columns in ([columns[0]] * len(columns), list(range(columns[0], columns[-1] + 1)))
            at = next((i for i, (a, b) in enumerate(zip(elements, neighbours, strict=True)) if a != b), 0)
            other = rounds[at].thread[1]
            sentence = (
                f"lanes {start % WARP} and {other % WARP} of a warp reach {name}[{_index(first.element)}] and "
                f"{name}[{_index(elements[at])}] at the same time"
            )
            tally.holds(good, sentence, cause=NOT_SIDE_BY_SIDE, line=first.line)


def _shared_out(tally: Tally, name: str, touches: Sequence[Touch], given: Any) -> None:
    """Raises Wrong if a thread touches more columns of a row than its share, and two that all may need."""
    columns = given.shape[1]
    share = -(-columns // WARP)
    taken: dict[Any, set[int]] = defaultdict(set)
    for touch in touches:
        mine = taken[touch.thread, touch.element[0]]
        mine.add(touch.element[1])
        what = (
            f"thread {touch.thread[1]} touches {len(mine)} of the {columns} columns of {name}'s row {touch.element[0]}"
        )
        good = len(mine) <= share + 2
        tally.holds(good, what, cause=NOT_SHARED_OUT, line=None if good else touch.line)


def _once(tally: Tally, name: str, touches: Sequence[Touch]) -> None:
    """Raises Wrong if an element is loaded twice, or stored twice."""
    done: set[Any] = set()
    for touch in touches:
        access = touch.stores, touch.element
        what = f"{name}[{_index(touch.element)}] is {'written' if touch.stores else 'read'} a second time"
        tally.holds(access not in done, what, cause=ONCE, line=touch.line)
        done.add(access)


def _fetched_once(tally: Tally, name: str, touches: Sequence[Touch]) -> None:
    """Raises Wrong if a block loads an element twice."""
    loaded: set[Any] = set()
    for touch in (each for each in touches if not each.stores):
        element = touch.thread[0], touch.element
        what = f"{name}[{_index(touch.element)}] is loaded more than once by block {tuple(touch.thread[0])}"
        tally.holds(element not in loaded, what, cause=FETCHED_AGAIN, line=touch.line)
        loaded.add(element)


def _index(element: Sequence[int]) -> str:
    return ", ".join(map(str, element))
