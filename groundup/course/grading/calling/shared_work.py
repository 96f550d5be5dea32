"""Whether the threads of a launch share its work: which thread touches which elements, and how evenly.

    Work          one thread's share of a launch
    Touched       which thread touches which element of an array: of a trace, or noted in step mode
    share_work    counts both against each other, and says who does the work where it is not shared

A kernel in which thread 0 goes over everything has the right numbers. So do kernels in which one block works, or one
warp of each block, or every thread does all of it. On a GPU they are as slow as one thread, one block or one warp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_emulator.inspection import KINDS, Trace, find_places
from groundup.course.checks.check import Tally
from groundup.course.grading.calling.kernel_causes import is_assembled
from groundup.course.grading.calling.kernel_launches import ONE_THREAD
from shared.numbers import plural


@dataclass(frozen=True)
class Work:
    """One thread's share: at most so many different elements of the argument at `place`, or of shared memory (None).

    kind: "store" or "load"; cause: why a thread may touch more, "" for what the accesses show
    row: elements of a row, where a thread takes a row; then `most` counts rows
    """

    place: int | None
    most: int
    kind: str = "store"
    cause: str = ""
    row: int = 1


@dataclass(frozen=True)
class Touched:
    """The accesses of one kind to an array, in columns: the block, the thread in its block, the element.

    lines: of each access, in the assembled file; 0 for a line of the grader's
    """

    name: str
    block: np.ndarray
    thread: np.ndarray
    element: np.ndarray
    lines: np.ndarray


def touched(trace: Trace, place: int | None, kind: str) -> Touched:
    """The accesses of that kind to the argument at that place, or to shared memory."""
    kinds = np.array([KINDS.index(site.kind) for site in trace.sites], np.int64)
    name = "shared memory" if place is None else str(trace.arguments[place][0])
    wanted = [each.space == "shared" if place is None else each.name == name for each in trace.memories]
    of = find_places(trace, kinds).of
    inside = np.array([*wanted, False, False, False])[of] & (kinds[trace.events["site"]] == KINDS.index(kind))
    events = trace.events[inside]
    first = next((each for each, is_it in zip(trace.memories, wanted, strict=True) if is_it), None)
    element = (events["address"] - (first.address if first else 0)) // (first.dtype.itemsize if first else 1)
    block = np.repeat(np.arange(len(trace.blocks)), np.diff(trace.bounds))[inside]
    lines = np.array([site.line * is_assembled(site.file) for site in trace.sites])[events["site"]]
    return Touched(name, block, events["thread"].astype(np.int64), element, lines)


def share_work(
    tally: Tally, work: Work, those: Touched, blocks: int, threads: int, several: str = "", patterns: bool = False
) -> None:
    """Count whether no thread touches more than its share, and writes what another one writes.

    blocks, threads: of the launch, and of a block; several: why two threads may write one element, "" for ONE_THREAD
    patterns: whether to refuse only what the accesses explain, such as one thread that does everything
    """
    who = those.block * threads + those.thread
    pairs = np.unique(np.stack([who, those.element // work.row]), axis=1)
    workers, counts = np.unique(pairs[0], return_counts=True)
    most, busiest = int(counts.max(initial=0)), int(workers[counts.argmax()]) if counts.size else 0
    does, unit = "writes" if work.kind == "store" else "reads", "row" if work.row > 1 else "number"
    line = int(those.lines[who == busiest][0]) if most else 0
    writers = np.unique(np.unique(np.stack([those.element, who]), axis=1)[0], return_counts=True)[1].max(initial=0)
    tally.holds(
        work.kind == "load" or writers <= 1,
        f"{writers} threads write the same element of {those.name}",
        expected="one thread for each",
        cause=several or ONE_THREAD,
        line=line or None,
    )
    pattern = _who_works(workers, blocks, threads) if most > work.most else ""
    tally.holds(
        most <= work.most or (patterns and not pattern),
        f"thread {busiest % threads} of block {busiest // threads} {does} {plural(most, unit)} of {those.name}",
        expected=f"at most {work.most}, if all {blocks * threads} threads share the work",
        got=str(most),
        cause=work.cause or pattern or NOT_ITS_SHARE,
        line=line or None,
    )


NOT_ITS_SHARE = (
    "a thread does the work of several: the title says what one thread is there for, and the grid has a thread for "
    "each; only where the grid is smaller does a thread go on, by the size of the grid"
)


def _who_works(busy: np.ndarray, blocks: int, threads: int) -> str:
    """The cause, if only one thread, one block, or one warp of each block works; else ""."""
    if blocks * threads > 1 and len(busy) == 1:
        thread = f"thread {busy[0] % threads} of block {busy[0] // threads}"
        return (
            f"{thread} does everything in a loop, and the other {blocks * threads - 1} do nothing: a GPU is fast only "
            "if its threads share the work"
        )
    if blocks > 1 and len(np.unique(busy // threads)) == 1:
        return (
            f"only block {busy[0] // threads} of {plural(blocks, 'block')} works: blockIdx is a part of a thread's "
            "number, and the whole grid of its step"
        )
    if len(np.unique(busy % threads)) == 1:
        return (
            f"only thread {busy[0] % threads} of each block works, and the other {threads - 1} wait: the threads of a "
            "block share its work"
        )
    if threads > 32 and len(np.unique(busy % threads // 32)) == 1:
        return f"only warp {busy[0] % threads // 32} of each block works: a block has {threads // 32}, which share it"
    return ""


def of_touches(name: str, shape: tuple[int, ...], touches: Any, kind: str, grid: tuple[int, ...]) -> Touched:
    """The accesses of that kind among those that step mode has noted (line_by_line.Touch)."""
    those = [each for each in touches if each.stores == (kind == "store")]
    blocks = [int(np.ravel_multi_index(tuple(each.thread[0])[::-1], grid[::-1])) for each in those]
    elements = [int(np.ravel_multi_index(each.element, shape, mode="wrap")) for each in those]
    columns = (blocks, [each.thread[1] for each in those], elements, [each.line for each in those])
    return Touched(name, *(np.array(column, np.int64) for column in columns))
