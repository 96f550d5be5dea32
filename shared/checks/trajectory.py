"""The last level of the equivalence check: many training steps, and then the parameters.

The rounding errors of one step go on into the next ones. In a training that converges, a step does not enlarge the
differences of earlier steps, and the errors add up like a random walk: k is the number of steps times the longest sum
of a step. docs/numerics.md derives this, and says when it does not hold: if the learning rate is so high that training
diverges, or if an optimizer divides by a gradient that consists of rounding errors only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides
from shared.checks.steps import parameter_name
from shared.checks.tolerance import Comparison, compare, failed
from shared.contract import Stage

LEARNING_RATE, MOMENTUM = 0.01, 0.9

EPSILON = LEARNING_RATE / (1 - MOMENTUM)
"""Epsilon of RMSProp and Adam in the trajectories: 0.1. Near a gradient of 0 both move a parameter by
learning_rate / epsilon times the gradient, and so they enlarge its rounding error by that much. With their usual 1e-8
it would be a million times; with 0.1 it is a tenth, as with SGD and this momentum. (The first level uses 1e-8.)"""


def trajectory_optimizer(stage: Stage, name: str) -> Any:
    """SGD with momentum and weight decay, RMSProp or Adam, as the trajectories use them."""
    if name == "SGD":
        return stage.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM, weight_decay=1e-4)
    return getattr(stage.optimizers, name)(LEARNING_RATE, epsilon=EPSILON)


def trajectory(pair: Pair, problem: Problem, optimizer: str, steps: int) -> list[Comparison]:
    """Both networks trained for `steps` steps on the problem's batches in turn: one comparison for each parameter."""
    sides = Sides(pair, problem)
    ours, theirs = (trajectory_optimizer(stage, optimizer) for stage in (pair.stage, pair.reference))
    case = f"{optimizer}, {problem.name}, {steps} steps"
    for step in range(steps):
        batch = problem.batches[step % len(problem.batches)]
        try:
            sides.ours.train_step(*sides.for_stage(*batch), ours)
        except Exception as error:
            note = f"raised {type(error).__name__} in step {step + 1}: {error}"
            return [failed("Network.train_step", note, level="trajectory", case=case)]
        sides.theirs.train_step(*sides.for_reference(*batch), theirs)
    if not all(np.isfinite(pair.from_reference(p)).all() for p in sides.theirs.parameters):
        note = "the reference itself diverged, so there is nothing to compare; use another seed"
        return [failed("Network.train_step", note, level="trajectory", case=case)]
    got = [pair.from_stage(p) for p in sides.ours.parameters]
    expected = [pair.from_reference(p) for p in sides.theirs.parameters]
    return compare_parameters(got, expected, pair.dtype, steps=steps, case=case)


def compare_parameters(
    got: Sequence[Any],
    expected: Sequence[Any],
    dtype: str,
    *,
    steps: int,
    longest_sum: int | None = None,
    case: str = "",
) -> list[Comparison]:
    """Two networks' parameters [W1, b1, …] after the same `steps` training steps, one comparison for each.

    got, expected: arrays that numpy.asarray takes; dtype: the dtype in which `got` was trained
    longest_sum: the largest number of terms that one step adds; None: the largest in_features of all layers (give the
        batch size if it is larger)
    The scale of each parameter is its largest expected value.
    Raises ValueError if the numbers of parameters differ, or for less than one step.
    """
    if len(got) != len(expected):
        raise ValueError(f"compare_parameters: got {len(got)} parameters but {len(expected)} are expected")
    if steps < 1:
        raise ValueError(f"compare_parameters: steps is {steps}; expected at least 1")
    if longest_sum is None:
        longest_sum = max((len(np.asarray(p)) for p in expected[::2]), default=1)
    k = steps * longest_sum
    return [
        compare(
            f"trained parameters: {parameter_name(i)}",
            g,
            e,
            dtype,
            k,
            layer=i // 2 + 1,
            level="trajectory",
            case=case,
        )
        for i, (g, e) in enumerate(zip(got, expected, strict=True))
    ]
