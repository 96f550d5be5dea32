"""A thread of a walk, and the key of the place where it is.

Threads with the same key are at the same place in the same iteration of every loop, in the same call: they go on
together. Of two keys the smaller one is earlier in the program. So if the threads with the smallest key go first, those
that part at a branch or leave a loop early meet again at the first place that all of them come to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..stepping.step_namespace import Thread
from .marks import Mark
from .record import Step

Key = tuple[int, ...]


class Frame:
    """A function in which a thread is.

    prefix: the key of its call; () for the kernel
    running: Python's frame, once its first statement has been reached
    """

    def __init__(self, prefix: Key = ()) -> None:
        self.prefix = prefix
        self.running: FrameType | None = None
        self._rounds: dict[int, int] = {}  # {the "enter" mark of a loop: number of the iteration}
        self._around: tuple[int, ...] = ()  # the loops of the last key
        self._before = prefix  # the part of the last key before the mark

    def key(self, mark: Mark, number: int) -> Key:
        """The key of a thread that is at this mark."""
        if mark.loops != self._around:
            self._around = mark.loops
            self._before = (*self.prefix, *(part for loop in mark.loops for part in (loop, self._rounds[loop])))
        return (*self._before, number)

    def enter(self, loop: int) -> None:
        """The thread comes to a loop."""
        self._rounds[loop] = -1

    def next_round(self, loop: int) -> int:
        """The thread begins an iteration. Returns its number, from 0."""
        self._rounds[loop] += 1
        self._around = (-1,)  # no loop: the key is to be made anew
        return self._rounds[loop]


@dataclass(eq=False)
class WalkThread(Thread):
    """A thread of a walk.

    frames: the functions that it is in, the kernel first
    key: of the place where it waits to go on; None while it waits for other threads, and after its end
    stop: what it has stopped for there: the number of a mark, or an access
    watched: whether its reads and its variables are recorded
    step: the step that it takes or has taken last; place: the mark of its last stop
    """

    frames: list[Frame] = field(default_factory=lambda: [Frame()])
    key: Key | None = None
    stop: Any = None
    watched: bool = True
    step: Step | None = None
    place: int = -1
