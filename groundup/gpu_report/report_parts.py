"""The parts of the GPU report, each in a process of its own. part.py keeps the rows of each.

    device         the GPU, its driver and the versions; begins with a trial kernel
    compile        what the parts after it launch, compiled side by side
    correctness    every rung against float64, those of convolutional networks, too; on a GPU all operations against
                   stage 2
    ladder, launches, steps, training
                   measured by shared/bench; shared/bench/on_gpu/gpu_plan.py says at which sizes
    suite          the tests of stage 4: suite.py
    sanitizer      compute-sanitizer over every kernel: sanitizer.py
    commands       how long somebody waits for a command: commands.py
    networks, network_training
                   convolutional networks: networks.py
    fastest_pytorch
                   PyTorch with its fused optimizer and compiled: fastest_pytorch.py

A kernel that reads where it must not takes the whole process's device with it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from groundup.doctor.survey import trial
from groundup.gpu_report import commands, fastest_pytorch, networks
from groundup.gpu_report.part import BACKEND, NO_TIME, VARIABLE, Part
from groundup.gpu_report.sanitizer import sanitizer
from groundup.gpu_report.suite import suite
from shared.bench.on_gpu import gpu_plan
from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.checks.equivalence import check_stage
from shared.checks.image_rungs import image_rung_checks
from shared.checks.rungs import SIZES, SMALL_SIZES, RungCheck, rung_checks
from shared.checks.tolerance import describe_tolerances
from shared.contract import STAGES, load_stage
from shared.machine import processes
from shared.machine.environment import environment, nvidia_gpus

DISTRIBUTIONS = (
    *("numba", "numba-cuda", "llvmlite", "cuda-bindings", "cuda-core", "nvidia-cublas", "nvidia-cuda-nvvm"),
    *("nvidia-nvvm", "nvidia-nvjitlink", "numpy", "torch", "cupy-cuda13x", "cupy-cuda12x", "matplotlib", "pytest"),
)
ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "l2_bytes": "L2_CACHE_SIZE",
    "shared_bytes_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
}
"""What is asked of the device, by the names of cuDeviceGetAttribute."""

STEPS = ("step", "resident")
"""Of the correctness part, what also a tiny or a quick one has in float64."""

REPEATED = ("matmul", "convolution gradients")
"""Of the correctness part, those whose rung in use is one of the others: a tiny one leaves it out."""

TO_END = 4.0
"""Seconds in which the processes that compile begin and end."""


def device(part: Part) -> None:
    """Try a kernel; then the device, its driver, versions, the machine, the revision, the day.

    Fails where there is a GPU and nobody asked for the emulator: a rehearsal would take the time of the GPU.
    """
    cards = nvidia_gpus()
    if BACKEND.emulated and cards and not os.environ.get(VARIABLE):
        name = cards[0]["name"]
        part.finish("error", f"this machine has a GPU ({name}), but {BACKEND.reason}; {VARIABLE}=emulator rehearses")
        return
    tried = trial("emulator" if BACKEND.emulated else "gpu")
    if not tried.works:
        part.finish("error", f"a trial kernel does not run on {BACKEND.reason}: {tried.said}")
        return
    gpu = BACKEND.cuda.get_current_device()
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else str(gpu.name)
    facts: dict[str, Any] = {"name": name, "compute_capability": ".".join(map(str, gpu.compute_capability))}
    if not BACKEND.emulated:
        facts |= {key: getattr(gpu, attribute, None) for key, attribute in ATTRIBUTES.items()}
        facts["cards"] = cards
    part.facts = {"backend": BACKEND.name, "reason": BACKEND.reason, "device": facts, "versions": versions()}
    part.facts["environment"] = environment()
    part.add(BACKEND.line(), **facts)
    part.finish("ok")


def versions() -> dict[str, str]:
    """The versions of the installed libraries that matter, by distribution."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def compile_kernels(part: Part) -> None:
    """A row: how many kernels were compiled, or found on disk, and in how many seconds.

    What the parts of the report launch is compiled side by side, by processes of their own. One kernel after another,
    as they are launched, would take most of the parts' time. A kernel that is not compiled here will be when it is
    launched, so that the part does not fail.
    """
    if BACKEND.emulated:
        part.finish("skipped", "the emulator compiles a kernel when it is launched")
        return
    seconds = max(part.plan.left - TO_END, 1.0)
    command = processes.python("-m", "groundup.compiling.precompile", ",".join(part.report), f"{seconds:.1f}")
    done = processes.run(command, part.plan.left, variables=processes.finding_our_packages(os.environ))
    if done.code != 0:
        part.finish("error", f"nothing was compiled: {done.last_error or done.failure}")
        return
    row = json.loads(done.output.strip().splitlines()[-1])
    part.add(row.pop("line"), **row)
    part.finish("ok")


