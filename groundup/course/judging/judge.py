"""Grading: prepare the files, start child.py with a limit of time and memory, and turn its report into a verdict.

The learner's code can loop for ever, end the process, or crash it in C. There is a verdict in every case, and no
process is left. It can also write into the report. So nothing has passed before the examiner (examiner.py) says that
the function computes what it should.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from groundup.course.assembly import Assembly, assemble, assemble_program
from groundup.course.judging import surroundings
from groundup.course.judging.examination import Examination
from groundup.course.judging.reports import events_in
from groundup.course.judging.verdict import Verdict, verdict_of
from groundup.course.learner.functions import FunctionMissing, is_c, lines_of, stub, stub_line
from groundup.course.learner.project_files import solution_file
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Phase, Task
from shared.machine import processes

SECONDS_VARIABLE = "GROUNDUP_LEARN_SECONDS"

PATIENCE = 1.5
"""Seconds that the warden has, when grading is interrupted, to end what it started."""

GRACE = 5.0
"""Seconds after its time limit that the warden may take to end what it started."""

OWN_MEGABYTES = 1500
"""What the grader itself and the compilers that it starts may hold, besides the learner's part."""

MOST_PRINTED = 2000
"""Characters of what the learner's code printed, the last ones."""


def judge(workspace: Workspace, task: Task, report: Path | None = None) -> Verdict:
    """Grade the learner's function of one task. All other functions are the project's.

    report: the file into which the child writes its events, for who follows the checks; None for one of its own
    """
    phase = workspace.course.phase_of(task)
    file = str(workspace.folder / task.file)
    try:
        place = workspace.place(task)
        function = workspace.function(task)
        folder = workspace.built / "check" / task.id
        if task.fault:
            if workspace.is_stub(task) and not task.fault.shows.startswith("groundup learn check"):
                sentence = f"the program is as it came; {task.fault.shows} shows what goes wrong"
                return Verdict(False, what=sentence, file=file, line=place.first, stub=True)
            return _run(workspace, assemble_program(workspace, task, folder), folder, phase, task, [task], report)
        left = stub_line(function, task.week, task.number)
        if left:
            line = place.first + left - 1
            pristine = stub(solution_file(task.file), task.function, task.file, task.message, task.keep)
            if len(lines_of(function)) > len(lines_of(pristine)):
                error = "#error" if is_c(task.file) else "raise NotImplementedError"
                sentence = f"the stub's line with {error} is still there: take it out"
                return Verdict(False, "import", what=sentence, file=file, line=line)
            return Verdict(False, what=f"not written yet: {task.message}", file=file, line=line, stub=True)
        assembly = assemble(workspace, [task], folder)
    except FunctionMissing as missing:
        cause = _where_it_went(missing, task)
        return Verdict(False, "import", what=str(missing), cause=cause, file=file, more=missing.shown)
    return _run(workspace, assembly, folder, phase, task, [task], report)


def _where_it_went(missing: FunctionMissing, task: Task) -> str:
    """A hint for a function that is not in the file. Another task's function may be the one that is missing."""
    if missing.line:
        return ""
    how = "" if is_c(task.file) else " (a lambda will not do, nor a def inside an if)"
    back = f"groundup learn reset {task.id} --file brings back every stub of the file, and keeps a copy"
    return f"every exercise of the file has to be there, as a function of its name{how}; {back}"


def judge_checkpoint(workspace: Workspace, phase: Phase) -> Verdict:
    """Grade what ends a phase, with all functions of the learner's that pass."""
    mine = [task for task in workspace.course.tasks if workspace.passed(task)]
    folder = workspace.built / "checkpoint"
    try:
        assembly = assemble(workspace, mine, folder, training=True)
    except FunctionMissing as missing:
        return Verdict(False, "import", what=str(missing), more=missing.shown)
    of_the_phase = [task for task in mine if workspace.course.phase_of(task) is phase]
    verdict = _run(workspace, assembly, folder, phase, None, of_the_phase)
    return replace(verdict, notes=(*verdict.notes, *map(_edited_since, _replaced(workspace, phase))))


