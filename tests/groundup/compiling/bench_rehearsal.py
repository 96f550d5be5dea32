"""A rehearsal of `groundup bench` on a GPU, without one: which kernels would be compiled, and what would be measured.

    python -m tests.groundup.compiling.bench_rehearsal < {"plan": …, "multiprocessors": 132}      prints a JSON object

The files of stage 4 choose their kernels as on a GPU with so many multiprocessors. Every launch is noted and none
happens, so results are wrong and rows are not timed: a kernel that is launched only while the clock runs is not seen,
but what is timed was called before, to look at its result. Graphs are left out, which launch what a step launches.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

Launches = dict[tuple[Any, tuple[str, ...]], None]
"""(kernel, the types of its arguments), in the order of their first launch."""


def main() -> None:
    """Rehearse the plan on standard input."""
    os.environ |= {"GROUNDUP_CUDA": "emulator", "GROUNDUP_ANNOUNCED": "emulator"}
    os.environ |= {"NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}  # without graphs, which the emulator has not
    order = json.load(sys.stdin)
    lines, sys.stdout = sys.stdout, sys.stderr
    pretend_gpu(order["multiprocessors"])
    launches: Launches = {}
    note_launches(launches)
    kernels: dict[str, list[str]] = {}
    rows = 0
    for part, job in jobs_of(order["plan"]):
        launches.clear()
        rows += len(list(job()))
        kernels[part] = sorted({*kernels.get(part, []), *named(launches)})
    print(json.dumps({"kernels": kernels, "rows": rows}), file=lines)


def pretend_gpu(multiprocessors: int) -> None:
    """Let the files of stage 4 that are imported from now on believe that they run on a GPU."""
    backend = importlib.import_module("stage4_numba_cuda.backend")
    importlib.import_module("stage4_numba_cuda.kernels.ptx")  # before: its instructions stay the emulator's
    backend.BACKEND = dataclasses.replace(backend.BACKEND, name="gpu", reason="a rehearsal")
    device = type(backend.cuda.get_current_device())
    device.MULTIPROCESSOR_COUNT = multiprocessors  # type: ignore[attr-defined]
    device.COOPERATIVE_LAUNCH = 1  # type: ignore[attr-defined]
    children = importlib.import_module("shared.bench.measuring.children")
    children.ask = no_child
    turns = importlib.import_module("shared.bench.measuring.compared_candidates")
    turns.CallLimit.reason = lambda *arguments: None  # or a busy machine would leave out what a GPU does in no time
    persistent = importlib.import_module("stage4_numba_cuda.plans.persistent")
    persistent.together = lambda *arguments: multiprocessors
    shared_memory = importlib.import_module("stage4_numba_cuda.shared_memory")
    shared_memory.allow = lambda kernel, types, size: kernel.allow_shared(size)


def no_child(*arguments: Any, **more: Any) -> Any:
    """In place of another process, which would not believe that there is a GPU."""
    raise ChildProcessError("not in a rehearsal")


def note_launches(launches: Launches) -> None:
    """Note kernel and types of arguments of every launch, and launch nothing."""
    from cuda_emulator.inspection import Kernel

    def noted(kernel: Any, grid: Any, block: Any, dynamic_bytes: int, arguments: tuple[Any, ...]) -> None:
        launches[kernel, tuple(map(type_of, arguments))] = None
        for argument in arguments:
            if type_of(argument).startswith("float") and hasattr(argument, "copy_to_device"):
                argument.copy_to_device(np.nan_to_num(argument.copy_to_host()))  # or training would end: it diverged

    Kernel.run = noted  # type: ignore[method-assign]


def type_of(argument: Any) -> str:
    """An argument in the catalogue's words: 'float32[2]', 'int64'."""
    if hasattr(argument, "shape") and argument.shape != ():
        return f"{argument.dtype}[{len(argument.shape)}]"
    if isinstance(argument, bool | int):
        return "int64"
    return str(argument.dtype)


def jobs_of(plan: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Iterator[Any]]]]:
    """(its part, a function that gives its rows) for each job of a plan's first pass, on stage 4 alone."""
    from shared.bench.running.plan import Bench, Plan, jobs
    from shared.contract import load_stage

    chosen = Plan.from_dict(plan)
    bench = Bench(chosen, [load_stage("stage4_numba_cuda")], None, 1)
    for job in jobs(chosen):
        yield job.part, partial(job.rows, bench)


def named(launches: Launches) -> set[str]:
    """'matmul_1_basic.naive float32' for each kernel that was launched; what no list has is named with its types.

    A kernel is told by what it says, as on disk: a function that makes kernels may make the same one twice.
    """
    from groundup.compiling.worker import find
    from groundup.kernels.launched import KNOWN
    from stage4_numba_cuda.kernel_fingerprint import fingerprint

    known = {
        (fingerprint(find(entry.package, entry.kernel, dtype).py_func), entry.arguments.replace("T", dtype)): name
        for name, (entry, dtype) in KNOWN.items()
    }
    return {
        known.get((fingerprint(kernel.py_func), " ".join(types)), f"unknown: {kernel.py_func.__qualname__} {types}")
        for kernel, types in launches
    }


if __name__ == "__main__":
    main()
