"""Every rung of every stage's matmul ladder on square matrices, all floors interleaved at each size.

From the second floor up all rungs write into memory that is there already, as does the reference: an allocation of
fresh memory, which the system must clear page by page, would be timed along with the product otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared.bench_gpu import NO_REFERENCE, cublas, on_gpu, waiter
from shared.bench_peak import flops_per_second, peak_call
from shared.benchmark import DTYPES, BenchRow, aligned, measure, stage_dtypes
from shared.contract import Stage, is_emulated
from shared.environment import usable_cores

FIRST_FLOOR_SIZES = (16, 32, 64, 128)
UPPER_FLOOR_SIZES = (64, 128, 256, 512)
EMULATED_SIZES = (64, 128, 256)
GPU_SIZES = (128, 512, 1024, 2048)

REFERENCE = ("", "reference")
CUBLAS = ("", "cuBLAS")
PEAK = ("", "peak")


def ladder_rows(
    stages: Sequence[Stage],
    *,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] = DTYPES,
    repeats: int = 9,
    call_limit: float = 1.0,
    group_limit: float = 15.0,
    threads: int | None = None,
) -> Iterator[BenchRow]:
    """Time every rung on (size, size) times (size, size).

    sizes: None for each floor's own (16 to 128 on the first, 64 to 512 above, 128 to 2048 on a GPU).
    call_limit: seconds; a rung whose next call is predicted to take longer (eight times per doubling) is skipped, with
    that reason in its row.
    group_limit: seconds for one size and dtype, as `limit` of `measure`.
    threads: how many the libraries and the last rung of each upper floor use; None for every usable core.
    The reference is NumPy's `a @ b`; on a GPU cuBLAS, where PyTorch or CuPy has it, and for emulated rungs nothing.
    Rows come as soon as their size is measured, so that a caller who is interrupted keeps what there was.
    """
    threads = threads or usable_cores()
    wanted = sorted({size for stage in stages for size in _sizes(stage, sizes)})
    for dtype in dtypes:
        predicted: dict[tuple[str, str], float] = {}  # seconds for one multiply-add, from the largest size measured
        for size in wanted:
            at_this_size = [s for s in stages if size in _sizes(s, sizes) and dtype in stage_dtypes(s)]
            if at_this_size:
                yield from _ladder_at(at_this_size, size, dtype, predicted, repeats, call_limit, group_limit, threads)


def _ladder_at(
    stages: Sequence[Stage],
    size: int,
    dtype: str,
    predicted: dict[tuple[str, str], float],
    repeats: int,
    call_limit: float,
    group_limit: float,
    threads: int,
) -> Iterator[BenchRow]:
    random = np.random.default_rng(size)
    a, b, out = (aligned((size, size), dtype) for _ in range(3))
    a[...], b[...] = random.standard_normal(a.shape), random.standard_normal(b.shape)
    candidates: dict[tuple[str, str], Callable[[], object]] = {REFERENCE: lambda: np.matmul(a, b, out=out)}
    peak = peak_call(stages, dtype)
    if peak:
        candidates[PEAK] = peak
    rungs = {(stage.name, rung): _threads(stage, rung, threads) for stage in stages for rung in stage.matmul.LADDER}
    finish: dict[tuple[str, str], Callable[[], object]] = {}
    library = None
    for stage in stages:
        wait = waiter(stage)
        if wait is not None and (library := cublas(a, b, dtype)):
            candidates[CUBLAS], finish[CUBLAS] = library.multiply, wait
        mine = [stage.arrays.asarray(matrix, dtype) for matrix in (a, b)]
        own_out = None if stage.number == 1 else stage.arrays.asarray(out, dtype)
        for rung, multiply in stage.matmul.LADDER.items():
            if predicted.get((stage.name, rung), 0.0) * size**3 <= call_limit:
                candidates[stage.name, rung] = _bind(multiply, mine[0], mine[1], own_out)
                if wait is not None:
                    finish[stage.name, rung] = wait
    threaded = {REFERENCE} | {key for key, count in rungs.items() if count > 1} if threads > 1 else set()
    measured = measure(candidates, repeats=repeats, limit=group_limit, threaded=threaded, finish=finish)
    roof = flops_per_second(peak, measured[PEAK]) if peak else None
    emulated = {stage.name for stage in stages if is_emulated(stage.name)}
    gpu = {stage.name for stage in stages if on_gpu(stage)}
    for key, count in rungs.items():
        result = measured.get(key)
        against: tuple[str, str] | None = REFERENCE
        reference = f"NumPy a @ b, {dtype}"
        if key[0] in emulated:
            against, reference = None, NO_REFERENCE
        elif key[0] in gpu and library:
            against, reference = CUBLAS, f"cuBLAS through {library.library}, {dtype}"
        if result:
            predicted[key] = result.median / size**3
            ratio, skipped = result.median / measured[against].median if against else None, None
        else:
            seconds = predicted[key] * size**3
            ratio, skipped = None, f"one call would take about {seconds:.1f} s; the limit is {call_limit:g} s"
        yield BenchRow(
            "ladder",
            *key,
            dtype,
            (size, size, size),
            2 * size**3,
            result,
            reference,
            ratio,
            skipped,
            threads=count,
            peak=roof * count if roof and key[0] not in emulated | gpu else None,
            emulated=key[0] in emulated,
        )


def _threads(stage: Stage, rung: str, threads: int) -> int:
    # The last rung is the one that uses all threads: BLAS on the second floor, the pool on the third. The emulator
    # shares out every kernel's blocks.
    if is_emulated(stage.name):
        return threads
    return threads if stage.number in (2, 3) and rung == list(stage.matmul.LADDER)[-1] else 1


def _bind(multiply: Callable[..., Any], a: Any, b: Any, out: Any | None) -> Callable[[], object]:
    if out is None:
        return lambda: multiply(a, b)
    return lambda: multiply(a, b, out=out)


def _sizes(stage: Stage, sizes: Sequence[int] | None) -> Sequence[int]:
    if sizes is not None:
        return sizes
    if stage.number == 1:
        return FIRST_FLOOR_SIZES
    return EMULATED_SIZES if is_emulated(stage.name) else GPU_SIZES if on_gpu(stage) else UPPER_FLOOR_SIZES
