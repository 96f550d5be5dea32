"""SGD and Adam in NumPy and float64, for weeks 3 and 5. Their switches turn them into the known mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake


@dataclass(frozen=True, eq=False)
class Steps:
    """Some steps of an optimizer on a weight matrix and a bias.

    weights, bias: before the first step; gradients: (of the weights, of the bias) for every step
    rates: the learning rate of every step; settings: the optimizer's other settings
    """

    weights: np.ndarray
    bias: np.ndarray
    gradients: list[tuple[np.ndarray, np.ndarray]]
    rates: list[float]
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        rates = ", then ".join(f"{rate:g}" for rate in dict.fromkeys(self.rates))
        count = len(self.gradients)
        return f"{count} step{'s' * (count != 1)} with learning_rate {rates}{settings}"


def steps_case(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Steps]:
    """Random steps; the last two have another learning rate, and in the fourth the weights' gradients are all 0, while
    what is kept of the earlier ones moves on.

    size: (shape of the weights, settings, by what the gradients are multiplied (NaN: one of them is NaN), how many)
    """
    shape, settings, factor, count = [*size, 1.0, 4][: len(size)] + [1.0, 4][len(size) - 2 :]

    def pair() -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal(shape), rng.standard_normal(shape[1])

    start, gradients = pair(), [pair() for _ in range(count)]
    for g, h in gradients:
        if np.isnan(factor):
            g[-1, 0] = h[-1] = factor
        else:
            g *= factor
            h *= factor
    gradients[1][1][0] = 0
    gradients[3][0].fill(0)
    return (Steps(*start, gradients, [0.1] * (count - 2) + [0.03, 0.03], settings),)


def steps_scale(case: Steps) -> dict[str, float]:
    """The scale of the rounding of the parameters, and of what the optimizers keep."""
    largest = max(float(np.nanmax(np.abs(each))) for pair in case.gradients for each in pair)
    start = 4 * max(1.0, float(np.abs(case.weights).max()), float(np.abs(case.bias).max()))
    slope = largest + start * case.settings.get("weight_decay", 0.0)
    scales = {"velocity": 10 * slope, "first_moment": slope, "second_moment": slope**2}
    kept = {state_name(buffer, name): scale for buffer, scale in scales.items() for name in ("weights", "bias")}
    return {"weights": start + 2 * slope, "bias": start + 2 * slope, **kept}


def state_name(buffer: str, parameter: str) -> str:
    """The name of an array in an optimizer's state: "velocity of the weights"."""
    return f"{buffer} of the {parameter}"


def sgd_steps(
    case: Steps,
    *,
    sign: float = -1.0,
    of_step: bool = False,
    damped: bool = False,
    decoupled: bool = False,
    decay_sign: float = 1.0,
    behind: bool = False,
    **changed: Any,
) -> dict[str, Any]:
    """Steps of SGD with weight decay, and momentum, Nesterov's too. The switches make known mistakes:

    sign            the step goes uphill
    of_step         the velocity is one of steps, not of gradients
    damped          the velocity is a running mean, not a running sum
    decoupled       the decay does not enter the velocity
    decay_sign      the decay lets the weights grow
    behind          Nesterov's step goes along momentum * v, without the gradient
    changed         settings that the mistake confuses with others, such as momentum=0.0
    """
    settings = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0, **case.settings, **changed}
    momentum, nesterov = settings["momentum"], settings["nesterov"]
    decay = decay_sign * settings["weight_decay"]
    after: dict[str, Any] = {}
    for k, (name, start) in enumerate((("weights", case.weights), ("bias", case.bias))):
        p, v = start.astype(np.float64), np.zeros(start.shape)
        for gradients, rate in zip(case.gradients, case.rates, strict=True):
            g = gradients[k].astype(np.float64) + (0 if decoupled else decay * p)
            if momentum:
                v = momentum * v + (rate if of_step else 1 - momentum if damped else 1.0) * g
                g = (0 if behind else g) + momentum * v if nesterov else v
            p = p + sign * (1.0 if of_step and momentum else rate) * (g + (decay * p if decoupled else 0))
        after[name] = p
        if case.settings.get("momentum"):
            after[state_name("velocity", name)] = v
    return after


def mistakes_of(mistakes: Sequence[tuple[str, Callable[[Steps], dict[str, Any] | None]]]) -> list[Mistake]:
    """Each mistake (its message, its result) as two: one about the weights and one about the bias."""
    return [
        Mistake(text, lambda s, wrong=wrong, name=name: (wrong(s) or {}).get(name), name)
        for text, wrong in mistakes
        for name in ("weights", "bias")
    ]


