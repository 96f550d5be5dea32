"""Phase 3: the network in C. What is right is computed by stage 2, in float64.

A C function is called through the library's own door (stage3_c.library), on arrays that lie inside guarded ones; see
guarded.py. A `static` function has no name outside its file: `tile` and `backward` are graded through what calls them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shared.contract import load_stage
from shared.course.grading import guarded
from shared.course.grading.guarded import changed, filled, read
from shared.course.likely import Guess
from shared.course.rungs import Exercise, Rung, Speed, Tally, Wrong, gradient_rung, rungs
from shared.initialize import initialize_parameters
from shared.tolerance import compare

SHAPES = [(1, 1), (1, 7), (13, 1), (3, 5), (17, 31), (2, 64)]
"""(rows, columns)."""

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, K much larger than N and the reverse."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
AB, BA = [[7.0, -1.0], [16.0, -1.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]]

BLOCK_DEPTH, BLOCK_WIDTH = 64, 256
"""DEPTH and WIDTH of matmul_loops.c."""

WALK = (8, 512, 512)
"""A product in which walking down b's columns costs several times as much as walking along its rows: every number is
in another cache line, and they are 4 kB apart."""


def numpy_floor() -> Any:
    """Stage 2, which says what is right."""
    return load_stage("stage2_numpy")


def c_function(name: str, dtype: str = "float64") -> Callable[..., Any]:
    """The learner's C function. Compiles what has to be compiled."""
    load_stage("stage3_c")
    from stage3_c import library  # after load_stage, which says what is missing where there is no compiler

    return library.function(name, dtype)


def pool() -> int:
    """The handle of the threads, which the products take as their first argument."""
    from stage3_c import library

    return library.pool()


def and_then(made: Sequence[Rung], name: str, check: Callable[[Tally], None]) -> list[Rung]:
    """The rungs, with one more check at the end of the one of this name."""

    def both(before: Callable[[Tally], None]) -> Callable[[Tally], None]:
        def run(tally: Tally) -> None:
            before(tally)
            check(tally)

        return run

    return [Rung(rung.name, both(rung.check)) if rung.name == name else rung for rung in made]


