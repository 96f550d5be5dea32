"""`groundup learn lens`: the lens on the learner's own kernel, in the launch that its check of memory looks at.

The kernel is taken from the assembled file, among the project's own functions. The lens then shows each line as it
stands in the learner's file, and the project's lines as they stand in the project's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuda_emulator.inspection import DeviceFunction, Kernel, Launch, Profile, Trace, profile_of_trace, trace_launch
from cuda_emulator.inspection import device as device_named
from groundup.course import assembly, grading
from groundup.course.checks.check import Tally, Wrong
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, Task
from shared.contract import STAGES


class _Found(BaseException):
    """Ends the checks at the launch. It is no Exception, so that a check does not catch it."""

    def __init__(self, kernel: Any, launch: Any, arguments: list[Any]) -> None:
        self.kernel, self.launch, self.arguments = kernel, launch, arguments


class _Stops(Tally):
    """A Tally that stops the check where it looks at a launch."""

    def looks_at(self, kernel: Any, launch: Any, arguments: Any) -> None:
        raise _Found(kernel, launch, list(arguments))


def look(workspace: Workspace, task: Task, device: str) -> Profile:
    """The profile of the learner's kernel of a task. Stage 4 must not have been imported, and runs on the emulator.

    Raises ValueError for a task that is no kernel, or is not written yet; KernelError for a kernel that cannot be
    compiled, as it stands in the learner's file. An error while the kernel runs is in the profile.
    """
    chosen = device_named(device)
    launch, assembled = launch_of(workspace, task)
    trace = trace_launch(launch.kernel, launch.grid, launch.block, launch.arguments)
    return profile_of_trace(_in_the_learners_file(trace, assembled, task), launch.kernel, launch.arguments, chosen)


def launch_of(workspace: Workspace, task: Task) -> tuple[Launch, assembly.Assembly]:
    """The launch of the learner's kernel, and the files that it was taken from. Raises what look raises."""
    if task.stage != STAGES[3] and not (task.fault and task.file.endswith(".py")):
        raise ValueError(f"learn lens: {task.id} is no kernel; the lens shows how kernels use memory, from 9.1 on")
    if workspace.is_stub(task) and not task.fault:
        raise ValueError(f"learn lens: {task.id} is not written yet; groundup learn hint {task.id} helps")
    folder = workspace.built / "lens" / task.id
    if task.fault:
        assembled = assembly.assemble_program(workspace, task, folder)
    else:
        assembled = assembly.assemble(workspace, [task], folder)
    assembly.use(assembled)
    found = _launch(task)
    return Launch(task.id, found.kernel, found.launch.grid, found.launch.block, tuple(found.arguments)), assembled


def _launch(task: Task) -> _Found:
    """The launch that the task's check of memory looks at."""
    try:
        for check in grading.task_checks(task.id):
            if check.name == "memory":
                check.run(_Stops())
    except _Found as found:
        if not isinstance(found.kernel, Kernel) or isinstance(found.kernel, DeviceFunction):
            raise ValueError(f"learn lens: {task.function} is no kernel: is @cuda.jit above its def?") from None
        return found
    except Wrong as wrong:
        raise ValueError(f"learn lens: {wrong.what}; groundup learn check {task.id} shows more") from None
    raise ValueError(f"learn lens: {task.id} is graded without a look at the memory of a launch")


def shown_place(assembled: assembly.Assembly, task: Task, file: str, line: int) -> tuple[str, int]:
    """The place of a line in the learner's file, or in the project's for a line of the project's."""
    projects = assembled.projects_line(file, line)
    return assembled.place(file, line) or ((str(ROOT / task.file), projects) if projects else (file, line))


def _in_the_learners_file(trace: Trace, assembled: assembly.Assembly, task: Task) -> Trace:
    """The trace with the place of every line in the learner's file, or in the project's for a line of the project's."""

    def place(file: str, line: int) -> tuple[str, int]:
        return shown_place(assembled, task, file, line)

    def moved(entry: Any) -> Any:
        file, line = place(entry.file, entry.line)
        return replace(entry, file=file, line=line)

    file, first_line = place(trace.file, trace.first_line)
    return replace(
        trace,
        file=file,
        first_line=first_line,
        sites=[moved(site) for site in trace.sites],
        operations=[moved(operation) for operation in trace.operations],
        not_traced=[moved(entry) for entry in trace.not_traced],
        device_functions=[(*place(name, first), lines) for name, first, lines in trace.device_functions],
        fault=assembled.told(trace.fault),
        fault_line=_line_of(trace, assembled),
    )


def _line_of(trace: Trace, assembled: assembly.Assembly) -> int:
    """The learner's line of the error that ended the run; the trace's own if the error is not in the assembled file."""
    places = [assembled.place(file, trace.fault_line) for file in assembled.lines if file in trace.fault]
    return places[0][1] if places and places[0] else trace.fault_line
