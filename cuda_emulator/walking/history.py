"""Who wrote the value that each read gets: a walk's accesses in the order of time, each with the write before it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .record import Walk

Writer = tuple[int, int]
"""(thread, how many writes it made before this one): the same write in two walks of a kernel."""


@dataclass(frozen=True)
class Touch:
    """An access of one thread.

    step: the number of the step, access: of the access in it; place: of the element; value: read or written
    writes: whether it writes; who: for a write its identity
    writer: who wrote the element before; None for nobody in this walk
    """

    step: int
    access: int
    thread: int
    array: int
    place: int
    value: object
    writes: bool
    who: Writer | None
    writer: Writer | None


def touches(walk: Walk) -> list[Touch]:
    """All accesses to global and shared memory, in the order of time; an atomic operation is a write."""
    found: list[Touch] = []
    last: dict[tuple[int, int], Writer] = {}
    written: defaultdict[int, int] = defaultdict(int)
    for number, step in enumerate(walk.steps):
        for position, access in enumerate(step.accesses):
            if walk.arrays[access.array].space not in ("global", "shared"):
                continue
            writes = access.kind != "read"
            for thread, place, value in zip(access.threads, access.places, access.values, strict=True):
                before, who = last.get((access.array, place)), None
                if writes:
                    who = last[access.array, place] = thread, written[thread]
                    written[thread] += 1
                found.append(Touch(number, position, thread, access.array, place, value, writes, who, before))
    return found
