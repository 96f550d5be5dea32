"""The test suite's part about stage 4, on this backend: the same tests that run on the emulator everywhere else."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from shared.contract import STAGES
from shared.machine.hardware import usable_cores

from ..backend import BACKEND, VARIABLE
from .part import Part
from .process import ROOT, run_limited

TESTS = ("tests", "-k", "stage4", "-m", "not slow")
MOST_WORKERS = 8
"""Each has a context on the device of its own, of about half a gigabyte."""

MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
OURS = ("shared", "groundup", "cuda_emulator", "tests", *STAGES)

SHOWN = 30
"""Lines of pytest's output that are kept where something failed."""


def run(part: Part, tests: Sequence[str] = TESTS) -> None:
    """How many passed, failed and were skipped; the names of those that failed, and why tests were skipped."""
    missing = [name for name in ("pytest",) if importlib.util.find_spec(name) is None]
    missing += [] if (ROOT / "tests").is_dir() else ["the folder tests of a checkout"]
    if missing:
        part.skip("the suite", f"{missing[0]} is not here")
        part.finish("skipped", f"{missing[0]} is not here")
        return
    os.environ[VARIABLE] = BACKEND.name  # found by pytest and its workers, which must not choose again
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        workers = min(usable_cores() // 2, MOST_WORKERS)
        parallel = ["-n", str(workers)] if workers > 1 and importlib.util.find_spec("xdist") else []
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            f"--junitxml={results}",
            *parallel,
        ]
        with (Path(folder) / "output").open("w+", errors="replace") as output:
            code = run_limited([sys.executable, "-m", "pytest", *tests, *options], part.left, output)
            output.seek(0)
            lines = output.read().splitlines()
        counts, failures, reasons = _read(results)
    if code is None:
        error = f"stopped after {part.plan.seconds:.0f} s"
        part.add(f"suite: {error}", **counts, failures=failures, skips=reasons, output=lines[-SHOWN:])
        part.finish("out of time", error)
        return
    said = ", ".join(f"{count} {what}" for what, count in counts.items()) or f"pytest ended with code {code}"
    well = counts.get("passed", 0) > 0 and counts["failed"] == 0
    part.add(f"suite: {said}", **counts, failures=failures, skips=reasons, output=[] if well else lines[-SHOWN:])
    part.finish("ok" if well else "failed", "" if well else said)


def _read(results: Path) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """(passed, failed, skipped), the names of the failed tests, and for each reason to skip how many did for it."""
    if not results.is_file():
        return {}, [], {}
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures: list[str] = []
    reasons: dict[str, int] = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        skipped, error = case.find("skipped"), case.find("error")
        missing = MISSING.search(error.text or "") if error is not None else None
        if missing and missing[1] not in OURS:
            # A file of tests that cannot even be read without a package of the development tools
            counts["skipped"] += 1
            reason = f"needs the package {missing[1]}"
            reasons[reason] = reasons.get(reason, 0) + 1
        elif case.find("failure") is not None or error is not None:
            counts["failed"] += 1
            failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif skipped is not None:
            counts["skipped"] += 1
            reason = skipped.get("message") or "no reason"
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            counts["passed"] += 1
    return counts, failures, reasons
