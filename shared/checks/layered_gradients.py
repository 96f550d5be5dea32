"""The gradients of networks with images against the slope of their loss, as shared/checks/gradients.py does it.

The networks are tiny, because each parameter costs four losses. Together they have every layer that has a gradient. The
loss is the one of training: batch normalisation uses the statistics of the batch, whose own slopes are part of the
gradient, and dropout masks stay the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.checks.gradients import GradientCheck, against_slopes
from shared.checks.layered_problems import layered_problem
from shared.checks.pair import Pair, host
from shared.contract import LABEL_LOSSES, Stage
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual

NETWORKS: dict[str, tuple[Architecture, str]] = {
    "residual block": (
        Architecture(
            (1, 4, 4),
            (
                *(Conv(2, 2), BatchNorm(), Activate("relu"), Residual((Conv(2, 1), BatchNorm(), Activate("tanh")))),
                *(MaxPool(2, 1), Flatten(), Dense(2)),
            ),
        ),
        "softmax_cross_entropy",
    ),
    "strides, dropout": (
        Architecture(
            (2, 4, 3),
            (
                *(Conv(2, (2, 3), stride=(2, 1), padding=(1, 1)), Activate("leaky_relu"), AveragePool((2, 1), 1)),
                *(Dropout(0.25), Flatten(), Dense(3), BatchNorm(), Activate("sigmoid"), Dense(2)),
            ),
        ),
        "mean_squared_error",
    ),
    "overlapping pools": (
        Architecture((1, 5, 4), (Conv(2, 3, padding=1), MaxPool((3, 2), 1), Activate("tanh"), Flatten(), Dense(3))),
        "hinge",
    ),
}
"""Name -> (architecture, loss)."""


def check_layered_gradients(stage: Stage, title: str, *, batch: int = 4, seed: int = 0) -> GradientCheck:
    """Compare `Network.gradients` with the slope of `Network.loss` in training, in float64.

    title: of NETWORKS; seed: of the random parameters and data
    Raises ValueError if a gradient is not shaped like its parameter.
    """
    architecture, loss = NETWORKS[title]
    pair = Pair(stage, stage, "float64")
    problem = layered_problem(pair, np.random.default_rng(seed), title, architecture, loss, batch, batches=1)
    parameters = problem.parameters
    x, y = problem.batches[0]
    data = pair.to_stage(x), y if loss in LABEL_LOSSES else pair.to_stage(y)
    masks = [pair.to_stage(mask) for mask in problem.masks] or None

    def network(values: list[np.ndarray]) -> Any:
        own = [pair.to_stage(value) for value in values]
        return stage.network.Network.from_parameters(own, loss=loss, dtype="float64", architecture=architecture)

    def loss_at(i: int, index: tuple[int, ...], value: float) -> float:
        moved = [p.copy() if j == i else p for j, p in enumerate(parameters)]
        moved[i][index] = value
        return float(network(moved).loss(*data, masks, training=True))

    here = network(parameters)
    gradients = [host(stage, g) for g in here.gradients(*data, masks)]
    names = [each.name for each in architecture.parameters()]
    found = against_slopes(names, parameters, gradients, loss_at, float(here.loss(*data, masks, training=True)))
    return GradientCheck(stage.name, "", loss, *found, network=title)
