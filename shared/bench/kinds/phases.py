"""The time around a computation: importing a stage, compiling it, and copying numbers into and out of its arrays.

    import      a fresh process loads the stage, which was compiled before; PyTorch is imported
    compile     the same with nothing compiled yet, and the first product: how much longer that takes
    copy in     both operands from NumPy's arrays into the stage's own
    compute     the product, by the stage's fastest rung, into memory that is there already
    copy out    the result back into a NumPy array

A stage that computes in NumPy's own memory copies nothing and has no such rows. On a GPU the copies are timed until the
device has finished, and the product by the device's own clock.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from shared.bench.measuring import children, gpu
from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.gpu import NO_REFERENCE
from shared.bench.measuring.rows import NOT_TIMED, BenchRow
from shared.bench.measuring.timing import Measurement, Sampler, aligned, random_arrays, stage_dtypes, summarise
from shared.bench.peers import pytorch
from shared.checks.tolerance import compare
from shared.contract import Stage, is_emulated

Key = tuple[str, str]
"""Who does it, and which part."""

EFFORT = Effort(repeats=9, group_limit=3.0)
SIZE, SIZES = 512, (128, 512, 1024)
FIRST_FLOOR_SIZES, EMULATED_SIZES = (64,), (128,)
COMPILED = 3
"""From this stage on there is something to compile."""

IMPORTS = 3
"""Processes that import a stage. The first may have to read files from the disk, which a median leaves out."""

FIRST_FLOOR = "stage1_pure_python"
IMPORT, COMPILE, COPY_IN, COMPUTE, COPY_OUT = "import", "compile", "copy in", "compute", "copy out"
PYTORCH = "pytorch"
IMPORT_TORCH = """
import json, time
start = time.perf_counter()
import torch
print(json.dumps(time.perf_counter() - start))
"""
LOAD = """
import json, sys, time
request = json.load(sys.stdin)
lines, sys.stdout = sys.stdout, sys.stderr
start = time.perf_counter()
from shared.contract import load_stage
stage = load_stage(request["stage"])
seconds = [time.perf_counter() - start]
if request["size"]:
    ones = [[1.0] * request["size"]] * request["size"]
    a = stage.arrays.asarray(ones, request["dtype"])
    for _ in range(2):
        start = time.perf_counter()
        stage.arrays.to_host(stage.matmul.matmul(a, a))
        seconds.append(time.perf_counter() - start)
