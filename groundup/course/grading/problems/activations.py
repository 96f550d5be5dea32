"""The derivative of ReLU, and softmax, in NumPy and float64: for weeks 2 and 4, with the known mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.mistakes import Mistake

SHAPES = [(1, 1), (1, 7), (13, 1), (2, 5), (17, 11), (3, 31)]
"""(batch, features)."""

LOG2, LOG3 = math.log(2.0), math.log(3.0)

FAR = 1e4
"""A logit so large that its exp is infinite."""


def with_zeros(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Random numbers with a 0 in every third place, where ReLU has its kink."""
    z = rng.standard_normal(shape)
    z.flat[::3] = 0.0
    return z


def relu_arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """A random grad_output, a z with zeros, and its output."""
    z = with_zeros(rng, shape)
    return rng.standard_normal(shape), z, np.maximum(z, 0)


RELU_Z = np.array([[-1.0, 0.0, 2.0], [3.0, -4.0, 0.5]])


RELU_EDGES = np.array([[-1.0, 0.0, 2.0], [-1e-30, 1e-30, 1e30]])

RELU_HAND = [
    (
        (np.array([[10.0, 20.0, 30.0], [-1.0, -2.0, -3.0]]), RELU_Z, np.maximum(RELU_Z, 0)),
        [[0, 0, 30.0], [-1.0, 0, -3.0]],
    ),
    # An infinite gradient stops, too: the rule is a choice, not a product. It is z's sign that counts, not its size.
    (
        (np.array([[np.inf, -np.inf, np.inf], [4.0, 5.0, 6.0]]), RELU_EDGES, np.maximum(RELU_EDGES, 0)),
        [[0, 0, np.inf], [0, 5.0, 6.0]],
    ),
    # All of it passes, and still the result is a matrix of its own.
    ((np.array([[7.0, 8.0]]), np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]])), [[7.0, 8.0]]),
]


def quietly(compute: Callable[[], Any]) -> Any:
    """The result, without NumPy's warnings about infinities."""
    with np.errstate(all="ignore"):
        return compute()


CHOOSE = "0 times infinity is not a number: choose between 0 and the gradient, do not multiply"


RELU_MISTAKES = [
    Mistake(CHOOSE, lambda g, z, o: quietly(lambda: g * (z > 0))),
    Mistake(
        "the slope at z = 0: here it is 0, so the gradient stops there, too", lambda g, z, o: np.where(z >= 0, g, 0)
    ),
    Mistake("this is the slope alone: the chain rule multiplies it by grad_output", lambda g, z, o: (z > 0) * 1.0),
    Mistake("this is relu(z) once more: its slope is wanted, times grad_output", lambda g, z, o: o),
    Mistake("the slope of ReLU is 1 where z is positive, not z", lambda g, z, o: quietly(lambda: g * o)),
    Mistake("the sign of grad_output does not matter: the sign of z decides", lambda g, z, o: np.maximum(g, 0)),
    Mistake("the wrong way round: the gradient passes where z was positive", lambda g, z, o: np.where(z <= 0, g, 0)),
    Mistake("the gradient passes everywhere: it has to stop where z was not positive", lambda g, z, o: g),
]


