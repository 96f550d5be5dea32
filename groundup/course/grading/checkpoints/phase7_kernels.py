"""Checkpoint 7, the part of week 23: LeNet-5 by the learner's kernels, on the emulator where there is no GPU.

The step is the one that calls a kernel for every operation. The right numbers are those of stage 2 in float64, and how
far float32 may be from them is derived as `groundup check` derives it (shared/checks/trajectory.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course import learners_stage
from groundup.course.checks.check import Check, Tally
from groundup.course.grading.calling.kernel_launches import module
from groundup.course.grading.checkpoints.learners_training import TOGETHER
from shared.architectures import Architecture, lenet5
from shared.checks.pair import Pair
from shared.checks.problems import Problem, random_problem
from shared.checks.tolerance import compare
from shared.checks.trajectory import longest_sum, trajectory
from shared.contract import STAGES, Stage, load_stage
from shared.data.datasets import load_dataset
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool
from shared.numbers import three_digits

BATCH = 8

STEPS = 3
"""After more steps, rounding alone may take a ReLU or a maximum to the other side (shared/checks/equivalence.py)."""

RUNGS = {"naive": "23.1", "halo_tile": "23.2 and 23.3", "implicit_tile": "23.4"}
"""The convolutions of stage 4 that the week's kernels compute, and their tasks."""

LOSS = "softmax_cross_entropy"


def lenet_by_kernels() -> list[Check]:
    """LeNet-5 forward by each of the convolutions; its training; and that of a network with batch normalisation."""
    return [
        Check("LeNet-5 forward by your convolutions", _forward),
        Check("LeNet-5 trained by your kernels", lambda tally: _trained(tally, "LeNet-5", lenet5())),
        Check("a network that normalises", lambda tally: _trained(tally, "a network that normalises", normalising())),
    ]


def normalising() -> Architecture:
    """Two convolutions with batch normalisation, one with a stride, and pools whose windows overlap."""
    relu = Activate("relu")
    first = Conv(4, 3, padding=1), BatchNorm(), relu, MaxPool(3, 2)
    second = Conv(8, 3, stride=2), BatchNorm(), relu, MaxPool(2)
    return Architecture((1, 28, 28), (*first, *second, Flatten(), Dense(10)))


def _posed(title: str, architecture: Architecture) -> tuple[Pair, Problem]:
    """Stage 4 beside stage 2, and a network with random numbers and the first images of the bundled digits."""
    stage = load_stage(STAGES[3])
    learners_stage.prepare(stage, [])
    pair = Pair(stage, load_stage(STAGES[1]), "float32")
    digits = load_dataset("mnist-subset").train
    x = pair.rounded(digits.x[:BATCH].reshape(BATCH, *architecture.input_shape))
    problem = random_problem(pair, np.random.default_rng(7), title, architecture, LOSS, BATCH, 0)
    return pair, replace(problem, batches=[(x, np.asarray(digits.y[:BATCH], np.int64))])


def _network(stage: Stage, problem: Problem, dtype: str) -> Any:
    return stage.network.Network.from_parameters(problem.parameters, architecture=problem.architecture, dtype=dtype)


def _forward(tally: Tally) -> None:
    pair, problem = _posed("LeNet-5", lenet5())
    x = problem.batches[0][0]
    expected = pair.from_reference(_network(pair.reference, problem, "float64").forward(pair.to_reference(x)))
    network, network_file, passes = (
        _network(pair.stage, problem, "float32"),
        module("network"),
        module("convolution_passes"),
    )
    fastest = passes.FASTEST
    try:
        for rung, tasks in RUNGS.items():
            tally.trying(f"LeNet-5 forward, its convolutions by {rung}")
            passes.FASTEST = passes.FORWARD[rung]
            outputs = network_file.forward(network.layers, pair.to_stage(x), network_file.Pass(False, None))
            got = pair.from_stage(outputs[-1])
            found = compare(rung, got, expected, "float32", len(network.layers) * longest_sum(problem.architecture, 1))
            tally.holds(
                found.ok,
                f"the scores of {BATCH} digits by LeNet-5, its convolutions by {rung} ({tasks}): {found}",
                cause=TOGETHER,
            )
    finally:
        passes.FASTEST = fastest
    tally.note(f"{', '.join(RUNGS)}: each gives the scores of stage 2 for {BATCH} digits")


def _trained(tally: Tally, title: str, architecture: Architecture) -> None:
    pair, problem = _posed(title, architecture)
    losses: list[float] = []
    step = module("network").STEP_LADDER[learners_stage.FIRST_STEP]
    tally.trying(f"{STEPS} steps of {title}")
    found = trajectory(pair, problem, "SGD", STEPS, take=lambda *arguments: losses.append(float(step(*arguments))))
    for each in found:
        tally.holds(each.ok, f"{title} after {STEPS} steps is not what stage 2 has: {each}", cause=TOGETHER)
    words = ", ".join(three_digits(loss) for loss in losses)
    tally.holds(
        len(losses) == STEPS and losses[-1] < losses[0],
        f"the loss of {title} does not fall: {words}",
        expected="a smaller one after each step",
        cause=TOGETHER,
    )
    tally.note(f"{title}: the loss of {BATCH} digits is {words}, and all numbers are those of stage 2")
