"""Softmax cross-entropy and its gradient in NumPy and float64: for weeks 2 and 5, with the known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.activations import (
    FAR,
    LOG2,
    LOG3,
    WRONG_MAXIMA,
    naive_softmax,
    quietly,
    rows_far_apart,
    softmax_less,
    softmax_of,
    softmax_scale,
)


def cross_entropy_of(logits: np.ndarray, labels: np.ndarray) -> float:
    """The mean of -log(softmax(logits)[label])."""
    return float(np.mean(cross_entropies(logits)[np.arange(len(labels)), labels]))


def cross_entropies(logits: np.ndarray) -> np.ndarray:
    """-log(softmax(logits)) of every class."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: np.ndarray = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted
    return found


def naive_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """-log(softmax) as the formula says it, without subtracting the maximum."""
    with np.errstate(all="ignore"):
        return float(np.mean(-np.log(naive_softmax(logits)[np.arange(len(labels)), labels])))


def naive_logarithm(logits: np.ndarray, labels: np.ndarray) -> float:
    """log(sum exp(z)) - z_y without the maximum: infinite for large numbers."""
    with np.errstate(all="ignore"):
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]))


def logarithm_less(logits: np.ndarray, labels: np.ndarray, subtracted: Any) -> Any:
    """The loss if this is subtracted from each row in the place of its maximum."""

    def compute() -> Any:
        shifted = logits - subtracted
        return np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels])

    return quietly(compute)


LOSS_MAXIMUM_MISTAKES = [
    Mistake(text, lambda z, labels, of=of: logarithm_less(z, labels, of(z))) for text, of in WRONG_MAXIMA
]

SLOPE_MAXIMUM_MISTAKES = [
    Mistake(text, lambda z, labels, of=of: (softmax_less(z, of(z)) - one_hot(labels, z.shape[1])) / len(z))
    for text, of in WRONG_MAXIMA
]


