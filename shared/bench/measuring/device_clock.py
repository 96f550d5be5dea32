"""The GPU's own clock: how long the device works on something, without the time that Python needs to launch it.

Two events stand in the device's queue before and after the calls, and the device itself notes when it reaches them.
That alone is not enough. Where a kernel takes 60 µs and Numba needs 50 µs to launch the next one, the device waits for
Python now and then, and the time between the events is Python's. So a kernel that only sleeps goes first, and while it
sleeps, the host fills the queue. If the device has passed the first event before the queue is full, the sleep was too
short: it is doubled, and the sample is taken again.

Import this module only where a stage runs on a GPU, or to test it: it makes a kernel for the backend of stage 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.bench.measuring.timing import Sampler
from shared.contract import STAGES, load_part

_backend = load_part(STAGES[3], "backend")
BACKEND, cuda = _backend.BACKEND, _backend.cuda

MOST_CALLS = 200
"""Calls of one sample. The queue takes about a thousand launches before the host has to wait."""

NAP = 100_000
"""Nanoseconds that the sleeping kernel asks for at once; the device may take anything from none to twice as many."""

LONGEST_SLEEP = 0.1
"""Seconds."""


@cuda.jit
def sleep(naps: Any) -> None:
    """One thread that does nothing, `naps` times."""
    i = 0
    while i < naps:
        cuda.nanosleep(np.uint32(NAP))
        i += 1


class Sleeper:
    """Keeps the device busy while the host fills its queue; its sleep grows until it is long enough."""

    def __init__(self) -> None:
        self.seconds = 0.002

    def lie_down(self) -> None:
        """Put the sleep into the queue. The emulator has no queue."""
        if not BACKEND.emulated:
            sleep[1, 1](np.int64(max(1, round(self.seconds * 1e9 / NAP))))

    def lengthen(self) -> bool:
        """Sleep twice as long from now on; False where that would be too long."""
        if self.seconds >= LONGEST_SLEEP:
            return False
        self.seconds *= 2
        return True


def device_sample(call: Callable[[], object], calls: int, sleeper: Sleeper) -> float:
    """Seconds of one call, on average over `calls` in a row, between two events."""
    while True:
        start, end = cuda.event(), cuda.event()
        sleeper.lie_down()
        with cuda.defer_cleanup():  # freeing memory would wait for the device, and so for the end of the sleep
            start.record()
            for _ in range(calls):
                call()
            end.record()
        queued_in_time = BACKEND.emulated or not start.query()
        end.synchronize()
        if queued_in_time or not sleeper.lengthen():
            return start.elapsed_time(end) / 1e3 / calls


def sampler() -> Sampler:
    """A function that takes a sample for `timing.measure`, of calls that put work into the default stream and do not
    wait for it. Where a sample has more than MOST_CALLS calls, they are timed in several portions."""
    sleeper = Sleeper()

    def take(call: Callable[[], object], calls: int) -> float:
        seconds = 0.0
        for done in range(0, calls, MOST_CALLS):
            some = min(calls - done, MOST_CALLS)
            seconds += some * device_sample(call, some, sleeper)
        return seconds / calls

    return take
