"""Week 1: the matrix product on lists of lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.problems.matrices import MATMUL_HAND, MATMUL_MISTAKES, SIZES, B, matrices

ONE_ROW = (
    "all rows are one and the same list: [row] * m does not copy the row; make each row anew, [... for _ in range(m)]"
)


def product(rung: str) -> list[Check]:
    """The checks of a rung of the matmul ladder."""
    return graded(
        Exercise(
            call=on_lists(getattr(stage().matmul, rung), "a", "b"),
            reference=np.matmul,
            show=lambda a, b: f"{rung}(a {a.shape}, b {b.shape})",
            hand=MATMUL_HAND,
            arguments=matrices,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[1],
            scale=lambda a, b: np.abs(a) @ np.abs(b),
            mistakes=[
                *MATMUL_MISTAKES,
                Mistake(ONE_ROW, lambda a, b: np.tile((a @ b).sum(axis=0), (len(a), 1)) if len(a) > 1 else None),
                Mistake(ONE_ROW, lambda a, b: np.tile((a @ b)[-1], (len(a), 1)) if len(a) > 1 else None),
                Mistake(
                    "only the first row is computed: zip gives an iterator, which is used up after one walk; "
                    "make a list of it",
                    lambda a, b: np.concatenate([a[:1] @ b, np.zeros((len(a) - 1, b.shape[1]))]),
                ),
                Mistake(
                    "the sum is not begun anew: every element also holds what stood before it in its row",
                    lambda a, b: np.cumsum(a @ b, axis=1),
                ),
            ],
        )
    )


def matmul_tn() -> list[Check]:
    """aᵀb."""

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        m, k, n = size
        return rng.standard_normal((k, m)), rng.standard_normal((k, n))

    return graded(
        Exercise(
            call=on_lists(stage().matmul.matmul_tn, "a", "b"),
            reference=lambda a, b: a.T @ b,
            show=lambda a, b: f"matmul_tn(a {a.shape}, b {b.shape})",
            hand=[
                ((np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), B), [[11.0, -2.0], [14.0, -2.0]]),
                (
                    (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])),
                    [[26.0, 30.0], [38.0, 44.0]],
                ),
            ],
            arguments=arguments,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[0],
            scale=lambda a, b: np.abs(a).T @ np.abs(b),
            mistakes=[
                Mistake(
                    "this is a times b: it is a's columns that are multiplied here, not its rows",
                    lambda a, b: a @ b if a.shape[1] == len(b) else None,
                ),
                Mistake(
                    "this is a times b transposed: rows with rows, where columns with columns are wanted",
                    lambda a, b: a @ b.T if a.shape[1] == b.shape[1] else None,
                ),
                Mistake(
                    "the last row is left out: the sum runs over all rows, which a and b have in common",
                    lambda a, b: a[:-1].T @ b[:-1] if len(a) > 1 else None,
                ),
                Mistake("only the last row counts: add to the sum, do not assign", lambda a, b: a[-1:].T @ b[-1:]),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "1.1": lambda: product("index_loops"),
    "1.2": lambda: product("zip_rows_columns"),
    "1.3": lambda: product("transpose_once"),
    "1.4": matmul_tn,
}