def labelled(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random logits, whose rows lie far apart, and labels."""
    return rows_far_apart(rng, shape), rng.integers(0, shape[1], shape[0])


CROSS_ENTROPY_HAND = [
    # Softmax of (0, log 3) is (1/4, 3/4): the losses are log 4 and log 4/3, of which two logs of 2 and one of 3 remain.
    ((np.array([[0.0, LOG3]]), np.array([0])), 1.3862943611198906),
    ((np.array([[0.0, LOG3], [0.0, LOG3]]), np.array([0, 1])), 0.8369882167858358),
    ((np.zeros((3, 3)), np.array([2, 0, 1])), 1.0986122886681098),
    ((np.array([[FAR, -FAR]]), np.array([0])), 0.0),
    ((np.array([[FAR, -FAR]]), np.array([1])), 2 * FAR),
    ((np.array([[-FAR, -FAR]]), np.array([1])), LOG2),
    ((np.array([[-FAR, FAR, -FAR], [FAR, -FAR, -FAR]]), np.array([1, 0])), 0.0),
    ((np.array([[FAR, FAR], [-FAR, -FAR], [0.0, 0.0]]), np.array([0, 1, 0])), LOG2),
]


CROSS_ENTROPY_MISTAKES = [
    Mistake(
        "the label's logit is added: it is subtracted from the logarithm of the sum",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: np.log(total) + shifted),
    ),
    Mistake(
        "exp has been taken of the label's logit, too: keep z - max(z) as it is for that part",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: np.log(total) - np.exp(shifted)),
    ),
    Mistake(
        "the logarithm of the sum is missing",
        lambda z, labels: _from_shifted(z, labels, lambda shifted, total: total - shifted),
    ),
    Mistake(
        "forgot the mean over the batch: this is the sum over the rows",
        lambda z, labels: len(z) * cross_entropy_of(z, labels) if len(z) > 1 else None,
    ),
    Mistake(
        "wrong sign: the loss is minus the logarithm, and never below 0",
        lambda z, labels: -cross_entropy_of(z, labels),
    ),
    Mistake(
        "divided by batch times classes: every row has one loss, so the mean is over the rows",
        lambda z, labels: cross_entropy_of(z, labels) / z.shape[1] if z.shape[1] > 1 else None,
    ),
    Mistake(
        "every class is counted: only the share of the row's label is",
        lambda z, labels: float(np.mean(cross_entropies(z).sum(axis=1))),
    ),
    Mistake(
        "softmax is taken twice: logits are raw outputs, without any softmax",
        lambda z, labels: cross_entropy_of(softmax_of(z), labels),
    ),
    Mistake(
        "the maximum is subtracted in the sum of exps but not from the label's logit (or the reverse): in both, or it "
        "does not cancel",
        lambda z, labels: cross_entropy_of(z, labels) - float(np.mean(z.max(axis=1))),
    ),
    Mistake(
        "softmax over the columns: the classes of a sample stand in a row",
        lambda z, labels: (
            float(np.mean(-np.log(softmax_of(z, axis=0)[np.arange(len(z)), labels]))) if np.abs(z).max() < 700 else None
        ),
    ),
]


def _from_shifted(
    logits: np.ndarray, labels: np.ndarray, formula: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> float:
    """The mean of a formula. It takes the label's logit minus the maximum, and the sum of all exps."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return float(np.mean(formula(shifted[np.arange(len(labels)), labels], np.exp(shifted).sum(axis=1))))


def loss_scale(logits: np.ndarray, labels: np.ndarray) -> float:
    """The scale of a loss's rounding: the size of the logits that it subtracts."""
    return 1.0 + float(np.abs(logits).max())


def slopes_scale(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The scale of the gradient's rounding, for each logit: a very small slope is as exact as a large one."""
    scale: np.ndarray = (softmax_scale(logits) + one_hot(labels, logits.shape[1])) / len(logits)
    return scale


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """A row for each label: 1 at the label, 0 elsewhere."""
    rows = np.zeros((len(labels), classes))
    rows[np.arange(len(labels)), labels] = 1
    return rows


def cross_entropy_slopes(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(softmax(logits) - one_hot(labels)) / batch."""
    slopes: np.ndarray = (softmax_of(logits) - one_hot(labels, logits.shape[1])) / len(logits)
    return slopes


CROSS_ENTROPY_BACKWARD_HAND = [
    ((np.array([[0.0, 0.0], [0.0, LOG3]]), np.array([1, 1])), [[0.25, -0.25], [0.125, -0.125]]),
    ((np.array([[0.0, LOG3]]), np.array([0])), [[-0.75, 0.75]]),
    ((np.array([[FAR, -FAR], [FAR, -FAR]]), np.array([0, 1])), [[0.0, 0.0], [0.5, -0.5]]),
    ((np.array([[-FAR, -FAR]]), np.array([0])), [[-0.5, 0.5]]),
    ((np.array([[-FAR, -FAR], [FAR, FAR]]), np.array([0, 1])), [[-0.25, 0.25], [0.25, -0.25]]),
    ((np.array([[-FAR, FAR]]), np.array([0])), [[-1.0, 1.0]]),
]


CROSS_ENTROPY_BACKWARD_MISTAKES = [
    Mistake(
        "forgot the batch mean: the loss is the mean over the rows, so its gradient is divided by the batch, too",
        lambda z, labels: cross_entropy_slopes(z, labels) * len(z) if len(z) > 1 else None,
    ),
    Mistake(
        "wrong sign: what was predicted minus what should have been",
        lambda z, labels: -cross_entropy_slopes(z, labels),
    ),
    Mistake(
        "the 1 at the label is not subtracted: this is softmax, divided by the batch",
        lambda z, labels: softmax_of(z) / len(z),
    ),
    Mistake("the 1 at the label is not subtracted: this is softmax", lambda z, labels: softmax_of(z)),
    Mistake(
        "softmax is divided by the batch before the 1 is subtracted: subtract first, then divide all",
        lambda z, labels: softmax_of(z) / len(z) - one_hot(labels, z.shape[1]) if len(z) > 1 else None,
    ),
    Mistake(
        "divided by batch times classes: the loss is the mean over the rows alone",
        lambda z, labels: cross_entropy_slopes(z, labels) / z.shape[1] if z.shape[1] > 1 else None,
    ),
    Mistake(
        "the logits minus one: softmax has to come first",
        lambda z, labels: (z - one_hot(labels, z.shape[1])) / len(z),
    ),
    Mistake(
        "1 is subtracted in a column of every row: each row has its own label",
        lambda z, labels: (softmax_of(z) - one_hot(labels, z.shape[1]).sum(axis=0)) / len(z) if len(z) > 1 else None,
    ),
]


def cross_entropy_gradient(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient check of softmax_cross_entropy_backward."""
    labels = np.array([2, 0, 3])
    return gradient_check(
        lambda z: cross_entropy_of(z, labels),
        lambda z: call(z, labels),
        lambda rng: 2 * rng.standard_normal((3, 4)),
        "softmax_cross_entropy for logits (3, 4)",
        mistakes=[
            replace(mistake, result=lambda z, wrong=mistake.result: wrong(z, labels))
            for mistake in CROSS_ENTROPY_BACKWARD_MISTAKES
        ],
    )
