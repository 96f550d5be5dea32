"""Grading, seen from outside: start child.py, give it so much time and memory, and say what became of it.

The learner's code can loop for ever, end the process, or crash it in C. Whatever it does, there is a verdict, and no
process is left behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from groundup.course.assembly import Assembly, assemble
from groundup.course.functions import FunctionMissing, is_c, lines_of, stub, stub_line
from groundup.course.manifest import Phase, Task
from groundup.course.mistakes import compile_hint
from groundup.course.workspace import Workspace, solution_file
from shared.machine import processes

SECONDS_VARIABLE = "GROUNDUP_LEARN_SECONDS"
MOST_PRINTED = 2000
"""Characters of what the learner's code printed, the last ones."""

MOST_SAID = 500
"""Characters of an exception's text."""

MOST_SHOWN_NOTES = 40
"""Lines of a compiler's own words."""


@dataclass(frozen=True)
class Verdict:
    """What grading a task came to.

    passed: every check; failed_check: the first that failed, "" where all passed or nothing is written yet
    passed_checks: (name, number of comparisons) of those that passed
    what: one sentence; expected, got, likely: as checks.Wrong has them
    file, line: the place in the learner's file, "" and 0 where there is none; source: that line
    more: a compiler's words, or a traceback without a line of the learner's
    notes: such as a measured time; printed: the end of what the learner's code printed
    """

    passed: bool
    failed_check: str = ""
    passed_checks: tuple[tuple[str, int], ...] = ()
    what: str = ""
    expected: str = ""
    got: str = ""
    cause: str = ""
    file: str = ""
    line: int = 0
    source: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    printed: str = ""
    seconds: float = 0.0
    stub: bool = False

    def document(self) -> dict[str, Any]:
        """The verdict as `groundup learn check --json` prints it: other programs read these keys, so they stay."""
        keys = {"failed_check": "rung", "passed_checks": "rungs", "cause": "likely"}
        return {keys.get(name, name): value for name, value in asdict(self).items()}


def judge(workspace: Workspace, task: Task) -> Verdict:
    """Grade the learner's function of one task, all other functions being the project's."""
    phase = workspace.course.phase_of(task)
    file = str(workspace.folder / task.file)
    try:
        place = workspace.place(task)
        function = workspace.function(task)
        left = stub_line(function, task.week, task.number)
        if left:
            line = place.first + left - 1
            pristine = stub(solution_file(task.file), task.function, task.file, task.message, task.keep)
            if len(lines_of(function)) > len(lines_of(pristine)):
                error = "#error" if is_c(task.file) else "raise NotImplementedError"
                what = f"the stub's line with {error} is still there: take it out"
                return Verdict(False, "import", what=what, file=file, line=line)
            return Verdict(False, what=f"not written yet: {task.message}", file=file, line=line, stub=True)
        folder = workspace.built / "check" / task.id
        assembly = assemble(workspace, [task], folder)
    except FunctionMissing as missing:
        return Verdict(False, "import", what=str(missing), cause=_where_it_went(missing, task), file=file)
    return _run(workspace, assembly, folder, phase, task)


def _where_it_went(missing: FunctionMissing, task: Task) -> str:
    """What to do about a function that is not found in the file, which may be another task's."""
    if missing.line:
        return ""
    how = "" if is_c(task.file) else " (a lambda will not do, nor a def inside an if)"
    back = f"groundup learn reset {task.id} --file brings back every stub of the file, and keeps a copy"
    return f"every exercise of the file has to be there, as a function of its name{how}; {back}"


def judge_checkpoint(workspace: Workspace, phase: Phase) -> Verdict:
    """What ends a phase, with every function of the learner's that passes in place."""
    mine = [task for task in workspace.course.tasks if workspace.passed(task)]
    folder = workspace.built / "checkpoint"
    try:
        assembly = assemble(workspace, mine, folder, training=True)
    except FunctionMissing as missing:
        return Verdict(False, "import", what=str(missing))
    return _run(workspace, assembly, folder, phase, None)


def _run(workspace: Workspace, assembly: Assembly, folder: Path, phase: Phase, task: Task | None) -> Verdict:
    folder.mkdir(parents=True, exist_ok=True)
    seconds = _seconds() or phase.seconds * (1 if task else 10)
    with tempfile.TemporaryDirectory(prefix="groundup-learn-") as scratch:
        report, request = Path(scratch) / "report.jsonl", Path(scratch) / "request.json"
        report.touch()
        place = workspace.place(task) if task else None
        asked = {
            "lines": [place.first, place.last] if place else [0, 0],
            "task": task.id if task else "",
            "phase": phase.number,
            "megabytes": phase.megabytes,
            "assembly": str(assembly.save(folder)),
            "report": str(report),
            "seconds": seconds,
        }
        request.write_text(json.dumps(asked), encoding="utf-8")
        (Path(scratch) / "empty").mkdir()
        start = time.perf_counter()
        code, printed = run_limited(
            [sys.executable, "-m", "groundup.course.child", str(request)], Path(scratch) / "empty", seconds
        )
        took = time.perf_counter() - start
        events = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return _verdict(events, code, assembly.told(printed), seconds, took)


