"""The part of the GPU report about compute-sanitizer, which watches every kernel for errors that a result may not show.

It has four tools: memcheck (reads and writes outside an array), racecheck (races in shared memory), initcheck (reads of
what nobody has written) and synccheck (wrong barriers). Each runs the correctness part in a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from groundup.gpu_report.part import BACKEND, NO_TIME, SHOWN, Part
from shared.bench.on_gpu.gpu_plan import NO_GPU
from shared.machine import processes

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""The exit code that compute-sanitizer is asked for where it finds something."""

TO_SUM_UP = 12.0
"""Seconds for a tool to end with its summary after its last check, which takes up to half of them."""

SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: .*")


def find_sanitizer() -> str | None:
    """The program: on the PATH, or in the usual places of a CUDA toolkit; None where it is in neither."""
    on_path = shutil.which("compute-sanitizer")
    if on_path:
        return on_path
    toolkits = sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    places = [toolkit / folder / "compute-sanitizer" for toolkit in toolkits for folder in ("bin", "compute-sanitizer")]
    return next((str(place) for place in places if place.is_file()), None)


def sanitizer(part: Part) -> None:
    """The correctness part at its smallest sizes under each tool of compute-sanitizer: a row for each tool.

    The tools run side by side, so that each has all of the part's time.
    """
    program = find_sanitizer()
    if BACKEND.emulated or program is None:
        reason = NO_GPU if BACKEND.emulated else "compute-sanitizer is neither on the PATH nor in /usr/local/cuda*/bin"
        part.skip("compute-sanitizer", reason)
        part.finish("skipped", reason)
        return
    seconds = part.plan.left
    job = processes.python(
        "-m",
        "groundup.gpu_report",
        "--part",
        "correctness",
        "--tiny",
        "--seconds",
        f"{max(seconds - TO_SUM_UP, seconds / 2):.0f}",
    )

    def watch(tool: str) -> processes.Finished:
        command = [program, "--tool", tool, "--error-exitcode", str(FOUND), *job]
        return processes.run(command, seconds, variables=processes.finding_our_packages(os.environ), together=True)

    wrong = []
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        for tool, done in zip(TOOLS, pool.map(watch, TOOLS), strict=True):
            row = verdict_of(tool, done, seconds)
            part.add(f"{tool}: {row['summary']}, after {row['checks']} checks", **row)
            wrong += [] if row["clean"] else [f"{tool}: {row['summary']}"]
    part.finish("failed" if wrong else "ok", "; ".join(wrong))


def verdict_of(tool: str, done: processes.Finished, seconds: float) -> dict[str, Any]:
    """The row of a tool. found: whether it has found something, or a check was wrong, which is not the same as not
    clean: a tool that was stopped, or that cannot watch this device, has found nothing, and cleared nothing."""
    lines = done.output.splitlines()
    wrong = sum(": WRONG, " in line for line in lines)
    checks = wrong + sum(": ok, " in line for line in lines)
    clean = done.code == 0 and bool(checks)
    summary = next(iter(SUMMARY.findall(done.output)), "")
    trouble = next((line.strip("= ") for line in lines if line.startswith("=====") and "rror" in line), "")
    if done.code is None:
        ending = f"stopped after {seconds:.0f} s"
    elif clean:
        ending = "clean"
    elif NO_TIME in done.output and done.code != FOUND:
        ending = f"{summary or 'no summary'}, {NO_TIME} for the other checks"
    else:
        ending = f"{(summary if checks else '') or trouble or 'no summary'}, exit code {done.code}"
    return {
        "tool": tool, "clean": clean, "found": done.code == FOUND or bool(wrong), "checks": checks,
        "exit_code": done.code, "summary": ending, "output": [] if clean else lines[:SHOWN] + lines[-SHOWN:],
    }  # fmt: skip
