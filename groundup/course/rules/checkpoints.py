"""Grading what ends a phase, and when it counts as the learner's."""

from __future__ import annotations

from groundup.course.judging.judge import judge_checkpoint
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Phase, Task
from groundup.course.rules.order import today


def entry_name(phase: Phase) -> str:
    """The name of a checkpoint in progress.toml."""
    return f"checkpoint {phase.number}"


def own_functions(workspace: Workspace, phase: Phase) -> list[Task]:
    """The phase's tasks that have passed: their functions are the learner's, all others the project's."""
    return [task for week in phase.weeks for task in week.tasks if workspace.passed(task)]


def changed_functions(workspace: Workspace, phase: Phase) -> list[Task]:
    """The phase's tasks that passed with an earlier text: their functions are the project's until they pass again."""
    tasks = [task for week in phase.weeks for task in week.tasks]
    return [task for task in tasks if workspace.record.of(task.id).state == "passed" and not workspace.passed(task)]


def grade_checkpoint(workspace: Workspace, phase: Phase, own: list[Task]) -> tuple[Verdict, bool]:
    """(verdict, whether it counts as the learner's). It counts, and is written down, if all functions are theirs.

    own: what `own_functions` found before
    """
    verdict = judge_checkpoint(workspace, phase)
    counts = verdict.passed and len(own) == sum(len(week.tasks) for week in phase.weeks)
    if counts:
        entry = workspace.record.of(entry_name(phase))
        entry.state, entry.on = "passed", today()
        workspace.save()
    return verdict, counts
