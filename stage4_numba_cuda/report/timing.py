"""How long the device works on something, Python left out.

Two events stand in the device's queue before and after the calls, and the device itself notes the times. That alone is
not enough: where a kernel takes 60 µs and Numba 50 to launch the next one, the device waits for Python every now and
then, and the time between the events is Python's. So a kernel that only sleeps goes first, and while it sleeps, the
host fills the queue. If the first event had already come when the queue was full, the sleep was too short: it is
doubled, and the sample taken again.

Otherwise the habits are those of shared.bench.timing: warm up, interleave, medians and quartiles. What the harness in
`shared` takes from here is `sampler`, so that it times a GPU's kernels by the same clock, and `roofs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shared.bench.timing import Measurement, Name, Sampler, summarise

from ..backend import BACKEND, cuda
from . import roofs

__all__ = ["Sleeper", "device_sample", "measure_device", "roofs", "sampler"]

MINIMUM_SAMPLE = 0.005
MOST_CALLS = 200
"""In one sample. The queue takes about a thousand launches before it makes the host wait."""

NAP = 100_000
"""Nanoseconds that the sleeping kernel asks for at once; the device may take anything from none to twice as many."""

LONGEST_SLEEP = 0.1


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
        start.record()
        for _ in range(calls):
            call()
        end.record()
        queued_in_time = BACKEND.emulated or not start.query()
        end.synchronize()
        if queued_in_time or not sleeper.lengthen():
            return start.elapsed_time(end) / 1e3 / calls


def sampler() -> Sampler:
    """What `shared.bench.timing.measure` takes a sample with, of calls that put work into the default stream and do not
    wait for it. More calls than the queue takes are timed some at a time."""
    sleeper = Sleeper()

    def take(call: Callable[[], object], calls: int) -> float:
        seconds = 0.0
        for done in range(0, calls, MOST_CALLS):
            some = min(calls - done, MOST_CALLS)
            seconds += some * device_sample(call, some, sleeper)
        return seconds / calls

    return take


def measure_device(
    candidates: Mapping[Name, Callable[[], object]],
    *,
    repeats: int = 15,
    limit: float | None = None,
    minimum_sample: float = MINIMUM_SAMPLE,
) -> dict[Name, Measurement]:
    """Time the candidates against each other on the device, one sample of each in turn.

    candidates: name -> function of no arguments that puts work into the default stream and does not wait for it
    limit: stop after the first round that ends later than this many seconds, with at least three rounds done
    """
    sleeper = Sleeper()
    calls = {}
    for name, call in candidates.items():
        call()  # compiles, allocates
        cuda.synchronize()
        once = device_sample(call, 1, sleeper)
        calls[name] = min(max(round(minimum_sample / max(once, 1e-9)), 1), MOST_CALLS)
    samples: dict[Name, list[float]] = {name: [] for name in candidates}
    begin = time.perf_counter()
    for finished in range(repeats):
        if limit is not None and finished >= 3 and time.perf_counter() - begin > limit:
            break
        for name, call in candidates.items():
            samples[name].append(device_sample(call, calls[name], sleeper))
    return {name: summarise(samples[name], calls[name]) for name in candidates}
