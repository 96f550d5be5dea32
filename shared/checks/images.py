"""What the equivalence check does with convolution, pooling and batch normalisation, level by level.

`Images` holds the problems of one check; each level is a method, and each gives its comparisons in order. The known
networks are compared with stage 2 in float64, which is itself compared with the reference on small networks: pure
Python would need minutes for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shared.architectures import NAMED
from shared.checks import batch_norm_ops, convolution_ops, pooling_ops
from shared.checks.layered_problems import LayeredProblem, known_problem, small_problems
from shared.checks.layered_steps import layered_trajectory, trace_layers, whole_layered_step
from shared.checks.pair import Pair
from shared.checks.tolerance import Comparison
from shared.contract import OPTIMIZERS, STAGES, Stage, load_part, load_stage

STEPS = 30
KNOWN_STEPS = {"float64": STEPS, "float32": 3}
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


def has_images(stage: Stage) -> bool:
    """Whether the stage has the rooms of convolutional networks."""
    return all(getattr(stage, room, None) is not None for room in ("convolution", "pooling", "batch_norm"))


def takes_architectures(stage: Stage) -> bool:
    """Whether the stage makes networks of these rooms: a stage may have the rooms before it has the networks."""
    try:
        load_part(stage.name, "layered")
    except ModuleNotFoundError:
        return False
    return has_images(stage)


class Images:
    """The convolutional part of one check. full: more sizes, all optimizers, and the known networks."""

    def __init__(self, pair: Pair, seed: int, full: bool) -> None:
        self.pair, self.full = pair, full
        self.rng = np.random.default_rng([seed, 1])  # numbers of their own: the dense checks keep theirs
        networks = takes_architectures(pair.stage) and takes_architectures(pair.reference)
        self.problems = small_problems(pair, self.rng)
        self.networks = self.problems if networks else []
        self.known = list(self._known(seed)) if full and networks else []

    def _known(self, seed: int) -> Iterator[tuple[Pair, LayeredProblem, int]]:
        """(the pair that is compared, the problem, how many steps of it)"""
        pair = self.pair
        upper = pair.stage.number > 2
        if upper and pair.reference.number == 1:
            pair = Pair(pair.stage, load_stage(STAGES[1]), pair.dtype)
        slow = 1 in (pair.stage.number, pair.reference.number)
        for name in ["lenet5"] if slow else NAMED:
            problem = known_problem(pair, np.random.default_rng([seed, 2]), name, KNOWN_BATCH)
            yield pair, problem, FIRST_FLOOR_STEPS if slow else KNOWN_STEPS[pair.dtype]

    def op(self) -> Iterator[Comparison]:
        """Every operation alone."""
        more = self.full
        pair, rng = self.pair, self.rng
        forms = (*convolution_ops.FORMS, *(convolution_ops.MORE_FORMS if more else ()))
        yield from convolution_ops.convolution_checks(pair, rng, forms)
        yield from pooling_ops.pooling_checks(
            pair, rng, (*pooling_ops.FORMS, *(pooling_ops.MORE_FORMS if more else ()))
        )
        shapes = (*batch_norm_ops.SHAPES, *(batch_norm_ops.MORE_SHAPES if more else ()))
        yield from batch_norm_ops.batch_norm_checks(pair, rng, shapes)

    def layer(self) -> Iterator[Comparison]:
        """Every layer of a training step, with the reference's numbers."""
        for pair, problem in self._steps(self.problems):
            yield from trace_layers(pair, problem)

    def step(self) -> Iterator[Comparison]:
        """Whole networks."""
        for pair, problem in self._steps(self.networks):
            yield from whole_layered_step(pair, problem)

    def _steps(self, problems: Sequence[LayeredProblem]) -> Iterator[tuple[Pair, LayeredProblem]]:
        yield from ((self.pair, problem) for problem in problems)
        yield from ((pair, problem) for pair, problem, _ in self.known)

    def trajectory(self) -> Iterator[Comparison]:
        """Trained parameters and running statistics: small networks, each with one optimizer, or with all if full."""
        for i, problem in enumerate(self.networks):
            for optimizer in OPTIMIZERS if self.full else (OPTIMIZERS[i % len(OPTIMIZERS)],):
                yield from layered_trajectory(self.pair, problem, optimizer, STEPS)
        for pair, problem, steps in self.known:
            yield from layered_trajectory(pair, problem, "SGD", steps, KNOWN_SHARE if pair.dtype == "float64" else None)
