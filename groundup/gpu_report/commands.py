"""The part of the GPU report about what somebody waits for: commands of groundup, each as it is typed.

    first step    of a second process, after its imports
    groundup check 4
    groundup bench --quick

A row has the seconds of the clock on the wall, whatever the command did in them. Kernels that were compiled before lie
on disk; what a command compiles itself is in its time, and its own line about that is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shared.bench.on_gpu.gpu_plan import NO_GPU, TINY_CASE, Found, GpuPlan, LeftOut
from shared.contract import STAGES, stage_facts
from shared.machine import processes
from shared.numbers import duration

FIRST_STEP = "first step"
NETWORK, BATCH = (784, 128, 10), 64

BENCH = "bench-quick"
"""The folder for the results of `groundup bench --quick`, beside the report's own."""

LINES = 12
"""Of a command that failed, so many of its last lines are kept."""


class Command(NamedTuple):
    """arguments: of groundup; rehearsed: those of a rehearsal, which takes seconds"""

    arguments: Sequence[str]
    rehearsed: Sequence[str]


COMMANDS = (
    Command(("check", "4"), ("check", "2")),
    Command(("bench", "--quick"), ("bench", "--quick", "--stages", "2", "--only", "ladders")),
)


def commands(plan: GpuPlan, out: Path) -> Iterator[Found | LeftOut]:
    """A row for each command. out: where the results of the bench go"""
    emulated = stage_facts(STAGES[3]).get("backend") != "gpu"
    if emulated:
        yield LeftOut("the commands at their full size", NO_GPU)
    yield _first_step(plan)
    for command in COMMANDS:
        arguments = command.rehearsed if plan.tiny else command.arguments
        name = " ".join(("groundup", *arguments))
        if plan.left < 1:
            yield LeftOut(name, "there is no time left")
            continue
        into = ["--out", str(out / BENCH)] if arguments[0] == "bench" else []
        done, seconds = _timed(plan, processes.python("-m", "groundup", *arguments, *into))
        told = next((line for line in done.errors.splitlines() if "beforehand" in line), "")
        yield _found(name, done, seconds, compiled=told)


def _first_step(plan: GpuPlan) -> Found:
    """Of the second of two processes: the first may have to compile."""
    sizes, batch = (TINY_CASE.layer_sizes, TINY_CASE.batch) if plan.tiny else (NETWORK, BATCH)
    module = "shared.bench.on_gpu.first_step"
    command = processes.python("-m", module, "-".join(map(str, sizes)), str(batch))
    before, _ = _timed(plan, command)
    done, seconds = _timed(plan, command)
    if before.code != 0 or done.code != 0:
        return _found(FIRST_STEP, before if before.code != 0 else done, seconds)
    times, first = (json.loads(each.output.strip().splitlines()[-1]) for each in (done, before))
    more = {"import": times["import"], "second": times["second"], "of_the_first_process": first["first"]}
    said = (
        f"{duration(times['first'])} after imports of {duration(times['import'])}; the next {duration(times['second'])}"
    )
    row = {"what": FIRST_STEP, "ok": True, "seconds": times["first"], "exit_code": 0, "said": said, **more}
    return Found(f"{FIRST_STEP} of a second process: {said}", row)


def _timed(plan: GpuPlan, command: Sequence[str]) -> tuple[processes.Finished, float]:
    before = plan.left
    variables = processes.finding_our_packages(os.environ)
    done = processes.run(command, max(before, 1.0), folder=processes.ROOT, variables=variables)
    return done, before - plan.left


def _found(name: str, done: processes.Finished, seconds: float, **more: str) -> Found:
    """The row of a command; of one that failed with its last lines."""
    ok = done.code == 0
    said = "" if ok else done.failure or done.last_error or f"exit code {done.code}"
    output = [] if ok else [*done.output.splitlines()[-LINES:], *done.errors.splitlines()[-LINES:]]
    row = {"what": name, "ok": ok, "seconds": seconds, "exit_code": done.code, "said": said, "output": output, **more}
    line = f"{name}: {duration(seconds)}" + ("" if ok else f", FAILED: {said}")
    return Found(line, row, "" if ok else f"{name}: {said}")
