"""Looks at the file of a task, and has the task graded whenever the file is saved.

Grading runs in a process, which is ended when the file is saved again or another task is chosen. Its checks are
followed in the report that its child writes. `latest` holds what the page shows now: one dictionary with everything,
so that a page that missed some of them is right again with the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from groundup.course.judging.reports import events_in
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.watching import LOOK_EVERY
from groundup.studio.course.exercise_page import place, progress, source
from groundup.studio.events import Latest
from shared.machine import processes

REPORT = "report.jsonl"
MOST_CHECKS, LONGEST_NAME = 20, 40
"""What is shown of the checks in a report, which the learner's code can write into, too."""

MOST_SAID = 2000
"""Characters of what a grader that failed printed."""


class Watch:
    """The watch of one tab: a thread, and a process while something is graded."""

    def __init__(self, workspace: Workspace, task: Task) -> None:
        self.workspace, self.task = workspace, task
        self.latest = Latest()
        self._seen: str | None = None
        self._unreadable = self._failure = ""
        self._progress: dict[str, Any] | None = None
        self._child: tuple[subprocess.Popen[bytes], IO[bytes]] | None = None
        self._report: tempfile.TemporaryDirectory[str] | None = None
        self._checks: list[tuple[str, int | None]] = []
        self._number = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="groundup-course-watch", daemon=True)
        self._thread.start()

    def choose(self, task: Task) -> None:
        """Watch another task, and grade it now."""
        with self._lock:
            self._cancel()
            self.task, self._seen, self._unreadable = task, None, ""

    def again(self) -> None:
        """Grade the task although its file was not saved."""
        self.choose(self.task)

    def close(self) -> None:
        """End the thread and the process."""
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._cancel()
        self.latest.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            with self._lock:
                try:
                    self._look()
                    self._failure = ""
                except Exception as error:  # a thread that died would leave the page waiting for ever
                    self._fail(error)
            self._ended.wait(LOOK_EVERY)

    def _look(self) -> None:
        """Start a grading if the file was saved; tell its result if it has ended."""
        try:
            text = self.workspace.text(self.task.file)
        except (ValueError, OSError) as error:  # an editor moves a file away for a moment while it saves
            if str(error) != self._unreadable:
                self._unreadable = str(error)
                self._tell("unreadable", said=self._unreadable)
            return
        if text != self._seen or self._unreadable:
            self._cancel()
            shown = self._shown()
            self._start()
            self._seen, self._unreadable = text, ""
            self._put("checking", shown)
        elif self._child is not None and self._child[0].poll() is not None:
            self._finish(*self._child)
        elif self._child is not None:
            self._follow()

    def _follow(self) -> None:
        """Tell which checks have passed, with their numbers of comparisons, and which one runs, with None."""
        assert self._report is not None
        events = [each for each in events_in(Path(self._report.name) / REPORT) if each["event"] in ("check", "passed")]
        told = [each for each in events if each["event"] == "passed"][:MOST_CHECKS] + events[-1:]
        checks = list({each["name"][:LONGEST_NAME]: each.get("comparisons") for each in told}.items())
        if checks != self._checks:
            self._checks = checks
            self._tell("checking", checks=checks)

    def _start(self) -> None:
        command = processes.python("-m", "groundup.studio.course.grading")
        self._checks = []
        self._report = tempfile.TemporaryDirectory(prefix="groundup-course-", ignore_cleanup_errors=True)
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _cancel, or below
        variables = processes.finding_our_packages(os.environ) | {"PYTHONIOENCODING": "utf-8"}
        try:
            child = processes.start(
                [*command, str(self.workspace.folder), self.task.id, str(Path(self._report.name) / REPORT)],
                variables=variables,
                stdin=subprocess.PIPE,  # it ends when the studio does, however that ends
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        except OSError:
            output.close()
            raise
        self._child = child, output

    def _finish(self, child: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        output.seek(0)
        printed = output.read().decode(errors="replace").strip()
        code = child.returncode
        self._cancel()
        if code == 0:
            self._tell("done", **json.loads(printed.splitlines()[-1]))
        else:
            self._tell("failed", said=f"the grading ended with exit code {code}: {printed[-MOST_SAID:]}")

    def _cancel(self) -> None:
        if self._child is not None:
            child, output = self._child
            self._child = None
            processes.end(child)
            output.close()
            assert child.stdin is not None
            child.stdin.close()
        if self._report is not None:
            self._report.cleanup()
            self._report = None

    def _fail(self, error: Exception) -> None:
        """Say what went wrong, once, and begin anew with the next look."""
        self._cancel()
        self._seen, said = None, f"this task cannot be watched now: {error or type(error).__name__}"
        if said != self._failure:
            self._failure = said
            shown = {"place": str(self.workspace.folder / self.task.file), "progress": self._progress}
            self._put("failed", {**shown, "source": {"said": said, "first": 0, "lines": []}, "said": said})

    def _tell(self, state: str, **more: Any) -> None:
        self._put(state, {**self._shown(), **more})

    def _shown(self) -> dict[str, Any]:
        self._progress = progress(self.workspace)
        shown = {"place": place(self.workspace, self.task), "source": source(self.workspace, self.task)}
        return {**shown, "progress": self._progress}

    def _put(self, state: str, more: dict[str, Any]) -> None:
        self._number += 1
        self.latest.put({"number": self._number, "state": state, "task": self.task.id, **more})