print(json.dumps(seconds), file=lines)
"""
"""Prints the seconds until the stage is loaded; where a size is asked for, those of a first and a second product, too.
Only the modules that read the request and the clock are imported before the clock runs."""


def phase_rows(
    stages: Sequence[Stage],
    *,
    size: int = SIZE,
    sizes: Sequence[int] = SIZES,
    dtype: str = "float32",
    processes: bool = True,
    effort: Effort = EFFORT,
    torch: Any | None = None,
    quick: bool = False,
) -> Iterator[BenchRow]:
    """Time copy in, compute and copy out of square products of each size on each stage, and import and compile.

    size: of the product that the rows of import and compile name; sizes: of the products. The first stage has 64
        instead, in float64, and an emulated stage 128
    processes: whether import and compile are measured, which takes seconds for each stage
    quick: leaves them out for a stage on a GPU, which takes longest: each process has to wake the device
    effort: its group_limit is for one size
    torch: the module, where PyTorch is to be measured too; it computes in NumPy's memory, so it has no copies
    A stage whose product is not NumPy's in float64 is not timed; its rows say so.
    """
    threads = effort.most_threads
    wanted = sorted({side for stage in stages for side in _sizes(stage, sizes)} | set(sizes))
    for side in wanted:
        here = [stage for stage in stages if side in _sizes(stage, sizes)]
        yield from _in_process(here, side, dtype, torch if side in sizes else None, effort)
    if processes:
        for stage in stages:
            if quick and gpu.on_gpu(stage):
                continue
            yield from _in_processes(stage, _sizes(stage, [size])[0], _dtype(stage, dtype), threads)
        if torch is not None:
            yield _import_row(PYTORCH, size, dtype, lambda: float(children.ask(IMPORT_TORCH, threads=threads)))


def _in_process(
    stages: Sequence[Stage], size: int, dtype: str, torch: Any | None, effort: Effort
) -> Iterator[BenchRow]:
    """The rows of one size, all contenders in turns."""
    candidates: dict[Key, Callable[[], object]] = {}
    own_clock: dict[Key, Sampler] = {}
    wrong: dict[str, str] = {}
    for stage in stages:
        a, b, out = _operands(size, _dtype(stage, dtype))
        calls = _calls(stage, a, b, out)
        calls[COMPUTE]()
        got = np.asarray(calls[COPY_OUT]())
        compared = compare("matmul", got, a.astype(np.float64) @ b.astype(np.float64), str(a.dtype), size)
        if not compared.ok:
            wrong[stage.name] = f"its product is wrong: {compared}{NOT_TIMED}"
            continue
        if not _copies(stage, a):
            calls = {COMPUTE: calls[COMPUTE]}
        candidates |= {(stage.name, part): call for part, call in calls.items()}
        own_clock |= gpu.samplers(stage, [(stage.name, COMPUTE)])
    if torch is not None:
        candidates[PYTORCH, COMPUTE] = pytorch.product(torch, "nn", *_operands(size, dtype))
    threads = {key: _threads(key[0], effort.most_threads) if key[1] == COMPUTE else 1 for key in candidates}
    turns = take_turns(candidates, stages, effort, threads=threads, own_clock=own_clock)
    for key, result in turns.measured.items():
        name, part = key
        own = "float64" if name == FIRST_FLOOR else dtype
        clock = gpu.CLOCK if key in turns.own_clock else "wall"
        yield _row(name, part, size, own, result, threads=threads[key], clock=clock)
    for name, reason in wrong.items():
        yield _row(name, COMPUTE, size, "float64" if name == FIRST_FLOOR else dtype, None, skipped=reason)


def _calls(stage: Stage, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> dict[str, Callable[[], object]]:
    """The calls of the three parts that run in this process; a, b and out are (size, size)."""
    asarray, to_host, dtype = stage.arrays.asarray, stage.arrays.to_host, str(a.dtype)
    own_a, own_b = asarray(a, dtype), asarray(b, dtype)
    multiply: Callable[..., Any] = stage.matmul.matmul
    if stage.name == FIRST_FLOOR:  # whose products are new lists; this one stays for copying out
        product = multiply(own_a, own_b)
        compute: Callable[[], object] = lambda: multiply(own_a, own_b)  # noqa: E731
    else:
        product = asarray(out, dtype)
        compute = partial(multiply, own_a, own_b, out=product)
    return {
        COPY_IN: lambda: (asarray(a, dtype), asarray(b, dtype)),
        COMPUTE: compute,
        COPY_OUT: lambda: np.asarray(to_host(product)),
    }


def _copies(stage: Stage, a: np.ndarray) -> bool:
    """Whether the stage's arrays are in other memory than NumPy's."""
    own = stage.arrays.asarray(a, str(a.dtype))
    return not (isinstance(own, np.ndarray) and np.shares_memory(own, a))


def _in_processes(stage: Stage, size: int, dtype: str, threads: int) -> Iterator[BenchRow]:
    """The rows of importing the stage and, from COMPILED on, of compiling it."""
    request = {"stage": stage.name, "size": 0, "dtype": dtype}

    def load() -> float:
        return float(children.ask(LOAD, request, threads=threads)[0])

    row = _import_row(stage.name, size, dtype, load)
    yield row
    if stage.number < COMPILED or row.seconds is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            loaded, first, second = children.ask(
                LOAD, request | {"size": size}, threads=threads, variables={"GROUNDUP_CACHE": folder}
            )
        except ChildProcessError as error:
            yield _row(stage.name, COMPILE, size, dtype, None, skipped=str(error), threads=threads)
            return
    seconds = loaded + first - second - row.seconds
    measured = summarise([seconds]) if seconds > 0 else None
    skipped = None if measured else "it took no longer than without compiling"
    yield _row(stage.name, COMPILE, size, dtype, measured, skipped=skipped, threads=threads)


def _import_row(name: str, size: int, dtype: str, load: Callable[[], float]) -> BenchRow:
    try:
        return _row(name, IMPORT, size, dtype, summarise([load() for _ in range(IMPORTS)]))
    except ChildProcessError as error:
        return _row(name, IMPORT, size, dtype, None, skipped=str(error))


def _row(name: str, part: str, size: int, dtype: str, measured: Measurement | None, **more: Any) -> BenchRow:
    emulated = name != PYTORCH and is_emulated(name)
    matrix = size * size * np.dtype(dtype).itemsize
    return BenchRow(
        "phase",
        name,
        f"product {size}³",
        dtype,
        (size, size, size),
        2 * size**3 if part == COMPUTE else 0,
        measured,
        NO_REFERENCE if emulated else "",
        part=part,
        bytes={COPY_IN: 2 * matrix, COMPUTE: 3 * matrix, COPY_OUT: matrix}.get(part, 0),
        emulated=emulated,
        **more,
    )


def _operands(size: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and out (size, size), each on a cache line."""
    a, b = random_arrays((size, size), (size, size), dtype=dtype, seed=size)
    out = aligned((size, size), dtype)
    out.fill(np.nan)
    return a, b, out


def _sizes(stage: Stage, sizes: Sequence[int]) -> Sequence[int]:
    if stage.name == FIRST_FLOOR:
        return FIRST_FLOOR_SIZES
    return EMULATED_SIZES if is_emulated(stage.name) else sizes


def _dtype(stage: Stage, dtype: str) -> str:
    return dtype if dtype in stage_dtypes(stage) else stage_dtypes(stage)[0]


def _threads(name: str, threads: int) -> int:
    return 1 if name == FIRST_FLOOR else threads
