"""The parts of the GPU report: each in a process of its own, its rows in a file that is written after every row.

    device         the GPU, its driver and the versions; begins with a trial kernel
    compile        what the parts after it launch, compiled side by side
    correctness    every rung against float64, those of convolutional networks, too; on a GPU all operations against
                   stage 2
    ladder, launches, steps, training
                   measured by shared/bench; shared/bench/on_gpu/gpu_plan.py says at which sizes
    suite          the tests of stage 4
    sanitizer      compute-sanitizer over every kernel
    commands       how long somebody waits for a command: commands.py
    networks, network_training
                   convolutional networks: networks.py

A kernel that reads where it must not takes the whole process's device with it. A part that crashes or runs out of time
loses only the row that it was at.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from groundup.doctor.survey import trial
from groundup.gpu_report import commands, networks, suite_outcomes
from shared.bench.on_gpu import gpu_plan
from shared.bench.on_gpu.gpu_plan import NO_GPU, GpuPlan
from shared.bench.records.results import write_json
from shared.checks.equivalence import check_stage
from shared.checks.image_rungs import image_rung_checks
from shared.checks.rungs import SIZES, SMALL_SIZES, RungCheck, rung_checks
from shared.checks.tolerance import describe_tolerances
from shared.contract import STAGES, load_part, load_stage
from shared.machine import processes
from shared.machine.environment import environment, nvidia_gpus
from shared.machine.gpu import free_memory
from shared.machine.hardware import usable_cores

_backend = load_part(STAGES[3], "backend")
BACKEND, VARIABLE = _backend.BACKEND, _backend.VARIABLE
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

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""The exit code that compute-sanitizer is asked for where it finds something."""

TO_SUM_UP = 12.0
"""Seconds for a tool to end with its summary after its last check, which takes up to half of them."""

SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: .*")
TESTS = (
    *("tests/stage4_numba_cuda", "tests/floors", "tests/shared/checks", "tests/shared/training"),
    *("tests/shared/bench/kinds", "tests/shared/bench/on_gpu"),
    *("-k", "stage4 or stage_4 or on_gpu", "-m", "not wide"),
)
"""What runs stage 4's kernels. Many of them are marked slow, because they are slow where kernels are emulated."""

REHEARSED = ("tests/stage4_numba_cuda/test_arrays.py",)
"""The tests of a rehearsal on the emulator. A few are enough: `make test` runs all of them there."""

MOST_WORKERS, MIB_OF_A_WORKER = 8, 1024
"""Each has a context on the device of its own, of about half a gigabyte, and arrays."""

MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
OURS = ("shared", "groundup", "cuda_emulator", "tests", *STAGES)
STEPS = ("step", "network step", "resident", "network resident")
"""Of the correctness part, what also a tiny or a quick one has in float64."""

REPEATED = ("matmul", "convolution gradients")
"""Of the correctness part, those whose rung in use is one of the others: a tiny one leaves it out."""

NO_TIME = "there was no time left"

TO_END = 4.0
"""Seconds in which the processes that compile begin and end."""

SHOWN = 40
"""Lines of a program's output that are kept where something failed."""


class Part:
    """The rows of one part, kept in a file of JSON.

    file: None keeps them in memory; report: the names of all parts of the report that this one belongs to
    """

    def __init__(self, plan: GpuPlan, file: Path | None = None, report: Sequence[str] = ()) -> None:
        self.plan, self.file, self.report = plan, file, report
        self.rows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}
        self.skipped: list[str] = []
        self.status, self.error = "running", ""

    def add(self, line: str = "", **row: Any) -> None:
        """Keep a row. line: the same for the screen."""
        self.rows.append(row | ({"emulated": True} if BACKEND.emulated else {}))
        if line:
            print(f"  {line}{'  (emulated on the CPU)' if BACKEND.emulated else ''}", flush=True)
        self.write()

    def skip(self, what: str, reason: str) -> None:
        """Keep that something was left out, and why."""
        self.skipped.append(f"{what}: skipped: {reason}")
        print(f"  {self.skipped[-1]}", flush=True)
        self.write()

    def finish(self, status: str, error: str = "") -> None:
        """How it ended: ok, failed (something was computed wrongly), skipped or error, with its text."""
        self.status, self.error = status, error
        self.write()

    def write(self) -> None:
        """Bring the file up to date. Where that fails the part goes on, since the disk may have room again for its next
        row; what it has found stands on the screen."""
        if self.file is None:
            return
        try:
            write_json(self.file, self.as_dict())
        except OSError as error:
            print(f"  {self.file} cannot be written: {error.strerror or error}", file=sys.stderr, flush=True)

    @property
    def folder(self) -> Path:
        """For what a part writes beside its rows."""
        return self.file.parent if self.file is not None else Path(tempfile.gettempdir())

    def as_dict(self) -> dict[str, Any]:
        """The part as the report has it."""
        plan = {name: getattr(self.plan, name) for name in ("seconds", "quick", "tiny")}
        own = {"status": self.status, "error": self.error, "taken": round(self.plan.seconds - self.plan.left, 2)}
        return own | plan | {"emulated": BACKEND.emulated} | self.facts | {"skipped": self.skipped, "rows": self.rows}


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
    found = BACKEND.cuda.get_current_device()
    name = found.name.decode() if isinstance(found.name, bytes) else str(found.name)
    facts: dict[str, Any] = {"name": name, "compute_capability": ".".join(map(str, found.compute_capability))}
    if not BACKEND.emulated:
        facts |= {key: getattr(found, attribute, None) for key, attribute in ATTRIBUTES.items()}
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
    command = [sys.executable, "-m", "groundup.compiling.beforehand", ",".join(part.report), f"{seconds:.1f}"]
    done = processes.run(command, part.plan.left, folder=processes.ROOT)
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
    """Keep each thing as soon as it is found."""
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
    job = [
        sys.executable,
        "-m",
        "groundup.gpu_report",
        "--part",
        "correctness",
        "--tiny",
        "--seconds",
        f"{max(seconds - TO_SUM_UP, seconds / 2):.0f}",
    ]

    def watch(tool: str) -> processes.Finished:
        command = [program, "--tool", tool, "--error-exitcode", str(FOUND), *job]
        return processes.run(command, seconds, folder=processes.ROOT, together=True)

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