def _seconds() -> float | None:
    """What GROUNDUP_LEARN_SECONDS asks for; ValueError where that is no time."""
    chosen = os.environ.get(SECONDS_VARIABLE)
    try:
        seconds = float(chosen) if chosen else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not seconds > 0:
        raise ValueError(f"{SECONDS_VARIABLE}: expected a number of seconds above 0, got {chosen!r}")
    return seconds


def run_limited(command: Sequence[str], folder: Path, seconds: float) -> tuple[int | None, str]:
    """Run a command in a folder. Returns its exit code, None where it ran out of time, and the end of what it printed.

    Its whole process group is killed when the time is over, and when we are interrupted.
    """
    # PYTHONBREAKPOINT: nobody is there to talk to a debugger.
    settings = {"GROUNDUP_ANNOUNCED": "1", "PYTHONUNBUFFERED": "1", "PYTHONBREAKPOINT": "0"}
    variables = processes.finding_our_packages(os.environ) | settings
    done = processes.run(command, seconds, folder=folder, variables=variables, together=True, most=4 * MOST_PRINTED)
    return done.code, done.output[-MOST_PRINTED:]


def _verdict(events: list[dict[str, Any]], code: int | None, printed: str, limit: float, took: float) -> Verdict:
    passed = tuple((each["name"], each["comparisons"]) for each in events if each["event"] == "passed")
    check = next((each["name"] for each in reversed(events) if each["event"] == "check"), "import")
    trying = next((each["text"] for each in reversed(events) if each["event"] == "trying"), "")
    notes = tuple(each["text"] for each in events if each["event"] == "note")
    common: dict[str, Any] = {"passed_checks": passed, "notes": notes, "printed": printed.strip(), "seconds": took}
    by_name = {each["event"]: each for each in events}
    if "done" in by_name:
        return Verdict(True, **common)
    failed: dict[str, Any] = {"passed": False, "failed_check": check, **common}
    if "wrong" in by_name:
        found = by_name["wrong"]
        return Verdict(**failed, **{name: found[name] for name in ("what", "expected", "got", "cause", "line")})
    if "raised" in by_name:
        return Verdict(**{**failed, **_raised(by_name["raised"], trying)})
    at = f" while trying {trying}" if trying else ""
    if "memory" in by_name:
        what = f"it took more memory than a right answer needs{at}, and was stopped"
        return Verdict(**failed, what=what, cause="something grows with every round of a loop")
    if code is None:
        what = f"it did not end within {limit:g} seconds{at}, and was stopped"
        return Verdict(**failed, what=what, cause="a loop that never ends: does what it waits for ever come?")
    if code < 0:
        name = signal.Signals(-code).name
        return Verdict(**failed, what=f"the process crashed with {name}{at}", cause=CRASHES.get(name, ""))
    return Verdict(**failed, what=f"the process ended by itself, with exit code {code}{at}", cause=_ended(code))


CRASHES = {
    "SIGSEGV": "a read or write outside an array: is every index below its size, every row as long as you think?",
    "SIGBUS": "a read or write outside an array: is every index below its size?",
    "SIGFPE": "a whole number was divided by zero",
    "SIGABRT": "memory was damaged by a write outside an array, or the C called abort",
    "SIGILL": "the C reached a place that the compiler takes for impossible: does every path return?",
    "SIGKILL": "the system ended it, most likely for lack of memory",
}


def _ended(code: int) -> str:
    # Windows has no signals: an access violation is this exit code.
    return (
        CRASHES["SIGSEGV"]
        if code & 0xFFFFFFFF == 0xC0000005
        else "something in it ends the process: os._exit, or exit in C"
    )


def _raised(found: dict[str, Any], trying: str) -> dict[str, Any]:
    kind, text = found["type"], found["text"][:MOST_SAID]
    at = f" while trying {trying}" if trying else ""
    place = {"file": found["file"], "line": found["line"], "source": found["source"]}
    said = "\n".join(found["notes"]).splitlines()[:MOST_SHOWN_NOTES]
    more = "\n".join([*said, found["traceback"]]).strip()
    if kind == "SystemExit":
        return {**place, "what": f"it called sys.exit({text}){at}", "cause": "a function returns; it does not exit"}
    if kind == "MemoryError":
        cause = "is a size computed from the wrong numbers, or does something grow with every round of a loop?"
        return {**place, "what": f"it asked for more memory than there is for it{at}", "cause": cause}
    if kind == "CompileError":
        return {**place, "failed_check": "compile", "what": text, "more": "\n".join(said), "cause": compile_hint(text)}
    if kind == "ModuleNotFoundError":
        cause = "put helpers into this file: only the files that came with the course are used"
        return {**place, "what": f"{kind}: {text}{at}", "cause": cause}
    said_so = f"{kind}: {text}" if text else kind
    return {**place, "what": f"{said_so}{at}", "more": more if not found["file"] else ""}
