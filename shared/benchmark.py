"""How to time code so that the number means something; what is timed is in the bench_*.py files beside this one.

Five habits, each against one way of fooling oneself:

    warm up       the first call pays for caches, allocations and lazy set-up; it is not counted
    inner calls   a call of 2 µs is lost in the clock's own noise, so a sample is as many calls as fill 5 ms
    interleave    A B C A B C, not A A B B C C: when the machine slows down, it slows down for all of them
    rest          the threads of a library keep spinning for a while after its call, in case another comes; whoever
                  computes on all cores next must wait until they sleep, or it shares its cores with them
    median        one pause of the operating system ruins a mean; the quartiles beside it tell how far to trust it

A time alone says little about another machine, so every row also carries its ratio to a reference that was
measured in the same rounds, and, where stage 3 can measure it, the share of the speed that the machine cannot exceed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from shared.contract import Stage, short_title
from shared.environment import environment

SCHEMA = 2
"""Version of the results document; it rises when a reader of the old form would misread the new one."""

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
SECTIONS = {"peak": "peaks", "ladder": "ladders", "product": "products", "step": "steps", "epoch": "epochs"}
"""Kind of row -> where it stands in the results document."""

LIBRARIES = {"numpy": "NumPy", "pytorch": "PyTorch"}
"""What is measured beside the stages."""

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Measurement:
    """Seconds per call: the median of the samples, their quartiles and the fastest; `calls` is calls per sample."""

    median: float
    lower: float
    upper: float
    fastest: float
    samples: int
    calls: int

    @property
    def spread(self) -> float:
        """From the first quartile to the third, as a share of the median: how far to trust it."""
        return (self.upper - self.lower) / self.median


@dataclass(frozen=True)
class BenchRow:
    """One timed thing, or one skipped thing and why.

    kind: what was done, and with it what `name` and `shape` are.
        "peak"     a loop that only multiplies and adds in registers; name says so, shape is ()
        "ladder"   a square product; the rung, (M, K, N)
        "product"  a product of a network's shape; "xW 64x784x128" (M, K, N in this order), (M, K, N)
        "step"     a training step; "784-32-10, batch 64", the layer sizes
        "epoch"    an epoch of training; "784-128-10, batch 64, mnist", the layer sizes
    stage: who did it: a stage, or one of LIBRARIES. variant: which of its ways, where it has several.
    flops: two per multiply-add, the bare matrix products alone. threads: how many threads it may use.
    ratio: time / time of the reference: 1 is as fast, 50 is fifty times slower.
    against: opponent -> its time / this time: 1.3 is 1.3 times as fast as the opponent.
    peak: FLOP/s that `threads` cores cannot exceed, one core's measured in the same rounds times `threads`.
    accuracy: on the test images after the epoch, in [0, 1].
    emulated: a GPU's kernels, timed on the CPU. Such a row is compared with nothing, and no chart of speeds shows it.
    The measured fields are None where `skipped` gives a reason.
    """

    kind: str
    stage: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    flops: int
    measurement: Measurement | None
    reference: str
    ratio: float | None
    skipped: str | None = None
    variant: str = ""
    threads: int = 1
    peak: float | None = None
    against: Mapping[str, float] = field(default_factory=dict)
    accuracy: float | None = None
    emulated: bool = False

    @property
    def gflops(self) -> float | None:
        """10⁹ floating-point operations per second."""
        return self.flops / self.measurement.median / 1e9 if self.measurement else None

    @property
    def share_of_peak(self) -> float | None:
        """Of what `threads` cores could do at most, in [0, 1] up to the noise of both measurements."""
        return self.gflops * 1e9 / self.peak if self.gflops and self.peak else None

    @property
    def contender(self) -> str:
        """Who and how, for people: 'stage 3 packed', 'stage 4 (emulated) fused', 'PyTorch'."""
        return f"{LIBRARIES.get(self.stage) or short_title(self.stage, self.emulated)} {self.variant}".rstrip()

    def as_dict(self) -> dict[str, Any]:
        """The row for the results document; times in seconds."""
        return {**asdict(self), "gflops": self.gflops, "share_of_peak": self.share_of_peak}


def drawable(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """The rows that a chart of speeds may show: those that were measured, and on what they are written for."""
    return [row for row in rows if row.measurement and not row.emulated]


def measure(
    candidates: Mapping[Name, Callable[[], object]],
    *,
    repeats: int = 9,
    warmup: int = 1,
    minimum_sample: float = MINIMUM_SAMPLE,
    limit: float | None = None,
    threaded: Collection[Name] = (),
    finish: Mapping[Name, Callable[[], object]] | None = None,
    rest: float = REST,
    wake: float = WAKE,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[Name, Measurement]:
    """Time the candidates against each other, one sample of each in turn.

    candidates: name -> function of no arguments. repeats: samples of each. warmup: uncounted calls of each before.
    minimum_sample: seconds; a candidate that is faster is called several times per sample.
    limit: stop after the first round that ends later than this many seconds, with at least three rounds done.
    threaded: those that compute on several cores; before each of their samples there is a pause of `rest` seconds,
        and then uncounted calls for `wake` seconds, at least one.
    finish: for those that hand their work to a GPU and return at once: what waits for it, once at a sample's end.
    clock, sleep: a function that returns seconds and one that lets them pass; the tests bring their own.
    Raises ValueError for no candidates, repeats < 1 or warmup < 0.
    """
    if not candidates:
        raise ValueError("measure: candidates is empty; give at least one function to time")
    if repeats < 1 or warmup < 0:
        raise ValueError(f"measure: repeats must be at least 1 and warmup at least 0; got {repeats} and {warmup}")

    def settle(name: Name) -> None:
        if name in threaded:
            sleep(rest)
            begin = clock()
            candidates[name]()
            while clock() - begin < wake:
                candidates[name]()

    waits = {name: (finish or {}).get(name, _nothing) for name in candidates}
    for _ in range(warmup):
        for name, call in candidates.items():
            call()
            waits[name]()
    calls = {}
    for name, call in candidates.items():
        settle(name)
        calls[name] = _calls_per_sample(call, minimum_sample, clock, waits[name])
    samples: dict[Name, list[float]] = {name: [] for name in candidates}
    begin = clock()
    for finished in range(repeats):
        if limit is not None and finished >= 3 and clock() - begin > limit:
            break
        for name, call in candidates.items():
            settle(name)
            samples[name].append(_sample(call, calls[name], clock, waits[name]))
    return {name: summarise(samples[name], calls[name]) for name in candidates}


def _nothing() -> None:
    """What a call on the CPU must be waited for: it has finished when it returns."""


def _sample(
    call: Callable[[], object], calls: int, clock: Callable[[], float], wait: Callable[[], object] = _nothing
) -> float:
    start = clock()
    for _ in range(calls):
        call()
    wait()
    return (clock() - start) / calls


def _calls_per_sample(
    call: Callable[[], object], minimum_sample: float, clock: Callable[[], float], wait: Callable[[], object]
) -> int:
    # Doubling until the sample is long enough trusts no single reading of the clock, which may even read zero.
    calls = 1
    while (seconds := _sample(call, calls, clock, wait) * calls) < minimum_sample and calls < 2**24:
        wanted = math.ceil(calls * minimum_sample / seconds) if seconds > 0 else 2 * calls
        calls = min(max(wanted, calls + 1), 10 * calls)
    return calls


def summarise(samples: Sequence[float], calls: int = 1) -> Measurement:
    """Samples, each the seconds of one call on average over `calls` -> their quartiles."""
    lower, median, upper = (float(value) for value in np.percentile(samples, [25, 50, 75]))
    return Measurement(median, lower, upper, min(samples), len(samples), calls)


def aligned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """New memory that starts on a cache line; what it holds is whatever was there before.

    Where an operand starts decides how many SIMD loads straddle two lines, and with it up to a third of a rung's
    speed: that is not left to chance.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def times_as_fast(measured: Mapping[Name, Measurement], name: Name, opponents: Mapping[str, Name]) -> dict[str, float]:
    """The `against` of a row: for each opponent that was measured too and is not `name` itself, its time / ours."""
    return {
        label: measured[opponent].median / measured[name].median
        for label, opponent in opponents.items()
        if opponent in measured and opponent != name
    }


def document(rows: Sequence[BenchRow], *, complete: bool, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The results document: schema version, environment, and the rows by kind. complete: False after an interrupt."""
    sections = {name: [row.as_dict() for row in rows if row.kind == kind] for kind, name in SECTIONS.items()}
    return {
        "schema": SCHEMA,
        "kind": "groundup bench",
        "complete": complete,
        "environment": dict(facts) if facts is not None else environment(),
        **sections,
    }


def stage_dtypes(stage: Stage) -> Sequence[str]:
    """What the stage computes in. The first floor computes in float64 whatever it is told, so it stands only there."""
    return ("float64",) if stage.number == 1 else DTYPES
