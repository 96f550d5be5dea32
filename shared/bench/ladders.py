"""Every rung of every stage's matmul ladder on square matrices, all floors interleaved at each size.

From the second floor up all rungs write into memory that is there already, as does the reference: an allocation of
fresh memory, which the system must clear page by page, would be timed along with the product otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared.bench import gpu, pytorch
from shared.bench.machine import flops_per_second, peak_call
from shared.bench.rows import BenchRow, product_bytes
from shared.bench.timing import DTYPES, Sampler, aligned, measure, stage_dtypes, times_as_fast
from shared.checks.tolerance import compare
from shared.contract import Stage, is_emulated
from shared.machine.environment import usable_cores

Key = tuple[str, str]
"""Who and by which rung."""

FIRST_FLOOR_SIZES = (16, 32, 64, 128)
UPPER_FLOOR_SIZES = (64, 128, 256, 512)
EMULATED_SIZES = (64, 128, 256)
GPU_SIZES = (128, 512, 1024, 2048)

REFERENCE = ("", "reference")
CUBLAS = ("", "cuBLAS")
PYTORCH = ("pytorch", "")
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
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every rung on (size, size) times (size, size).

    sizes: None for each floor's own (16 to 128 on the first, 64 to 512 above, 128 to 2048 on a GPU).
    call_limit: seconds; a rung whose next call is predicted to take longer (eight times per doubling) is skipped, with
    that reason in its row.
    group_limit: seconds for one size and dtype, as `limit` of `measure`.
    threads: how many the libraries and the last rung of each upper floor use; None for every usable core.
    torch: the module, to be measured beside them; None leaves it out.
    A rung whose product is wrong is not timed; its row says so. The reference is NumPy's `a @ b`; on a GPU cuBLAS,
    where PyTorch or CuPy has it, and for emulated rungs nothing.
    Rows come as soon as their size is measured, so that a caller who is interrupted keeps what there was.
    """
    threads = threads or usable_cores()
    wanted = sorted({size for stage in stages for size in _sizes(stage, sizes)})
    for dtype in dtypes:
        predicted: dict[tuple[str, str], float] = {}  # seconds for one multiply-add, from the largest size measured
        for size in wanted:
            at_this_size = [s for s in stages if size in _sizes(s, sizes) and dtype in stage_dtypes(s)]
            if at_this_size:
                yield from _ladder_at(
                    at_this_size, size, dtype, predicted, repeats, call_limit, group_limit, threads, torch
                )


def _ladder_at(
    stages: Sequence[Stage],
    size: int,
    dtype: str,
    predicted: dict[tuple[str, str], float],
    repeats: int,
    call_limit: float,
    group_limit: float,
    threads: int,
    torch: Any | None,
) -> Iterator[BenchRow]:
    random = np.random.default_rng(size)
    a, b, out = (aligned((size, size), dtype) for _ in range(3))
    a[...], b[...] = random.standard_normal(a.shape), random.standard_normal(b.shape)
    rungs = {(stage.name, rung): _threads(stage, rung, threads) for stage in stages for rung in stage.matmul.LADDER}
    libraries: dict[Key, Callable[[], object]] = {REFERENCE: lambda: np.matmul(a, b, out=out)}
    if torch is not None:
        libraries[PYTORCH] = pytorch.product(torch, "nn", a, b, out)
    samplers: dict[Key, Sampler] = {}
    cublas = None
    skipped: dict[Key, str] = {}
    candidates: dict[Key, Callable[[], object]] = {}
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for stage in stages:
        if gpu.on_gpu(stage) and (cublas := gpu.cublas(a, b, dtype)):
            libraries[CUBLAS] = cublas.multiply
            samplers |= gpu.samplers(stage, [CUBLAS])
        mine = [stage.arrays.asarray(matrix, dtype) for matrix in (a, b)]
        for rung, multiply in stage.matmul.LADDER.items():
            key = (stage.name, rung)
            seconds = predicted.get(key, 0.0) * size**3
            if seconds > call_limit:
                skipped[key] = f"one call would take about {seconds:.1f} s; the limit is {call_limit:g} s"
                continue
            out.fill(np.nan)  # what a rung does not write must not pass for what another one has written
            own_out = None if stage.number == 1 else stage.arrays.asarray(out, dtype)
            call = _bind(multiply, mine[0], mine[1], own_out)
            result = np.asarray(stage.arrays.to_host(call()))
            compared = compare(rung, result, exact, dtype, size)
            if not compared.ok:
                skipped[key] = f"{compared}; not timed"
                continue
            candidates[key] = call
            samplers |= gpu.samplers(stage, [key])
    candidates = libraries | candidates
    peak = peak_call(stages, dtype)
    if peak:
        candidates[PEAK] = peak
    threaded = {*(key for key, count in rungs.items() if count > 1), REFERENCE, PYTORCH} if threads > 1 else set()
    measured = measure(
        candidates, repeats=repeats, limit=group_limit, threaded=threaded & set(candidates), samplers=samplers
    )
    roof = flops_per_second(peak, measured[PEAK]) if peak else None
    emulated = {stage.name for stage in stages if is_emulated(stage.name)}
    devices = {stage.name for stage in stages if gpu.on_gpu(stage)}
    for key, count in rungs.items():
        found = measured.get(key)
        if found:
            predicted[key] = found.median / size**3
        against: Key | None = REFERENCE
        reference = f"NumPy a @ b, {dtype}"
        if key[0] in emulated:
            against, reference = None, gpu.NO_REFERENCE
        elif key[0] in devices and cublas:
            against, reference = CUBLAS, f"cuBLAS through {cublas.library}, {dtype}"
        opponents = {"cublas": CUBLAS} if key[0] in devices else {"numpy": REFERENCE, "pytorch": PYTORCH}
        yield BenchRow(
            "ladder",
            *key,
            dtype,
            (size, size, size),
            2 * size**3,
            found,
            reference,
            found.median / measured[against].median if found and against else None,
            skipped.get(key),
            bytes=product_bytes(size, size, size, dtype),
            threads=count,
            peak=roof * count if roof and key[0] not in emulated | devices else None,
            against=times_as_fast(measured, key, opponents) if found and key[0] not in emulated else {},
            emulated=key[0] in emulated,
            clock=gpu.CLOCK if key in samplers else "wall",
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
    return EMULATED_SIZES if is_emulated(stage.name) else GPU_SIZES if gpu.on_gpu(stage) else UPPER_FLOOR_SIZES
