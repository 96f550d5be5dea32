"""Checkpoint 7: LeNet-5 by the learner's functions, and a profile that says what to mend first."""

from __future__ import annotations

from groundup.course.checks.check import Check
from groundup.course.grading.checkpoints.phase7_kernels import lenet_by_kernels
from groundup.course.grading.checkpoints.phase7_lenet import lenet_by_numpy
from groundup.course.grading.checkpoints.phase7_profile import profile_read


def checkpoint() -> list[Check]:
    """The parts of the phase, in the order of its weeks."""
    return [*lenet_by_numpy(), *lenet_by_kernels(), *profile_read()]
