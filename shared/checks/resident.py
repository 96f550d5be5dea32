"""Runs whose data stay on the device, beside the reference, which is fed by the host.

    bytes          a byte for each pixel and a table of the numbers; the labels as they are
    bytes, moved   the same, each image turned and shifted on the device
    any numbers    no bytes; targets made of the labels; a dropout mask for each step, drawn on the device

A device takes these steps with kernels that no step from the host needs: they pick a batch, draw its masks, and keep
its losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.architectures import Architecture, mlp
from shared.checks.pair import Pair
from shared.checks.problems import SMALL, Sides, random_problem
from shared.checks.tolerance import Comparison, compare
from shared.checks.trajectory import LEARNING_RATE, compare_trained, longest_sum, trajectory_optimizer
from shared.dropout import step_masks
from shared.names import LABEL_LOSSES

SEED, STEPS_BEFORE = 5, 8
"""Of the dropout masks: the run's seed, and the steps of the training before those that are taken."""


@dataclass(frozen=True)
class Run:
    """An epoch with the data on the device; its last batch is one sample smaller than the others.

    rung: the one to take; None for the run's own choice
    as_bytes: whether the data are bytes; moved: whether they are images that are moved
    """

    architecture: Architecture
    loss: str = "softmax_cross_entropy"
    optimizer: str = "Adam"
    batch: int = 4
    steps: int = 4
    rung: str | None = None
    as_bytes: bool = True
    moved: bool = False


def dense(*sizes: int, batch: int = 9, steps: int = 5, rung: str | None = None, as_bytes: bool = True) -> Run:
    """A run of a stack of dense layers."""
    return Run(mlp(sizes), optimizer="SGD", batch=batch, steps=steps, rung=rung, as_bytes=as_bytes)


DENSE = (17, 13, 7)
RUNS = {
    "dense layers": dense(*DENSE),
    "dense layers, graph": dense(*DENSE, rung="graph"),
    "dense layers, graph, any numbers": dense(*DENSE, rung="graph", as_bytes=False),
    "dense layers, fused": dense(*DENSE, rung="fused"),
    "images of bytes": Run(*SMALL["residual block"]),
    "images of bytes, moved": Run(*SMALL["convolutions"], moved=True),
    "images of any numbers": Run(*SMALL["strides, dropout"], as_bytes=False),
}
"""A run of dense layers on a GPU chooses the persistent kernel, so that only the others launch the kernels that pick a
batch. Of the four steps with images a GPU launches the first, and replays the next two; the last is smaller."""

LARGE = {
    "dense layers, graph, 256 rows": dense(784, 128, 10, batch=256, steps=2, rung="graph"),
    "dense layers, 1024 rows": dense(32, 512, 64, 10, batch=1024, steps=2),
}
"""Runs for a GPU alone, which takes kernels with register tiles for batches of this size, with tiles of 32 by 32 and of
64 by 64. Two steps: what a step computes is in the parameters after it."""


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
    one."""
    random = np.random.default_rng(6)
    problem = random_problem(pair, random, "resident", run.architecture, run.loss, run.batch, batches=1)
    architecture, sides, count = problem.architecture, Sides(pair, problem), run.steps * run.batch - 1
    shape, classes = (count, *architecture.input_shape), architecture.output_shape[0]
    x: np.ndarray = random.standard_normal(shape).astype(np.float32)
    if run.as_bytes:
        x = random.integers(0, 256, shape).astype(pair.dtype) / np.dtype(pair.dtype).type(255)
    labels, order = random.integers(0, classes, count), random.permutation(count)
    moves = HalfTurns() if run.moved else None
    seen = x.astype(np.float64) if moves is None else moves.changed(x.astype(np.float64))
    targets = labels if run.loss in LABEL_LOSSES else np.eye(classes)[labels]

    ours, theirs = (trajectory_optimizer(stage, run.optimizer) for stage in (pair.stage, pair.reference))
    taken: Any = sides.ours.resident(x.reshape(count, -1), labels, ours, run.batch, SEED, moves)
    if run.rung is not None:
        taken.rung = run.rung
    taken.begin_epoch(order)
    losses = taken.take(0, [LEARNING_RATE] * run.steps, STEPS_BEFORE)
    expected = []
    for step in range(run.steps):
        chosen = order[step * run.batch : (step + 1) * run.batch]
        masks = step_masks(len(chosen), architecture.dropouts(), SEED, STEPS_BEFORE + step, "float64")
        own_masks = None if masks is None else [pair.to_reference(pair.rounded(mask)) for mask in masks]
        expected.append(sides.theirs.train_step(*sides.for_reference(seen[chosen], targets[chosen]), theirs, own_masks))
    k = run.steps * longest_sum(architecture, run.batch)
    where: dict[str, Any] = {"level": "trajectory", "case": f"{run.loss}, batch {run.batch}, {run.steps} steps"}
    return [
        compare("losses", np.array(losses), np.array(expected), pair.dtype, k, **where),
        *compare_trained(sides, k, **where),
    ]
