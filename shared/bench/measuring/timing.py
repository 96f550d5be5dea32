"""How to time code so that the number means something.

Six habits, each of which prevents one kind of error:

    warm up       the first call pays for caches, allocations and lazy set-up; it is not counted
    inner calls   a call of 2 µs is lost in the noise of the clock, so a sample is as many calls as fill 5 ms
    interleave    A B C A B C, not A A B B C C: when the machine slows down, it slows down for all of them
    rest          the threads of a library keep spinning for a while after its call, in case another comes; whoever
                  computes on all cores next must wait until they sleep, or it shares its cores with them
    median        one pause of the operating system ruins a mean; the quartiles beside it tell how far to trust it
    settle        rounds go on until more of them would hardly move any median, or the time is up

Measured in this way, times are repeatable within one process. The addresses of its memory and the load of the machine
in that minute are the same for all of its samples, so `shared.bench.running.passes` measures in several processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np

from shared.contract import Stage

MINIMUM_SAMPLE = 0.005
"""Seconds one sample should last at least: ten thousand times the resolution of an ordinary clock."""

REST = 0.12
"""Seconds of pause before a candidate that uses several threads. OpenBLAS's threads spin for up to 0.1 s after a call:
on two cores, a 512 by 512 product that came earlier than that took two to ten times as long."""

WAKE = 0.02
"""Seconds of uncounted calls after the rest, which has sent the candidate's own threads to sleep too: a scheduler may
put a thread that wakes on a core that is taken, and then needs some milliseconds to notice."""

CACHE_LINE = 64
"""Bytes."""

DTYPES = ("float64", "float32")
Name = TypeVar("Name", bound=Hashable)


LEAST_ROUNDS = 6
"""From six samples on, the slowest and the fastest are a 95 % interval of the median: both would have to lie on the
same side of it with all the others, which happens in 2 of 2⁶ cases."""

SETTLED = 0.01
"""A median has settled when its 95 % interval reaches no further than this share of it to either side."""

Sampler = Callable[[Callable[[], object], int], float]
"""Takes a function and a number of calls; returns the seconds of one of them, measured over all."""


@dataclass(frozen=True)
class Measurement:
    """Seconds per call: the median of the samples, their quartiles and the fastest; `calls` is calls per sample.

    settled: whether the median's 95 % interval was within SETTLED of it when the last round ended.
    """

    median: float
    lower: float
    upper: float
    fastest: float
    samples: int
    calls: int
    settled: bool = False

    @property
    def spread(self) -> float:
        """From the first quartile to the third, as a share of the median: how far to trust it."""
        return (self.upper - self.lower) / self.median

    def of_one(self, parts: int) -> Measurement:
        """The measurement divided by a number of equal parts of a call, such as the steps of an epoch."""
        times = {name: getattr(self, name) / parts for name in ("median", "lower", "upper", "fastest")}
        return replace(self, calls=self.calls * parts, **times)


@dataclass(frozen=True)
class Rounds:
    """When the rounds of a measurement end, and what comes before them.

    least: rounds at least, where `repeats` allows it.
    settle: a median has settled when its 95 % interval reaches no further than this share of it to either side.
    warmup: uncounted calls of each candidate before.
    minimum_sample: seconds; a candidate that is faster is called several times per sample.
    limit: stop after the first round that ends later than this many seconds, with at least three rounds done.
    """

    least: int = LEAST_ROUNDS
    settle: float = SETTLED
    warmup: int = 1
    minimum_sample: float = MINIMUM_SAMPLE
    limit: float | None = None


@dataclass(frozen=True)
class Rest:
    """What comes before each sample of a candidate with several threads: a pause of `seconds`, and then uncounted calls
    for `wake` seconds, at least one."""

    seconds: float = REST
    wake: float = WAKE


@dataclass(frozen=True)
class Clock:
    """now: returns seconds; sleep: lets them pass. Tests bring their own."""

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep


def measure(
    candidates: Mapping[Name, Callable[[], object]],
    *,
    repeats: int = 15,
    rounds: Rounds = Rounds(),
    threaded: Collection[Name] = (),
    finish: Mapping[Name, Callable[[], object]] | None = None,
    samplers: Mapping[Name, Sampler] | None = None,
    rest: Rest = Rest(),
    clock: Clock = Clock(),
) -> dict[Name, Measurement]:
    """Time the candidates against each other, one sample of each in turn, until every median has settled.

    candidates: name -> function of no arguments.
    repeats: rounds at most, each one sample of every candidate; rounds: when they may end before.
    threaded: those that compute on several cores, and therefore rest before each of their samples.
    finish: for those that hand their work to a GPU and return at once: what waits for it, once at a sample's end.
    samplers: for those whose time another clock tells, like a GPU's events: what takes a sample, instead of `clock`.
    Raises ValueError for no candidates, repeats < 1 or warmup < 0.
    """
    if not candidates:
        raise ValueError("measure: candidates is empty; give at least one function to time")
    if repeats < 1 or rounds.warmup < 0:
        raise ValueError(
            f"measure: repeats must be at least 1 and warmup at least 0; got {repeats} and {rounds.warmup}"
        )

    def wake_up(name: Name) -> None:
        if name in threaded:
            clock.sleep(rest.seconds)
            begin = clock.now()
            candidates[name]()
            while clock.now() - begin < rest.wake:
                candidates[name]()

    def by_the_clock(name: Name) -> Sampler:
        wait = (finish or {}).get(name, _nothing)
        return lambda call, calls: _sample(call, calls, clock.now, wait)

    take = {name: (samplers or {}).get(name) or by_the_clock(name) for name in candidates}
    for _ in range(rounds.warmup):
        for name, call in candidates.items():
            call()
            (finish or {}).get(name, _nothing)()
    # Nobody rests for this: whose threads are kept from a core seems slower, and gets fewer calls a sample, no more.
    calls = {name: _calls_per_sample(call, rounds.minimum_sample, take[name]) for name, call in candidates.items()}
    samples: dict[Name, list[float]] = {name: [] for name in candidates}
    begin = clock.now()
    for finished in range(repeats):
        if rounds.limit is not None and finished >= 3 and clock.now() - begin > rounds.limit:
            break
        if finished >= rounds.least and all(has_settled(taken, rounds.settle) for taken in samples.values()):
            break
        for name, call in candidates.items():
            wake_up(name)
            samples[name].append(take[name](call, calls[name]))
    return {name: summarise(taken, calls[name], rounds.settle) for name, taken in samples.items()}


def _nothing() -> None:
    """No-op wait: a call on the CPU has finished when it returns."""


def _sample(
    call: Callable[[], object], calls: int, clock: Callable[[], float], wait: Callable[[], object] = _nothing
) -> float:
    start = clock()
    for _ in range(calls):
        call()
    wait()
    return (clock() - start) / calls


def _calls_per_sample(call: Callable[[], object], minimum_sample: float, take: Sampler) -> int:
    # Growing until the sample is long enough trusts no single reading of the clock, which may even read zero.
    calls = 1
    while (seconds := take(call, calls) * calls) < minimum_sample and calls < 2**24:
        wanted = math.ceil(calls * minimum_sample / seconds) if seconds > 0 else 2 * calls
        calls = min(max(wanted, calls + 1), 10 * calls)
    return calls


def has_settled(samples: Sequence[float], share: float = SETTLED) -> bool:
    """Whether the 95 % interval of the samples' median reaches no further than this share of it to either side.

    The interval lies between two of the sorted samples, whatever they are distributed like: the median is above the
    k-th and below the k-th from the end unless fewer than k of them fell on one side of it, and that is a question of
    tossing coins. Fewer than six samples never settle.
    """
    inside = _samples_outside(len(samples))
    if inside is None:
        return False
    ordered = sorted(samples)
    middle = float(np.median(ordered))
    return max(middle - ordered[inside], ordered[-1 - inside] - middle) <= share * middle


@cache
def _samples_outside(count: int) -> int | None:
    """How many of `count` sorted samples lie outside the 95 % interval of the median at either end; None: too few."""
    outside, tail = None, 0.0
    for k in range(count // 2):
        tail += math.comb(count, k) / 2**count
        if tail > 0.025:
            break
        outside = k
    return outside


def summarise(samples: Sequence[float], calls: int = 1, settle: float = SETTLED) -> Measurement:
    """Samples, each the seconds of one call on average over `calls` -> their quartiles."""
    lower, median, upper = (float(value) for value in np.percentile(samples, [25, 50, 75]))
    return Measurement(median, lower, upper, min(samples), len(samples), calls, has_settled(samples, settle))


def aligned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """New uninitialised memory that starts on a cache line.

    Where an operand starts decides how many SIMD loads straddle two lines, and with it up to a third of a rung's
    speed: that is not left to chance.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def random_arrays(*shapes: tuple[int, ...], dtype: str, seed: int) -> list[np.ndarray]:
    """New aligned arrays of these shapes, filled with normal random numbers, one after the other from one generator."""
    random = np.random.default_rng(seed)
    arrays = [aligned(shape, dtype) for shape in shapes]
    for array in arrays:
        array[...] = random.standard_normal(array.shape)
    return arrays


def times_as_fast(measured: Mapping[Name, Measurement], name: Name, opponents: Mapping[str, Name]) -> dict[str, float]:
    """The `against` of a row: for each opponent that was measured too and is not `name` itself, its time / ours."""
    return {
        label: measured[opponent].median / measured[name].median
        for label, opponent in opponents.items()
        if opponent in measured and opponent != name
    }


def stage_dtypes(stage: Stage) -> Sequence[str]:
    """What the stage computes in. Stage 1 always computes in float64, so it has rows for float64 only."""
    return ("float64",) if stage.number == 1 else DTYPES
