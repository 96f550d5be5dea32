"""Runs of convolutional networks whose data stay on the device, beside the reference, which is fed by the host.

    images of bytes        a byte for each pixel and a table of the numbers; the labels as they are
    images of bytes, moved
                           the same, each image turned and shifted on the device
    any numbers            no bytes; targets made of the labels; a dropout mask for each step, drawn on the device

A device takes these steps with kernels that no step from the host needs: they pick a batch, draw its masks, and keep
its losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.checks.layered_problems import SMALL, LayeredSides, layered_problem
from shared.checks.layered_steps import compare_trained
from shared.checks.pair import Pair
from shared.checks.tolerance import Comparison, compare
from shared.checks.trajectory import LEARNING_RATE, trajectory_optimizer
from shared.contract import LABEL_LOSSES
from shared.dropout import step_masks

BATCH = 4
COUNT = 4 * BATCH - 1
"""Samples of an epoch. A GPU launches the first of the four steps, and replays the next two; the last is smaller."""

SEED, STEPS_BEFORE = 5, 8
"""Of the dropout masks: the run's seed, and the steps of the training before those that are taken."""


@dataclass(frozen=True)
class Run:
    """problem: one of SMALL; as_bytes: whether its inputs are images of bytes; moved: whether these are moved"""

    name: str
    problem: str
    as_bytes: bool = True
    moved: bool = False


RUNS = (
    Run("images of bytes", "residual block"),
    Run("images of bytes, moved", "convolutions", moved=True),
    Run("any numbers", "strides, dropout", as_bytes=False),
)


class HalfTurns:
    """Changes of images that slicing can do, too: every second image is turned by 180 degrees, and all are shifted."""

    shift, background = 1, 0.25

    def changes(self, samples: np.ndarray, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(angles in radians, pixels down, pixels right) for these samples; the same in every epoch."""
        return samples % 2 * math.pi, samples % 3 - 1.0, samples // 2 % 3 - 1.0

    def changed(self, images: np.ndarray) -> np.ndarray:
        """The samples 0, 1, … as the network is to see them; images (N, C, H, W)."""
        angles, down, right = self.changes(np.arange(len(images)), 0, 0)
        height, width = images.shape[2:]
        found = np.full(images.shape, self.background)
        for to, image, angle, below, beside in zip(found, images, angles, down, right, strict=True):
            turned = image[:, ::-1, ::-1] if angle else image
            framed = np.pad(turned, ((0, 0), (1, 1), (1, 1)), constant_values=self.background)
            top, left = 1 - int(below), 1 - int(beside)
            to[...] = framed[:, top : top + height, left : left + width]
        return found


def resident_run(pair: Pair, run: Run) -> list[Comparison]:
    """Losses, parameters and running statistics after an epoch that is taken in one go, beside as many steps one by
    one. The last batch is smaller than the others."""
    random = np.random.default_rng(6)
    problem = layered_problem(pair, random, run.problem, *SMALL[run.problem], batch=BATCH, batches=1)
    architecture, sides = problem.architecture, LayeredSides(pair, problem)
    shape, classes = (COUNT, *architecture.input_shape), architecture.output_shape[0]
    x: np.ndarray = random.standard_normal(shape).astype(np.float32)
    if run.as_bytes:
        x = random.integers(0, 256, shape).astype(pair.dtype) / np.dtype(pair.dtype).type(255)
    labels, order = random.integers(0, classes, COUNT), random.permutation(COUNT)
    moves = HalfTurns() if run.moved else None
    seen = x.astype(np.float64) if moves is None else moves.changed(x.astype(np.float64))
    targets = labels if problem.loss in LABEL_LOSSES else np.eye(classes)[labels]

    ours, theirs = (trajectory_optimizer(stage, "Adam") for stage in (pair.stage, pair.reference))
    taken: Any = sides.ours.resident(x.reshape(COUNT, -1), labels, ours, BATCH, 0.0, SEED, moves)
    taken.begin_epoch(order)
    batches = [order[first : first + BATCH] for first in range(0, COUNT, BATCH)]
    losses = taken.take(0, [LEARNING_RATE] * len(batches), STEPS_BEFORE)
    expected = []
    for step, chosen in enumerate(batches):
        masks = step_masks(len(chosen), architecture.dropouts(), SEED, STEPS_BEFORE + step, "float64")
        given = None if masks is None else [pair.to_reference(pair.rounded(mask)) for mask in masks]
        expected.append(sides.theirs.train_step(*sides.for_reference(seen[chosen], targets[chosen]), theirs, given))
    k = len(batches) * problem.longest_sum
    where: dict[str, Any] = {"level": "trajectory", "case": f"{problem.name}, {len(batches)} steps"}
    return [
        compare("losses", np.array(losses), np.array(expected), pair.dtype, k, **where),
        *compare_trained(sides, k, **where),
    ]
