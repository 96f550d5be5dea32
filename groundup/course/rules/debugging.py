"""Writing the call of a task that fails as a script for a debugger."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path

from groundup.course.failing_call import GDB
from groundup.course.judging import surroundings
from groundup.course.judging.judge import judge, run_limited
from groundup.course.learner.functions import is_c
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from shared.machine import processes

FOLDER = "debug"
"""In the learner's folder: the scripts."""

NO_CALL = ("import", "compile", "types", "way", "speed")
"""The checks that no call fails."""

MOST_SECONDS = 10.0
"""For a script on its own. One that takes longer has an endless loop, which is the failure."""

PDB = "It stops in your function, in Python's debugger; after a change of your file, run it again."
IN_GDB = "gdb stops in your function."
KEYS = "n runs a line, s goes into a call, p NAME shows a value, c goes on, q quits."
NO_GDB = "No gdb is installed here, so it does not stop in your function; printf there says what happens."


def debug(workspace: Workspace, task: Task) -> tuple[Path | None, str]:
    """Write the call that fails. Returns (the script; the command that runs it), or (None; why there is none)."""
    verdict = judge(workspace, task)
    check = f"groundup learn check {task.id}"
    if verdict.passed:
        return None, f"{task.id} passes: there is no failing call"
    if verdict.stub:
        return None, f"{task.id} is not written yet; groundup learn hint {task.id} helps"
    if verdict.failed_check in NO_CALL:
        return (
            None,
            f"{task.id} fails its check {verdict.failed_check}, which is about no single call; {check} shows it",
        )
    path = workspace.folder / FOLDER / f"{task.id}.py"
    workspace.keep(path)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    seconds = 3 * workspace.course.phase_of(task).seconds
    _run(seconds, "-m", "groundup.course.failing_call", str(workspace.folder), task.id, str(path))
    if not path.exists():
        return None, f"{task.id} fails before your function is called; {check} says why"
    number, _, text = path.read_text(encoding="utf-8").partition("\n")
    number, _, why = number.partition(": ")
    if not why and _run(MOST_SECONDS, str(path)) == 0:
        why = "alone it does not fail, so what was called or lies around it matters"
    if why:
        path.with_suffix(".npz").unlink(missing_ok=True)
        call = f"failing_call.rerun({str(workspace.folder)!r}, {task.id!r}, call={number.split()[-1]})"
        text = f"from groundup.course import failing_call\n\n# The checks run again, up to this call: {why}.\n{call}\n"
    command = f"python {shlex.quote(str(path))}"
    how = f"{PDB}\n{KEYS}"
    if is_c(task.file):
        how = f"{IN_GDB}\n{KEYS}" if (gdb := shutil.which("gdb")) else NO_GDB
        line = f"{workspace.folder / task.file}:{workspace.place(task).body}"
        steps = path.with_suffix(".gdb")
        steps.write_text(f"set environment {GDB} 1\nrun\nbreak {line}\ncontinue\n", encoding="utf-8")
        command = f"gdb -q -x {shlex.quote(str(steps))} --args {command}" if gdb else command
    compared = f": expected {verdict.expected}, got {verdict.got}" if verdict.expected else ""
    says = f"{task.id} fails its check {verdict.failed_check}: {verdict.what}{compared}".replace("\\", "/").replace(
        '"', "'"
    )
    path.write_text(f'"""{says}\n\n    {command}\n\n{how}\n"""\n\n{text}', encoding="utf-8")
    return path, command


def _run(seconds: float, *arguments: str) -> int | None:
    """Run Python without a debugger, as a process that grades. Returns its exit code, None after its time."""
    with tempfile.TemporaryDirectory(prefix="groundup-debug-") as empty:
        variables = {**surroundings.variables(), "PYTHONBREAKPOINT": "0"}
        return run_limited(processes.python(*arguments), Path(empty), seconds, variables)[0]