def sgd_mistakes(in_place: str) -> list[Mistake]:
    """The known mistakes of SGD. in_place: the message if the parameters have not changed."""
    mistakes: list[tuple[str, Callable[[Steps], dict[str, Any] | None]]] = [
        (in_place, lambda s: {"weights": s.weights, "bias": s.bias}),
        ("uphill: the step goes against the gradient, p -= learning_rate * …", lambda s: sgd_steps(s, sign=1.0)),
        (
            "the momentum is not used, or the velocity is not kept from step to step",
            lambda s: sgd_steps(s, momentum=0.0),
        ),
        (
            "the velocity collects steps, with the learning rate in them: it collects gradients, and the learning rate "
            "comes last. They differ as soon as the rate changes",
            lambda s: sgd_steps(s, of_step=True),
        ),
        (
            "the new gradient counts by 1 - momentum only: v = momentum * v + g is a sum, not a mean",
            lambda s: sgd_steps(s, damped=True),
        ),
        ("nesterov is not used: then the step is g + momentum * v", lambda s: sgd_steps(s, nesterov=False)),
        ("with nesterov the step is g + momentum * v: here g is missing", lambda s: sgd_steps(s, behind=True)),
        ("the weight decay is not used", lambda s: sgd_steps(s, weight_decay=0.0)),
        ("the weight decay has the wrong sign: weights grow by it", lambda s: sgd_steps(s, decay_sign=-1.0)),
        (
            "the weight decay is added after the velocity: it is part of the gradient, and goes through the velocity",
            lambda s: sgd_steps(s, decoupled=True),
        ),
    ]
    return mistakes_of(mistakes)


W, BIAS = np.array([[1.0, -1.0]]), np.array([2.0, 0.0])

G = (np.array([[10.0, 20.0]]), np.array([-20.0, 5.0]))


SGD_HAND: list[tuple[tuple[Steps], dict[str, Any]]] = [
    ((Steps(W, BIAS, [G], [0.1]),), {"weights": [[0.0, -3.0]], "bias": [4.0, -0.5]}),
    (
        # The velocity is g, then 1.5 g; the steps are 0.1 g and 0.05 * 1.5 g.
        (Steps(W, BIAS, [G, G], [0.1, 0.05], {"momentum": 0.5}),),
        {
            "weights": [[-0.75, -4.5]],
            "bias": [5.5, -0.875],
            state_name("velocity", "weights"): [[15.0, 30.0]],
            state_name("velocity", "bias"): [-30.0, 7.5],
        },
    ),
    # Half of each parameter is added to its gradient: 10.5, 19.5, -19, 5.
    ((Steps(W, BIAS, [G], [0.1], {"weight_decay": 0.5}),), {"weights": [[-0.05, -2.95]], "bias": [3.9, -0.5]}),
    # The velocity is g, then 1.5 g; the steps are 0.1 (g + 0.5 g) and 0.1 (g + 0.75 g).
    (
        (Steps(W, BIAS, [G, G], [0.1, 0.1], {"momentum": 0.5, "nesterov": True}),),
        {"weights": [[-2.25, -7.5]], "bias": [8.5, -1.625]},
    ),
]


SGD_ALL = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}


SGD_SIZES: list[tuple[Any, ...]] = [
    ((1, 1), {}),
    ((1, 7), {"momentum": 0.9}),
    ((5, 1), {"momentum": 0.5, "weight_decay": 0.1}),
    ((7, 3), {"weight_decay": 0.1}),
    ((4, 3), SGD_ALL),
    ((4, 3), {"momentum": 0.9}, 1e-7),
    ((4, 3), SGD_ALL, 1e6),
    ((4, 3), SGD_ALL, np.nan),
    ((2, 3), SGD_ALL, 1.0, 40),
]


def adam_steps(
    case: Steps,
    *,
    sign: float = -1.0,
    corrected: tuple[bool, bool] = (True, True),
    late: int = 0,
    inside: bool = False,
    root: bool = True,
    squared: bool = True,
    decoupled: bool = False,
    remembered: bool = True,
    kept_corrected: bool = False,
    root_first: bool = False,
    **changed: Any,
) -> dict[str, Any]:
    """Steps of Adam. The switches make known mistakes:

    sign            the step goes uphill
    corrected       the moments are not corrected for their start at 0
    late            they are corrected as if so many steps more had been made
    inside          epsilon stands under the root
    root            there is no root
    squared         the second moment is one of plain gradients
    decoupled       the decay is not part of the gradient
    remembered      the moments begin at 0 in every step
    kept_corrected  the corrected moments are kept in the place of the moments
    root_first      the root is taken before the correction
    """
    settings = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0, **case.settings, **changed}
    beta1, beta2, epsilon, decay = (settings[name] for name in ("beta1", "beta2", "epsilon", "weight_decay"))
    after: dict[str, Any] = {}
    for k, (name, start) in enumerate((("weights", case.weights), ("bias", case.bias))):
        p, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
        for t, (gradients, rate) in enumerate(zip(case.gradients, case.rates, strict=True), start=1):
            g = gradients[k] + (0 if decoupled else decay * p)
            m, v = (m, v) if remembered else (0 * m, 0 * v)
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * (g * g if squared else g)
            first = m / (1 - beta1 ** (t + late)) if corrected[0] else m
            second = v / (1 - beta2 ** (t + late)) if corrected[1] else v
            with np.errstate(all="ignore"):
                second = np.sqrt(v) / (1 - beta2 ** (t + late)) if root_first else np.sqrt(second) if root else second
                under = np.sqrt(second**2 + epsilon) if inside else second + epsilon
                m, v = (first, v / (1 - beta2**t)) if kept_corrected else (m, v)
                p = p + sign * rate * (first / under + (decay * p if decoupled else 0))
        after[name], after[state_name("first_moment", name)], after[state_name("second_moment", name)] = p, m, v
    return after


