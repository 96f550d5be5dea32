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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shared.architectures import NAMED
from shared.checks import batch_norm_ops, convolution_ops, pooling_ops
from shared.checks.convolution_ops import convolution_checks
from shared.checks.ops import MORE_SIZES, SIZES, matmul_checks, op_checks
from shared.checks.pair import Pair
from shared.checks.problems import Problem, dense_problem, known_problem, small_problems
from shared.checks.steps import trace_step, whole_step
from shared.checks.tolerance import Comparison, compare, describe_tolerances, tolerance
from shared.checks.trajectory import compare_parameters, longest_sum, trajectory
from shared.contract import STAGES, Stage, load_stage
from shared.names import ACTIVATIONS, LOSSES, OPTIMIZERS

__all__ = [
    "LEVELS",
    "Comparison",
    "LevelSummary",
    "Report",
    "check_stage",
    "compare",
    "compare_parameters",
    "computes_in",
    "longest_sum",
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


STEPS, MORE_STEPS, STEPS_OF_IMAGES = 20, 100, 30
"""Steps of the trajectories: of stacks of dense layers, the same in a full check, and of SMALL."""
KNOWN_STEPS = {"float64": 30, "float32": 3}
"""Steps of the known networks. In float32 a residual network is trained apart by rounding alone: of hundreds of
thousands of ReLUs and maxima some are within rounding of a kink, and with two images each of them matters. After 3
steps no parameter is 0.03 tolerances away, after 10 some may be a hundred; in float64 30 steps agree."""
KNOWN_SHARE = 1e-10
"""How far apart the known networks may be after their steps in float64, as a share of the largest number of an array:
batch normalisation over two images enlarges a difference from step to step, so that the rule for small networks, which
assumes that none is enlarged, was left by a factor of 15 where nothing was wrong. That is 3e-12."""
KNOWN_BATCH = 2
FIRST_FLOOR_STEPS = 2
"""Steps of LeNet-5 where pure Python takes them; the other two networks it leaves out."""


@dataclass(frozen=True)
class Posed:
    """A problem, the stages that compute it, and what is compared.

    optimizers, steps, share: of its trajectories, as `trajectory` takes them
    traced: whether each layer is checked alone; rungs: whether every rung of the step ladder is checked
    """

    pair: Pair
    problem: Problem
    optimizers: Sequence[str] = ()
    steps: int = 0
    share: float | None = None
    traced: bool = True
    rungs: bool = True


def check_stage(
    stage: Stage,
    reference: Stage,
    dtype: str = "float64",
    *,
    full: bool = False,
    steps: int | None = None,
    seed: int = 0,
    images: bool = True,
    on_level: Callable[[str, float], None] | None = None,
) -> Report:
    """Compare a stage with a reference, which computes in float64, at every level.

    dtype: "float32" or "float64", in which the stage under test computes
    full: more and larger sizes, longer trajectories, and the known networks
    steps: length of the trajectories of small networks; None: as STEPS, MORE_STEPS and STEPS_OF_IMAGES say
    seed: of the random numbers; on_level: called with the name of a level and the share of it that is done, from 0
    images: with convolution, pooling and batch normalisation
    If the stage is its own reference, only its matmul and its convolution are checked: every rung, both transposed
    products and the layer against the first rung.
    Raises ValueError if the stage does not compute in dtype.
    """
    if not computes_in(stage, dtype):
        raise ValueError(f"check: {stage.name} does not compute in {dtype}; check it in another dtype")
    pair = Pair(stage, reference, dtype)
    rng, rng_of_images = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    sizes = (*SIZES, *MORE_SIZES) if full else SIZES
    announce = on_level or (lambda level, share: None)
    announce("op", 0.0)
    if stage.name == reference.name and dtype == "float64":
        own = [c for size in sizes for c in matmul_checks(pair, rng, size)]
        own += convolution_checks(pair, rng_of_images) if images else ()
        return Report(stage.name, reference.name, dtype, own)
    posed = dense_problems(pair, rng, seed, full, steps)
    posed += image_problems(pair, rng_of_images, seed, full, steps) if images else ()
    levels: dict[str, list[Iterable[Comparison]]] = {
        "op": [op_checks(pair, rng, sizes), *(image_op_checks(pair, rng_of_images, full) if images else ())],
        "layer": [trace_step(case.pair, case.problem) for case in posed if case.traced],
        "step": [whole_step(case.pair, case.problem, case.rungs) for case in posed],
        "trajectory": [
            trajectory(case.pair, case.problem, optimizer, case.steps, case.share)
            for case in posed
            for optimizer in case.optimizers
        ],
    }
    comparisons: list[Comparison] = []
    for level, checks in levels.items():
        for i, some in enumerate(checks):
            announce(level, i / len(checks))
            comparisons.extend(some)
    return Report(stage.name, reference.name, dtype, comparisons)


def image_op_checks(pair: Pair, rng: np.random.Generator, full: bool) -> list[Iterator[Comparison]]:
    """Every operation of convolutions, pooling and batch normalisation alone."""
    forms = (*convolution_ops.FORMS, *(convolution_ops.MORE_FORMS if full else ()))
    pools = (*pooling_ops.FORMS, *(pooling_ops.MORE_FORMS if full else ()))
    shapes = (*batch_norm_ops.SHAPES, *(batch_norm_ops.MORE_SHAPES if full else ()))
    return [
        convolution_checks(pair, rng, forms),
        pooling_ops.pooling_checks(pair, rng, pools),
        batch_norm_ops.batch_norm_checks(pair, rng, shapes),
    ]


def dense_problems(pair: Pair, rng: np.random.Generator, seed: int, full: bool, steps: int | None) -> list[Posed]:
    """Stacks of dense layers: every activation with every loss; larger ones if full."""
    steps = steps if steps is not None else MORE_STEPS if full else STEPS
    every = [dense_problem(pair, rng, activation, loss) for activation in ACTIVATIONS for loss in LOSSES]
    posed = [Posed(pair, problem, OPTIMIZERS, steps) for problem in every]
    for activation in ACTIVATIONS if full else ():
        sizes, loss = (67, 31, 17, 10), "softmax_cross_entropy"
        posed.append(Posed(pair, dense_problem(pair, rng, activation, loss, sizes, 33)))
    # A rung of a step may be for one hidden layer alone, or for networks without Dropout layers.
    for dropout in (0.25, 0.0):
        rng = np.random.default_rng(seed)
        one_hidden = [dense_problem(pair, rng, "tanh", loss, (70, 20, 3), 9, dropout) for loss in LOSSES]
        posed += [Posed(pair, problem, traced=False) for problem in one_hidden]
    return posed


def image_problems(pair: Pair, rng: np.random.Generator, seed: int, full: bool, steps: int | None) -> list[Posed]:
    """The networks of SMALL, each with one optimizer; if full, with all of them, and the known networks.

    The known networks are compared with stage 2 in float64, which is itself compared with the reference on small
    networks: pure Python would need minutes for them.
    """
    posed = []
    for i, problem in enumerate(small_problems(pair, rng)):
        optimizers = OPTIMIZERS if full else (OPTIMIZERS[i % len(OPTIMIZERS)],)
        posed.append(Posed(pair, problem, optimizers, STEPS_OF_IMAGES if steps is None else steps))
    if pair.stage.number > 2 and pair.reference.number == 1:
        pair = Pair(pair.stage, load_stage(STAGES[1]), pair.dtype)
    slow = 1 in (pair.stage.number, pair.reference.number)
    for name in () if not full else ("lenet5",) if slow else NAMED:
        problem = known_problem(pair, np.random.default_rng([seed, 2]), name, KNOWN_BATCH)
        share = KNOWN_SHARE if pair.dtype == "float64" else None
        number = FIRST_FLOOR_STEPS if slow else KNOWN_STEPS[pair.dtype]
        posed.append(Posed(pair, problem, ("SGD",), number, share, rungs=False))
    return posed


def computes_in(stage: Stage, dtype: str) -> bool:
    """Whether the stage rounds to dtype. In float32 0.1 is a different number than in float64."""
    values = np.array([[0.1]], dtype)
    stored = np.asarray(stage.arrays.to_host(stage.arrays.asarray([[0.1]], dtype)), np.float64)
    return bool(stored[0, 0] == values[0, 0])
