"""How to time code so that the number means something, and what groundup times: the ladders and the training step.

Four habits, each against one way of fooling oneself:

    warm up       the first call pays for caches, allocations and lazy set-up; it is not counted
    inner calls   a call of 2 µs is lost in the clock's own noise, so a sample is as many calls as fill 5 ms
    interleave    A B C A B C, not A A B B C C: when the machine slows down, it slows down for all of them
    median        one pause of the operating system ruins a mean; the quartiles beside it tell how far to trust it

A time alone says little about another machine, so every row also carries its ratio to a reference that was
measured in the same rounds: NumPy's `a @ b` in the same dtype.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shared.contract import Stage
from shared.environment import environment

SCHEMA = 1
"""Version of the results document; it rises when a reader of the old form would misread the new one."""

MINIMUM_SAMPLE = 0.005
"""Seconds one sample should last at least: ten thousand times the resolution of an ordinary clock."""

STEP_NETWORKS = ([784, 32, 10], [784, 128, 10])
BATCH = 64
DTYPES = ("float64", "float32")
FIRST_FLOOR_SIZES = (16, 32, 64, 128)
UPPER_FLOOR_SIZES = (64, 128, 256, 512)

__all__ = ["BenchRow", "Measurement", "document", "environment", "ladder_rows", "measure", "step_rows"]


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

    kind "ladder": name is the rung, shape is (M, K, N). kind "step": name is "784-32-10, batch 64" and shape the
    layer sizes. flops counts two per multiply-add. ratio is time / time of the reference: 1 is as fast, 50 is fifty
    times slower. The measured fields are None where `skipped` gives a reason.
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

    @property
    def gflops(self) -> float | None:
        """10⁹ floating-point operations per second."""
        return self.flops / self.measurement.median / 1e9 if self.measurement else None

    def as_dict(self) -> dict[str, Any]:
        """The row for the results document; times in seconds."""
        return {**asdict(self), "gflops": self.gflops}


def measure(
    candidates: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 9,
    warmup: int = 1,
    minimum_sample: float = MINIMUM_SAMPLE,
    limit: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Measurement]:
    """Time the candidates against each other, one sample of each in turn.

    candidates: name -> function of no arguments. repeats: samples of each. warmup: uncounted calls of each before.
    minimum_sample: seconds; a candidate that is faster is called several times per sample.
    limit: stop after the first round that ends later than this many seconds, with at least three rounds done.
    clock: a function that returns seconds; the tests bring their own.
    Raises ValueError for no candidates, repeats < 1 or warmup < 0.
    """
    if not candidates:
        raise ValueError("measure: candidates is empty; give at least one function to time")
    if repeats < 1 or warmup < 0:
        raise ValueError(f"measure: repeats must be at least 1 and warmup at least 0; got {repeats} and {warmup}")
    for _ in range(warmup):
        for call in candidates.values():
            call()
    calls = {name: _calls_per_sample(call, minimum_sample, clock) for name, call in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    begin = clock()
    for finished in range(repeats):
        if limit is not None and finished >= 3 and clock() - begin > limit:
            break
        for name, call in candidates.items():
            samples[name].append(_sample(call, calls[name], clock))
    return {name: _summary(samples[name], calls[name]) for name in candidates}


def _sample(call: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def _calls_per_sample(call: Callable[[], object], minimum_sample: float, clock: Callable[[], float]) -> int:
    # Doubling until the sample is long enough trusts no single reading of the clock, which may even read zero.
    calls = 1
    while (seconds := _sample(call, calls, clock) * calls) < minimum_sample and calls < 2**24:
        wanted = math.ceil(calls * minimum_sample / seconds) if seconds > 0 else 2 * calls
        calls = min(max(wanted, calls + 1), 10 * calls)
    return calls


def _summary(samples: list[float], calls: int) -> Measurement:
    lower, median, upper = (float(value) for value in np.percentile(samples, [25, 50, 75]))
    return Measurement(median, lower, upper, min(samples), len(samples), calls)


def ladder_rows(
    stages: Sequence[Stage],
    *,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] = DTYPES,
    repeats: int = 9,
    call_limit: float = 1.0,
    group_limit: float = 10.0,
) -> Iterator[BenchRow]:
    """Time every rung of every stage's matmul ladder on square matrices, all floors interleaved at each size.

    sizes: None for each floor's own (16 to 128 on the first, 64 to 512 above). call_limit: seconds; a rung whose
    next call is predicted to take longer (eight times per doubling) is skipped, with that reason in its row.
    group_limit: seconds for one size and dtype, as `limit` of `measure`.
    Rows come as soon as their size is measured, so that a caller who is interrupted keeps what there was.
    """
    wanted = sorted({size for stage in stages for size in _sizes(stage, sizes)})
    for dtype in dtypes:
        predicted: dict[tuple[str, str], float] = {}  # seconds for one multiply-add, from the largest size measured
        for size in wanted:
            at_this_size = [s for s in stages if size in _sizes(s, sizes) and dtype in _dtypes(s)]
            if at_this_size:
                yield from _ladder_at(at_this_size, size, dtype, predicted, repeats, call_limit, group_limit)


def _ladder_at(
    stages: Sequence[Stage],
    size: int,
    dtype: str,
    predicted: dict[tuple[str, str], float],
    repeats: int,
    call_limit: float,
    group_limit: float,
) -> Iterator[BenchRow]:
    random = np.random.default_rng(size)
    a, b = (random.standard_normal((size, size)).astype(dtype) for _ in range(2))
    candidates: dict[tuple[str, str], Callable[[], object]] = {("", "reference"): lambda: a @ b}
    rungs = [(stage.name, rung) for stage in stages for rung in stage.matmul.LADDER]
    for stage in stages:
        mine = [stage.arrays.asarray(matrix, dtype) for matrix in (a, b)]
        for rung, multiply in stage.matmul.LADDER.items():
            if predicted.get((stage.name, rung), 0.0) * size**3 <= call_limit:
                candidates[stage.name, rung] = _bind(multiply, *mine)
    measured = _measure_pairs(candidates, repeats, group_limit)
    reference = measured["", "reference"].median
    for key in rungs:
        result = measured.get(key)
        if result:
            predicted[key] = result.median / size**3
            ratio, skipped = result.median / reference, None
        else:
            seconds = predicted[key] * size**3
            ratio, skipped = None, f"one call would take about {seconds:.1f} s; the limit is {call_limit:g} s"
        label = f"NumPy a @ b, {dtype}"
        yield BenchRow("ladder", *key, dtype, (size, size, size), 2 * size**3, result, label, ratio, skipped)


def step_rows(
    stages: Sequence[Stage],
    *,
    networks: Sequence[Sequence[int]] = STEP_NETWORKS,
    batch: int = BATCH,
    dtypes: Sequence[str] = DTYPES,
    repeats: int = 15,
    group_limit: float = 6.0,
) -> Iterator[BenchRow]:
    """Time one training step (forward, backward, SGD with momentum) of each network on every stage.

    The reference is what no step can do without: its matrix products alone, by NumPy's `a @ b` in the same dtype.
    """
    for layer_sizes in networks:
        for dtype in dtypes:
            able = [stage for stage in stages if dtype in _dtypes(stage)]
            candidates: dict[tuple[str, str], Callable[[], object]] = {
                ("", "reference"): _bare_products(layer_sizes, batch, dtype)
            }
            candidates |= {(stage.name, "step"): _train_step(stage, layer_sizes, batch, dtype) for stage in able}
            measured = _measure_pairs(candidates, repeats, group_limit)
            reference = measured["", "reference"].median
            name = f"{'-'.join(map(str, layer_sizes))}, batch {batch}"
            label = f"its matrix products alone, NumPy a @ b, {dtype}"
            flops = 2 * sum(m * k * n for m, k, n in _products(layer_sizes, batch))
            for stage in able:
                result = measured[stage.name, "step"]
                ratio = result.median / reference
                yield BenchRow("step", stage.name, name, dtype, tuple(layer_sizes), flops, result, label, ratio)


def document(rows: Sequence[BenchRow], *, complete: bool, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The results document: schema version, environment, and the rows by kind. complete: False after an interrupt."""
    return {
        "schema": SCHEMA,
        "kind": "groundup bench",
        "complete": complete,
        "environment": dict(facts) if facts is not None else environment(),
        "ladders": [row.as_dict() for row in rows if row.kind == "ladder"],
        "steps": [row.as_dict() for row in rows if row.kind == "step"],
    }


