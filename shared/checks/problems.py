"""Small random networks with data: the problems that the upper levels of the equivalence check compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shared.checks.pair import Pair, random_targets
from shared.contract import LABEL_LOSSES
from shared.dropout import dropout_mask


@dataclass(frozen=True)
class Problem:
    """A small network and its data, all random, as float64 values that the dtype holds exactly.

    parameters: [W1, b1, W2, b2, …]; batches: (x, y) each; masks: one for each hidden layer
    """

    activation: str
    loss: str
    parameters: list[np.ndarray]
    batches: list[tuple[np.ndarray, np.ndarray]]
    masks: list[np.ndarray]

    @property
    def name(self) -> str:
        """'relu, hinge, 5-7-4-3, batch 6'."""
        sizes = [len(w) for w in self.parameters[::2]] + [len(self.parameters[-1])]
        return f"{self.activation}, {self.loss}, {'-'.join(map(str, sizes))}, batch {len(self.batches[0][0])}"


def random_problem(
    pair: Pair,
    rng: np.random.Generator,
    activation: str,
    loss: str,
    layer_sizes: Sequence[int] = (5, 7, 4, 3),
    batch: int = 6,
    batches: int = 4,
) -> Problem:
    """A network of these sizes and `batches` batches of `batch` samples.

    Weights have variance 1 / in_features, at which training settles down whatever the activation. Biases are small
    and random: a bias of zero would hide that it is never added.
    """
    parameters = []
    for inputs, outputs in pairwise(layer_sizes):
        parameters.append(pair.rounded(rng.standard_normal((inputs, outputs)) * np.sqrt(1.0 / inputs)))
        parameters.append(pair.rounded(0.1 * rng.standard_normal(outputs)))
    data = []
    for _ in range(batches):
        x = pair.rounded(rng.standard_normal((batch, layer_sizes[0])))
        data.append((x, random_targets(pair, rng, loss, (batch, layer_sizes[-1]))))
    seed = int(rng.integers(1000))
    masks = [
        pair.rounded(dropout_mask(batch, columns, 0.25, seed=seed, step=0, layer=layer, dtype="float64"))
        for layer, columns in enumerate(layer_sizes[1:-1])
    ]
    return Problem(activation, loss, parameters, data, masks)


class Sides:
    """The problem's network on the stage under test (ours) and on the reference (theirs), and data for both."""

    def __init__(self, pair: Pair, problem: Problem) -> None:
        self.pair, self.problem = pair, problem
        names = {"activation": problem.activation, "loss": problem.loss}
        self.ours = pair.stage.network.Network.from_parameters(
            [pair.to_stage(p) for p in problem.parameters], **names, dtype=pair.dtype
        )
        self.theirs = pair.reference.network.Network.from_parameters(
            [pair.to_reference(p) for p in problem.parameters], **names, dtype="float64"
        )

    def for_stage(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """A batch for the stage under test."""
        return self.pair.to_stage(x), y if self.problem.loss in LABEL_LOSSES else self.pair.to_stage(y)

    def for_reference(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """A batch for the reference."""
        return self.pair.to_reference(x), y if self.problem.loss in LABEL_LOSSES else self.pair.to_reference(y)
