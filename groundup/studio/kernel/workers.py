"""The child process of a tab: it runs the kernel that the tab has open, within limits, and ends with the tab.

A kernel of the project needs stage 4 on the emulator, which the studio's own process may have on a GPU; a script or a
learner's kernel may do anything. So each runs in a process of its own. It is started before it is needed, since Python
and Numba take most of the time until a first picture.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections import deque
from typing import Any

from shared.machine import processes

SECONDS = {"open": 60.0, "walk": 30.0, "race": 60.0, "verdicts": 120.0}
"""That a question may take. The verdicts compile the kernel, which may take long the first time."""

MOST_PRINTED = 4000
"""Characters of what a script printed, the last ones."""

MOST_ANSWERED = 1 << 26
"""Characters of an answer: a walk of a large block has some millions."""


class Worker:
    """One child process. Every method may be called by any thread; one question is asked at a time."""

    def __init__(self) -> None:
        variables = processes.finding_our_packages(os.environ) | {
            "GROUNDUP_CUDA": "emulator",
            "PYTHONUNBUFFERED": "1",
            "PYTHONBREAKPOINT": "0",  # a debugger would wait for ever
            "PYTHONIOENCODING": "utf-8",
        }
        self._child = processes.start(
            processes.python("-m", "groundup.studio.kernel.worker"),
            variables=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        self._lock = threading.Lock()
        self._printed: deque[str] = deque(maxlen=400)
        self.strange = False  # whether it runs code that is not the project's
        threading.Thread(target=self._read_printed, daemon=True).start()

    def warm(self) -> None:
        """Have the child process import what a kernel of the project takes, without waiting for it."""
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        with contextlib.suppress(ValueError):
            self.ask({"do": "open", "target": {"kind": "warm"}})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request of worker.py.

        Raises ValueError with the child's sentence, or where it takes too long or has ended.
        """
        seconds = SECONDS[request["do"]]
        with self._lock:
            over = threading.Event()
            late = threading.Timer(seconds, self._stop, [over])
            late.daemon = True
            late.start()
            try:
                assert self._child.stdin is not None
                assert self._child.stdout is not None
                self._child.stdin.write(json.dumps(request) + "\n")
                self._child.stdin.flush()
                line = self._child.stdout.readline(MOST_ANSWERED)
            except (OSError, ValueError):
                line = ""
            finally:
                late.cancel()
        try:
            answer: dict[str, Any] = dict(json.loads(line))
        except (ValueError, TypeError, RecursionError):  # a script can write into the answers, too
            self.close()
            raise ValueError(_why(not over.is_set(), seconds)) from None
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    @property
    def printed(self) -> str:
        """The end of what the child process has printed."""
        return "".join(self._printed)[-MOST_PRINTED:]

    @property
    def alive(self) -> bool:
        """Whether the child process can be asked."""
        return self._child.poll() is None

    def close(self) -> None:
        """End the process, and those that it started."""
        processes.end(self._child)
        # What was not sent any more would be told of when Python takes the pipe away.
        with contextlib.suppress(OSError, ValueError):
            if self._child.stdin is not None:
                self._child.stdin.close()

    def _stop(self, over: threading.Event) -> None:
        over.set()
        self.close()

    def _read_printed(self) -> None:
        assert self._child.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while part := self._child.stderr.readline(MOST_PRINTED):  # a line need not end
                self._printed.append(part)


def _why(in_time: bool, seconds: float) -> str:
    if not in_time:
        return f"the kernel did not end within {seconds:g} seconds, and was stopped; is there a loop that never ends?"
    return "the process of this kernel has ended: it crashed, or took more memory than it may"


class Tab:
    """What one tab has open: at most one kernel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._worker = Worker()
        self._worker.warm()

    def open(self, target: dict[str, Any], block: int, warp: int) -> dict[str, Any]:
        """Open a kernel in place of the one before. Raises ValueError for one that cannot be opened."""
        with self._lock:
            if self._closed:
                raise ValueError("this tab's session has ended; load the page again")
            ours = target.get("kind") == "project"
            # A script or a learner's kernel gets a process of its own; kernels of the project may share one.
            if not ours or not self._worker.alive or self._worker.strange:
                self._worker.close()
                self._worker = Worker()
            self._worker.strange = not ours
            worker = self._worker
        answer = worker.ask({"do": "open", "target": target, "block": block, "warp": warp})
        return {**answer, "printed": worker.printed if not ours else ""}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """A question about the open kernel."""
        return self._worker.ask(request)

    def close(self) -> None:
        """End the tab's process."""
        with self._lock:
            self._closed = True
            self._worker.close()
