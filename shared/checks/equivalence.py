"""Do two stages compute the same numbers, and if not, which operation differs first?

There are four levels of checks. Each one relies on the level before it:

    op           every operation alone, at awkward sizes; every rung of every ladder
    layer        one training step, op by op; each op gets the reference's numbers
    step         the network's own outputs, loss and gradients
    trajectory   the parameters after many steps, for every activation, loss and optimizer

`check_stage` runs all levels and returns a Report. It names the first divergence: the op, the layer, the index, both
values, and their distance in tolerances. shared/checks/tolerance.py derives how far apart two correct results may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shared.checks.convolution_ops import convolution_checks
from shared.checks.images import Images, has_images
from shared.checks.ops import MORE_SIZES, SIZES, matmul_checks, op_checks
from shared.checks.pair import Pair
from shared.checks.problems import random_problem
from shared.checks.steps import trace_step, whole_step
from shared.checks.tolerance import Comparison, compare, describe_tolerances, tolerance
from shared.checks.trajectory import compare_parameters, trajectory
from shared.contract import ACTIVATIONS, LOSSES, OPTIMIZERS, Stage

__all__ = [
    "LEVELS",
    "Comparison",
    "LevelSummary",
    "Report",
    "check_stage",
    "compare",
    "compare_parameters",
    "computes_in",
    "tolerance",
]

LEVELS = ("op", "layer", "step", "trajectory")


@dataclass(frozen=True)
class LevelSummary:
    """One level of a report: the number of checks, the number of failed ones, and the worst comparison."""

    level: str
    checks: int
    failed: int
    worst: Comparison


@dataclass(frozen=True)
class Report:
    """The result of `check_stage`: every comparison, in the order in which they were made."""

    stage: str
    reference: str
    dtype: str
    comparisons: list[Comparison]

    @property
    def failures(self) -> list[Comparison]:
        """The comparisons whose difference is larger than rounding explains, first level first."""
        return [c for c in self.comparisons if not c.ok]

    @property
    def ok(self) -> bool:
        """Whether there are no failures."""
        return not self.failures

    @property
    def first_divergence(self) -> Comparison | None:
        """The first comparison that failed; None if none did.

        If the same op also failed at the layer level, that comparison is returned instead, because it names the layer.
        """
        if self.ok:
            return None
        first = self.failures[0]
        traced = (c for c in self.failures if c.level == "layer" and c.op == first.op)
        return next(traced, first)

    @property
    def failed_ops(self) -> list[str]:
        """Each op that failed at any level, once, in the order they were found."""
        return list(dict.fromkeys(c.op for c in self.failures))

    def levels(self) -> list[LevelSummary]:
        """One summary for each level that ran."""
        found = []
        for level in LEVELS:
            of_level = [c for c in self.comparisons if c.level == level]
            if of_level:
                failed = sum(not c.ok for c in of_level)
                found.append(LevelSummary(level, len(of_level), failed, max(of_level, key=lambda c: c.tolerances)))
        return found

    def summary(self) -> str:
        """A few lines for people: the levels, and the first divergence if there is one."""
        verdict = "agrees with" if self.ok else "DISAGREES with"
        lines = [f"{self.stage} {verdict} {self.reference} in {self.dtype}"]
        for level in self.levels():
            count = f"{level.checks} checks" if not level.failed else f"{level.failed} of {level.checks} checks failed"
            worst = f"worst: {level.worst.place}, {describe_tolerances(level.worst.tolerances)}"
            lines.append(f"  {level.level}: {count}; {worst}")
        if self.first_divergence is not None:
            lines.append(f"  first divergence: {self.first_divergence}")
        return "\n".join(lines)


def check_stage(
    stage: Stage,
    reference: Stage,
    dtype: str = "float64",
    *,
    full: bool = False,
    steps: int | None = None,
    seed: int = 0,
    images: bool = True,
    on_level: Callable[[str], None] | None = None,
) -> Report:
    """Compare a stage with a reference, which computes in float64, at every level.

    dtype: "float32" or "float64", in which the stage under test computes
    full: more and larger sizes, and longer trajectories
    steps: length of the trajectories; None: 20, or 100 if full
    seed: of the random numbers; on_level: called with the name of each level before it runs
    images: with convolution, pooling and batch normalisation, where both stages have them
    If the stage is its own reference, only its matmul and its convolution are checked: every rung, both transposed
    products and the layer against the first rung.
    Raises ValueError if the stage does not compute in dtype.
    """
    if not computes_in(stage, dtype):
        raise ValueError(f"check: {stage.name} does not compute in {dtype}; check it in another dtype")
    steps = steps if steps is not None else 100 if full else 20
    pair = Pair(stage, reference, dtype)
    rng = np.random.default_rng(seed)
    sizes = (*SIZES, *MORE_SIZES) if full else SIZES
    announce = on_level or (lambda level: None)
    announce("op")
    with_images = images and has_images(stage) and has_images(reference)
    if stage.name == reference.name and dtype == "float64":
        own = [c for size in sizes for c in matmul_checks(pair, rng, size)]
        own += convolution_checks(pair, rng) if with_images else ()
        return Report(stage.name, reference.name, dtype, own)
    pictures = Images(pair, seed, full) if with_images else None
    comparisons = list(op_checks(pair, rng, sizes))
    comparisons.extend(pictures.op() if pictures else ())
    problems = [random_problem(pair, rng, activation, loss) for activation in ACTIVATIONS for loss in LOSSES]
    larger = [random_problem(pair, rng, name, "softmax_cross_entropy", (67, 31, 17, 10), 33) for name in ACTIVATIONS]
    traced = problems + larger if full else problems
    # A rung of a step may be for one hidden layer alone. Numbers of their own, so that all others stay what they were.
    shallow = [random_problem(pair, np.random.default_rng(seed), "tanh", loss, (70, 20, 3), 9) for loss in LOSSES]
    announce("layer")
    for problem in traced:
        comparisons.extend(trace_step(pair, problem))
    comparisons.extend(pictures.layer() if pictures else ())
    announce("step")
    for problem in [*traced, *shallow]:
        comparisons.extend(whole_step(pair, problem))
    comparisons.extend(pictures.step() if pictures else ())
    announce("trajectory")
    for problem in problems:
        for optimizer in OPTIMIZERS:
            comparisons.extend(trajectory(pair, problem, optimizer, steps=steps))
    comparisons.extend(pictures.trajectory() if pictures else ())
    return Report(stage.name, reference.name, dtype, comparisons)


def computes_in(stage: Stage, dtype: str) -> bool:
    """Whether the stage rounds to dtype. In float32 0.1 is a different number than in float64."""
    values = np.array([[0.1]], dtype)
    stored = np.asarray(stage.arrays.to_host(stage.arrays.asarray([[0.1]], dtype)), np.float64)
    return bool(stored[0, 0] == values[0, 0])
