"""Take barriers away and find an order of the warps that gives another result: a race, shown.

Between two barriers a device may run the warps of a block in any order. The walk with all threads together shows which
warps then touch the same element, one of them writing. Of such a pair one warp is sent ahead until it has to wait, and
the others follow; if the block's results differ from the right ones, that order is the proof. Where all such pairs are
in one warp, a single thread is sent ahead: the lanes of a warp need not go in step either.

    find_race     the order that gives a wrong number, and where it came from
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..stepping.step_warps import WARP
from .history import Touch, touches
from .record import Walk
from .walk import Groups
from .walked_launch import Launched

TRIES = 10
"""Orders that are tried at most."""

Order = tuple[int, tuple[int, ...]]
"""(phase, the threads that run ahead of the others in it)."""


@dataclass(frozen=True)
class Race:
    """An order of the warps that gives a wrong number.

    walk: in this order; phase, ahead: the threads that ran ahead of the others, and in which phase
    read: the access that got a wrong value; expected: the value that it gets in the right walk
    seen: the write whose value it got, None for what was there before the walk
    missed: the write whose value it should have got, as it is in this walk; None for what was there before
    early: whether it came before that write; else the value had been overwritten
    array, place, right, wrong: an element of the block's results that differs
    tried: how many orders were tried
    """

    walk: Walk
    phase: int
    ahead: tuple[int, ...]
    read: Touch
    expected: object
    seen: Touch | None
    missed: Touch | None
    early: bool
    array: int
    place: int
    right: object
    wrong: object
    tried: int


@dataclass(frozen=True)
class NoRace:
    """No wrong number was found. conflicts: how many elements two threads touch without a barrier between, one of them
    writing; tried: how many orders were tried"""

    conflicts: int
    tried: int


def find_race(
    launched: Launched, number: int, removed: frozenset[tuple[str, int]], right: Walk | None = None
) -> Race | NoRace:
    """The race that shows when barriers are removed from a block.

    number: of the block; removed: (file, line) of the barriers; right: the walk with all barriers, if it is there
    """
    right = right or launched.walk(number)
    together = launched.walk(number, removed)
    conflicts = _conflicts(together)
    fallback: Race | None = None
    tried = 0
    for phase, ahead in _orders(conflicts, together.threads):
        if tried == TRIES:
            break
        tried += 1
        walk = launched.walk(number, removed, _groups(phase, ahead, together.threads))
        race = _explained(walk, right, phase, ahead, tried)
        if race is not None and np.isfinite(np.asarray(race.wrong, dtype=np.complex128)):
            return race
        fallback = fallback or race
    return fallback or NoRace(sum(len(pairs) for pairs in conflicts.values()), tried)


def _conflicts(walk: Walk) -> dict[int, list[tuple[int, int]]]:
    """{phase: (one thread, another) for each element that both touch in it, one of them writing}.

    The two are of different warps where there are such.
    """
    by_element: defaultdict[tuple[int, int, int], list[Touch]] = defaultdict(list)
    for touch in touches(walk):
        by_element[walk.steps[touch.step].phase, touch.array, touch.place].append(touch)
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (phase, _, _), those in by_element.items():
        writers = [touch.thread for touch in those if touch.writes]
        pairs = [(writer, touch.thread) for writer in writers[:1] for touch in those if touch.thread != writer]
        if pairs:
            found[phase].append(next((pair for pair in pairs if pair[0] // WARP != pair[1] // WARP), pairs[0]))
    return dict(found)


def _orders(conflicts: dict[int, list[tuple[int, int]]], threads: int) -> Iterator[Order]:
    """Orders to try, each once. The first phase comes last: in the others a wrong value is an old number, which shows
    more than one that nobody has written yet."""
    done: set[Order] = set()
    for phase in sorted(conflicts, key=lambda phase: (phase == 0, phase)):
        pairs = conflicts[phase]
        apart = [pair for pair in pairs if pair[0] // WARP != pair[1] // WARP]
        for pair in apart or pairs:
            for one in pair:
                first = one // WARP * WARP
                ahead = tuple(range(first, min(first + WARP, threads))) if apart else (one,)
                if (phase, ahead) not in done:
                    done.add((phase, ahead))
                    yield phase, ahead


def _groups(phase: int, ahead: tuple[int, ...], threads: int) -> Groups:
    """The threads ahead go first in that phase."""
    others = [number for number in range(threads) if number not in set(ahead)]
    return lambda now: [list(ahead), others] if now == phase else [list(range(threads))]


def _explained(walk: Walk, right: Walk, phase: int, ahead: tuple[int, ...], tried: int) -> Race | None:
    """The race that this walk shows; None if its results are right."""
    wrong = [
        (array, int(place))
        for array, (info, good) in enumerate(zip(walk.arrays, right.arrays, strict=False))
        if info.space == "global" and info.after is not None and good.after is not None
        for place in np.flatnonzero(_different(info.after.ravel(order="K"), good.after.ravel(order="K")))
    ]
    if not wrong:
        return None
    mine, theirs = touches(walk), touches(right)
    read, expected = _first_wrong_read(mine, theirs, wrong)
    if read is None or expected is None:
        return None
    writes = {touch.who: touch for touch in mine if touch.who is not None}
    cell = next(
        ((touch.array, touch.place) for touch in mine if touch.writes and touch.thread == read.thread
         and (touch.array, touch.place) in set(wrong)),
        wrong[0],
    )  # fmt: skip
    missed = None if expected.writer is None else writes.get(expected.writer)
    seen = None if read.writer is None else writes.get(read.writer)
    array, place = cell
    good, bad = right.arrays[array].after, walk.arrays[array].after
    assert good is not None
    assert bad is not None
    return Race(
        walk, phase, ahead, read, expected.value, seen, missed,
        early=missed is not None and missed.step > read.step,
        array=array, place=place, right=good.ravel(order="K")[place], wrong=bad.ravel(order="K")[place], tried=tried,
    )  # fmt: skip


def _different(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    both_nan = (one != one) & (other != other)
    return np.asarray((one != other) & ~both_nan)


def _first_wrong_read(
    mine: list[Touch], theirs: list[Touch], wrong: list[tuple[int, int]]
) -> tuple[Touch | None, Touch | None]:
    """(the first read that got another write's value than in the right walk, that read in the right walk).

    A read of a thread whose own result is wrong is preferred.
    """
    in_right: defaultdict[int, list[Touch]] = defaultdict(list)
    for touch in theirs:
        in_right[touch.thread].append(touch)
    position: defaultdict[int, int] = defaultdict(int)
    cells = set(wrong)
    concerned = {touch.thread for touch in mine if touch.writes and (touch.array, touch.place) in cells}
    first: tuple[Touch | None, Touch | None] = None, None
    for touch in mine:
        count = position[touch.thread]
        position[touch.thread] += 1
        if count >= len(in_right[touch.thread]):
            continue
        other = in_right[touch.thread][count]
        if (other.array, other.place, other.writes) != (touch.array, touch.place, touch.writes):
            continue  # the thread has gone another way
        if touch.writer != other.writer and bool(_different(np.asarray(touch.value), np.asarray(other.value))):
            if touch.writes:
                continue
            if touch.thread in concerned:
                return touch, other
            first = first if first[0] is not None else (touch, other)
    return first
