"""Every kernel once more, small, under NVIDIA's compute-sanitizer: it watches each access on the device.

    memcheck     reads and writes outside of the arrays, or misaligned
    racecheck    threads of a block that meet in shared memory without a barrier between them
    initcheck    reads of global memory that nothing has written
    synccheck    barriers that not all threads reach

What runs is the report's correctness part at its smallest sizes.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from ..backend import BACKEND
from .part import NO_GPU, Part
from .process import run_limited

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""The exit code that compute-sanitizer is asked for where it finds something."""

SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: .*")
SHOWN = 40
"""Lines of what it printed that are kept where something was found."""


def find() -> str | None:
    """The program: on the PATH, or in the usual places of a CUDA toolkit; None where it is in neither."""
    on_path = shutil.which("compute-sanitizer")
    if on_path:
        return on_path
    toolkits = sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    places = [toolkit / folder / "compute-sanitizer" for toolkit in toolkits for folder in ("bin", "compute-sanitizer")]
    return next((str(place) for place in places if place.is_file()), None)


def run(part: Part) -> None:
    """A row for each tool: whether it found something, and its summary."""
    program = find()
    if BACKEND.emulated or program is None:
        reason = NO_GPU if BACKEND.emulated else "compute-sanitizer is neither on the PATH nor in /usr/local/cuda*/bin"
        part.skip("compute-sanitizer", reason)
        part.finish("skipped", reason)
        return
    wrong = []
    for i, tool in enumerate(TOOLS):
        seconds = part.left / (len(TOOLS) - i)
        job = [sys.executable, "-m", "stage4_numba_cuda.gpu_report", "--part", "correctness", "--tiny"]
        command = [program, "--tool", tool, "--error-exitcode", str(FOUND), *job, "--seconds", str(round(seconds))]
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            code = run_limited(command, seconds, output)
            output.seek(0)
            text = output.read()
        summary = next(iter(SUMMARY.findall(text)), "no summary")
        clean = code == 0
        ending = summary if code is not None else f"stopped after {seconds:.0f} s"
        part.add(
            f"{tool}: {'clean' if clean else ending}",
            tool=tool, clean=clean, exit_code=code, summary=ending,
            output=[] if clean else text.splitlines()[:SHOWN] + text.splitlines()[-SHOWN:],
        )  # fmt: skip
        if not clean:
            wrong.append(f"{tool}: {ending}")
    part.finish("failed" if wrong else "ok", "; ".join(wrong))
