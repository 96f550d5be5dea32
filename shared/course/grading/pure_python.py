"""Phase 1: the network on lists of floats. What is right is computed with NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shared.contract import load_stage
from shared.course.likely import Guess
from shared.course.rungs import Exercise, Rung, gradient_rung, rungs

SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 31, 2), (31, 2, 29)]
"""(M, K, N): ones, primes, K much larger than N and the reverse."""

A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])


def stage() -> Any:
    """The first floor, with the learner's function in it."""
    return load_stage("stage1_pure_python")


def on_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of lists as one that takes NumPy arrays."""
    return lambda *arguments: function(*(each.tolist() if isinstance(each, np.ndarray) else each for each in arguments))


def matrices(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random a (M, K) and b (K, N)."""
    m, k, n = size
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def product(rung: str) -> list[Rung]:
    """A rung of the matmul ladder."""
    return rungs(
        Exercise(
            call=on_lists(getattr(stage().matmul, rung)),
            reference=np.matmul,
            show=lambda a, b: f"{rung}(a {a.shape}, b {b.shape})",
            hand=[((A, B), [[7.0, -1.0], [16.0, -1.0]]), ((B, A), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-2.0, -1.0, 0.0]])],
            arguments=matrices,
            typical=(4, 3, 5),
            sizes=SIZES,
            terms=lambda a, b: a.shape[1],
            scale=lambda a, b: np.abs(a) @ np.abs(b),
            guesses=[
                Guess(
                    "the last product is left out: does k run to the end of the row?",
                    lambda a, b: a[:, :-1] @ b[:-1] if a.shape[1] > 1 else None,
                ),
                Guess("only the last product is kept: add to the sum, do not assign", lambda a, b: a[:, -1:] @ b[-1:]),
            ],
        )
    )


def dense_backward() -> list[Rung]:
    """Dense.backward: the three gradients by name."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = dense(weights.tolist(), [0.5] * weights.shape[1])
        layer.forward(x.tolist())
        returned = layer.backward(grad.tolist())
        return {"grad_input": returned, "grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}

    def reference(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        return {"grad_input": grad @ weights.T, "grad_weights": x.T @ grad, "grad_bias": grad.sum(axis=0)}

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
        batch, inputs, outputs = size
        shapes = ((batch, inputs), (inputs, outputs), (batch, outputs))
        return tuple(rng.standard_normal(shape) for shape in shapes)

    x, weights, grad = arguments(np.random.default_rng(5), (3, 4, 2))
    return rungs(
        Exercise(
            call=call,
            reference=reference,
            show=lambda x, weights, grad: f"Dense.backward for x {x.shape}, weights {weights.shape}",
            hand=[
                (
                    (np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([[10.0]])),
                    {"grad_input": [[30.0, 40.0]], "grad_weights": [[10.0], [20.0]], "grad_bias": [10.0]},
                )
            ],
            arguments=arguments,
            typical=(4, 3, 2),
            sizes=SIZES,
            gradient=gradient_rung(
                lambda w: float(np.sum((x @ w) * grad)),
                lambda w: call(x, w, grad),
                lambda rng: weights,
                "sum(y * grad_output) for weights (4, 2)",
                name="grad_weights",
            ),
            guesses=[
                Guess(
                    "forgot the batch: a bias is added to every row, so its gradient is the sum over the rows, not the mean",
                    lambda x, w, g: g.mean(axis=0),
                    "grad_bias",
                )
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Rung]]] = {
    "1.1": lambda: product("index_loops"),
    "3.2": dense_backward,
}