def relu_slopes(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient check of relu_backward, away from the kink."""
    grad = np.random.default_rng(6).standard_normal((3, 4))

    def at(rng: np.random.Generator) -> np.ndarray:
        z = rng.standard_normal((3, 4))
        return np.sign(z) * (0.1 + np.abs(z))

    def slope_of(z: np.ndarray) -> Any:
        return call(grad, z, np.maximum(z, 0))

    return gradient_check(
        lambda z: float(np.sum(np.maximum(z, 0) * grad)),
        slope_of,
        at,
        "sum(relu(z) * grad_output) for z (3, 4)",
        mistakes=[
            replace(mistake, result=lambda z, wrong=mistake.result: wrong(grad, z, np.maximum(z, 0)))
            for mistake in RELU_MISTAKES
        ],
    )


def softmax_of(z: np.ndarray, axis: int | None = 1) -> np.ndarray:
    """Softmax of every row. Along axis 0 (every column) or None (all numbers together) it is a known mistake."""
    with np.errstate(all="ignore"):
        exps = np.exp(z - z.max(axis=1, keepdims=True) if axis == 1 else z)
        shares: np.ndarray = exps / exps.sum(axis=axis, keepdims=True)
        return shares


def shifted_exps(z: np.ndarray) -> np.ndarray:
    """exp(z - the row's maximum)."""
    exps: np.ndarray = np.exp(z - z.max(axis=1, keepdims=True))
    return exps


def naive_softmax(z: np.ndarray) -> np.ndarray:
    """Softmax without subtracting the maximum: NaN for large numbers."""
    with np.errstate(all="ignore"):
        exps = np.exp(z)
        shares: np.ndarray = exps / exps.sum(axis=1, keepdims=True)
        return shares


WRONG_MAXIMA: list[tuple[str, Callable[[np.ndarray], Any]]] = [
    (
        "the maximum of the whole matrix, or of another row, is subtracted, and a row far below it rounds to 0 / 0: "
        "each row's own maximum, max(axis=1, keepdims=True) in NumPy",
        lambda z: z.max(),
    ),
    (
        "the largest is sought from 0 on, or without the signs, and a row of negative numbers rounds to 0 / 0: start "
        "with the row's first number",
        lambda z: np.maximum(z.max(axis=1, keepdims=True), 0),
    ),
    (
        "each column's maximum is subtracted, which differs within a row and does not cancel: each row's own is wanted",
        lambda z: z.max(axis=0),
    ),
]
"""(message, what is subtracted in the place of each row's maximum)."""


def softmax_less(z: np.ndarray, subtracted: Any) -> Any:
    """Softmax of every row if this is subtracted from it in the place of its maximum."""

    def compute() -> Any:
        exps = np.exp(z - subtracted)
        return exps / exps.sum(axis=1, keepdims=True)

    return quietly(compute)


MAXIMUM_MISTAKES = [Mistake(text, lambda z, of=of: softmax_less(z, of(z))) for text, of in WRONG_MAXIMA]


SOFTMAX_HAND = [
    ((np.array([[LOG3, 0.0], [LOG2, LOG2]]),), [[0.75, 0.25], [0.5, 0.5]]),
    ((np.array([[0.0, LOG2, math.log(5.0)]]),), [[0.125, 0.25, 0.625]]),
    ((np.array([[FAR, FAR, -FAR]]),), [[0.5, 0.5, 0.0]]),
    ((np.array([[-FAR, -FAR]]),), [[0.5, 0.5]]),
    ((np.array([[FAR, -FAR], [-FAR, -FAR]]),), [[1.0, 0.0], [0.5, 0.5]]),
    ((np.array([[-FAR, FAR, -FAR], [-FAR, -FAR, FAR]]),), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    # Below any number that a search for the largest could begin with.
    ((np.array([[-1200.0, -1200.0], [-1e9, -1e9], [-1e30, -1e30]]),), [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
]


SOFTMAX_MISTAKES = [
    Mistake("every column adds up to 1 here; softmax is over each row", lambda z: softmax_of(z, axis=0)),
    Mistake(
        "every column adds up to 1 here; softmax is over each row",
        lambda z: shifted_exps(z) / shifted_exps(z).sum(axis=0),
    ),
    Mistake(
        "every column adds up to 1 here; softmax is over each row", lambda z: softmax_of(z) / softmax_of(z).sum(axis=0)
    ),
    *(
        Mistake("all numbers together add up to 1 here; every row has to by itself", wrong)
        for wrong in (
            lambda z: softmax_of(z, axis=None),
            lambda z: shifted_exps(z) / shifted_exps(z).sum(),
            lambda z: softmax_of(z) / len(z) if len(z) > 1 else None,
        )
    ),
    Mistake(
        "these are the exponentials of z - max(z): what is missing is to divide each by their row's sum",
        shifted_exps,
    ),
    Mistake(
        "each row is divided by its sum without exp: softmax takes exp first",
        lambda z: z / z.sum(axis=1, keepdims=True) if np.all(z.sum(axis=1)) else None,
    ),
]


def rows_far_apart(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Random logits for what subtracts a maximum: rows of small numbers, all far below 0, all far above, and of both.

    A maximum that starts at 0, that of another row, of a column or of the whole matrix makes exp overflow, or the sum
    of a row 0. All numbers fit float32, in which exp overflows above 88.
    """
    rows, columns = shape
    offsets, spreads = np.array([0.0, -2000.0, 2000.0, 0.0]), np.array([3.0, 3.0, 3.0, 1000.0])
    kinds = (np.arange(rows) + columns) % len(offsets)
    logits = offsets[kinds, np.newaxis] + spreads[kinds, np.newaxis] * rng.standard_normal(shape)
    if columns > 16:
        logits[0, -1] += 6000  # where only the first numbers of a row are looked at
    return logits


def softmax_arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray]:
    """Random logits whose rows lie far apart."""
    return (rows_far_apart(rng, shape),)


def softmax_scale(z: np.ndarray) -> np.ndarray:
    """The scale of softmax's rounding: its own size, for exp turns an error of z - m into a relative one."""
    scale: np.ndarray = softmax_of(z) * (1.0 + np.abs(z).max(axis=1, keepdims=True))
    return scale