def _replaced(workspace: Workspace, phase: Phase) -> list[Task]:
    """The tasks of a phase whose functions have passed, and were edited since: the project's stand in their place."""
    tasks = [task for week in phase.weeks for task in week.tasks]
    return [each for each in tasks if workspace.record.of(each.id).state == "passed" and not workspace.passed(each)]


def _edited_since(task: Task) -> str:
    return (
        f"{task.function} ({task.id}) was edited after it had passed, so the project's took its place here; groundup "
        f"learn check {task.id} grades it again"
    )


def _run(
    workspace: Workspace,
    assembly: Assembly,
    folder: Path,
    phase: Phase,
    task: Task | None,
    examined: Sequence[Task],
    report: Path | None = None,
) -> Verdict:
    """task: None for the phase's checkpoint; examined: the tasks whose functions have to compute what they should"""
    folder.mkdir(parents=True, exist_ok=True)
    seconds = _seconds() or phase.seconds * (1 if task else 10)
    with tempfile.TemporaryDirectory(prefix="groundup-learn-") as scratch:
        report, request = report or Path(scratch) / "report.jsonl", Path(scratch) / "request.json"
        report.touch()
        place = workspace.place(task) if task else None
        examination = Examination([other.id for other in examined], Path(scratch))
        asked = {
            "lines": [place.first, place.last] if place else [0, 0],
            "task": task.id if task else "",
            "phase": phase.number,
            "megabytes": phase.megabytes,
            "assembly": str(assembly.save(folder)),
            "report": str(report),
            "seconds": seconds,
            "examined": examination.tasks,
            "asked": str(examination.asked),
            "answered": str(examination.answered),
        }
        request.write_text(json.dumps(asked), encoding="utf-8")
        (Path(scratch) / "empty").mkdir()
        start = time.perf_counter()
        child = processes.python("-m", "groundup.course.judging.child", str(request))
        limit = seconds
        if sys.platform == "linux":
            # The warden keeps the limit, and says in the report that it was time; ours is for a warden that hangs.
            child, limit = guarded(child, seconds, phase.megabytes + OWN_MEGABYTES, report), seconds + GRACE
        with examination:
            code, printed = run_limited(child, Path(scratch) / "empty", limit, surroundings.variables(task is None))
            took = time.perf_counter() - start
            verdict = verdict_of(events_in(report), code, assembly.told(printed), seconds, took)
            return examination.confirmed(verdict) if verdict.passed else verdict


def guarded(command: Sequence[str], seconds: float, megabytes: int, report: Path) -> list[str]:
    """The command, started by the warden (warden.py), which also counts the processes that it starts."""
    program = processes.python("-S", "-E", str(Path(__file__).with_name("warden.py")))
    return [*program, str(seconds), str(megabytes), str(report), str(os.getpid()), *command]


def _seconds() -> float | None:
    """The time limit of GROUNDUP_LEARN_SECONDS, None if it is not set. Raises ValueError if it is no time."""
    chosen = os.environ.get(SECONDS_VARIABLE)
    try:
        seconds = float(chosen) if chosen else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not seconds > 0:
        raise ValueError(f"{SECONDS_VARIABLE}: expected a number of seconds above 0, got {chosen!r}")
    return seconds


def run_limited(
    command: Sequence[str], folder: Path, seconds: float, variables: Mapping[str, str]
) -> tuple[int | None, str]:
    """Run a command in a folder. Returns (exit code, None after the time limit; the end of its output).

    variables: its environment
    All processes of its group are killed at the time limit, and if this process is interrupted.
    """
    # PYTHONBREAKPOINT: a debugger would wait for input for ever.
    settings = {"GROUNDUP_ANNOUNCED": "1", "PYTHONUNBUFFERED": "1", "PYTHONBREAKPOINT": "0"}
    environment = {**variables, **settings}
    done = processes.run(
        command, seconds, folder=folder, variables=environment, together=True, most=4 * MOST_PRINTED, patience=PATIENCE
    )
    return done.code, done.output[-MOST_PRINTED:]
