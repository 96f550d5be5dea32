"""Checkpoint 7: LeNet-5 by the learner's functions reads digits."""

from __future__ import annotations

from groundup.course.checks.check import Check
from groundup.course.grading.checkpoints.phase7_lenet import lenet_by_numpy


def checkpoint() -> list[Check]:
    """All parts of the checkpoint."""
    return [*lenet_by_numpy()]
