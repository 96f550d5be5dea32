"""Checkpoint 3: the learner's C computes the same numbers as stage 1, and trains faster than NumPy."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.assembly import C_VARIABLE
from groundup.course.checks.check import Check, Tally
from groundup.course.grading.calling.c_functions import c_floor, numpy_floor
from groundup.course.grading.problems.matrices import matrices
from shared.contract import load_stage
from shared.initialize import initialize_parameters
from shared.machine import processes
from shared.numbers import duration, two_digits

CLOSE = 1e-5
"""The largest difference that passes between C's numbers and Python's, relative to the largest of them."""

STEPS, PAIRS, PER_PAIR = 10, 31, 3

AS_FAST = 1.5
"""A step may take so many times as long as with the project's own C, where NumPy is faster than both."""

MOST_SECONDS = 120.0
"""The time limit of measuring the project's own C, which may have to be compiled first."""


def checkpoint() -> list[Check]:
    """The learner's functions together compute the same as Python, and are faster than NumPy."""
    c_floor()
    return [Check("agrees with Python to 1e-5", agrees), Check("faster than NumPy", faster_than_numpy)]


def agrees(tally: Tally) -> None:
    """Every product, and some training steps by every kind of step, give the numbers of stage 1."""
    python, c = load_stage("stage1_pure_python"), c_floor()
    worst = 0.0

    def close(case: str, got: Any, expected: Any) -> None:
        nonlocal worst
        expected = np.asarray(expected, np.float64)
        difference = float(np.max(np.abs(np.asarray(got, np.float64) - expected)) / np.max(np.abs(expected)))
        tally.holds(
            difference <= CLOSE,
            f"{case} differs from stage 1",
            expected=f"at most {CLOSE:g} of the largest number",
            got=f"{difference:.2g}",
            cause="each function has passed alone: groundup learn check WEEK.NUMBER tells whether it still does",
        )
        worst = max(worst, difference)

    a, b = matrices(np.random.default_rng(1), (13, 70, 19))
    expected = python.matmul.matmul(a.tolist(), b.tolist())
    for name, rung in c.matmul.LADDER.items():
        tally.trying(f"the product by {name}")
        close(f"the product by {name}", rung(a.astype("float32"), b.astype("float32")), expected)
    rng = np.random.default_rng(2)
    x, labels = rng.standard_normal((8, 6)), rng.integers(0, 3, 8)
    parameters = initialize_parameters([6, 5, 3], "he", seed=1)
    reference = python.network.Network.from_parameters(parameters)
    optimizer = python.optimizers.SGD(0.1, momentum=0.9)
    for _ in range(STEPS):
        reference.train_step(x.tolist(), labels.tolist(), optimizer)
    for name, step in c.network.STEP_LADDER.items():
        for dtype in ("float64", "float32"):
            case = f"after {STEPS} steps by {name} in {dtype}"
            tally.trying(case)
            network = c.network.Network.from_parameters(parameters, dtype=dtype)
            optimizer = c.optimizers.SGD(0.1, momentum=0.9)
            for _ in range(STEPS):
                step(network, x, labels, optimizer)
            close(f"the output {case}", network.forward(x), reference.forward(x.tolist()))
            for parameter, right in zip(network.parameters, reference.parameters, strict=True):
                close(f"a parameter {case}", parameter, right)
    tally.note(f"the largest difference from stage 1 is {worst:.1e} of the largest number, float32 included")


def faster_than_numpy(tally: Tally) -> None:
    """A training step of 784-128-10 with 64 images, measured in turn with stage 2's, as the median of many pairs.

    Some libraries behind NumPy are faster than any C of this course. Where stage 2 is the faster one, the step must be
    about as fast as with the project's own C, measured in a process of its own.
    """
    tally.trying("training steps of 784-128-10 with 64 images")
    mine, numpys, ratio = beside_numpy()
    text = f"a step takes {duration(mine)} in your C and {duration(numpys)} in NumPy, {two_digits(ratio)} times as long"
    measured = f"(784-128-10, 64 images, float32, the median of {PAIRS} pairs)"
    cause = "which function is slow? Most of a step is the micro-kernel, and groundup learn check 8.3 measures its time"
    theirs = projects_seconds() if ratio >= 1 else None
    if theirs is None:
        tally.holds(ratio < 1, text, expected="less than 1 times", cause=cause)
        tally.note(f"{text} {measured}")
        return
    tally.holds(
        mine <= AS_FAST * theirs,
        f"{text}; with the project's own C it takes {duration(theirs)}",
        expected=f"less than 1 times, or at most {AS_FAST:g} times as long as with the project's own C",
        cause=cause,
    )
    tally.note(
        f"{text} {measured}; the library behind this machine's NumPy is faster than the project's own C, too, with "
        f"which a step takes {duration(theirs)}"
    )


def beside_numpy() -> tuple[float, float, float]:
    """(seconds of a step in C, of a step in NumPy, the median ratio of the two), measured in turn."""
    steps = [training_step(stage) for stage in (c_floor(), numpy_floor())]
    times: list[list[float]] = [[], []]
    for pair in range(-3, PAIRS):
        for which in (0, 1) if pair % 2 else (1, 0):
            seconds = _seconds(steps[which])
            if pair >= 0:
                times[which].append(seconds)
    mine, numpys = (statistics.median(each) for each in times)
    return mine, numpys, statistics.median(a / b for a, b in zip(*times, strict=True))


def projects_seconds() -> float | None:
    """The seconds of a step with the project's own C; None if they cannot be measured."""
    code = f"import {__name__} as phase; print(phase.own_seconds())"
    variables = {name: value for name, value in os.environ.items() if name != C_VARIABLE}
    done = processes.run(
        processes.python("-c", code), MOST_SECONDS, variables=processes.finding_our_packages(variables)
    )
    return float(done.output) if done.code == 0 else None


def own_seconds() -> float:
    """The median seconds of a step with the C that this process builds."""
    step = training_step(c_floor())
    return statistics.median([_seconds(step) for _ in range(-3, PAIRS)][3:])


def training_step(stage: Any) -> Callable[[], object]:
    """A training step of a stage, with the numbers that every stage gets."""
    rng = np.random.default_rng(3)
    x, labels = rng.random((64, 784), np.float32), rng.integers(0, 10, 64)
    parameters = initialize_parameters([784, 128, 10], "he", seed=1)
    network, optimizer = stage.network.Network.from_parameters(parameters), stage.optimizers.SGD(0.1)
    return lambda: network.train_step(x, labels, optimizer)


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(PER_PAIR):
        step()
    return (time.perf_counter() - start) / PER_PAIR
