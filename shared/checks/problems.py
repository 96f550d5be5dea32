"""Small random networks with data: the problems that the upper levels of the equivalence check compute.

    dense_problem  a stack of dense layers with one of the activations and one of the losses
    SMALL          architectures that pure Python trains in a moment; together they have every layer and every loss
    known_problem  one of the named networks on a few random images

The numbers of a problem are random, but such that training settles down, and no bias is 0: a bias that is never added
would stay unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared.architectures import Architecture, mlp, named
from shared.checks.pair import Pair, random_targets
from shared.dropout import dropout_mask
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.names import LABEL_LOSSES

RELU, TANH = Activate("relu"), Activate("tanh")
NORMAL = (Conv(3, 3, padding=1), BatchNorm())

SMALL: dict[str, tuple[Architecture, str]] = {
    "convolutions": (
        Architecture(
            (2, 7, 6),
            (Conv(3, 3, padding=1), RELU, MaxPool(2), Conv(4, 2), TANH, Flatten(), Dense(5), RELU, Dense(3)),
        ),
        "softmax_cross_entropy",
    ),
    "residual block": (
        Architecture(
            (1, 5, 6),
            (*NORMAL, RELU, Residual((*NORMAL, RELU, *NORMAL)), RELU, MaxPool(2), Flatten(), Dense(4), TANH, Dense(3)),
        ),
        "hinge",
    ),
    "strides, dropout": (
        Architecture(
            (2, 6, 5),
            (
                *(Conv(4, (3, 2), stride=(2, 1), padding=(1, 0)), Activate("leaky_relu"), Dropout(0.25)),
                *(AveragePool(2, 1), Flatten(), Dense(6), BatchNorm(), Activate("sigmoid"), Dropout(0.5), Dense(2)),
            ),
        ),
        "sigmoid_cross_entropy",
    ),
    "overlapping pools": (
        Architecture((1, 6, 6), (Conv(3, 3, padding=(0, 1)), MaxPool((3, 2), 1), TANH, Flatten(), Dense(3))),
        "mean_squared_error",
    ),
}
"""Name -> (architecture, loss)."""


@dataclass(frozen=True)
class Problem:
    """A network and its data, all random, as float64 values that the dtype holds exactly.

    parameters, running: in the architecture's order; batches: (x, y) each; masks: one for each Dropout layer
    """

    title: str
    architecture: Architecture
    loss: str
    parameters: list[np.ndarray]
    running: list[np.ndarray]
    batches: list[tuple[np.ndarray, np.ndarray]]
    masks: list[np.ndarray]

    @property
    def batch(self) -> int:
        """The number of samples in each batch."""
        return len(self.batches[0][0])

    @property
    def name(self) -> str:
        """'residual block, hinge, batch 4'."""
        return f"{self.title}, {self.loss}, batch {self.batch}"


def random_problem(
    pair: Pair,
    rng: np.random.Generator,
    title: str,
    architecture: Architecture,
    loss: str,
    batch: int = 4,
    batches: int = 3,
) -> Problem:
    """Random numbers for an architecture: weights of variance 1 / fan_in, gammas about 1, biases about 0."""
    parameters = []
    for parameter in architecture.parameters():
        values = rng.standard_normal(parameter.shape)
        size = 1 / math.sqrt(parameter.fan_in) if parameter.fan_in else 0.1
        parameters.append(pair.rounded(size * values + parameter.name.endswith("gamma")))
    running = [
        pair.rounded(0.5 + rng.random(shape) if i % 2 else 0.1 * rng.standard_normal(shape))
        for i, shape in enumerate(architecture.running_shapes())
    ]
    data = []
    for _ in range(batches):
        x = pair.rounded(rng.standard_normal((batch, *architecture.input_shape)))
        data.append((x, random_targets(pair, rng, loss, (batch, architecture.output_shape[0]))))
    seed = int(rng.integers(1000))
    masks = [
        pair.rounded(dropout_mask(batch, size, rate, seed=seed, step=0, layer=layer, dtype="float64"))
        for layer, (size, rate) in enumerate(architecture.dropouts())
    ]
    return Problem(title, architecture, loss, parameters, running, data, masks)


def dense_problem(
    pair: Pair,
    rng: np.random.Generator,
    activation: str,
    loss: str,
    sizes: Sequence[int] = (5, 7, 4, 3),
    batch: int = 6,
    dropout: float = 0.25,
) -> Problem:
    """A stack of dense layers of these sizes: 'relu, 5-7-4-3'."""
    title = f"{activation}, {'-'.join(map(str, sizes))}"
    return random_problem(pair, rng, title, mlp(sizes, activation, dropout), loss, batch, batches=4)


def small_problems(pair: Pair, rng: np.random.Generator) -> list[Problem]:
    """A problem for each architecture of SMALL."""
    return [random_problem(pair, rng, title, *network) for title, network in SMALL.items()]


def known_problem(pair: Pair, rng: np.random.Generator, name: str, batch: int) -> Problem:
    """One of the named networks on images of 28 by 28 random pixels."""
    return random_problem(pair, rng, name, named(name), "softmax_cross_entropy", batch, batches=2)


class Sides:
    """The problem's network on the stage under test (ours) and on the reference (theirs), and data for both."""

    def __init__(self, pair: Pair, problem: Problem) -> None:
        self.pair, self.problem = pair, problem
        self.ours = self._network(pair.stage, pair.to_stage, pair.dtype)
        self.theirs = self._network(pair.reference, pair.to_reference, "float64")

    def _network(self, stage: Any, give: Any, dtype: str) -> Any:
        problem = self.problem
        parameters, running = ([give(array) for array in arrays] for arrays in (problem.parameters, problem.running))
        return stage.network.Network.from_parameters(
            parameters,
            loss=problem.loss,
            dtype=dtype,
            architecture=problem.architecture,
            running_statistics=running,
        )

    def for_stage(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """A batch for the stage under test."""
        return self.pair.to_stage(x), y if self.problem.loss in LABEL_LOSSES else self.pair.to_stage(y)

    def for_reference(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """A batch for the reference."""
        return self.pair.to_reference(x), y if self.problem.loss in LABEL_LOSSES else self.pair.to_reference(y)

    def masks(self, wanted: bool) -> tuple[list[Any] | None, list[Any] | None]:
        """The dropout masks for the stage under test and for the reference; None and None without dropout."""
        if not wanted:
            return None, None
        masks = self.problem.masks
        return [self.pair.to_stage(mask) for mask in masks], [self.pair.to_reference(mask) for mask in masks]