def correctness(part: Part) -> None:
    """A row for each rung and dtype: how many comparisons, and the worst in units of the tolerance.

    A kernel that reads where it must not leaves a device on which nothing works any more. The part ends there: what it
    would compare next has not run, which is not the same as wrong. It also ends by itself when its time is over, so
    that a tool which watches it can say what it has seen.
    """
    broken, over = "", False
    for check in _checks(part.plan):
        if over := part.plan.left <= 0:
            part.skip("the other checks", NO_TIME)
            break
        _compared(part, check)
        if not part.rows[-1]["ok"] and (said := device_error()):
            broken = f"after that the device does not work any more ({said}): what comes next in this part has not run"
            part.skip("the other checks", broken)
            break
    if part.plan.tiny and not broken and not over:
        part.skip("equivalence", "`groundup check 4` makes these comparisons, on the emulator, too")
    wrong = [f"{row['what']} {row['rung']}: {row['worst']}" for row in part.rows if not row["ok"]]
    ending = [*wrong, *filter(None, [broken, NO_TIME if over else ""])]
    part.finish("failed" if wrong else "out of time" if over else "ok", "; ".join(ending))


def _checks(plan: GpuPlan) -> Iterator[RungCheck]:
    """What the part compares; nothing is computed until a check runs."""
    stage, reference = load_stage(STAGES[3]), load_stage(STAGES[1])
    tiny, quick = plan.tiny, plan.quick
    sizes = SMALL_SIZES if tiny else SIZES
    for dtype in ("float32", "float64"):
        images = image_rung_checks(stage, reference, dtype, tiny)
        for check in (*rung_checks(stage, reference, dtype, sizes), *images):
            repeated = tiny and check.what in REPEATED and check.rung.startswith("in use")
            if not repeated and (dtype == "float32" or not (tiny or quick) or check.what in STEPS):
                yield check
    for dtype in () if tiny or quick else ("float64", "float32"):

        def everything(dtype: str = dtype) -> Any:
            return check_stage(stage, reference, dtype, steps=10).comparisons

        yield RungCheck("equivalence", "all", dtype, everything)


def device_error() -> str:
    """What the device answers to a wait for it, where that fails; "" where it works."""
    try:
        BACKEND.cuda.synchronize()
    except Exception as error:  # the driver's own kinds
        return f"{type(error).__name__}: {error}"
    return ""


def _compared(part: Part, check: RungCheck) -> None:
    found = check.run()
    worst = max(found, key=lambda comparison: comparison.tolerances)
    said = describe_tolerances(worst.tolerances) if worst.ok else str(worst)
    part.add(
        f"{check.what}, {check.rung}, {check.dtype}: {'ok' if worst.ok else 'WRONG'}, {len(found)} comparisons, {said}",
        what=check.what, rung=check.rung, dtype=check.dtype, ok=worst.ok, comparisons=len(found),
        tolerances=worst.tolerances, worst=str(worst),
    )  # fmt: skip


def measured(name: str, parts: Mapping[str, Callable[[GpuPlan], Any]] = gpu_plan.PARTS) -> Callable[[Part], None]:
    """The part of that name, which yields what it finds."""
    return lambda part: keep(part, parts[name](part.plan))


def timed_commands(part: Part) -> None:
    """A row for each command: the seconds that somebody waits for it."""
    keep(part, commands.commands(part.plan, part.folder))


def keep(part: Part, things: Iterable[gpu_plan.Found | gpu_plan.LeftOut]) -> None:
    """Keep each measurement as soon as it is made."""
    wrong = []
    for found in things:
        if isinstance(found, gpu_plan.LeftOut):
            part.skip(found.what, found.reason)
            continue
        if found.wrong:
            wrong.append(found.wrong)
            print(f"  WRONG: {found.wrong}", flush=True)
        if found.row is not None:
            part.add(found.line, **found.row)
    part.finish("failed" if wrong else "ok", "; ".join(wrong))


PARTS: dict[str, Callable[[Part], None]] = {
    "device": device,
    "compile": compile_kernels,
    "correctness": correctness,
    **{name: measured(name) for name in gpu_plan.PARTS},
    "suite": suite,
    "sanitizer": sanitizer,
    "commands": timed_commands,
    **{name: measured(name, networks.PARTS) for name in networks.PARTS},
    **{name: measured(name, fastest_pytorch.PARTS) for name in fastest_pytorch.PARTS},
}