def matrix(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Random numbers, (rows, columns)."""
    return rng.standard_normal(size)


def walked(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
    """What one reads who takes element (i, j) to be at [i * row + j * column]; None where that leaves the array."""
    i, j = np.indices(values.shape)
    places = i * row + j * column
    return values.reshape(-1)[places] if places.max() < values.size else None


# Week 6: pointers and loops


def relu_backward() -> list[Rung]:
    """The derivative of ReLU: as many numbers in a line as rows times columns."""
    function, floor = c_function("relu_backward"), numpy_floor().activations

    def call(grad: np.ndarray, z: np.ndarray) -> np.ndarray:
        arguments = (read("grad_output", grad), read("z", z), read("output", np.maximum(z, 0)))
        return guarded.run("relu_backward", function, *z.shape, *arguments, filled("grad_z", z.shape))["grad_z"]

    def reference(grad: np.ndarray, z: np.ndarray) -> np.ndarray:
        return floor.relu_backward(grad, z, np.maximum(z, 0))

    def in_place(tally: Tally) -> None:
        grad, z = (matrix(np.random.default_rng(seed), (3, 4)) for seed in (5, 6))
        memory = changed("grad_output", grad)
        arguments = (memory, read("z", z), read("output", np.maximum(z, 0)), memory)
        tally.trying("relu_backward with grad_z and grad_output one memory")
        got = guarded.run("relu_backward", function, *z.shape, *arguments)
        tally.equal(
            got["grad_output"],
            reference(grad, z),
            case="relu_backward with grad_z and grad_output one memory",
            guesses=[Guess("grad_z may be grad_output itself: read each number before you write it", lambda: got_zeros)],
        )

    got_zeros = np.zeros((3, 4))
    z, grad = np.array([[-1.0, 0.0, 2.0], [3.0, -4.0, 0.5]]), np.array([[10.0, 20.0, 30.0], [-40.0, 50.0, 60.0]])
    away = np.where(np.abs(matrix(np.random.default_rng(7), (3, 4))) < 0.1, 0.5, matrix(np.random.default_rng(7), (3, 4)))
    weights = matrix(np.random.default_rng(8), (3, 4))
    made = rungs(
        Exercise(
            call=call,
            reference=reference,
            show=lambda grad, z: f"relu_backward of {z.shape}",
            hand=[
                ((grad, z), [[0.0, 0.0, 30.0], [-40.0, 0.0, 60.0]]),
                ((np.array([[np.inf, 1.0]]), np.array([[-1.0, 1.0]])), [[0.0, 1.0]]),
            ],
            arguments=lambda rng, size: (matrix(rng, size), matrix(rng, size)),
            typical=(4, 6),
            sizes=SHAPES,
            gradient=gradient_rung(
                lambda z: float(np.sum(np.maximum(z, 0) * weights)),
                lambda z: call(weights, z),
                lambda rng: away,
                "sum(relu(z) * grad_output) for z (3, 4)",
            ),
            guesses=[
                Guess("at z = 0 the slope is 0: the gradient stops there", lambda g, z: np.where(z >= 0, g, 0)),
                Guess("that is the slope alone: the gradient that came in passes where it is 1", lambda g, z: z > 0),
                Guess("the gradient passes where z was positive, not where it was negative", lambda g, z: (z <= 0) * g),
                Guess(
                    "0 times infinity is not a number: choose between 0 and the gradient, do not multiply",
                    lambda g, z: _quiet(lambda: g * (z > 0)),
                ),
                Guess("the sign of z decides, not that of the gradient", lambda g, z: np.where(g > 0, g, 0)),
            ],
        )
    )
    return and_then(made, "agreement", in_place)


def _quiet(compute: Callable[[], Any]) -> Any:
    with np.errstate(all="ignore"):
        return compute()


def add_bias() -> list[Rung]:
    """values += bias, in place."""
    function = c_function("add_bias")

    def call(bias: np.ndarray, values: np.ndarray) -> np.ndarray:
        arguments = (read("bias", bias), changed("values", values))
        return guarded.run("add_bias", function, *values.shape, *arguments)["values"]

    return rungs(
        Exercise(
            call=call,
            reference=lambda bias, values: values + bias,
            show=lambda bias, values: f"add_bias of bias {bias.shape} to values {values.shape}",
            hand=[
                (
                    (np.array([10.0, 20.0, 30.0]), np.array([[1.0, 2.0, 3.0], [-4.0, -5.0, -6.0]])),
                    [[11.0, 22.0, 33.0], [6.0, 15.0, 24.0]],
                )
            ],
            arguments=lambda rng, size: (rng.standard_normal(size[1]), matrix(rng, size)),
            typical=(4, 4),
            sizes=SHAPES,
            guesses=[
                Guess(
                    "only the first row has its bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + b, v[1:]]),
                ),
                Guess(
                    "the first row got every row's bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + len(v) * b, v[1:]]),
                ),
                Guess("the bias took the values' place: add it to them", lambda b, v: np.broadcast_to(b, v.shape)),
                Guess("the bias of an output is that of its column j, not of its row i", _bias_of_rows),
                Guess("every value got the first bias", lambda b, v: v + b[0]),
                Guess("nothing was changed", lambda b, v: v),
            ],
        )
    )


def _bias_of_rows(bias: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    return values + bias[: len(values), None] if len(values) <= len(bias) else None


def column_sums() -> list[Rung]:
    """The sum of each column, walked row by row."""
    function = c_function("column_sums")

    def call(values: np.ndarray) -> np.ndarray:
        arguments = (read("values", values), filled("sums", values.shape[1:]))
        return guarded.run("column_sums", function, *values.shape, *arguments)["sums"]

    def in_walk(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
        found = walked(values, row, column)
        return None if found is None else found.sum(axis=0)

    return rungs(
        Exercise(
            call=call,
            reference=lambda values: values.sum(axis=0),
            show=lambda values: f"column_sums of {values.shape}",
            hand=[(((np.array([[1.0, 2.0, 3.0], [40.0, 50.0, -60.0]])),), [41.0, 52.0, -57.0])],
            arguments=lambda rng, size: (matrix(rng, size),),
            typical=(5, 5),
            sizes=SHAPES,
            terms=lambda values: len(values),
            scale=lambda values: np.abs(values).sum(axis=0),
            guesses=[
                Guess(
                    "a mean was asked of nobody: the bias was added to every row, so its gradient is the sum",
                    lambda v: v.mean(axis=0),
                ),
                Guess(
                    "the first row counts twice: what starts with row 0 goes on with row 1",
                    lambda v: v.sum(axis=0) + v[0],
                ),
                Guess("the last row is left out: does i run to the end?", lambda v: v[:-1].sum(axis=0)),
                Guess("only the last row is kept: add to the sum, do not assign", lambda v: v[-1]),
                Guess("only the first row is there: nothing is added to it", lambda v: v[0]),
                Guess(
                    "those are the sums of the rows: the sum of a column runs over i",
                    lambda v: v.sum(axis=1) if v.shape[0] == v.shape[1] else None,
                ),
                Guess(
                    "the next row begins `columns` numbers further on, not `rows`",
                    lambda v: in_walk(v, v.shape[0], 1),
                ),
                Guess(
                    "rows and columns have changed places in the index: element (i, j) is at [i * columns + j]",
                    lambda v: in_walk(v, 1, v.shape[0]),
                ),
            ],
        )
    )


def matmul_ijk() -> list[Rung]:
    """The definition."""
    return rungs(product("matmul_ijk"))


def softmax() -> list[Rung]:
    """Every row on its own, kept from overflowing, and in place where the caller wants that."""
    function, floor = c_function("softmax"), numpy_floor().activations

    def call(z: np.ndarray) -> np.ndarray:
        return guarded.run("softmax", function, *z.shape, read("z", z), filled("output", z.shape))["output"]

    def in_place(tally: Tally) -> None:
        z = matrix(np.random.default_rng(5), (3, 4))
        memory = changed("z", z)
        case = "softmax with output and z one memory"
        tally.trying(case)
        got = guarded.run("softmax", function, *z.shape, memory, memory)["z"]
        found = compare(case, got, floor.softmax(z), "float64", 16)
        likely = "output may be z itself: what is read from z after output was written is no z any more"
        tally.holds(
            found.ok, f"{case}: wrong", expected=f"{found.expected:.9g}", got=f"{found.got:.9g}", likely=likely
        )

    def other(sum_axis: int | None, subtract: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        def compute(z: np.ndarray) -> np.ndarray:
            e = np.exp(z - z.max(axis=1, keepdims=True) if subtract else z)
            return e / e.sum(axis=sum_axis, keepdims=True)

        return lambda z: _quiet(lambda: compute(z))

    half = np.log(3.0)
    made = rungs(
        Exercise(
            call=call,
            reference=floor.softmax,
            show=lambda z: f"softmax of {z.shape}" + (f", {z[0, 0]:g} among it" if np.abs(z).max() > 100 else ""),
            hand=[
                ((np.array([[0.0, half], [half, 0.0], [5.0, 5.0]]),), [[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]),
                ((np.array([[1000.0, 1000.0]]),), [[0.5, 0.5]]),
                ((np.array([[-1000.0, -1000.0]]),), [[0.5, 0.5]]),
            ],
            arguments=lambda rng, size: (3 * matrix(rng, size),),
            typical=(4, 4),
            sizes=SHAPES,
            guesses=[
                Guess("exp overflows: subtract the row's largest from each z first", other(1, subtract=False)),
                Guess(
                    "exp of a very negative number is 0: the largest is one of the row's own numbers, so start with z[0]",
                    lambda z: _quiet(lambda: _softmax_from(z, np.maximum(z.max(axis=1, keepdims=True), 0))),
                ),
                Guess("each row adds up to 1, not the whole matrix: the sum starts anew with each row", other(None)),
                Guess("each row adds up to 1, not each column", other(0)),
                Guess("the sum is carried from row to row: it starts anew with each", _carried),
                Guess(
                    "the exponentials are not divided by their sum",
                    lambda z: np.exp(z - z.max(axis=1, keepdims=True)),
                ),
            ],
        )
    )
    return and_then(made, "agreement", in_place)


def _softmax_from(z: np.ndarray, largest: np.ndarray) -> np.ndarray:
    e = np.exp(z - largest)
    return e / e.sum(axis=1, keepdims=True)


def _carried(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / np.cumsum(e.sum(axis=1))[:, None]


# Week 7: memory and caches


def product(
    name: str, takes_pool: bool = False, sizes: Sequence[Any] = (), guesses: Sequence[Guess] = (), speed: Speed | None = None
) -> Exercise:
    """A rung of the matmul ladder: c (m, n) = a (m, k) times b (k, n)."""
    function = c_function(name)

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        (m, k), n = a.shape, b.shape[1]
        first = (pool(),) if takes_pool else ()
        arguments = (*first, m, k, n, read("a", a), read("b", b), filled("c", (m, n)))
        result = guarded.run(name, function, *arguments)
        return result["c"]

    return Exercise(
        call=call,
        reference=np.matmul,
        show=lambda a, b: f"{name}(m={a.shape[0]}, k={a.shape[1]}, n={b.shape[1]})",
        hand=[((A, B), AB), ((B, A), BA)],
        arguments=factors,
        typical=(4, 4, 4),
        sizes=[*SIZES, *sizes],
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        guesses=[*guesses, *MATMUL_GUESSES],
        speed=speed,
    )


def factors(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def _times(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return None if a is None or b is None else a @ b


MATMUL_GUESSES = [
    Guess(
        "the last product is left out: does p run to the end of the row?",
        lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
    ),
    Guess("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
    Guess(
        "a sum goes on from one output to the next: each starts from 0", lambda a, b: (a @ b).cumsum().reshape(AB_of(a, b))
    ),
    Guess(
        "b is read as if it were transposed: element (p, j) is at [p * n + j]",
        lambda a, b: _times(a, walked(b, 1, b.shape[0])),
    ),
    Guess("b's rows are n numbers apart, not k", lambda a, b: _times(a, walked(b, b.shape[0], 1))),
    Guess("b's rows are n numbers apart, not m", lambda a, b: _times(a, walked(b, a.shape[0], 1))),
    Guess(
        "a is read as if it were transposed: element (i, p) is at [i * k + p]",
        lambda a, b: _times(walked(a, 1, a.shape[0]), b),
    ),
    Guess("a's rows are k numbers apart, not n", lambda a, b: _times(walked(a, b.shape[1], 1), b)),
    Guess("a's rows are k numbers apart, not m", lambda a, b: _times(walked(a, a.shape[0], 1), b)),
    Guess(
        "c is written as if it were transposed: element (i, j) is at [i * n + j]",
        lambda a, b: (a @ b).T.reshape(AB_of(a, b)),
    ),
    Guess("every number of the row of a takes part, not only the first", lambda a, b: a[:, :1] * b.sum(axis=0)),
]


def AB_of(a: np.ndarray, b: np.ndarray) -> tuple[int, int]:
    return a.shape[0], b.shape[1]


def along_rows(name: str) -> Speed:
    """The time of a rung that reads memory in order, against the one that does not."""
    (m, k, n), ijk = WALK, c_function("matmul_ijk")

    def down_columns(a: np.ndarray, b: np.ndarray) -> None:
        ijk(m, k, n, a, b, np.empty((m, n)))

    return Speed(
        lambda rng: factors(rng, WALK),
        most=0.5,
        likely="the innermost loop still reads down the columns of b: j has to be the innermost, so that each access is "
        "to the next number in memory",
        against=down_columns,
        what="matmul_ijk",
    )
