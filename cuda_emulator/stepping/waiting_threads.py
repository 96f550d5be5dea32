"""The places where the threads of a block wait for each other, and who of them can go on.

meet_in_warps      finds the threads at shuffles and votes that can go on
meet_at_barrier    the same for a barrier of the whole block
frames             the functions in which a waiting thread is
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from types import CodeType, GeneratorType
from typing import Any

from ..compiler import diagnoses
from ..compiler.reading.source import FunctionSource
from ..errors import KernelError, KernelWarning
from ..intrinsics import BARRIERS, GRID_BARRIER
from .step_namespace import LAST, Thread
from .step_numbers import plain
from .step_rewrite import CUDA
from .step_warps import BLOCK_ANSWERS, WARP, answers, members

#: The place where a thread waits: the code of every function that it is in, and the lines and columns of its call.
Position = tuple[tuple[CodeType, Any], ...]


def frames(thread: Thread) -> Iterator[Any]:
    """The frames of a waiting thread: the kernel's, then those of the device functions that it has called.

    Frames of this program between them are left out.
    """
    generator: Any = thread.generator
    while isinstance(generator, GeneratorType):
        frame: Any = generator.gi_frame
        if CUDA in frame.f_globals:
            yield frame
        generator = generator.gi_yieldfrom


def _position(thread: Thread) -> Position:
    return tuple((frame.f_code, _places(frame.f_code)[frame.f_lasti // 2]) for frame in frames(thread))


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
    *_, frame = frames(thread)
    return frame.f_code.co_filename, frame.f_lineno


def collective(thread: Thread) -> str:
    assert thread.request is not None
    return thread.request[0]


def _groups(threads: list[Thread]) -> dict[Position, list[Thread]]:
    """{place: threads that wait there}."""
    groups: dict[Position, list[Thread]] = {}
    for thread in threads:
        groups.setdefault(_position(thread), []).append(thread)
    return groups


def error_at(message: str, thread: Thread, source: FunctionSource) -> KernelError:
    """A KernelError at the line where the thread waits."""
    *calls, (filename, line) = ((frame.f_code.co_filename, frame.f_lineno) for frame in frames(thread))
    return KernelError(message, filename=filename, line=line, kernel=source.name, called_from=calls)


# ---- warps


def meet_in_warps(threads: list[Thread], source: FunctionSource) -> list[Thread]:
    """Execute the shuffles and votes that all their lanes have reached, and return these lanes.

    Raises KernelError if no lane can ever go on.
    """
    going: list[Thread] = []
    stuck: list[tuple[Thread, list[Thread], list[Thread]]] = []
    for start in range(0, len(threads), WARP):
        warp = threads[start : start + WARP]
        alive = [thread for thread in warp if thread.left is None]
        at_collective = [thread for thread in alive if collective(thread) not in (*BARRIERS, GRID_BARRIER)]
        groups = list(_groups(at_collective).values())
        released = [thread for group in groups for thread in _meet(group, warp, stuck, source)]
        if not released:
            # activemask does not wait: it counts the lanes that are there when no other lane can go on.
            released = next((group for group in groups if collective(group[0]) == "activemask"), [])
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
    if collective(group[0]) == "activemask":
        return []
    here = [thread.linear for thread in group]
    complete = []
    for thread in group:
        mask = members(_arguments(thread))
        if not mask >> thread.linear % WARP & 1:
            raise error_at(diagnoses.not_a_member(f"cuda.{collective(thread)}", [mask], str(thread)), thread, source)
        awaited = [lane for lane in warp if mask >> lane.linear % WARP & 1 and _counts(lane, thread, source)]
        if all(lane.linear in here for lane in awaited):
            for lane in awaited:
                theirs = members(_arguments(lane))
                if theirs != mask:
                    detail = [mask, lane.linear % WARP, theirs]
                    raise error_at(
                        diagnoses.other_mask(f"cuda.{collective(thread)}", detail, str(thread)), thread, source
                    )
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
        results = answers(collective(lanes[0]), {thread.linear % WARP: _arguments(thread) for thread in lanes})
        for thread in lanes:
            thread.answer = plain(results[thread.linear % WARP])


def _missing_lanes(thread: Thread, awaited: list[Thread], group: list[Thread], source: FunctionSource) -> KernelError:
    here = [lane for lane in awaited if lane in group]
    other = next(lane for lane in awaited if lane not in group)
    sentence = diagnoses.warp_members(f"cuda.{collective(thread)}", [len(awaited), len(here), 0], str(thread))
    return error_at(f"{sentence}. {_whereabouts(other)}", thread, source)


def _whereabouts(thread: Thread) -> str:
    """A sentence about the place of a missing thread."""
    who = f"Thread {tuple(thread.index)}"
    if thread.left is None:
        return f"{who} waits at cuda.{collective(thread)}() in line {_line(thread)[1]}"
    return f"{who} has reached the kernel's end" if thread.left == LAST else f"{who} returned in line {thread.left}"


# ---- barriers


def meet_at_barrier(threads: list[Thread], source: FunctionSource, divergence: str) -> list[Thread]:
    """Return all live threads of the block, if they wait at one barrier."""
    waiting = [thread for thread in threads if thread.left is None]
    if not waiting:
        return []
    here = _groups(waiting)[_position(waiting[0])]
    others = [thread for thread in threads if thread not in here and _counts(thread, here[0], source)]
    if others:
        counts = [len(here), len(here) + len(others), 0]
        sentence = diagnoses.divergent_barrier(f"cuda.{collective(here[0])}", counts, f"block {tuple(here[0].block)}")
        error = error_at(f"{sentence}. {_whereabouts(others[0])}", here[0], source)
        if divergence == "error":
            raise error
        warnings.warn(str(error), KernelWarning, stacklevel=5)
    values = [_arguments(thread)[0] for thread in waiting if _arguments(thread)]
    for thread in waiting:
        thread.answer = BLOCK_ANSWERS[collective(thread)](values)
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
    line = next(frames(here)).f_lineno
    return thread.left > line and not any(
        loop.lineno <= line and thread.left <= (loop.end_lineno or 0)
        for loop in ast.walk(source.tree)
        if isinstance(loop, ast.For | ast.While)
    )
