"""The GPU report is ended from outside: whatever it has started ends with it, and what was measured is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from groundup.gpu_report.report import JSON_NAME, PART_NAME
from shared.machine import processes
from tests.interrupts import hear
from tests.wide import wide

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

PATIENCE = 600.0
"""Seconds, on a busy machine."""


def children_of(pid: int) -> list[int]:
    """Its children, their children, and so on."""
    try:
        own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in own for each in (child, *children_of(child))]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended_by(sent: int, part: str, depth: int, out: Path) -> int:
    """Start a report of this part, send it the signal when the part is at work, and wait until all that was started has
    ended. Returns its exit code."""
    command = [sys.executable, "-m", "groundup.gpu_report", "--only", part, "--out", str(out)]
    variables = os.environ | {"GROUNDUP_CUDA": "emulator"}
    with subprocess.Popen(
        command, cwd=processes.ROOT, env=variables, stdout=subprocess.PIPE, text=True, preexec_fn=hear
    ) as report:
        assert report.stdout is not None
        try:
            for line in report.stdout:
                if line.startswith("  matmul, naive" if part == "correctness" else f"{part}: up to"):
                    break
            last = time.monotonic() + PATIENCE
            while len(started := children_of(report.pid)) < depth and time.monotonic() < last:
                time.sleep(0.05)
            assert len(started) >= depth
            report.send_signal(sent)
            code = report.wait(PATIENCE)
            last = time.monotonic() + PATIENCE
            while any(map(runs, started)) and time.monotonic() < last:
                time.sleep(0.05)
            assert not any(map(runs, started))
        finally:
            report.kill()
    return code


@wide
@pytest.mark.parametrize(("part", "sent", "depth"), [("suite", signal.SIGTERM, 2), ("correctness", signal.SIGINT, 1)])
def test_what_was_started_ends_with_the_report(part: str, sent: int, depth: int, tmp_path: Path) -> None:
    """depth: how many processes there are below the report's: its part, and what the part has started."""
    assert ended_by(sent, part, depth, tmp_path) == 2
    document: dict[str, Any] = json.loads((tmp_path / JSON_NAME).read_text())
    assert document["complete"] is False
    assert {name: found["status"] for name, found in document["parts"].items()} == {"device": "ok", part: "interrupted"}
    if part == "correctness":
        assert document["parts"][part]["rows"][0]["rung"] == "naive"


@wide
def test_a_report_that_is_killed_leaves_no_part_behind_and_the_rows_of_the_part(tmp_path: Path) -> None:
    assert ended_by(signal.SIGKILL, "correctness", 1, tmp_path) == -signal.SIGKILL
    assert list(json.loads((tmp_path / JSON_NAME).read_text())["parts"]) == ["device"]
    part = json.loads((tmp_path / PART_NAME).read_text())
    assert (part["status"], part["rows"][0]["rung"]) == ("running", "naive")  # it has not gone on to its end
