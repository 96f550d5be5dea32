"""A worker whose process does what it should not: the studio neither waits for ever, nor fills its memory.

A small program stands for the process, since Python and the emulator take a second to start.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundup.studio.kernel import workers
from shared.machine import processes

QUESTION = {"do": "walk", "block": 0, "warp": 0}
WAIT = "import os, sys, time; sys.stdin.readline(); "

Made = Callable[[str], workers.Worker]


@pytest.fixture
def worker_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """worker_of(program): a worker whose process runs this text."""
    begin, made = processes.start, []

    def worker(program: str) -> workers.Worker:
        def start(command: list[str], **given: Any) -> subprocess.Popen[Any]:
            return begin([sys.executable, "-S", "-E", "-c", program], **given)

        monkeypatch.setattr(processes, "start", start)
        made.append(workers.Worker())
        return made[-1]

    yield worker
    for each in made:
        each.close()


@pytest.mark.parametrize(
    "answer",
    [b"1\n", b'"text"\n', b"null\n", b"[1]\n", b"{\n", b"[" * 50_000 + b"\n", b"\xff\n", b"\n", b"", b"{}" * 9],
)
def test_what_is_no_answer_ends_the_process(worker_of: Made, answer: bytes) -> None:
    worker = worker_of(f"{WAIT} os.write(1, {answer[:20]!r} * {max(1, len(answer) // 20)} + {answer[-1:]!r})")
    with pytest.raises(ValueError, match="the process of this kernel has ended"):
        worker.ask(QUESTION)
    assert not worker.alive


def test_an_answer_without_an_end_is_given_up(worker_of: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_ANSWERED", 1 << 16)
    worker = worker_of(f"{WAIT}\nwhile True: os.write(1, b'x' * 4096)")
    with pytest.raises(ValueError, match="the process of this kernel has ended"):
        worker.ask(QUESTION)
    assert not worker.alive


def test_a_line_that_is_printed_without_an_end_fills_no_memory(
    worker_of: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(workers.SECONDS, "walk", 1.0)
    worker = worker_of("import os\nwhile True: os.write(2, b'x' * 65536)")
    with pytest.raises(ValueError, match="did not end within 1 seconds"):
        worker.ask(QUESTION)
    assert len(worker.printed) == workers.MOST_PRINTED
    assert max(map(len, worker._printed)) <= workers.MOST_PRINTED


def test_bytes_that_are_no_text_are_shown_and_do_not_stop_the_process(worker_of: Made) -> None:
    worker = worker_of(f"{WAIT} os.write(2, b'\\xff\\n' * 200_000); os.write(2, b'end\\n'); print('{{}}', flush=True)")
    assert worker.ask(QUESTION) == {}
    until = time.monotonic() + 100
    while not worker.printed.endswith("end\n") and time.monotonic() < until:
        time.sleep(0.01)
    assert worker.printed.endswith("\ufffd\nend\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends no group of processes")
def test_what_a_script_has_started_ends_with_a_studio_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, threading\n"
        "from groundup.studio.kernel.worker import _requests\n"
        "_requests(sys.stdin)\n"
        "print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    child = processes.start([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        started = int(child.stdout.readline())
        child.stdin.close()  # what the system does when a process is killed
        child.wait(100)
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(started)], capture_output=True, text=True).stdout
        assert state.strip()[:1] in ("", "Z")
    finally:
        processes.end(child)
