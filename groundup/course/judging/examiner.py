"""Asks learners' functions for results that it knows, in a process in which none of the learner's code runs.

The checks run beside the learner's code, in one process, and so does what reports them: Python hides nothing from code
in the same process. So a report that all checks have passed is not enough. The examiner draws arguments for each
judgement anew, the learner's process has to give the results, and the examiner compares them with those of the
project's functions.

It reads requests from its standard input, a JSON object a line, until the end:

    {"tasks": [ids], "asked": path, "answered": path}    draw, and write the arguments to the file `asked`
    {"compare": true}                                    read the results in the file `answered`, and print one JSON
                                                         object: {"ok": true}, or "ok": false and the task, what was
                                                         expected, and what came

After a request may come the next one: most answers of learners fail a check, and are not compared.
"""

from __future__ import annotations

import json
import pickle
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groundup.course import grading
from groundup.course.judging import questions
from groundup.course.learner.project_files import PROGRAMS
from shared.machine import regular
from shared.machine.atomic import write_atomically

MOST_BYTES = 32 << 20
"""Of the results. Those of the largest task are some kilobytes."""


def main() -> None:
    """Answer requests until the process that writes them has ended."""
    sys.path.append(str(PROGRAMS))  # the programs of the detective exercises, as they came; none is called here
    expected: list[questions.Answer] = []
    request: dict[str, Any] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "compare" in asked:
            found = compared(request["tasks"], expected, Path(request["answered"]))
            print(json.dumps(found), flush=True)
        else:
            request = asked
            expected = draw(request["tasks"], Path(request["asked"]))


def draw(tasks: Sequence[str], asked: Path) -> list[questions.Answer]:
    """Write the arguments of the calls to the file. Returns their right results, by task."""
    rng = np.random.default_rng(secrets.randbits(128))
    try:
        asked_of = [questions.question_of(grading.task_checks(task)) for task in tasks]
        drawn = [questions.draw(each, rng) for each in asked_of]
        content = pickle.dumps(drawn)
    except BaseException:
        write_atomically(asked, b"", to_disk=False)  # so that nobody waits for it
        raise
    write_atomically(asked, content, to_disk=False)
    return [questions.right(*each) for each in zip(asked_of, drawn, strict=True)]


def compared(tasks: Sequence[str], expected: Sequence[questions.Answer], answered: Path) -> dict[str, Any]:
    """What a request to compare prints. answered: a file that may be missing, or hold anything"""
    try:
        got = questions.answers_in(regular.read(answered, MOST_BYTES))
    except (OSError, ValueError):
        got = []
    for number, (task, right) in enumerate(zip(tasks, expected, strict=True)):
        wrong = questions.wrong_in(right, got[number] if number < len(got) else {})
        if wrong:
            return {"ok": False, "task": task, "expected": wrong[0], "got": wrong[1]}
    return {"ok": True}


if __name__ == "__main__":
    main()
