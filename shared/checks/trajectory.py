"""The last level of the equivalence check: many training steps, and then the parameters and running statistics.

The rounding errors of one step go on into the next ones. In a training that converges, a step does not enlarge the
differences of earlier steps, and the errors add up like a random walk: k is the number of steps times the longest sum
of a step. docs/numerics.md derives this, and says when it does not hold: if the learning rate is so high that training
diverges, or if an optimizer divides by a gradient that consists of rounding errors only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides
from shared.checks.steps import layer_number
from shared.checks.tolerance import C, Comparison, compare, eps, failed
from shared.contract import Stage
from shared.layers import BatchNorm, Conv

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


def trajectory(
    pair: Pair,
    problem: Problem,
    optimizer: str,
    steps: int,
    share: float | None = None,
    take: Callable[..., object] | None = None,
) -> list[Comparison]:
    """Both networks trained for `steps` steps on the problem's batches in turn, every second step with dropout.

    share: of the largest number of each array, that two of them may differ by instead; None for k as above
    take: a rung of the step ladder, (network, x, y, optimizer, masks); None: `train_step`
    """
    sides = Sides(pair, problem)
    ours, theirs = (trajectory_optimizer(stage, optimizer) for stage in (pair.stage, pair.reference))
    where: dict[str, Any] = {"level": "trajectory", "case": f"{optimizer}, {problem.name}, {steps} steps"}
    masks = (None, None), sides.masks(bool(problem.masks))
    for step in range(steps):
        batch = problem.batches[step % len(problem.batches)]
        for_ours, for_theirs = masks[(step + 1) % 2]
        try:
            arguments = (*sides.for_stage(*batch), ours, for_ours)
            take(sides.ours, *arguments) if take else sides.ours.train_step(*arguments)
        except Exception as error:
            note = f"raised {type(error).__name__} in step {step + 1}: {error}"
            return [failed("Network.train_step", note, **where)]
        sides.theirs.train_step(*sides.for_reference(*batch), theirs, for_theirs)
    k = steps * longest_sum(problem.architecture, problem.batch)
    return compare_trained(sides, k if share is None else max(1.0, (share / (C * eps(pair.dtype))) ** 2), **where)


def longest_sum(architecture: Architecture, batch: int) -> int:
    """The largest number of terms that one step adds up to one number.

    In the forward pass that is a layer's inputs to one output. In the backward pass a convolution's gradient is a sum
    over all places of all images of the batch, and a dense layer's over the batch.
    """
    places = [math.prod(each.output_shape[1:]) for each in architecture.placed() if isinstance(each.layer, Conv)]
    fans = [max(each.fan_in, each.fan_out) for each in architecture.parameters()]
    return max(batch * max(places, default=1), *fans)


def compare_trained(sides: Sides, k: float, **where: Any) -> list[Comparison]:
    """Both networks after their steps: a comparison for each parameter and running statistic. where: of Comparison"""
    pair, architecture = sides.pair, sides.problem.architecture
    expected = [pair.from_reference(each) for each in (*sides.theirs.parameters, *sides.theirs.running_statistics)]
    if not all(np.isfinite(each).all() for each in expected):
        note = "the reference itself diverged, so there is nothing to compare; use another seed"
        return [failed("Network.train_step", note, **where)]
    got = [pair.from_stage(each) for each in (*sides.ours.parameters, *sides.ours.running_statistics)]
    return compare_parameters(got, expected, architecture, pair.dtype, k, **where)


def compare_parameters(
    got: Sequence[Any],
    expected: Sequence[Any],
    architecture: Architecture,
    dtype: str,
    k: float,
    case: str = "",
    level: str = "trajectory",
) -> list[Comparison]:
    """Two networks' parameters, and running statistics if they are given, after the same steps: a comparison for each.

    got, expected: arrays that numpy.asarray takes; dtype: the dtype in which `got` was trained
    k: the number of steps times `longest_sum`. The scale of each parameter is its largest expected value.
    Raises ValueError if there are more or fewer arrays than the architecture has.
    """
    names = [parameter.name for parameter in architecture.parameters()]
    norms = [placed.number for placed in architecture.placed() if isinstance(placed.layer, BatchNorm)]
    statistics = [f"layer {n}, BatchNorm: {name}" for n in norms for name in ("running_mean", "running_var")]
    if len(got) != len(expected) or len(got) not in (len(names), len(names) + len(statistics)):
        raise ValueError(
            f"compare_parameters: got {len(got)} arrays and {len(expected)} are expected, but the architecture has "
            f"{len(names)} parameters"
        )
    return [
        compare(f"trained {name.partition(': ')[2]}", g, e, dtype, k, layer=layer_number(name), level=level, case=case)
        for name, g, e in zip([*names, *statistics], got, expected, strict=False)
    ]
