"""The roofs: how fast could this machine multiply and add if memory cost no time, and how fast is its memory?

Stage 3 has a loop in C that only multiplies and adds numbers that are in registers already. Its speed is the peak of
one core, which no matrix product can exceed, and a product's share of it says how much is left to be gained. The peak
of several threads is taken as one core's times their number.

Everything else is judged by its median, the peak by its fastest sample: it is a ceiling, and whatever disturbs a
measurement only lowers it.

The other roof is bandwidth: the triad a = b + s c of the STREAM benchmark (McCalpin, 1995), over arrays that fit a
cache or do not. Between the two, a roofline says what a program of a given arithmetic intensity can hope for. A GPU
has the same two roofs, measured by two kernels of stage 4; an emulated one has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shared.bench.measuring import gpu
from shared.bench.measuring.peak import flops_per_second, peak_call
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import CACHE_LINE, DTYPES, Measurement, aligned, measure
from shared.contract import Stage
from shared.machine.hardware import usable_cores

NAME = "registers only"
REFERENCE = "its own fastest sample"

TRIAD = "triad"
CACHE_SIZES = (16 << 10, 256 << 10, 4 << 20)
"""Bytes that a core's first and second cache and a last one hold, on most machines."""

MEMORY_SIZE, MOST_MEMORY = 256 << 20, 1 << 30
"""Bytes that are in no cache: four times the last one, but at least and at most so many."""

GPU_SIZES = (24 << 20, 768 << 20)
"""Bytes of the copies on a GPU: what its second cache may hold, and what it cannot."""

CALL_BYTES = 256 << 20
"""Bytes that a call goes over at least, small arrays several times: waking the threads is nothing against that."""

B, C, SCALE, EXPECTED = 1.5, 2.0, 0.5, 2.5
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def peak_rows(stages: Sequence[Stage], *, dtypes: Sequence[str] = DTYPES, repeats: int = 15) -> Iterator[BenchRow]:
    """The peak of one core, or of a whole GPU, for each dtype; no rows where no stage can measure it."""
    for dtype in dtypes:
        for stage in stages:
            call = peak_call([stage], dtype)
            roofs = gpu.roofs(stage)
            more: dict[str, Any] = {}
            if call is not None:
                result = measure({"peak": call}, repeats=repeats)["peak"]
            elif roofs is not None:
                call, more = roofs.peak(dtype), {"clock": gpu.CLOCK}
                result = measure({"peak": call}, repeats=repeats, samplers=gpu.samplers(stage, ["peak"]))["peak"]
            else:
                continue
            flops, peak = int(call()), flops_per_second(call, result)
            ratio = result.median / result.fastest
            yield BenchRow("peak", stage.name, NAME, dtype, (), flops, result, REFERENCE, ratio, peak=peak, **more)


def bandwidth_rows(
    stages: Sequence[Stage],
    *,
    threads: int | None = None,
    repeats: int = 7,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] = ("float32",),
) -> Iterator[BenchRow]:
    """The triad a = b + s c over arrays of each size, on one thread and on `threads`; no rows where no stage has one.

    sizes: bytes of the three arrays together, rounded down to whole cache lines of each; None for three that caches
        hold and one that none does.
    threads: of stage 3's pool; None for every usable core.
    The bytes are two arrays read and one written, each once. Most processors also fetch the lines that they are about
    to write over; that is not counted, so memory may move 4 bytes for every 3 that are.
    dtypes: one is enough, because bytes are counted and not numbers; a GPU's is float32.
    Raises ValueError for a size of less than three cache lines.
    """
    threads = threads or usable_cores()
    for stage in stages:
        roofs = gpu.roofs(stage)
        if roofs is not None:
            for size in sizes or GPU_SIZES:
                yield _gpu_bandwidth(stage, roofs, size, repeats)
        elif stage.ceilings is not None:
            for dtype in dtypes:
                for size in sizes or (*CACHE_SIZES, beyond_the_caches()):
                    yield from _bandwidths(stage, stage.ceilings.triad, size, dtype, sorted({1, threads}), repeats)


def _bandwidths(
    stage: Stage, triad: Callable[..., object], size: int, dtype: str, counts: Sequence[int], repeats: int
) -> Iterator[BenchRow]:
    """A row for each number of threads, measured in turns."""
    numbers = _numbers(size, dtype)
    b, c, out = (aligned((numbers,), dtype) for _ in range(3))
    b.fill(B)
    c.fill(C)
    rounds = max(1, CALL_BYTES // size)
    candidates = {count: partial(triad, b, c, SCALE, out, rounds, count) for count in counts}
    wrong = {}
    for count, call in candidates.items():
        out.fill(np.nan)
        call()
        if not (out == EXPECTED).all():
            wrong[count] = f"its result is not {EXPECTED:g} everywhere; not timed"
    right = {count: call for count, call in candidates.items() if count not in wrong}
    measured = measure(right, repeats=repeats, threaded=[count for count in right if count > 1]) if right else {}
    for count in counts:
        result = measured[count].of_one(rounds) if count in measured else None
        yield _bandwidth_row(stage, numbers, dtype, result, wrong.get(count), {"threads": count})


def _gpu_bandwidth(stage: Stage, roofs: Any, size: int, repeats: int) -> BenchRow:
    dtype = "float32"
    numbers = _numbers(size, dtype)
    b, c, out = (stage.arrays.asarray(np.full(numbers, value, dtype), dtype) for value in (B, C, np.nan))
    call = partial(roofs.triad, b, c, SCALE, out)
    call()
    clock = {"clock": gpu.CLOCK}
    if not (np.asarray(stage.arrays.to_host(out)) == EXPECTED).all():
        return _bandwidth_row(
            stage, numbers, dtype, None, f"its result is not {EXPECTED:g} everywhere; not timed", clock
        )
    result = measure({TRIAD: call}, repeats=repeats, samplers=gpu.samplers(stage, [TRIAD]))[TRIAD]
    return _bandwidth_row(stage, numbers, dtype, result, None, clock)


def _bandwidth_row(
    stage: Stage,
    numbers: int,
    dtype: str,
    result: Measurement | None,
    skipped: str | None,
    more: Mapping[str, Any],
) -> BenchRow:
    size = 3 * numbers * np.dtype(dtype).itemsize
    return BenchRow(
        "bandwidth", stage.name, TRIAD, dtype, (size,), 2 * numbers, result, skipped=skipped, bytes=size, **more
    )


def _numbers(size: int, dtype: str) -> int:
    """How many numbers each of three arrays of `size` bytes together has, in whole cache lines."""
    lines = size // (3 * CACHE_LINE)
    if lines < 1:
        raise ValueError(f"bandwidth_rows: expected sizes of at least {3 * CACHE_LINE} bytes, got {size}")
    return lines * CACHE_LINE // np.dtype(dtype).itemsize


def beyond_the_caches(folder: Path = CACHES) -> int:
    """Bytes that no cache of this machine holds. folder: where Linux tells how large a core's caches are."""
    found = []
    for path in sorted(folder.glob("index*/size")):
        text = path.read_text().strip()
        if text.endswith("K") and text[:-1].isdecimal():
            found.append(int(text[:-1]) << 10)
    return min(max(MEMORY_SIZE, 4 * max(found, default=0)), MOST_MEMORY)
