"""shared.machine.own_process: memory and processor time of this process, and whether a process of before still runs."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.machine.own_process import UNKNOWN, cpu_seconds, is_running, machine_mark, mark_of, memory

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the numbers stand in Linux's /proc")


@on_linux
def test_memory_grows_by_what_is_filled() -> None:
    size, part = 64_000_000, bytes([1]) * 1_000_000
    with mmap.mmap(-1, size) as filled:  # not an array, which may lie in memory that another test has freed
        before = memory()
        while filled.tell() < size:
            filled.write(part)
        after = memory()
    assert before is not None
    assert after is not None
    assert after - before > 0.9 * size


def test_processor_time_grows_with_work() -> None:
    before = cpu_seconds()
    assert sum(range(2_000_000)) > 0
    assert cpu_seconds() > before


def test_a_system_without_these_files_says_that_it_does_not_know(tmp_path: Path) -> None:
    assert memory(tmp_path) is None
    if sys.platform == "linux":
        assert mark_of(os.getpid(), tmp_path) == UNKNOWN
    assert is_running(1, "", tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives no mark")
def test_a_process_runs_until_it_has_ended_and_its_number_alone_does_not_prove_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        mark = mark_of(child.pid)
        assert mark.startswith(f"{machine_mark()} ")
        assert is_running(child.pid, mark) is True
        assert is_running(os.getpid(), mark) is False, "another process may have the number now"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but is still in the list of processes
        assert is_running(child.pid, mark) is False
    finally:
        child.kill()
        child.communicate()
    assert is_running(child.pid, mark) is False
