"""Do two stages compute the same, and if not, where do they part?

Four levels, each standing on the one before:

    op           every operation alone, at awkward sizes; every rung of the matmul ladder
    layer        one training step traced op by op, each fed with the reference's numbers
    step         the network's own outputs, loss and gradients
    trajectory   the parameters after many steps, for every activation, loss and optimizer

`check_stage` runs them all and returns a Report, which knows the first divergence: the op, the layer, the
index, both values, and how many tolerances they are apart. How far apart two correct answers may be is
shared/checks/tolerance.py's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
    """One level of a report: how many checks ran, how many failed, and the comparison that came out worst."""

    level: str
    checks: int
    failed: int
    worst: Comparison


@dataclass(frozen=True)
class Report:
    """What `check_stage` found: every comparison, in the order they were made."""

    stage: str
    reference: str
    dtype: str
    comparisons: list[Comparison]

    @property
    def failures(self) -> list[Comparison]:
        """The comparisons that no rounding explains, first level first."""
        return [c for c in self.comparisons if not c.ok]

    @property
    def ok(self) -> bool:
        """Whether there are none."""
        return not self.failures

    @property
    def first_divergence(self) -> Comparison | None:
        """The first comparison that failed; None if none did.

        Where the traced step finds the same op guilty, that finding is returned instead, for it also knows the layer.
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
    on_level: Callable[[str], None] | None = None,
) -> Report:
    """Compare a stage with a reference, which computes in float64, at every level.

    dtype: what the stage under test computes in, "float32" or "float64"
    full: more and larger sizes, and longer trajectories
    steps: of the trajectories; 20, or 100 where full, if None
    seed: of the random numbers; on_level: called with the name of each level before it runs
    The reference compared with itself has only its matmul ladder to answer for: every rung and both transposed
    products against the plainest rung.
    Raises ValueError where the stage does not compute in dtype.
    """
    if not computes_in(stage, dtype):
        raise ValueError(f"check: {stage.name} does not compute in {dtype}; check it in another dtype")
    steps = steps if steps is not None else 100 if full else 20
    pair = Pair(stage, reference, dtype)
    rng = np.random.default_rng(seed)
    sizes = (*SIZES, *MORE_SIZES) if full else SIZES
    announce = on_level or (lambda level: None)
    announce("op")
    if stage.name == reference.name and dtype == "float64":
        return Report(stage.name, reference.name, dtype, [c for size in sizes for c in matmul_checks(pair, rng, size)])
    comparisons = list(op_checks(pair, rng, sizes))
    problems = [random_problem(pair, rng, activation, loss) for activation in ACTIVATIONS for loss in LOSSES]
    larger = [random_problem(pair, rng, name, "softmax_cross_entropy", (67, 31, 17, 10), 33) for name in ACTIVATIONS]
    traced = problems + larger if full else problems
    announce("layer")
    for problem in traced:
        comparisons.extend(trace_step(pair, problem))
    announce("step")
    for problem in traced:
        comparisons.extend(whole_step(pair, problem))
    announce("trajectory")
    for problem in problems:
        for optimizer in OPTIMIZERS:
            comparisons.extend(trajectory(pair, problem, optimizer, steps=steps))
    return Report(stage.name, reference.name, dtype, comparisons)


def computes_in(stage: Stage, dtype: str) -> bool:
    """Whether the stage rounds to dtype: 0.1 is another number in float32 than in float64."""
    values = np.array([[0.1]], dtype)
    stored = np.asarray(stage.arrays.to_host(stage.arrays.asarray([[0.1]], dtype)), np.float64)
    return bool(stored[0, 0] == values[0, 0])
