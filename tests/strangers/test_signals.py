"""Ctrl-C and SIGTERM at any moment of any command: no traceback, no torn file, and no process that stays behind.

The wide cases are 40 moments from 0 to 3 seconds after the program has begun, half of them in the first half second, at
which one command after the other gets one signal or the other.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.interrupts import hear
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import os, groundup.entry as entry; os.write(1, b'begun\\n'); entry.main()"
COMMANDS = {
    "train": "train stage3 --epochs 500 --run-dir run --checkpoint-every 5",
    "train on stage 1": "train stage1 --epochs 500 --run-dir run",
    "race": "race --out race",
    "check": "check",
    "bench": "bench --quick --stages 2,3 --out bench",
    "learn": "learn --folder course watch",
    "studio": "studio kernel --no-browser --port 0",
    "profile": "profile 2,3 --out profile",
    "lens": "lens tiled_16 --size 256 --blocks 64",
    "doctor": "doctor",
}
EARLY, LATE = 20, 20
MOMENTS = [0.5 * i / EARLY for i in range(EARLY)] + [0.5 + 2.5 * i / LATE for i in range(LATE)]
PATIENCE = 600.0
GOES = 15.0
"""Seconds in which what a process has started has to be gone after it."""

INTERRUPTED, TERMINATED = 2, -signal.SIGTERM
ENDED_BEFORE = {0, 1}

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in Linux's /proc")


def cases() -> list[object]:
    """(command, signal, moment): each moment with another command; a few of them are for every run of the tests."""
    found = []
    for number, moment in enumerate(MOMENTS):
        # The second signal comes a round of the commands later, so that each command gets both.
        names = list(COMMANDS)
        name, number_of_signal = names[number % len(names)], (number // len(names)) % 2
        marks = [] if number in (16,) else [wide]
        one = signal.SIGTERM if number_of_signal else signal.SIGINT
        found.append(pytest.param(name, one, moment, marks=marks, id=f"{name}-{one.name}-{moment:.3f}"))
    return found


@pytest.mark.parametrize(("command", "one", "moment"), cases())
def test_a_signal_at_any_moment_ends_a_command_without_a_traceback(
    command: str, one: signal.Signals, moment: float, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    variables = {"GROUNDUP_TEST_MARK": mark, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "COLUMNS": "200"}
    if command == "learn":
        made = [sys.executable, "-c", "from groundup.entry import main; main()", "learn", "--folder", "course", "start"]
        subprocess.run(made, cwd=tmp_path, env=os.environ | variables, check=True, capture_output=True)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *COMMANDS[command].split()],
        cwd=tmp_path,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.005 + moment)
        process.send_signal(one)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    said = out + err
    assert "Traceback" not in said, said
    assert "Exception ignored" not in said, said
    ends = {INTERRUPTED} if one == signal.SIGINT else {INTERRUPTED, TERMINATED}
    assert process.returncode in ends | ENDED_BEFORE, (process.returncode, said)
    if one == signal.SIGINT and process.returncode == INTERRUPTED:
        assert re.search("interrupted|stopped", err, re.IGNORECASE), said
    until = time.monotonic() + GOES
    while left := started_by(mark):
        assert time.monotonic() < until, left
        time.sleep(0.05)
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    for path in tmp_path.rglob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            json.loads(line)


def started_by(mark: str) -> list[str]:
    """The command lines of the processes that have this mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                marked = mark.encode() in (folder / "environ").read_bytes()
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has ended, or is another user's
                continue
            if marked and line:
                found.append(f"{folder.name} {line}")
    return found
