"""What several checkpoints share: training with the learner's functions together."""

from __future__ import annotations

from typing import Any

from groundup.course import grading
from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.manifest import course
from shared.data.datasets import Split
from shared.training.loop import train
from shared.training.settings import QUIET, TrainingSettings

TOGETHER = "check the functions one by one: groundup learn check grades each alone, with the project's own around it"


def each_alone(*tasks: str) -> Check:
    """The check that each of these functions passes its own checks: it names the function that is wrong."""

    def check(tally: Tally) -> None:
        for number in tasks:
            task = course().task(number)
            tally.trying(f"{task.id} {task.function} alone")
            for task_check in grading.task_checks(number):
                try:
                    task_check.run(Tally())
                except Wrong as wrong:
                    wrong.what = f"{task.function} ({task.id}) is wrong, in its check {task_check.name}: {wrong.what}"
                    raise
                except Exception as error:
                    prefix = f"{task.function} ({task.id}) is wrong, in its check {task_check.name}: "
                    raise Wrong(
                        f"{prefix}{type(error).__name__}: {error}",
                        cause=f"groundup learn check {task.id} grades it alone",
                    ) from error
            tally.holds(True, f"{task.id} is right")

    return Check("each function alone", check)


def tasks_of(phase: int) -> list[str]:
    """The tasks of a phase, by their numbers."""
    return [task.id for task in course().tasks if course().phase_of(task).number == phase]


def trained(floor: Any, network: Any, optimizer: Any, data: Split, **settings: Any) -> None:
    """Train the network. Raises Wrong if the training diverges."""
    try:
        train(floor, network, optimizer, data, TrainingSettings(**settings), hooks=QUIET)
    except ValueError as error:
        if "diverged" not in str(error):
            raise
        raise Wrong(f"the training diverged: {str(error).partition(':')[0]}", cause=TOGETHER) from None
