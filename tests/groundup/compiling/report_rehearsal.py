"""A rehearsal of the GPU report's first parts and of `groundup check 4`, without a GPU: which kernels are compiled.

    python -m tests.groundup.compiling.report_rehearsal 132 steps check      prints {part: names of kernels} for so many
                                                                             multiprocessors

The parts run as they are, with stage 2 as the reference, which is faster than stage 1. As in bench_rehearsal.py every
launch is noted and none happens. A kernel that is compiled only to ask how many of its blocks a device holds is noted,
too.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

os.environ |= {"GROUNDUP_CUDA": "emulator", "GROUNDUP_ANNOUNCED": "emulator"}
os.environ |= {"NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}  # without graphs, which the emulator has not

from tests.groundup.compiling.bench_rehearsal import Launches, named, note_launches, pretend_gpu

SECONDS, ENOUGH = 1.0, 3600.0
"""For a part that measures: nothing is computed, so that its numbers need no repetition. For one that compares, which
ends when its time is over."""

REFERENCE = "stage2_numpy"


def main() -> None:
    """Rehearse all of them."""
    lines, sys.stdout = sys.stdout, sys.stderr
    multiprocessors = int(sys.argv[1])
    pretend_gpu(multiprocessors)
    tensor_cores = importlib.import_module("stage4_numba_cuda.tensor_cores")
    tensor_cores.is_known = lambda precision: True
    launches: Launches = {}
    note_launches(launches)
    asked_about: set[str] = set()
    persistent: Any = importlib.import_module("stage4_numba_cuda.plans.persistent")

    def together(chunk: int, values: str, dtype: str) -> int:
        asked_about.add(f"persistent.PERSISTENT[{chunk}, {values == 'uint8'}] {dtype}")
        return multiprocessors

    persistent.together = together
    found = {}
    parts: dict[str, Callable[[], Iterable[Any]]] = {"correctness": correctness, **measured(), "check": check}
    for part in sys.argv[2:]:
        launches.clear()
        asked_about.clear()
        for _ in parts[part]():
            pass
        found[part] = sorted({*named(launches), *asked_about})
    print(json.dumps(found), file=lines)


def correctness() -> Iterable[Any]:
    """The part of that name."""
    from groundup.gpu_report import report_parts
    from groundup.gpu_report.part import Part
    from shared.bench.on_gpu.gpu_plan import GpuPlan
    from shared.contract import load_stage

    stages: Any = report_parts
    stages.load_stage = lambda name: load_stage(name if name.startswith("stage4") else REFERENCE)
    part = Part(GpuPlan(ENOUGH))
    report_parts.correctness(part)
    return part.rows


def measured() -> dict[str, Callable[[], Iterable[Any]]]:
    """The parts of shared/bench/on_gpu/gpu_plan.py, by name."""
    from shared.bench.on_gpu import gpu_plan

    plan = gpu_plan.GpuPlan(SECONDS, quick=False)
    return {name: lambda run=run: run(plan) for name, run in gpu_plan.PARTS.items() if name != "launches"}


def check() -> Iterable[Any]:
    """`groundup check 4`, in both dtypes."""
    from groundup.check import Settings
    from groundup.check import check as compare
    from shared.contract import load_stage

    stage = load_stage("stage4_numba_cuda")
    return [compare([stage], load_stage(REFERENCE), Settings(), {}, lambda what: None)]


if __name__ == "__main__":
    main()