def _products(layer_sizes: Sequence[int], batch: int) -> list[tuple[int, int, int]]:
    """(M, K, N) of every matrix product of one step: xW and xᵀg of each layer, gWᵀ of each but the first."""
    pairs = list(itertools.pairwise(layer_sizes))
    forward = [(batch, rows, columns) for rows, columns in pairs]
    weights = [(rows, batch, columns) for rows, columns in pairs]
    inputs = [(batch, columns, rows) for rows, columns in pairs[1:]]
    return forward + weights + inputs


def _bare_products(layer_sizes: Sequence[int], batch: int, dtype: str) -> Callable[[], object]:
    random = np.random.default_rng(0)
    operands = [
        (random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype))
        for m, k, n in _products(layer_sizes, batch)
    ]
    return lambda: [a @ b for a, b in operands]


def _train_step(stage: Stage, layer_sizes: Sequence[int], batch: int, dtype: str) -> Callable[[], object]:
    random = np.random.default_rng(0)
    network = stage.network.Network(list(layer_sizes), dtype=dtype)
    optimizer = stage.optimizers.SGD(0.01, momentum=0.9)
    x = stage.arrays.asarray(random.random((batch, layer_sizes[0])), dtype)
    y = random.integers(0, layer_sizes[-1], batch)
    return lambda: network.train_step(x, y, optimizer)


def _measure_pairs(
    candidates: Mapping[tuple[str, str], Callable[[], object]], repeats: int, limit: float
) -> dict[tuple[str, str], Measurement]:
    named = {f"{stage}/{name}": call for (stage, name), call in candidates.items()}
    return dict(zip(candidates, measure(named, repeats=repeats, limit=limit).values(), strict=True))


def _bind(multiply: Callable[[Any, Any], Any], a: Any, b: Any) -> Callable[[], object]:
    return lambda: multiply(a, b)


def _sizes(stage: Stage, sizes: Sequence[int] | None) -> Sequence[int]:
    if sizes is not None:
        return sizes
    return FIRST_FLOOR_SIZES if stage.number == 1 else UPPER_FLOOR_SIZES


def _dtypes(stage: Stage) -> Sequence[str]:
    # The first floor computes in float64 whatever it is told, so it stands only among the float64 rows.
    return ("float64",) if stage.number == 1 else DTYPES
