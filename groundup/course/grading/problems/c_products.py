"""The matmul ladder in C, for weeks 6 to 8: arguments, results by hand, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import c_function, library, read_at_strides
from groundup.course.grading.calling.fenced_arrays import filled, read
from groundup.course.grading.problems.matrices import NO_NUMBER, SIZES, ZEROS_SKIPPED, A, B, matrices

LONG = [(65_537, 1, 1), (1, 65_537, 1), (1, 1, 65_537)]
"""More than a counter of 16 bits can count."""

AB, BA = [[7.0, -1.0], [16.0, -1.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]]


def product(name: str, sizes: Sequence[Any] = (), mistakes: Sequence[Mistake] = ()) -> Exercise:
    """The exercise of a rung of the matmul ladder: c (m, n) = a (m, k) times b (k, n)."""
    return Exercise(
        call=product_call(name),
        reference=np.matmul,
        show=lambda a, b: f"{name}(m={a.shape[0]}, k={a.shape[1]}, n={b.shape[1]})",
        hand=[((A, B), AB), ((B, A), BA), NO_NUMBER],
        arguments=matrices,
        typical=(4, 4, 4),
        sizes=[*SIZES, *sizes, *LONG],
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        mistakes=[*mistakes, *PRODUCT_MISTAKES],
    )


def product_call(name: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A product in C as a function of a and b.

    The functions of matmul_loops.c need no threads; all others take the threads' handle.
    """
    function = c_function(name)
    first = () if name in LOOPS else (library.pool(),)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        m, k, n = _sizes(name, a, b)
        arguments = (*first, m, k, n, read("a", a), read("b", b), filled("c", (m, n)))
        result: np.ndarray = fenced_arrays.run(name, function, *arguments)["c"]
        return result

    return call


LOOPS = ("matmul_ijk", "matmul_ikj", "matmul_blocked", "matmul_restrict")


def _sizes(name: str, a: np.ndarray, b: np.ndarray) -> tuple[int, int, int]:
    if name == "matmul_tn":
        return a.shape[1], a.shape[0], b.shape[1]
    return a.shape[0], a.shape[1], b.shape[0] if name == "matmul_nt" else b.shape[1]


def times(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else a @ b


PRODUCT_MISTAKES = [
    ZEROS_SKIPPED,
    Mistake(
        "the last product is left out: does p run to the end of the row?",
        lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
    ),
    Mistake("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
    *(
        Mistake("a sum goes on from one output to the next: each starts from 0", wrong)
        for wrong in (
            lambda a, b: np.cumsum(a @ b, axis=1),
            lambda a, b: np.cumsum(a @ b).reshape(len(a), -1),
        )
    ),
    Mistake(
        "b is read as if it were transposed: element (p, j) is at [p * n + j]",
        lambda a, b: times(a, read_at_strides(b, 1, len(b))),
    ),
    Mistake("b's rows are n numbers apart, not k", lambda a, b: times(a, read_at_strides(b, len(b), 1))),
    Mistake("b's rows are n numbers apart, not m", lambda a, b: times(a, read_at_strides(b, len(a), 1))),
    Mistake(
        "a is read as if it were transposed: element (i, p) is at [i * k + p]",
        lambda a, b: times(read_at_strides(a, 1, len(a)), b),
    ),
    Mistake("a's rows are k numbers apart, not n", lambda a, b: times(read_at_strides(a, b.shape[1], 1), b)),
    Mistake("a's rows are k numbers apart, not m", lambda a, b: times(read_at_strides(a, len(a), 1), b)),
    Mistake(
        "c is written as if it were transposed: element (i, j) is at [i * n + j]",
        lambda a, b: (a @ b).T.reshape(len(a), -1),
    ),
    Mistake("only the first row is right: do a and c move on to row i?", lambda a, b: np.tile(a[:1] @ b, (len(a), 1))),
]
