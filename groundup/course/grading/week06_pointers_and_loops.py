"""Week 6: the first functions in C, which walk along rows of numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundup.course.checks.check import Check, Tally, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import (
    SHAPES,
    alike,
    c_function,
    graded,
    matrix,
    numpy_floor,
    read_at_strides,
)
from groundup.course.grading.calling.fenced_arrays import changed, filled, read
from groundup.course.grading.problems.activations import (
    LOG3,
    MAXIMUM_MISTAKES,
    RELU_HAND,
    RELU_MISTAKES,
    SOFTMAX_HAND,
    SOFTMAX_MISTAKES,
    naive_softmax,
    relu_arguments,
    relu_slopes,
    softmax_arguments,
    softmax_scale,
)
from groundup.course.grading.problems.c_products import product


def relu_backward() -> list[Check]:
    """The derivative of ReLU, on rows times columns numbers in one line."""
    function, floor = c_function("relu_backward"), numpy_floor().activations

    def call(grad: np.ndarray, z: np.ndarray, output: np.ndarray) -> np.ndarray:
        arguments = (read("grad_output", grad), read("z", z), read("output", output), filled("grad_z", z.shape))
        return fenced_arrays.run("relu_backward", function, *z.shape, *arguments)["grad_z"]

    def in_place(tally: Tally) -> None:
        grad, z = (matrix(np.random.default_rng(seed), (3, 4)) for seed in (5, 6))
        memory, case = changed("grad_output", grad), "relu_backward with grad_z and grad_output in the same memory"
        tally.trying(case)
        arguments = (memory, read("z", z), read("output", np.maximum(z, 0)), memory)
        got = fenced_arrays.run("relu_backward", function, *z.shape, *arguments)["grad_output"]
        alike(
            tally,
            case,
            got,
            np.where(z > 0, grad, 0),
            "grad_z may be grad_output itself: read each number before writing it",
        )

    checks = graded(
        Exercise(
            call=call,
            reference=floor.relu_backward,
            show=lambda grad, z, output: f"relu_backward of {z.shape}",
            hand=RELU_HAND,
            arguments=relu_arguments,
            typical=(4, 6),
            sizes=SHAPES,
            special=(0,),
            gradient=relu_slopes(call),
            mistakes=RELU_MISTAKES,
        )
    )
    return and_then(checks, "agreement", in_place)


def add_bias() -> list[Check]:
    """values += bias, in place."""
    function = c_function("add_bias")

    def call(bias: np.ndarray, values: np.ndarray) -> np.ndarray:
        arguments = (read("bias", bias), changed("values", values))
        return fenced_arrays.run("add_bias", function, *values.shape, *arguments)["values"]

    places = "rows and columns have changed places in the index: element (i, j) is at [i * columns + j]"
    return graded(
        Exercise(
            call=call,
            fresh=True,
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
            mistakes=[
                Mistake(
                    "only the first row has its bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + b, v[1:]]),
                ),
                Mistake(
                    "the first row got every row's bias: does the index move on to row i, at i * columns?",
                    lambda b, v: np.vstack([v[:1] + len(v) * b, v[1:]]),
                ),
                Mistake("the bias took the values' place: add it to them", lambda b, v: np.broadcast_to(b, v.shape)),
                Mistake("the bias of an output is that of its column j, not of its row i", _bias_of_rows),
                Mistake(
                    "the next row begins `columns` numbers further on, not `rows`: element (i, j) is at "
                    "[i * columns + j]",
                    lambda b, v: _bias_along(b, v, len(v), 1),
                ),
                Mistake(places, lambda b, v: _bias_along(b, v, 1, len(v))),
                Mistake("every value got the first bias", lambda b, v: v + b[0]),
                Mistake("nothing was changed", lambda b, v: v),
            ],
        )
    )


def _bias_of_rows(bias: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    return values + bias[: len(values), None] if len(values) <= len(bias) else None


def _bias_along(bias: np.ndarray, values: np.ndarray, row: int, column: int) -> np.ndarray | None:
    """The result of adding the bias with element (i, j) at [i * row + j * column]; None if that leaves the array."""
    i, j = np.indices(values.shape)
    places, found = i * row + j * column, values.flatten()
    if places.max() >= values.size:
        return None
    np.add.at(found, places, np.broadcast_to(bias, values.shape))
    return found.reshape(values.shape)


def column_sums() -> list[Check]:
    """The sum of each column, row by row or column by column."""
    function = c_function("column_sums")

    def call(values: np.ndarray) -> np.ndarray:
        arguments = (read("values", values), filled("sums", values.shape[1:]))
        return fenced_arrays.run("column_sums", function, *values.shape, *arguments)["sums"]

    def in_walk(values: np.ndarray, row: int, column: int) -> np.ndarray | None:
        elements = read_at_strides(values, row, column)
        return None if elements is None else elements.sum(axis=0)

    return graded(
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
            mistakes=[
                Mistake(
                    "this is a mean: the bias was added to every row, so its gradient is the sum",
                    lambda v: v.mean(axis=0),
                ),
                Mistake(
                    "the first row counts twice: a sum that starts with row 0 goes on with row 1",
                    lambda v: v.sum(axis=0) + v[0],
                ),
                Mistake("the last row is left out: does i run to the end?", lambda v: v[:-1].sum(axis=0)),
                Mistake("only the last row is kept: add to the sum, do not assign", lambda v: v[-1]),
                Mistake("only the first row is there: nothing is added to it", lambda v: v[0]),
                Mistake(
                    "those are the sums of the rows: the sum of a column runs over i",
                    lambda v: v.sum(axis=1) if v.shape[0] == v.shape[1] else None,
                ),
                Mistake(
                    "the next row begins `columns` numbers further on, not `rows`",
                    lambda v: in_walk(v, v.shape[0], 1),
                ),
                Mistake(
                    "rows and columns have changed places in the index: element (i, j) is at [i * columns + j]",
                    lambda v: in_walk(v, 1, v.shape[0]),
                ),
            ],
        )
    )


def softmax() -> list[Check]:
    """Softmax of every row. It must not overflow, and must also work in place."""
    function, floor = c_function("softmax"), numpy_floor().activations

    def call(z: np.ndarray) -> np.ndarray:
        return fenced_arrays.run("softmax", function, *z.shape, read("z", z), filled("output", z.shape))["output"]

    def in_place(tally: Tally) -> None:
        z = matrix(np.random.default_rng(5), (3, 4))
        memory, case = changed("z", z), "softmax with output and z in the same memory"
        tally.trying(case)
        got = fenced_arrays.run("softmax", function, *z.shape, memory, memory)["z"]
        cause = "output may be z itself: after output is written, z does not hold its numbers any more"
        alike(tally, case, got, floor.softmax(z), cause)

    checks = graded(
        Exercise(
            call=call,
            reference=floor.softmax,
            show=lambda z: f"softmax of {z.shape}" + (f", {z[0, 0]:g} among it" if np.abs(z).max() > 100 else ""),
            hand=[
                ((np.array([[0.0, LOG3], [LOG3, 0.0], [5.0, 5.0]]),), [[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]),
                ((np.array([[1000.0, 1000.0]]),), [[0.5, 0.5]]),
                ((np.array([[-1000.0, -1000.0]]),), [[0.5, 0.5]]),
                *SOFTMAX_HAND[2:],
            ],
            arguments=softmax_arguments,
            typical=(4, 4),
            sizes=SHAPES,
            terms=lambda z: z.shape[1] + 16,
            scale=softmax_scale,
            mistakes=[
                *SOFTMAX_MISTAKES,
                *MAXIMUM_MISTAKES,
                Mistake("exp overflows: subtract the row's largest from each z first", naive_softmax),
                Mistake("the sum is carried from row to row: it starts anew with each", _carried),
            ],
        )
    )
    return and_then(checks, "agreement", in_place)


def _carried(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / np.cumsum(e.sum(axis=1))[:, None]


def matmul_ijk() -> list[Check]:
    """The product by its definition."""
    return graded(product("matmul_ijk"))


GRADES: dict[str, Callable[[], list[Check]]] = {
    "6.1": relu_backward,
    "6.2": add_bias,
    "6.3": column_sums,
    "6.4": matmul_ijk,
    "6.5": softmax,
}
