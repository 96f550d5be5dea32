"""The matrix product, for weeks 1 and 4: arguments, results by hand, and known mistakes.

What the end of a name says, in this folder:

    _HAND                  arguments, and the results computed by hand
    _GUESSES               what a misconception would give, to recognise it by
    _arguments             random arguments of a size
    _slopes, _gradient     the check of a derivative against central differences
"""

from __future__ import annotations

import numpy as np

from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.activations import quietly

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 5, 5), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, three equal ones, K much larger than N and the reverse."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])

NO_NUMBER = (np.array([[0.0, 1.0], [3.0, 1.0]]), np.array([[np.inf, 4.0], [2.0, 5.0]])), [[np.nan, 5.0], [np.inf, 17.0]]
"""0 times infinity is NaN: who leaves out the products with 0 hides that a number has grown beyond all bounds."""

MATMUL_HAND = [
    ((A, B), [[7.0, -1.0], [16.0, -1.0]]),
    ((B, A), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]]),
    NO_NUMBER,
    ((np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[3.0, 3.0, 0.0], [4.0, 4.0, 1.0]])), [[11.0, 11.0, 2.0]] * 2),
    ((np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[np.inf, 1.0], [3.0, 4.0]])), [[np.nan, 4.0], [np.nan, 8.0]]),
]


def without_zeros(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of a and b without the products in which a's number is 0."""
    terms = np.where(a[:, :, None] == 0, 0, quietly(lambda: a[:, :, None] * b))
    summed: np.ndarray = quietly(lambda: terms.sum(axis=1))
    return summed


ZEROS_SKIPPED = Mistake(
    "products with 0 are left out: 0 times infinity is NaN, and the result has to show it", without_zeros
)


def matrices(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


MATMUL_MISTAKES = [
    ZEROS_SKIPPED,
    Mistake(
        "the last product is left out: does k run to the end of the row?",
        lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
    ),
    Mistake("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
    Mistake(
        "these are the products element by element; a matrix product adds up a row times a column",
        lambda a, b: a * b if a.shape == b.shape else None,
    ),
]
