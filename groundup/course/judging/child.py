"""The process that runs a learner's code: `python -m groundup.course.judging.child REQUEST`. judge.py starts it.

It writes every event to a file at once, one JSON object a line. So the events up to a crash in the learner's C are
known. Its standard output and standard error belong to the learner's code.

The learner's code can write such events itself. So the last one, "done", says only that the results are there which the
examiner has asked for.
"""

from __future__ import annotations

import json
import linecache
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundup.course import assembly, grading
from groundup.course.checks.check import ORDER, Check, Tally, Wrong
from groundup.course.judging import questions
from groundup.course.judging.memory_limit import LOOK_EVERY, limit_memory

WAIT = 0.002
"""Seconds between two looks for the examiner's file."""

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
            made = grade(request, assembled, tell)
            answer(request, made)
        except Wrong as wrong:
            tell("wrong", **_told(wrong, assembled, request["lines"]))
        except BaseException as error:  # everything that the learner's code raises is reported, SystemExit too
            tell("raised", **_raised(error, assembled, request["lines"]))
        else:
            tell("done")
    os._exit(0)  # the learner's threads and exit handlers do not run


def end_with_parent(parent: int, seconds: float) -> None:
    """End this process when its parent has ended, as a closed terminal ends it, or long after its time is over."""
    last = time.monotonic() + seconds + GRACE

    def watch() -> None:
        # Who has lost its parent gets another one: nobody is left then who would end this process.
        while os.getppid() == parent and time.monotonic() < last:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def grade(request: dict[str, Any], assembled: assembly.Assembly, tell: Callable[..., None]) -> list[Check]:
    """Run all checks of the task, in order, or those of the checkpoint. Raises what the first failing check raises.

    Returns the checks.
    """
    assembly.use(assembled)
    tell("check", name="import")
    if request["task"]:
        checks = grading.task_checks(request["task"])
        check_order(checks)
    else:
        checks = grading.checkpoint_checks(request["phase"], request["examined"])
    limit_memory(request["megabytes"], lambda: tell("memory"))
    if not checks:
        raise Wrong("nothing is graded here: the task has no checks")
    for check in checks:
        tell("check", name=check.name)
        tally = Tally(lambda event, text: tell(event, text=text))
        check.run(tally)
        if tally.count == 0:
            raise Wrong(f"the check {check.name} compared nothing, which proves nothing")
        tell("passed", name=check.name, comparisons=tally.count)
    return checks


def answer(request: dict[str, Any], own_checks: list[Check]) -> None:
    """Call the functions of the tasks that the examiner asks for, and write the results to a file.

    own_checks: the checks of the task; a checkpoint asks for other ones
    """
    asked = Path(request["asked"])
    while not asked.exists():  # until it has loaded its modules; it writes an empty file if it fails
        time.sleep(WAIT)
    drawn = pickle.loads(asked.read_bytes() or pickle.dumps([]))
    tasks = zip(request["examined"], drawn, strict=False)
    checks = ((own_checks if task == request["task"] else grading.task_checks(task), each) for task, each in tasks)
    results = [questions.answer(questions.question_of(each), arguments) for each, arguments in checks]
    Path(request["answered"]).write_text(json.dumps(results), encoding="utf-8")


def check_order(checks: list[Check]) -> None:
    """Raises ValueError if the checks are not in the order of ORDER."""
    places = [ORDER.index(check.name) for check in checks]
    if places != sorted(places):
        raise ValueError(f"the checks stand in the order {[check.name for check in checks]}, expected that of {ORDER}")


def _told(wrong: Wrong, assembled: assembly.Assembly, lines: list[int]) -> dict[str, Any]:
    """A Wrong as an event. lines: as in `_raised`"""
    words = ("what", "expected", "got", "cause", "by_hand")
    told = {"picture": wrong.picture, **{name: assembled.told(getattr(wrong, name)) for name in words}}
    # Without a file it is the only one; it is not known which of several is meant.
    assembled_file = wrong.file or (next(iter(assembled.lines)) if len(assembled.lines) == 1 else "")
    at = [(assembled_file, wrong.line), *reversed(wrong.called_from)] if assembled_file and wrong.line else []
    known = [(place, linecache.getline(*each).strip()) for each in at if (place := assembled.place(*each))]
    mine = [each for each in known if lines[0] <= each[0][1] <= lines[1]] or known
    if not mine:
        return {**told, "file": "", "line": 0, "source": ""}
    (file, line), source = mine[0]
    return {**told, "file": file, "line": line, "source": source}


def _raised(error: BaseException, assembled: assembly.Assembly, lines: list[int]) -> dict[str, Any]:
    """An exception as an event.

    lines: the first and last line of the learner's function. A place in it is reported rather than one in a function
    that it calls.
    """
    mine = assembled.places_of(error)
    mine = [place for place in mine if lines[0] <= place[0][1] <= lines[1]] or mine
    if isinstance(error, SystemExit):
        text = f"{error.code!r}"
    elif isinstance(error, SyntaxError):
        text = error.msg  # str(error) has the line of the assembled file
    elif (sentence := _of_a_kernel(error)) and mine:
        text = sentence  # str(error) has the place, and the line's text, which stand below
    else:
        text = assembled.told(traceback.format_exception_only(error)[0].strip().partition(": ")[2])
    notes = [assembled.told(note) for note in getattr(error, "__notes__", ())]
    return {
        "type": type(error).__name__,
        "text": text,
        "notes": notes,
        "file": mine[-1][0][0] if mine else "",
        "line": mine[-1][0][1] if mine else 0,
        "source": mine[-1][1].strip() if mine else "",
        "traceback": "" if mine else assembled.told("".join(traceback.format_exception(error))),
    }


def _of_a_kernel(error: BaseException) -> str:
    """The sentence of an error of the emulator; "" for any other error. The emulator is loaded where a kernel is graded
    alone: with Numba it takes longer to load than all the rest."""
    if "cuda_emulator.errors" not in sys.modules:
        return ""
    from cuda_emulator import KernelError

    return error.sentence if isinstance(error, KernelError) else ""


if __name__ == "__main__":
    main(sys.argv[1:])
