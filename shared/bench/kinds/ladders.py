"""Every rung of every stage's matmul ladder on square matrices; all rungs of one size are measured in turns.

From the second stage up every rung writes into memory that exists already, and so does the reference. Otherwise the
allocation of fresh memory, which the system must clear page by page, would be timed along with the product.

On a GPU the ladder of the tensor cores can be measured, too, in "tf32", "bf16" and "f16": each beside cuBLAS in the
same precision. Both find operands that were rounded before the clock runs, but for the rung that rounds in its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import CallLimit, Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow, product_bytes, raised
from shared.bench.measuring.timing import DTYPES, Sampler, aligned, random_arrays, stage_dtypes
from shared.bench.peers import pytorch
from shared.checks.rungs import compare_rounded
from shared.checks.tolerance import compare
from shared.contract import Stage, is_emulated

Key = tuple[str, str]
"""Who computes, and by which rung."""

EFFORT = Effort(repeats=9, group_limit=15.0)
FIRST_FLOOR_SIZES = (16, 32, 64, 128)
UPPER_FLOOR_SIZES = (64, 128, 256, 512)
EMULATED_SIZES = (64, 128, 256)
GPU_SIZES = (128, 512, 1024, 2048)

REFERENCE, CUBLAS, PYTORCH = ("", "reference"), ("", "cuBLAS"), ("pytorch", "")

ALL_CHECKED, CHECKED_ROWS = 1024, 64
"""Up to this size every row of a product is compared with float64; of larger products so many rows."""


def ladder_rows(
    stages: Sequence[Stage],
    *,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] = DTYPES,
    effort: Effort = EFFORT,
    call_limit: float = 1.0,
    torch: Any | None = None,
    of_gpu: Collection[str] | None = None,
) -> Iterator[BenchRow]:
    """Time every rung on (size, size) times (size, size).

    sizes: None for each stage's own (16 to 128 on the first, 64 to 512 above, 128 to 2048 on a GPU)
    dtypes: of float64 and float32; and "tf32", "bf16" and "f16", which only a stage on a GPU has
    effort: its threads are for the libraries and for the last rung of stages 2 and 3
    call_limit: seconds; a rung whose next call is expected to take longer (eight times for each doubling of the size)
        is skipped, with that reason in its row
    torch: the module, to be measured beside the rungs; None leaves it out
    of_gpu: the rungs of a stage on a GPU that are measured in float64 and float32; None for all
    A rung whose product is wrong is not timed; its row says so. The reference is NumPy's `a @ b`; for rungs on a GPU
    it is cuBLAS, where PyTorch or CuPy can call it. Rows of an emulated stage are compared with nothing.
    The rows of one size come as soon as that size is measured, so that an interrupted run keeps them.
    """
    wanted = sorted({size for stage in stages for size in _sizes(stage, sizes)})
    for dtype in dtypes:
        limit = CallLimit(call_limit)
        for size in wanted:
            here = [stage for stage in stages if size in _sizes(stage, sizes) and _rungs(stage, dtype, of_gpu)]
            if here:
                yield from _ladder_at(here, size, dtype, limit, effort, torch, of_gpu)


def _ladder_at(
    stages: Sequence[Stage],
    size: int,
    dtype: str,
    limit: CallLimit,
    effort: Effort,
    torch: Any | None,
    of_gpu: Collection[str] | None,
) -> Iterator[BenchRow]:
    stored = dtype if dtype in DTYPES else "float32"
    a, b = random_arrays((size, size), (size, size), dtype=stored, seed=size)
    out = aligned((size, size), stored)
    devices = [stage for stage in stages if gpu.on_gpu(stage)]
    cublas = gpu.cublas(a, b, dtype) if devices else None
    beside_cublas = {stage.name for stage in devices} if cublas else set()
    calls: dict[Key, Callable[[], object]] = {}
    own_clock: dict[Key, Sampler] = {}
    if dtype in DTYPES and any(not is_emulated(stage.name) and stage.name not in beside_cublas for stage in stages):
        calls[REFERENCE] = partial(np.matmul, a, b, out=out)
    if dtype in DTYPES and torch is not None:
        calls[PYTORCH] = pytorch.product(torch, "nn", a, b, out)
    threads = dict.fromkeys(calls, effort.most_threads)
    if cublas is not None:
        calls[CUBLAS] = cublas.multiply
        own_clock |= gpu.samplers(devices[0], [CUBLAS])
    skipped: dict[Key, str] = {}
    wrong = _check_of(a, b, dtype)
    for stage in stages:
        own_a, own_b = (stage.arrays.asarray(matrix, stored) for matrix in (a, b))
        for rung, multiply in _rungs(stage, dtype, of_gpu).items():
            key = (stage.name, rung)
            threads[key] = _threads(stage, rung, effort.most_threads)
            if reason := limit.reason(key, size**3):
                skipped[key] = reason
                continue
            out.fill(np.nan)  # so that a number which a rung does not write is not one that another rung has written
            into = {} if stage.number == 1 else {"out": stage.arrays.asarray(out, stored)}
            try:
                call = _call_of(multiply, own_a, own_b, into)
                reason = wrong(rung, np.asarray(stage.arrays.to_host(call())))
            except Exception as error:  # a rung that cannot run costs only itself
                reason = f"{rung}: {raised(error)}"
            if reason:
                skipped[key] = reason
                continue
            calls[key] = call
            own_clock |= gpu.samplers(stage, [key])
    turns = take_turns(calls, stages, effort, threads=threads, peak_in=stored, own_clock=own_clock)
    on_device = {stage.name for stage in devices}
    for key in (entry for entry in threads if entry not in (REFERENCE, PYTORCH)):
        if timing := turns.measured.get(key):
            limit.note(key, size**3, timing.median)
        reference, label = REFERENCE, f"NumPy a @ b, {dtype}"
        if cublas is not None and key[0] in beside_cublas:
            reference, label = CUBLAS, f"cuBLAS through {cublas.library}, {dtype}"
        opponents = {"cublas": CUBLAS} if key[0] in on_device else {"numpy": REFERENCE, "pytorch": PYTORCH}
        columns = turns.columns(key, reference=reference, label=label, opponents=opponents)
        columns |= {"skipped": skipped.get(key), "bytes": product_bytes(size, size, size, stored)}
        yield BenchRow("ladder", *key, dtype, (size, size, size), 2 * size**3, **columns)


def _call_of(multiply: Any, a: Any, b: Any, into: dict[str, Any]) -> Callable[[], Any]:
    """The call that is timed. A rung on tensor cores rounds its operands first, and then has a call for the product
    alone. into: out, or nothing where a rung takes none"""
    ready = getattr(multiply, "ready", None)
    return ready(a, b, **into) if ready else partial(multiply, a, b, **into)


def _check_of(a: np.ndarray, b: np.ndarray, dtype: str) -> Callable[[str, np.ndarray], str | None]:
    """A function (rung, its product) that says why the rung is not timed; None where its product is right."""
    size = len(a)
    count = size if size <= ALL_CHECKED else CHECKED_ROWS
    rows = np.unique(np.linspace(0, size - 1, count).astype(int))
    left, right = a[rows].astype(np.float64), b.astype(np.float64)
    expected = left @ right

    def check(rung: str, product: np.ndarray) -> str | None:
        if count < size and product.shape == a.shape:
            if not np.isfinite(product).all():
                return f"{rung}: its product holds numbers that are not finite{NOT_TIMED}"
            product = product[rows]
        if dtype in DTYPES:
            compared = compare(rung, product, expected, dtype, size)
        else:
            compared = compare_rounded(rung, product, left, right, dtype)
        return None if compared.ok else f"{compared}{NOT_TIMED}"

    return check


def _rungs(stage: Stage, dtype: str, of_gpu: Collection[str] | None) -> Mapping[str, Callable[..., Any]]:
    """The rungs that the stage has in this dtype; on a GPU those of of_gpu."""
    if dtype in DTYPES:
        rungs = stage.matmul.LADDER if dtype in stage_dtypes(stage) else {}
        few = of_gpu is not None and gpu.on_gpu(stage)
        return {name: rung for name, rung in rungs.items() if not few or name in (of_gpu or ())}
    ladders: Mapping[str, Any] = getattr(stage.matmul, "TENSOR_LADDER", {}) if gpu.on_gpu(stage) else {}
    return ladders.get(dtype, {})


def _threads(stage: Stage, rung: str, threads: int) -> int:
    # The last rung of stages 2 and 3 is the one that uses all threads: BLAS, and the pool. The emulator shares out the
    # blocks of every kernel.
    if is_emulated(stage.name):
        return threads
    return threads if stage.number in (2, 3) and rung == list(stage.matmul.LADDER)[-1] else 1


def _sizes(stage: Stage, sizes: Sequence[int] | None) -> Sequence[int]:
    if sizes is not None:
        return sizes
    if stage.number == 1:
        return FIRST_FLOOR_SIZES
    return EMULATED_SIZES if is_emulated(stage.name) else GPU_SIZES if gpu.on_gpu(stage) else UPPER_FLOOR_SIZES
