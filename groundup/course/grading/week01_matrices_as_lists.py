"""Week 1: the matrix product on lists of lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check, Tally
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.source import uses_none_of
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.calling.watched_lists import look_ups, most_walks, watched
from groundup.course.grading.problems.matrices import MATMUL_HAND, MATMUL_MISTAKES, SIZES, B, matrices

ONE_ROW = (
    "all rows are one and the same list: [row] * m does not copy the row; make each row anew, [... for _ in range(m)]"
)


def stopped_after(part: str, rung: str) -> str:
    """The likely cause if only the first row, column or number of a product is there. index_loops uses no zip."""
    if rung == "index_loops":
        return f"only the first {part} is computed: does return stand inside a loop? It belongs behind all three"
    again = "make a list of it" if part == "row" else "make it anew, or make a list of it"
    return (
        f"only the first {part} is computed: zip gives an iterator, which is used up after one walk; {again}. "
        "Or does return stand inside a loop?"
    )


RUNGS = ("index_loops", "zip_rows_columns", "transpose_once")

OTHERS = ("matmul", "matmul_tn", "matmul_nt", "multiply_in_c", "_rows_times_rows", "LADDER")


def by_itself(rung: str) -> Callable[[Tally], None]:
    """A rung computes its product itself, and calls no other."""
    others = {name for name in (*RUNGS, *OTHERS) if name != rung}
    cause = "this calls another function that has the product already: write the loops of this one"
    return uses_none_of(getattr(stage().matmul, rung), dict.fromkeys(others, cause))


def by_zip(rung: str) -> Callable[[Tally], None]:
    """No number of a is looked up by its index; and in transpose_once, b is walked once and not for every row of a."""

    def check(tally: Tally) -> None:
        by_itself(rung)(tally)
        a, b = matrices(np.random.default_rng(3), (5, 4, 6))
        case = f"{rung}(a {a.shape}, b {b.shape})"
        tally.trying(case)
        left, other = watched(a), watched(b)
        getattr(stage().matmul, rung)(left, other)
        tally.holds(
            look_ups(left) == 0,
            f"{case} looks up numbers of a by their index",
            expected="no look-up",
            got=str(look_ups(left)),
            cause="zip hands out a row's number together with its partner: for x, … in zip(a_row, …)",
        )
        if rung == "transpose_once":
            once = "gather b's columns once, before the loop over the rows of a: columns = list(zip(*b))"
            tally.holds(
                most_walks(other) <= 3 and look_ups(other) <= b.size,
                f"{case} reads b anew for each row of a",
                expected=f"each of b's {b.size} numbers once",
                got=f"{most_walks(other)} walks along a row, {look_ups(other)} numbers by index",
                cause=once,
            )

    return check


def wrong_shapes(a: np.ndarray, b: np.ndarray) -> dict[tuple[int, ...], str]:
    """The causes of results of a wrong shape, for a product of a (m, k) and b (k, n)."""
    (m, k), n = a.shape, b.shape[1]
    right = f"c has a row for each of a's {m} rows, and in it a number for each of b's {n} columns, n = len(b[0])"
    return {
        (m, k): f"this is the shape of a: {right}",
        (k, n): f"this is the shape of b: {right}",
        (k, k): f"this has the common side, {k}, on both sides, which is the one that is added up: {right}",
        (m * n,): f"the numbers stand in one list: {right}",
        (m,): f"this is one number a row: {right}",
        (1, n): stopped_after("row", "index_loops"),
        (m, 1): stopped_after("column", "index_loops"),
    }


def product(rung: str) -> list[Check]:
    """The checks of a rung of the matmul ladder."""
    return graded(
        Exercise(
            call=on_lists(getattr(stage().matmul, rung), "a", "b"),
            way=by_itself(rung) if rung == "index_loops" else by_zip(rung),
            reference=np.matmul,
            show=lambda a, b: f"{rung}(a {a.shape}, b {b.shape})",
            hand=MATMUL_HAND,
            arguments=matrices,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[1],
            scale=lambda a, b: np.abs(a) @ np.abs(b),
            shapes=wrong_shapes,
            mistakes=[
                *MATMUL_MISTAKES,
                Mistake(ONE_ROW, lambda a, b: np.tile((a @ b).sum(axis=0), (len(a), 1)) if len(a) > 1 else None),
                Mistake(ONE_ROW, lambda a, b: np.tile((a @ b)[-1], (len(a), 1)) if len(a) > 1 else None),
                Mistake(
                    stopped_after("row", rung),
                    lambda a, b: np.concatenate([a[:1] @ b, np.zeros((len(a) - 1, b.shape[1]))]),
                ),
                Mistake(
                    stopped_after("column", rung),
                    lambda a, b: np.hstack([a @ b[:, :1], np.zeros((len(a), b.shape[1] - 1))]),
                ),
                Mistake(
                    stopped_after("number", rung),
                    lambda a, b: (a @ b) * (np.indices((len(a), b.shape[1])).sum(axis=0) == 0),
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
                Mistake(ONE_ROW, lambda a, b: np.tile((a.T @ b).sum(axis=0), (a.shape[1], 1))),
                Mistake(ONE_ROW, lambda a, b: np.tile((a.T @ b)[-1], (a.shape[1], 1))),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "1.1": lambda: product("index_loops"),
    "1.2": lambda: product("zip_rows_columns"),
    "1.3": lambda: product("transpose_once"),
    "1.4": matmul_tn,
}
