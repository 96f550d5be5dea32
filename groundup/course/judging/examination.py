"""The examination of learners' functions, as the process that asks for a verdict sees it.

examiner.py runs beside the learner's process, and exchanges two files with it: the arguments, and the results. An
examiner that is no longer needed stays for the next verdict, because loading its modules takes some tenths of a second;
it ends with the process that has started it.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundup.course.judging import surroundings
from groundup.course.judging.verdict import Verdict
from shared.machine import processes

SECONDS = 60.0
"""The time that an examiner may take for a comparison, which takes milliseconds unless the machine is very busy."""


class Examiner:
    """A process that runs examiner.py."""

    def __init__(self) -> None:
        program = processes.python("-m", "groundup.course.judging.examiner")
        # A file and no pipe: nobody reads it meanwhile, and a full pipe would stop the examiner.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = processes.start(
            program,
            variables=surroundings.variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )

    def tell(self, **request: Any) -> None:
        """Send a request. Raises OSError if the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def compared(self) -> dict[str, Any]:
        """The examiner's answer, as examiner.py prints it. Raises RuntimeError if it fails: then nothing is known."""
        assert self._process.stdout is not None
        # readline() has no time limit: the end of the process ends its output, and so the wait.
        too_late = threading.Timer(SECONDS, self._process.kill)
        too_late.start()
        try:
            self.tell(compare=True)
            found: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            self._errors.seek(0)
            said = self._errors.read()[-2000:].decode(errors="replace").strip()
            raise RuntimeError(f"the examiner gave no answer: {said}") from error
        finally:
            too_late.cancel()
        return found

    def runs(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        processes.end(self._process)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()


_idle: list[Examiner] = []
"""The examiners that wait for a request. Each verdict has one for itself: the studio may ask for several at a time."""


def _one() -> Examiner:
    while _idle:
        examiner = _idle.pop()
        if examiner.runs():
            return examiner
        examiner.end()
    return Examiner()


@atexit.register
def end_all() -> None:
    """End the examiners that wait."""
    while _idle:
        _idle.pop().end()


class Examination:
    """What is asked for one verdict, from the beginning of a `with` block to its end.

    tasks: the ids of the tasks whose functions are asked
    scratch: an empty folder for the files: `asked`, which appears there when the arguments are drawn, and `answered`,
        to which the learner's process has to write the results
    """

    def __init__(self, tasks: Sequence[str], scratch: Path) -> None:
        self.tasks = list(tasks)
        self.asked, self.answered = scratch / "asked", scratch / "answered"

    def __enter__(self) -> Examination:
        self._examiner = _one()
        self._examiner.tell(tasks=self.tasks, asked=str(self.asked), answered=str(self.answered))
        return self

    def __exit__(self, *error: object) -> None:
        # One that still draws would write into a folder that is about to be removed.
        if error == (None, None, None) and self.asked.exists() and self._examiner.runs():
            _idle.append(self._examiner)
        else:
            self._examiner.end()

    def confirmed(self, verdict: Verdict) -> Verdict:
        """The verdict that all has passed, or the one that a function has not computed what it should.

        Raises RuntimeError if the examiner fails.
        """
        found = self._examiner.compared()
        if found["ok"]:
            return verdict
        which = "the function" if len(self.tasks) == 1 else f"the function of {found['task']}"
        return replace(
            verdict,
            passed=False,
            failed_check="agreement",
            what=f"all checks were told as passed, but {which} does not give the right result for other numbers",
            expected=found["expected"],
            got=found["got"],
            cause="only a function that computes its result passes: it must not end the process, or change the grader",
        )
