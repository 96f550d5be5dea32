"""Is the gradient the slope of the loss? The slope is measured and compared with it.

One parameter p moves by a small step h in both directions, and the loss L changes with it:

    numeric slope = (L(p + h) - L(p - h)) / 2h

The measured slope has two errors. The formula is wrong by h²/6 times the third derivative (truncation: a smaller h
is better), and each L has a rounding error of about eps |L|, which becomes eps |L| / h in the slope (a smaller h is
worse). Their sum is least near h = cbrt(eps), 6e-6 in float64, where both are about eps^(2/3), 4e-11. So a right
gradient agrees with the slope to some ten digits. LIMIT allows a hundred times that error, because third derivatives
and losses are not exactly 1.

ReLU and the hinge have kinks, points with two slopes, where the formula gives a value between them. A kink between
p - h and p + h shows in the losses alone, without the gradient: the slopes measured with h and with h/2 disagree, or
the slopes to the right and to the left differ by more than curvature explains, which would halve with h. Such a
parameter is skipped and counted; a check that skips many parameters is not ok.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shared.architectures import Architecture, mlp
from shared.checks.pair import Pair, host
from shared.checks.problems import random_problem
from shared.contract import Stage
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES

EPS = float(np.finfo(np.float64).eps)
STEP = EPS ** (1 / 3)
LIMIT = 100 * EPS ** (2 / 3)
"""The largest relative error of a right gradient: 3.7e-9."""
MOST_SKIPPED = 0.05
"""The largest share of parameters on a kink with which a check is ok; with more it proves too little."""

SIZES = (4, 5, 3, 3)
"""Of the stacks of dense layers."""

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
"""Name -> (architecture, loss): tiny networks that together have every layer with a gradient."""


@dataclass(frozen=True)
class GradientCheck:
    """The gradient of one small network, compared with the slope of its loss.

    activation: of a stack of dense layers; "" for another network, which has a name in `network`
    checked, skipped: number of single parameters that were compared, and that were skipped because of a kink
    worst: the largest |analytic - numeric| / max(|analytic|, |numeric|, |loss|); the rounding of the loss decides how
        small a slope can be measured
    parameter, index: the place of the worst error, such as "layer 3, Dense: weights" and (3, 1)
    analytic, numeric: the gradient and the measured slope at this place
    """

    stage: str
    activation: str
    loss: str
    checked: int
    skipped: int
    worst: float
    parameter: str
    index: tuple[int, ...]
    analytic: float
    numeric: float
    network: str = ""

    @property
    def what(self) -> str:
        """What was checked: 'relu, hinge', or of another network than dense layers 'residual block, hinge'."""
        return f"{self.network or self.activation}, {self.loss}"

    @property
    def ok(self) -> bool:
        """Whether all errors are within LIMIT and few parameters were skipped."""
        return self.worst <= LIMIT and self.skipped_share <= MOST_SKIPPED

    @property
    def skipped_share(self) -> float:
        """The share of parameters on a kink."""
        return self.skipped / (self.checked + self.skipped)

    def __str__(self) -> str:
        """One line: the place where the gradient and the slope differ most, with both values."""
        return (
            f"{self.what}: d loss / d {self.parameter}{list(self.index)} is {self.analytic:.12g} by "
            f"the gradient and {self.numeric:.12g} by the slope; relative error {self.worst:.2g} (limit {LIMIT:.2g}), "
            f"{self.skipped} of {self.checked + self.skipped} parameters skipped at kinks"
        )


COUNT = len(ACTIVATIONS) * len(LOSSES) + len(NETWORKS)
"""Of the networks that `gradient_checks` checks."""


def gradient_checks(stage: Stage, seed: int = 0) -> Iterator[GradientCheck]:
    """A stack of dense layers for every activation and loss, and the networks of NETWORKS."""
    for activation in ACTIVATIONS:
        for loss in LOSSES:
            yield check_gradients(stage, mlp(SIZES, activation), loss, seed=seed)
    for name, (architecture, loss) in NETWORKS.items():
        yield check_gradients(stage, architecture, loss, name=name, seed=seed)


def check_gradients(
    stage: Stage, architecture: Architecture, loss: str, *, name: str = "", batch: int = 4, seed: int = 0
) -> GradientCheck:
    """Compare `Network.gradients` with the slope of `Network.loss` in training, parameter by parameter, in float64.

    Batch normalisation uses the statistics of the batch, whose own slopes are part of the gradient, and dropout masks
    stay the same.

    architecture, batch: should be small, because every parameter costs four losses
    name: of a network that is no stack of dense layers; seed: of the random parameters and data
    Raises ValueError if a gradient is not shaped like its parameter.
    """
    pair = Pair(stage, stage, "float64")
    problem = random_problem(pair, np.random.default_rng(seed), name, architecture, loss, batch, batches=1)
    parameters = problem.parameters
    x, y = problem.batches[0]
    masks = [pair.to_stage(mask) for mask in problem.masks]
    data = pair.to_stage(x), y if loss in LABEL_LOSSES else pair.to_stage(y), *((masks,) if masks else ())

    def network(values: list[np.ndarray]) -> Any:
        own = [pair.to_stage(value) for value in values]
        return stage.network.Network.from_parameters(own, loss=loss, dtype="float64", architecture=architecture)

    def loss_at(i: int, index: tuple[int, ...], value: float) -> float:
        moved = [p.copy() if j == i else p for j, p in enumerate(parameters)]
        moved[i][index] = value
        return float(network(moved).loss(*data, training=True))

    here = network(parameters)
    gradients = [host(stage, g) for g in here.gradients(*data)]
    names = [parameter.name for parameter in architecture.parameters()]
    outcome = against_slopes(names, parameters, gradients, loss_at, float(here.loss(*data, training=True)))
    return GradientCheck(stage.name, here.activation, loss, *outcome, network=name)


Found = tuple[int, int, float, str, tuple[int, ...], float, float]
"""checked, skipped, worst, parameter, index, analytic and numeric, as in `GradientCheck`."""


def against_slopes(
    names: Sequence[str],
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    loss_at: Callable[[int, tuple[int, ...], float], float],
    here: float,
) -> Found:
    """Compare each number of the gradients with the slope of the loss.

    names: of the parameters; here: the loss at the parameters
    loss_at: (number of a parameter, index in it, value) -> the loss if that one number were the value
    Raises ValueError if a gradient is not shaped like its parameter.
    """
    for i, (g, p) in enumerate(zip(gradients, parameters, strict=True)):
        if g.shape != p.shape:
            raise ValueError(f"gradients: number {i} is shaped {g.shape}, expected {p.shape}, as its parameter is")
    checked = skipped = 0
    worst = -1.0
    place: tuple[str, tuple[int, ...], float, float] = ("none", (), 0.0, 0.0)
    for i, index in every_index(parameters):
        numeric = slope(partial(loss_at, i, index), float(parameters[i][index]), here)
        if numeric is None:
            skipped += 1
            continue
        checked += 1
        analytic = float(gradients[i][index])
        error = relative_error(analytic, numeric, here)
        if not error <= worst:  # also true for NaN, which is the worst error
            worst, place = error if error == error else np.inf, (names[i], index, analytic, numeric)
    return (checked, skipped, worst, *place)


def slope(loss: Callable[[float], float], p: float, here: float) -> float | None:
    """The derivative of loss at p by central differences, or None if there is a kink between p - h and p + h.

    here: loss(p), which is the same for all parameters
    NaN where one of the losses is NaN: that is no kink, and must not be skipped as one.
    """
    h = STEP * max(1.0, abs(p))
    wide, narrow = ((loss(p + step), loss(p - step), step) for step in (h, h / 2))
    central = [(above - below) / (2 * step) for above, below, step in (wide, narrow)]
    # The right slope minus the left slope is h times the curvature. It halves with h unless there is a kink.
    bend = [(above - 2 * here + below) / step for above, below, step in (wide, narrow)]
    noise = LIMIT * max(1.0, abs(here), abs(central[0]))
    if abs(central[0] - central[1]) > noise or abs(bend[0] - 2 * bend[1]) > noise:
        return None
    return central[0]


def relative_error(analytic: float, numeric: float, loss: float) -> float:
    """|analytic - numeric| / max(|analytic|, |numeric|, |loss|), from 0, where they agree, to 2.

    loss: where both were taken; its rounding sets how small a slope can be measured, so that two gradients near 0 are
        not told apart by noise
    0 where all three are 0; NaN where the gradient or the slope is NaN.
    """
    scale = max(abs(analytic), abs(numeric), abs(loss))
    if scale == 0:
        return 0.0
    return abs(analytic - numeric) / scale


def every_index(arrays: Sequence[np.ndarray]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(which array, index in it) of every element."""
    for i, array in enumerate(arrays):
        for index in np.ndindex(array.shape):
            yield i, index
