"""A build that is ended, by whatever signal and in whatever program, leaves no compiler behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

import pytest

from shared.machine.processes import finding_our_packages, python
from stage3_c import compiler
from tests.interrupts import hear
from tests.strangers.test_signals import started_by
from tests.wide import widely

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in Linux's /proc")

LIBRARY = ["-c", "from stage3_c import build; build.build()"]
PROGRAM = ["-m", "groundup", "train", "stage3", "--epochs", "1"]

SLOW = """#!/bin/sh
case "$*" in
    *--version*) echo slow compiler 1 ;;
    *) sleep 301 & wait ;;
esac
"""


def cc(folder: Path) -> str:
    path = folder / "slow-cc"
    path.write_text(SLOW)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "one"),
    widely([(PROGRAM, signal.SIGINT), (LIBRARY, signal.SIGTERM), (PROGRAM, signal.SIGHUP)]),
    ids=["train", "a program's own", "the terminal is closed"],
)
def test_a_signal_during_a_build_ends_the_compilers(words: list[str], one: signal.Signals, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    variables = {"GROUNDUP_TEST_MARK": mark, "CC": cc(tmp_path), "GROUNDUP_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        python(*words),
        cwd=tmp_path,
        env=finding_our_packages(os.environ | variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear,
    )
    try:
        until(lambda: any("sleep 301" in line for line in started_by(mark)), 600)
        process.send_signal(one)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    until(lambda: not started_by(mark), 50)
    assert "Traceback" not in said or words is LIBRARY


def until(so: object, seconds: float) -> None:
    last = time.monotonic() + seconds
    while not so():  # type: ignore[operator]
        assert time.monotonic() < last
        time.sleep(0.05)


def test_a_compiler_is_stopped_whose_answer_nobody_wants(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    begin = time.monotonic()
    assert compiler.run([cc(tmp_path), "-c", "x.c"], tmp_path, stop).returncode != 0
    assert time.monotonic() - begin < 100


def test_a_compiler_that_is_not_there_fails_with_its_name(tmp_path: Path) -> None:
    done = compiler.run([str(tmp_path / "none")])
    assert done.returncode == 127
    assert str(tmp_path / "none") in done.stderr
