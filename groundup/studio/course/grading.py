"""The process that grades for the page Course: `python -m groundup.studio.course.grading FOLDER TASK [REPORT]`.

It prints one JSON object: the verdict, what follows from it, and, where the check of memory fails, what the lens says.
It grades as `groundup learn check` does, so the learner's code runs in a process of its own below this one, within its
limits. When the page ends this process, that one sees it, and ends, too. This process ends with the studio, which holds
the other end of its input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from groundup.course.judging.verdict import Verdict
from groundup.course.learner.learners_folder import opened
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from groundup.course.rules.passing import ends_a_phase, grade
from shared.contract import STAGES
from shared.machine import processes
from shared.machine.results import as_json_line


def graded(folder: Path, task: Task, report: Path | None = None) -> dict[str, Any]:
    """Grade a task: {"verdict", "changed", "following", "phase", "lens"}, ready for JSON.

    following: the next task's id, or None; phase: the number of the phase that ends with this task, or None
    report: the file in which the studio reads how far the checks are
    lens: as lens_pictures.document has it, None where the lens has nothing to say about the verdict
    """
    workspace = opened(folder, course())
    found = grade(workspace, task, report)
    ends = found.verdict.passed and not task.fault and ends_a_phase(workspace, task)
    return {
        "verdict": {**found.verdict.document(), "picture": found.verdict.picture},
        "changed": found.changed,
        "following": found.following.id if found.following else None,
        "phase": workspace.course.phase_of(task).number if ends else None,
        "lens": lens(workspace, task, found.verdict.line) if concerns_memory(task, found.verdict) else None,
    }


def concerns_memory(task: Task, verdict: Verdict) -> bool:
    """Whether the verdict is about what a kernel of a stage does to memory. Of a detective exercise nothing is told:
    the lens would name the fault that is to be found."""
    failed = task.stage == STAGES[3] and not verdict.passed and not verdict.stub
    return failed and (verdict.failed_check == "memory" or "barrier" in verdict.cause)


def lens(workspace: Workspace, task: Task, line: int) -> dict[str, Any]:
    """What the lens says of the learner's kernel, the verdict's line first; or why it can say nothing."""
    from cuda_emulator import KernelError  # here, because a verdict that is no kernel's need not wait for it
    from cuda_emulator.inspection import DEFAULT_DEVICE as DEFAULT
    from groundup.compiling.emulator_hooks import emulator_for_stage_4
    from groundup.course.learners_lens import look  # and because stage 4 may not be imported before
    from groundup.studio.course import lens_pictures

    try:
        with emulator_for_stage_4():
            return lens_pictures.document(look(workspace, task, DEFAULT), line)
    except (ValueError, KernelError) as error:
        return {"said": str(error), "findings": [], "pictures": []}


if __name__ == "__main__":
    processes.end_with_input()
    print(as_json_line(graded(Path(sys.argv[1]), course().task(sys.argv[2]), *map(Path, sys.argv[3:]))))