ADAM_MISTAKES = mistakes_of(
    [
        (
            "neither moment is corrected for its start at 0: divide m by 1 - beta1^t and v by 1 - beta2^t",
            lambda s: adam_steps(s, corrected=(False, False)),
        ),
        (
            "the first moment is not corrected for its start at 0: divide m by 1 - beta1^t",
            lambda s: adam_steps(s, corrected=(False, True)),
        ),
        (
            "the second moment is not corrected for its start at 0: divide v by 1 - beta2^t",
            lambda s: adam_steps(s, corrected=(True, False)),
        ),
        (
            "the corrections take the number of another step: t is 1 in the first step, as begin_step returns it",
            lambda s: adam_steps(s, late=1),
        ),
        ("uphill: the step goes against the gradient, p -= …", lambda s: adam_steps(s, sign=1.0)),
        ("epsilon stands under the root: it is added to the root", lambda s: adam_steps(s, inside=True)),
        ("the root is missing: divide by sqrt(v), not by v", lambda s: adam_steps(s, root=False)),
        ("the second moment collects gradients: it collects their squares", lambda s: adam_steps(s, squared=False)),
        (
            "the moments begin at 0 in every step: they have to be kept, in the arrays of self._state.buffers",
            lambda s: adam_steps(s, remembered=False),
        ),
        (
            "the corrected moments are kept: correct copies, m / (1 - beta1^t), and leave m and v as they are",
            lambda s: adam_steps(s, kept_corrected=True),
        ),
        (
            "the root is taken before the correction: correct v first, and then take its root",
            lambda s: adam_steps(s, root_first=True),
        ),
        (
            "the betas have changed places: beta1 is for m, the mean of gradients, beta2 for v, that of their squares",
            lambda s: adam_steps(s, beta1=s.settings.get("beta2", 0.999), beta2=s.settings.get("beta1", 0.9)),
        ),
        ("the weight decay is not used", lambda s: adam_steps(s, weight_decay=0.0)),
        (
            "the weight decay goes straight to the parameter, as in AdamW: here it is part of the gradient",
            lambda s: adam_steps(s, decoupled=True),
        ),
    ]
)


NEXT = 0.1 * 5 / (3 * math.sqrt(3))
"""The second step below: m = 1.25 g, v = 2.25 g², corrected by 3/4 each."""


ADAM_HAND: list[tuple[tuple[Steps], dict[str, Any]]] = [
    # The first step is as long as the learning rate wherever epsilon is small: g / |g|.
    ((Steps(W, BIAS, [G], [0.1], {"epsilon": 0.0}),), {"weights": [[0.9, -1.1]], "bias": [2.1, -0.1]}),
    (
        (Steps(W, BIAS, [G], [0.1], {"epsilon": 10.0}),),
        {"weights": [[0.95, -1 - 2 / 30]], "bias": [2 + 2 / 30, -1 / 30]},
    ),
    (
        (Steps(W, BIAS, [G, (2 * G[0], 2 * G[1])], [0.1, 0.1], {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.0}),),
        {
            "weights": [[0.9 - NEXT, -1.1 - NEXT]],
            "bias": [2.1 + NEXT, -0.1 - NEXT],
            state_name("first_moment", "weights"): [[12.5, 25.0]],
            state_name("second_moment", "weights"): [[225.0, 900.0]],
        },
    ),
    # Half of each parameter is added to its gradient: 10.5, 19.5, -19, 5.
    (
        (Steps(W, BIAS, [G], [0.1], {"epsilon": 10.0, "weight_decay": 0.5}),),
        {"weights": [[1 - 1.05 / 20.5, -1 - 1.95 / 29.5]], "bias": [2 + 1.9 / 29, -0.5 / 15]},
    ),
]


ADAM_ALL = {"beta1": 0.8, "beta2": 0.9, "epsilon": 0.01, "weight_decay": 0.1}


ADAM_SIZES: list[tuple[Any, ...]] = [
    ((1, 1), {}),
    ((1, 7), {"weight_decay": 0.1}),
    ((5, 1), {"beta1": 0.0}),
    ((7, 3), ADAM_ALL),
    ((4, 3), {}, 1e-7),
    ((4, 3), {"epsilon": 1e-12}, 1e-7),
    ((4, 3), {"weight_decay": 0.1}, 1e6),
    ((4, 3), {}, np.nan),
    ((2, 3), {}, 1.0, 40),
]
