"""A plugin of pytest that writes the outcome of each test to a file as soon as the test has ended.

So the outcomes are known also if the run is stopped before its end:

    GROUNDUP_SUITE_OUTCOMES=FILE pytest -p groundup.gpu_report.suite_outcomes

A line is one JSON object: the test, its outcome (passed, failed or skipped) and the reason for a failure or a skip. A
test that has not ended has no line. A test whose clean-up fails has two lines; `read` counts it as failed.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "GROUNDUP_SUITE_OUTCOMES"


@dataclass
class Outcomes:
    """passed: how many tests; failed, skipped: {name of the test: why}"""

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class Writer:
    """The plugin's hooks. file: where each outcome goes"""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test has ended: its preparation, its call, or what comes after it."""
        if report.outcome == "skipped":
            expected = getattr(report, "wasxfail", None)  # a failure that the test expects
            why = expected if expected is not None else str(report.longrepr[2]).removeprefix("Skipped: ")
            self._write(report.nodeid, "skipped", why)
        elif report.outcome == "failed":
            self._write(report.nodeid, "failed", str(report.longrepr))
        elif report.when == "call":
            self._write(report.nodeid, "passed", "")

    def pytest_collectreport(self, report: Any) -> None:
        """A file of tests was read; or it was skipped or could not be read, which counts as one test."""
        if report.outcome == "skipped":
            self._write(report.nodeid, "skipped", str(report.longrepr[2]).removeprefix("Skipped: "))
        elif report.outcome == "failed":
            self._write(report.nodeid, "failed", str(report.longrepr))

    def _write(self, test: str, outcome: str, why: str) -> None:
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(json.dumps({"test": test, "outcome": outcome, "why": why}) + "\n")


def pytest_configure(config: Any) -> None:
    """Write outcomes, but not in the workers of pytest-xdist, whose outcomes the process that started them gets."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(Path(os.environ[VARIABLE])))


def read(file: Path) -> Outcomes | None:
    """The outcomes in the file; None if there is no file. Its last line may be cut."""
    if not file.is_file():
        return None
    found: dict[str, tuple[str, str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            one = json.loads(line)
            if found.get(one["test"], ("", ""))[0] != "failed":
                found[one["test"]] = one["outcome"], one["why"]
    outcomes = Outcomes()
    for test, (outcome, why) in found.items():
        if outcome == "passed":
            outcomes.passed += 1
        else:
            {"failed": outcomes.failed, "skipped": outcomes.skipped}[outcome][test] = why
    return outcomes
