"""Batch normalisation in NumPy and float64. Its switches turn it into the known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake

Norm = tuple[tuple[int, ...], bool, float]

TYPICAL: Norm = ((3, 2, 2, 3), True, 0.0)

CASES: list[Norm] = [
    ((2, 1), True, 0.0),
    ((5, 3), True, 0.0),
    ((4, 3, 5, 2), True, 0.0),
    ((1, 2, 1, 7), True, 0.0),
    ((3, 3, 2, 3), False, 0.0),
    ((6, 4), False, 0.0),
    ((4, 2, 3, 3), True, 3000.0),
    ((1, 3, 1, 1), False, 0.0),
]
"""(shape of x, training, what is added to x): rows of features and images, one image, numbers far from zero."""

VARIANCE = 4.0
"""The running variance with which the way back is tried, not training."""

SAVED = ("dL/dx by what is saved", "dL/dgamma by what is saved")


def norm_arguments(rng: np.random.Generator, case: Norm) -> tuple[Any, ...]:
    """Random x, gamma, beta, running_mean and running_var; training, momentum and epsilon."""
    shape, training, far = case
    x = rng.standard_normal(shape) * 2 + far + 1
    vectors = rng.standard_normal((3, shape[1]))
    return x, *vectors, rng.random(shape[1]) + 0.5, training, 0.25, 1e-3


def pattern(x: np.ndarray) -> np.ndarray:
    """The gradient with which the way back is tried."""
    return np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)


def spread(values: Any, x: np.ndarray) -> Any:
    """(C,) along the channels of x."""
    return np.reshape(values, (-1, *(1,) * (x.ndim - 2))) if np.ndim(values) == 1 else values


def norm_of(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    running_mean: np.ndarray,
    running_var: np.ndarray,
    training: bool,
    momentum: float,
    epsilon: float,
    *,
    axes: tuple[int, ...] | None = None,
    divisor: int = 0,
    tracked: int = 1,
    kept: float | None = None,
    root: Callable[[Any, float], Any] = lambda var, epsilon: np.sqrt(var + epsilon),
    uses_batch: bool | None = None,
) -> dict[str, np.ndarray]:
    """The output, the running statistics, and the way back. The switches make known mistakes:

    axes            those over which mean and variance are taken
    divisor         1: the variance that normalises divides by n - 1; tracked: 0: the one that is kept by n
    kept            the share of the old running statistics
    root            what is divided by
    uses_batch      whether the batch's statistics are used, whatever training says
    """
    x = x.astype(np.float64)
    over = tuple(i for i in range(x.ndim) if i != 1) if axes is None else axes
    of_channels = tuple(i for i in range(x.ndim) if i != 1)
    mean, var = running_mean, running_var
    new_mean, new_var = running_mean.copy(), running_var.copy()
    batch = training if uses_batch is None else uses_batch
    if batch:
        mean, var = x.mean(axis=over, keepdims=True), x.var(axis=over, ddof=divisor, keepdims=True)
    if training:
        keep = 1 - momentum if kept is None else kept
        new_mean = keep * running_mean + (1 - keep) * x.mean(axis=of_channels)
        new_var = keep * running_var + (1 - keep) * x.var(axis=of_channels, ddof=tracked)
    normalised = (x - spread(mean, x)) / root(spread(var, x), epsilon)
    output = spread(gamma, x) * normalised + spread(beta, x)
    back = norm_back(pattern(x), x, gamma, training, mean=running_mean, var=running_var, epsilon=epsilon)
    saved = dict(zip(SAVED, (back[""], back["grad_gamma"]), strict=True))
    return {"": output, "running_mean": new_mean, "running_var": new_var, **saved}


def norm_back(
    grad: np.ndarray,
    x: np.ndarray,
    gamma: np.ndarray,
    training: bool,
    *,
    mean: Any = 0.0,
    var: Any = VARIANCE,
    epsilon: float = 1e-5,
    off: bool = False,
    power: int = 1,
    shift: bool = True,
    bend: bool = True,
    slope: bool = True,
) -> dict[str, np.ndarray]:
    """dL/dx, dL/dgamma and dL/dbeta.

    off: whether as much of the mean is left in x as its largest number; power: of the inverse deviation before dL/dx
    shift, bend, slope: whether these parts of dL/dx are there
    """
    x, grad = x.astype(np.float64), grad.astype(np.float64)
    over = tuple(i for i in range(x.ndim) if i != 1)
    if training:
        mean, var = x.mean(axis=over), x.var(axis=over)
    inverse = 1 / np.sqrt(spread(np.asarray(var), x) + epsilon)
    x = x - spread(mean, x)
    normalised = ((x + spread(np.abs(x).max(axis=over), x)) if off else x) * inverse
    grad_beta, grad_gamma = grad.sum(axis=over), (grad * normalised).sum(axis=over)
    count = x.size // x.shape[1]
    inner = grad
    if training:
        inner = grad - shift * spread(grad_beta, x) / count - bend * normalised * spread(grad_gamma, x) / count
    result = inner * (spread(gamma, x) if slope else 1.0) * inverse**power
    return {"": result, "grad_gamma": grad_gamma, "grad_beta": grad_beta}


NORM_HAND: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (  # mean 3, variance 4, and with epsilon 9, whose root is 3; with n - 1 the variance is 8
        (np.array([[1.0], [5.0]]), *(np.array([v]) for v in (3.0, 100.0, 1.0, 2.0)), True, 0.5, 5.0),
        {"": [[98.0], [102.0]], "running_mean": [2.0], "running_var": [5.0]},
    ),
    (  # in use: the running statistics, which stay
        (np.array([[1.0], [5.0]]), *(np.array([v]) for v in (3.0, 100.0, 1.0, 4.0)), False, 0.5, 5.0),
        {"": [[100.0], [104.0]], "running_mean": [1.0], "running_var": [4.0]},
    ),
    (  # two channels of two images: 0, 2, 4, 6 and 1, 1, 3, 3
        (
            np.array([[[[0.0, 2.0]], [[1.0, 1.0]]], [[[4.0, 6.0]], [[3.0, 3.0]]]]),
            *(np.array(v) for v in ([1.0, 2.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0])),
            True,
            0.1,
            4.0,
        ),
        {
            "": [[[[-1.0, -1 / 3]], [[1 - 2 / 5**0.5] * 2]], [[[1 / 3, 1.0]], [[1 + 2 / 5**0.5] * 2]]],
            "running_mean": [0.3, 0.2],
            "running_var": [0.9 + 0.1 * 20 / 3, 0.9 + 0.1 * 4 / 3],
        },
    ),
]


def norm_mistakes() -> list[Mistake]:
    """The known mistakes of the way forward."""

    def of(name: str = "", where: Callable[..., bool] = lambda *given: True, **switches: Any) -> Callable[..., Any]:
        def result(*given: Any) -> Any:
            with np.errstate(all="ignore"):
                return norm_of(*given, **switches)[name] if where(*given) else None

        return result

    def trains(*given: Any) -> bool:
        return bool(given[5])

    def four(*given: Any) -> bool:
        return bool(given[5]) and given[0].ndim == 4

    mistakes = [
        (
            "the variance that normalises divides by n; only the one that is kept divides by n - 1",
            "",
            of(where=trains, divisor=1),
        ),
        ("divided by the variance, and not by its root", "", of(root=lambda var, epsilon: var + epsilon)),
        (
            "epsilon stands behind the root: it is added to the variance, before the root",
            "",
            of(root=lambda var, epsilon: np.sqrt(var) + epsilon),
        ),
        ("epsilon is left out", "", of(root=lambda var, epsilon: np.sqrt(var))),
        (
            "mean and variance are taken over the images alone: they are taken over rows and columns, too",
            "",
            of(where=four, axes=(0,)),
        ),
        (
            "each image is normalised by itself: mean and variance are those of the batch",
            "",
            of(where=four, axes=(2, 3)),
        ),
        (
            "all channels are normalised together: each channel has its own mean and variance",
            "",
            lambda *given: (
                of(where=trains, axes=tuple(range(given[0].ndim)))(*given) if given[0].shape[1] > 1 else None
            ),
        ),
        (
            "the running statistics normalise, though training: they are for use",
            "",
            of(where=trains, uses_batch=False),
        ),
        (
            "the batch's statistics normalise, though not training: the running ones do, so that the answer for an "
            "image does not depend on the others",
            "",
            of(where=lambda *given: not given[5], uses_batch=True),
        ),
        (
            "gamma and beta are exchanged: gamma scales, beta shifts",
            "",
            lambda x, gamma, beta, *more: norm_of(x, beta, gamma, *more)[""],
        ),
        ("gamma is left out", "", lambda x, gamma, *more: norm_of(x, 0 * gamma + 1, *more)[""]),
        (
            "what is saved has the gamma of later: the optimizer changes gamma in place, so save a copy of it",
            SAVED[0],
            lambda x, gamma, *more: norm_of(x, gamma + 1, *more)[SAVED[0]],
        ),
        ("beta is left out", "", lambda x, gamma, beta, *more: norm_of(x, gamma, 0 * beta, *more)[""]),
        (
            "the variance that is kept divides by n - 1: times n / (n - 1)",
            "running_var",
            of("running_var", trains, tracked=0),
        ),
    ]
    made = [Mistake(text, wrong, name) for text, name, wrong in mistakes]
    for name, place in (("running_mean", 3), ("running_var", 4)):
        made += [
            Mistake(
                "momentum is the share of the new: running = (1 - momentum) * running + momentum * the batch's",
                lambda *given, name=name: norm_of(*given, kept=given[6])[name] if given[5] else None,
                name,
            ),
            Mistake(
                "the running statistics have not changed: write into the array that is given, running_mean[...] = …",
                lambda *given, place=place: given[place] if given[5] else None,
                name,
            ),
            Mistake(
                "the batch's statistics have replaced the running ones: they are an average over batches",
                of(name, trains, kept=0.0),
                name,
            ),
            Mistake(
                "the running statistics change only while training",
                lambda *given, name=name: None if given[5] else norm_of(*(*given[:5], True, *given[6:]))[name],
                name,
            ),
        ]
    return made


BACK_HAND: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (  # in use: mean 0, variance 4, so normalised is half of x; epsilon is small
        (np.array([[2.0], [3.0]]), np.array([[5.0], [-1.0]]), np.array([4.0]), False),
        {"": np.array([[8.0], [12.0]]) / np.sqrt(4 + 1e-5), "grad_gamma": [7 / np.sqrt(4 + 1e-5)], "grad_beta": [5.0]},
    ),
    (  # normalised is -1, -1, 1, 1 but for epsilon; a gradient that is the same everywhere goes nowhere
        (np.full((4, 1), 3.0), np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([5.0]), True),
        {"": np.zeros((4, 1)), "grad_gamma": [0.0], "grad_beta": [12.0]},
    ),
    (  # 1 at one place: minus its mean, 1/4, and minus normalised times the mean of its products, -1/4
        (np.array([[1.0], [0.0], [0.0], [0.0]]), np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([2.0]), True),
        {
            "": (np.array([[3 / 4], [-1 / 4], [-1 / 4], [-1 / 4]]) - np.array([[1], [1], [-1], [-1]]) / 4 / (1 + 1e-5))
            * 2
            / np.sqrt(1 + 1e-5),
            "grad_gamma": [-1 / np.sqrt(1 + 1e-5)],
            "grad_beta": [1.0],
        },
    ),
]


def back_mistakes() -> list[Mistake]:
    """The known mistakes of the way back."""

    def of(trains: bool | None = True, **switches: Any) -> Callable[..., Any]:
        return lambda grad, x, gamma, training: (
            norm_back(grad, x, gamma, training, **switches)[""] if trains in (None, training) else None
        )

    def count(x: np.ndarray) -> int:
        return x.size // x.shape[1]

    return [
        Mistake(
            "mean and variance are taken for constants: while training they depend on x, which gives two more terms",
            of(shift=False, bend=False),
        ),
        Mistake("the term of the mean is missing: minus the mean of the gradient", of(shift=False)),
        Mistake(
            "the term of the variance is missing: minus normalised times the mean of gradient times normalised",
            of(bend=False),
        ),
        Mistake("gamma is left out: normalised was multiplied by it", of(None, slope=False)),
        Mistake("dL/dx is not divided by the deviation: gamma * inverse stands before it", of(None, power=0)),
        Mistake("dL/dx is divided by the deviation twice: inverse stands before it once", of(None, power=2)),
        *(
            Mistake(
                "rest is left out: normalised = inverse * (centred - rest)",
                lambda *given, name=name: norm_back(*given, off=True)[name],
                name,
            )
            for name in ("", "grad_gamma")
        ),
        Mistake(
            "training or not makes no difference here: in use mean and variance are constants, and dL/dx = gamma * "
            "inverse * g",
            lambda grad, x, gamma, training: None if training else grad_as_trained(grad, x, gamma),
        ),
        Mistake(
            "the sum runs over the gradient alone: dL/dgamma is the sum of gradient times normalised",
            lambda grad, x, *more: norm_back(grad, x, *more)["grad_beta"],
            "grad_gamma",
        ),
        Mistake(
            "centred is x - mean, and not divided by the deviation yet: times inverse",
            lambda grad, x, gamma, training: (
                norm_back(grad, x, gamma, training)["grad_gamma"]
                * np.sqrt((x.var(axis=tuple(i for i in range(x.ndim) if i != 1)) if training else VARIANCE) + 1e-5)
            ),
            "grad_gamma",
        ),
        *(
            Mistake(
                "the mean, and not the sum: that mean is in the loss's gradient already",
                lambda grad, x, gamma, training, name=name: norm_back(grad, x, gamma, training)[name] / count(x),
                name,
            )
            for name in ("grad_gamma", "grad_beta")
        ),
        *(
            Mistake(
                "only the first image counts: add up over the whole batch",
                lambda grad, x, gamma, training, name=name: norm_back(
                    grad * (np.arange(len(x)) == 0).reshape(-1, *(1,) * (x.ndim - 1)), x, gamma, training
                )[name],
                name,
            )
            for name in ("grad_gamma", "grad_beta")
        ),
    ]


def grad_as_trained(grad: np.ndarray, x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """dL/dx with the two terms of training, of a batch that was normalised by mean 0 and VARIANCE."""
    over = tuple(i for i in range(x.ndim) if i != 1)
    inverse = 1 / np.sqrt(VARIANCE + 1e-5)
    normalised = x * inverse
    terms = grad.mean(axis=over), (grad * normalised).mean(axis=over)
    result: np.ndarray = (grad - spread(terms[0], x) - normalised * spread(terms[1], x)) * spread(gamma, x) * inverse
    return result
