"""The part of the GPU report about the tests of stage 4: which run, and how many passed, failed and were skipped.

suite_outcomes.py writes down how each test ends, so that a suite that is stopped has counted the tests before.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from groundup.gpu_report import suite_outcomes
from groundup.gpu_report.part import BACKEND, SHOWN, Part
from shared.contract import STAGES
from shared.machine import processes
from shared.machine.gpu import free_memory
from shared.machine.hardware import usable_cores

TESTS = (
    *("tests/stage4_numba_cuda", "tests/floors", "tests/shared/checks", "tests/shared/training"),
    *("tests/shared/bench/kinds", "tests/shared/bench/on_gpu"),
    *("-k", "stage4 or stage_4 or on_gpu", "-m", "not wide"),
    # a machine made of programs, which stands in for a GPU where there is none
    "--ignore=tests/stage4_numba_cuda/machine",
)
"""What runs stage 4's kernels: of a parametrised test each pair of values once, as in `make test`."""

REHEARSED = ("tests/stage4_numba_cuda/test_arrays.py",)
"""The tests of a rehearsal on the emulator. A few are enough: `make test` runs all of them there."""

MOST_WORKERS, MIB_OF_A_WORKER = 8, 1024
"""Each has a context on the device of its own, of about half a gigabyte, and arrays."""

MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
OURS = ("shared", "groundup", "cuda_emulator", "tests", *STAGES)


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
    # The backend is named so that pytest's workers do not choose again.
    variables = processes.finding_our_packages(os.environ) | {"GROUNDUP_CUDA": BACKEND.name}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.jsonl"
        room = free_memory()
        most = MOST_WORKERS if room is None else min(MOST_WORKERS, room // MIB_OF_A_WORKER)
        workers = min(usable_cores() // 2, most)
        parallel = ["-n", str(workers)] if workers > 1 and importlib.util.find_spec("xdist") else []
        options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        command = processes.python("-m", "pytest", "-p", suite_outcomes.__name__, *tests, *options, *parallel)
        variables |= {suite_outcomes.VARIABLE: str(file)}
        done = processes.run(command, part.plan.left, folder=processes.ROOT, variables=variables, together=True)
        counts, failures, reasons = counted(suite_outcomes.read(file))
    last = done.output.splitlines()[-SHOWN:]
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or f"pytest ended with code {done.code}"
    if done.code is None:
        error = f"stopped after {part.plan.seconds:.0f} s" + (f": {said} until then" if counts else "")
        part.add(f"suite: {error}", **counts, failures=failures, skips=reasons, output=last)
        part.finish("out of time", error)
        return
    well = counts.get("passed", 0) > 0 and counts["failed"] == 0
    part.add(f"suite: {said}", **counts, failures=failures, skips=reasons, output=[] if well else last)
    part.finish("ok" if well else "failed", "" if well else said)


def counted(outcomes: suite_outcomes.Outcomes | None) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """(passed, failed, skipped), the failed tests with what failed, and for each reason to skip how many tests gave
    it."""
    if outcomes is None:
        return {}, [], {}
    failures, reasons = [], Counter(outcomes.skipped.values())
    for test, why in outcomes.failed.items():
        missing = MISSING.search(why)
        if missing and "::" not in test and missing[1] not in OURS:
            # a file of tests that cannot even be read without a package of the development tools
            reasons[f"needs the package {missing[1]}"] += 1
        else:
            said = re.search(r"^E +(.+)", why, re.MULTILINE)
            failures.append(f"{test}: {said[1]}" if said else test)
    counts = {"passed": outcomes.passed, "failed": len(failures), "skipped": reasons.total()}
    return counts, failures, dict(reasons)
