"""Checkpoint 7: LeNet-5 by the learner's functions, and a profile that is read."""

from __future__ import annotations

from groundup.course.checks.check import Check
from groundup.course.grading.checkpoints.phase7_kernels import lenet_by_kernels


def checkpoint() -> list[Check]:
    """LeNet-5 by the learner's kernels."""
    return lenet_by_kernels()
