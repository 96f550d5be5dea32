"""The process that runs a learner's code: `python -m groundup.course.judging.child REQUEST`. judge.py starts it.

It writes every event to a file at once, one JSON object a line. So the events up to a crash in the learner's C are
known. Its standard output and standard error belong to the learner's code.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundup.course import assembly, grading
from groundup.course.checks.check import ORDER, Check, Tally, Wrong
from groundup.course.judging.memory_limit import LOOK_EVERY, limit_memory

GRACE = 5.0
"""Seconds that the parent may take to end this process, once its time is over."""


def main(argv: list[str]) -> None:
    """argv: the path of the request that judge.py has written."""
    request = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    assembled = assembly.load(Path(request["assembly"]))
    end_with_parent(os.getppid(), request["seconds"])
    with open(request["report"], "a", encoding="utf-8", buffering=1) as report:

        def tell(event: str, **more: Any) -> None:
            report.write(json.dumps({"event": event, **more}) + "\n")

        try:
            grade(request, assembled, tell)
        except Wrong as wrong:
            tell("wrong", **_told(wrong, assembled))
        except BaseException as error:  # everything that the learner's code raises is reported, SystemExit too
            tell("raised", **_raised(error, assembled, request["lines"]))
        else:
            tell("done")
    os._exit(0)  # the learner's threads and exit handlers do not run


def end_with_parent(parent: int, seconds: float) -> None:
    """End this process when its parent has ended, as a closed terminal ends it, or long after its time is over."""
    last = time.monotonic() + seconds + GRACE

    def watch() -> None:
        while os.getppid() == parent and time.monotonic() < last:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def grade(request: dict[str, Any], assembled: assembly.Assembly, tell: Callable[..., None]) -> None:
    """Run all checks of the task, in order, or those of the checkpoint. Raises what the first failing check raises."""
    assembly.use(assembled)
    tell("check", name="import")
    if request["task"]:
        made = grading.task_checks(request["task"])
        check_order(made)
    else:
        made = grading.checkpoint_checks(request["phase"])
    limit_memory(request["megabytes"], lambda: tell("memory"))
    if not made:
        raise Wrong("nothing is graded here: the task has no checks")
    for check in made:
        tell("check", name=check.name)
        tally = Tally(lambda event, text: tell(event, text=text))
        check.run(tally)
        if tally.count == 0:
            raise Wrong(f"the check {check.name} compared nothing, which proves nothing")
        tell("passed", name=check.name, comparisons=tally.count)


def check_order(made: list[Check]) -> None:
    """Raises ValueError if the checks are not in the order of ORDER."""
    places = [ORDER.index(check.name) for check in made]
    if places != sorted(places):
        raise ValueError(f"the checks stand in the order {[check.name for check in made]}, expected that of {ORDER}")


def _told(wrong: Wrong, assembled: assembly.Assembly) -> dict[str, Any]:
    told = {name: assembled.told(getattr(wrong, name)) for name in ("what", "expected", "got", "cause")}
    return {**told, "line": _line(wrong.line, assembled)}


def _line(line: int | None, assembled: assembly.Assembly) -> int:
    """The learner's line for a line of the assembled file that is graded; 0 if there is none."""
    for file in assembled.lines:
        place = assembled.place(file, line) if line else None
        if place:
            return place[1]
    return 0


def _raised(error: BaseException, assembled: assembly.Assembly, lines: list[int]) -> dict[str, Any]:
    """An exception as an event.

    lines: the first and last line of the learner's function. A place in it is reported rather than one in a function
    that it calls.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [(assembled.place(frame.filename, frame.lineno or 0), frame.line) for frame in frames]
    mine = [(place, line) for place, line in places if place]
    within = [each for each in mine if each[0] and lines[0] <= each[0][1] <= lines[1]]
    mine = within or mine
    if isinstance(error, SyntaxError) and error.filename in assembled.learner:
        place = assembled.place(error.filename, error.lineno or 0)
        mine = [(place, error.text or "")] if place else []
    if isinstance(error, SystemExit):
        text = f"{error.code!r}"
    elif isinstance(error, SyntaxError):
        text = error.msg  # str(error) has the line of the assembled file
    else:
        text = assembled.told(traceback.format_exception_only(error)[0].strip().partition(": ")[2])
    notes = [assembled.told(note) for note in getattr(error, "__notes__", ())]
    return {
        "type": type(error).__name__,
        "text": text,
        "notes": notes,
        "file": mine[-1][0][0] if mine and mine[-1][0] else "",
        "line": mine[-1][0][1] if mine and mine[-1][0] else 0,
        "source": (mine[-1][1] or "").strip() if mine else "",
        "traceback": "" if mine else assembled.told("".join(traceback.format_exception(error))),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