def suite(part: Part, tests: Sequence[str] | None = None) -> None:
    """Run the tests of stage 4, and count those that passed, failed and were skipped, with the names of the failed ones
    and the reasons of the skips. If the time ends before the suite, the tests that have ended are counted.

    tests: arguments of pytest; None: TESTS, in a rehearsal REHEARSED
    """
    if tests is None:
        tests = REHEARSED if part.plan.tiny else TESTS
    missing = [name for name in ("pytest",) if importlib.util.find_spec(name) is None]
    missing += [] if (processes.ROOT / "tests").is_dir() else ["the folder tests of a checkout"]
    if missing:
        part.skip("the suite", f"{missing[0]} is not here")
        part.finish("skipped", f"{missing[0]} is not here")
        return
    variables = os.environ | {"GROUNDUP_CUDA": BACKEND.name}  # so that pytest's workers do not choose again
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.jsonl"
        room = free_memory()
        most = MOST_WORKERS if room is None else min(MOST_WORKERS, room // MIB_OF_A_WORKER)
        workers = min(usable_cores() // 2, most)
        parallel = ["-n", str(workers)] if workers > 1 and importlib.util.find_spec("xdist") else []
        options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        command = [sys.executable, "-m", "pytest", "-p", suite_outcomes.__name__, *tests, *options, *parallel]
        variables |= {suite_outcomes.VARIABLE: str(file)}
        done = processes.run(command, part.plan.left, folder=processes.ROOT, variables=variables, together=True)
        counts, failures, reasons = counted(suite_outcomes.read(file))
    last = done.output.splitlines()[-SHOWN:]
    said = ", ".join(f"{count} {what}" for what, count in counts.items()) or f"pytest ended with code {done.code}"
    if done.code is None:
        error = f"stopped after {part.plan.seconds:.0f} s" + (f": {said} until then" if counts else "")
        part.add(f"suite: {error}", **counts, failures=failures, skips=reasons, output=last)
        part.finish("out of time", error)
        return
    well = counts.get("passed", 0) > 0 and counts["failed"] == 0
    part.add(f"suite: {said}", **counts, failures=failures, skips=reasons, output=[] if well else last)
    part.finish("ok" if well else "failed", "" if well else said)


def counted(outcomes: suite_outcomes.Outcomes | None) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """(passed, failed, skipped), the names of the failed tests, and for each reason to skip how many tests gave it."""
    if outcomes is None:
        return {}, [], {}
    failures, reasons = [], Counter(outcomes.skipped.values())
    for test, why in outcomes.failed.items():
        missing = MISSING.search(why)
        if missing and "::" not in test and missing[1] not in OURS:
            # a file of tests that cannot even be read without a package of the development tools
            reasons[f"needs the package {missing[1]}"] += 1
        else:
            failures.append(test)
    counts = {"passed": outcomes.passed, "failed": len(failures), "skipped": reasons.total()}
    return counts, failures, dict(reasons)


PARTS: dict[str, Callable[[Part], None]] = {
    "device": device,
    "compile": compile_kernels,
    "correctness": correctness,
    **{name: measured(name) for name in gpu_plan.PARTS},
    "suite": suite,
    "sanitizer": sanitizer,
    "commands": timed_commands,
    **{name: measured(name, networks.PARTS) for name in networks.PARTS},
}
