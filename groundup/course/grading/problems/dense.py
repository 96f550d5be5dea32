"""The dense layer in NumPy and float64, forward and backward: for weeks 3 and 4, with the known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import put, same
from groundup.course.grading.problems.matrices import A, B

NO_OUT = "the result without out="

NOT_NEEDED = "no layer needs dL/dx of the first one: return None without computing it where needs_grad_input is False"


def first_layers_backward(returned: Any, missing: Sequence[str]) -> None:
    """Raises Wrong if backward(…, needs_grad_input=False) returns something, or has not found one of its gradients."""
    if returned is not None:
        raise Wrong("backward(…, needs_grad_input=False) returned something", expected="None", cause=NOT_NEEDED)
    for of in missing:
        cause = "grad_weights and grad_bias are wanted in any case; only dL/dx may be left out"
        raise Wrong(f"backward(…, needs_grad_input=False) has found no gradient of the {of}", cause=cause)


def weights_unread(tally: Tally, were_read: bool) -> None:
    """Count whether backward(…, needs_grad_input=False) has left the weights alone: they are for dL/dx."""
    what = "backward(…, needs_grad_input=False) computes dL/dx all the same: it reads the weights"
    tally.holds(not were_read, what, cause=NOT_NEEDED)


def dense_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    """Random x (batch, inputs), weights (inputs, outputs) and bias (outputs,)."""
    batch, inputs, outputs = size
    return rng.standard_normal((batch, inputs)), rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)


DENSE_HAND = [
    ((A, B, np.array([10.0, 20.0])), [[17.0, 19.0], [26.0, 19.0]]),
    ((np.array([[1.0], [2.0]]), np.array([[3.0, -1.0]]), np.array([0.5, 0.0])), [[3.5, -1.0], [6.5, -2.0]]),
]


DENSE_MISTAKES = [
    Mistake("the bias is not added", lambda x, w, b: x @ w),
    Mistake(
        "the bias is added down the wrong axis: each output column has one bias, the same for every row of the batch",
        lambda x, w, b: x @ w + b[:, np.newaxis] if len(x) == len(b) else None,
    ),
    Mistake(
        "the bias is added once for every input: once for each output, after the sum",
        lambda x, w, b: x @ w + len(w) * b if len(w) > 1 else None,
    ),
    Mistake("the bias is subtracted: y = xW + b", lambda x, w, b: x @ w - b),
    Mistake("the bias is multiplied with: y = xW + b", lambda x, w, b: x @ w * b),
]


def backward_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    """Random x (batch, inputs), weights (inputs, outputs) and grad_output (batch, outputs)."""
    batch, inputs, outputs = size
    shapes = ((batch, inputs), (inputs, outputs), (batch, outputs))
    return tuple(rng.standard_normal(shape) for shape in shapes)


def dense_gradients(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
    """The three gradients of xW + b by name, and the input's once more, as `backward` returns it."""
    return {"grad_input": grad @ weights.T, "grad_weights": x.T @ grad, "grad_bias": grad.sum(axis=0)}


def gradient_scales(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
    """The scale of each gradient's rounding."""
    x, weights, grad = np.abs(x), np.abs(weights), np.abs(grad)
    of_input = grad @ weights.T
    return {
        "grad_weights": x.T @ grad,
        "grad_bias": grad.sum(axis=0),
        "grad_input": of_input,
        f"{NO_OUT}: grad_input": of_input,
    }


BACKWARD_HAND = [
    (
        (np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([[10.0]])),
        {"grad_input": [[30.0, 40.0]], "grad_weights": [[10.0], [20.0]], "grad_bias": [10.0]},
    ),
    (
        (np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[1.0, 4.0], [5.0, 7.0]])),
        {
            "grad_input": [[9.0, 12.0], [19.0, 21.0]],
            "grad_weights": [[1.0, 4.0], [10.0, 14.0]],
            "grad_bias": [6.0, 11.0],
        },
    ),
]


AGAIN = [(4, 3, 2), (9, 3, 2), (2, 3, 2), (4, 3, 2), (4, 3, 2)]
"""(batch, inputs, outputs): the same layer with a larger and a smaller batch."""


def layer_of(dense: Any, weights: np.ndarray, bias: np.ndarray, convert: Callable[[np.ndarray], Any] = np.copy) -> Any:
    """A layer with these weights; in repeated calls the one of the call before, with its weights changed."""
    layer = same(("layer", weights.shape, weights.dtype), lambda: dense(convert(weights), convert(bias)))
    return put(layer, convert, weights=weights, bias=bias)


def another_layer(dense: Any, layer: Any, x: Any) -> Any:
    """Make a second layer of this size and call its forward, which must not disturb the first one."""
    dtype = getattr(x, "dtype", None)
    other = dense(np.ones(np.shape(layer.weights), dtype), np.ones(np.shape(layer.bias), dtype))
    other.forward(x)
    return other


BACKWARD_MISTAKES = [
    Mistake(
        "forgot the batch: a bias is added to every row, so its gradient is the sum over the rows, not the mean",
        lambda x, w, g: g.mean(axis=0) if len(g) > 1 else None,
        "grad_bias",
    ),
    Mistake(
        "summed along the rows: the bias has one number for each output, so sum each column over the batch",
        lambda x, w, g: g.sum(axis=1),
        "grad_bias",
    ),
    Mistake("only the last row of the batch counts: add up all of them", lambda x, w, g: g[-1], "grad_bias"),
    Mistake("only the first row of the batch counts: add up all of them", lambda x, w, g: g[0], "grad_bias"),
    Mistake(
        "grad_weights is divided by the batch: that mean is in the loss's gradient already",
        lambda x, w, g: x.T @ g / len(x) if len(x) > 1 else None,
        "grad_weights",
    ),
    Mistake(
        "the gradient of the call before is still in it: set grad_weights anew, do not add to it",
        lambda x, w, g: 2 * x.T @ g,
        "grad_weights",
    ),
    Mistake(
        "the gradient of the call before is still in it: set grad_bias anew, do not add to it",
        lambda x, w, g: 2 * g.sum(axis=0),
        "grad_bias",
    ),
    Mistake(
        "W is not transposed: output j depends on input i by W[i][j], and the gradient goes back the same way",
        lambda x, w, g: g @ w if w.shape[0] == w.shape[1] else None,
        "grad_input",
    ),
    Mistake(
        "x is not transposed: each weight's gradient is a sum over the batch",
        lambda x, w, g: x @ g if x.shape[0] == x.shape[1] else None,
        "grad_weights",
    ),
]


def dense_slopes(call: Callable[..., Any]) -> Callable[[Tally], None]:
    """The gradient check of Dense.backward: all three of them."""
    x, weights, grad = backward_arguments(np.random.default_rng(5), (3, 4, 2))
    case = "sum(y * grad_output) for x (3, 4), weights (4, 2)"
    bias = np.zeros(2)

    def mistakes(of: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> list[Mistake]:
        return [replace(known, result=lambda at, wrong=known.result: wrong(*of(at))) for known in BACKWARD_MISTAKES]

    checks = [
        gradient_check(
            lambda w: float(np.sum((x @ w) * grad)),
            lambda w: call(x, w, grad),
            lambda rng: weights,
            case,
            name="grad_weights",
            mistakes=mistakes(lambda w: (x, w, grad)),
        ),
        gradient_check(
            lambda b: float(np.sum((x @ weights + b) * grad)),
            lambda b: call(x, weights, grad),
            lambda rng: bias,
            case,
            name="grad_bias",
            mistakes=mistakes(lambda b: (x, weights, grad)),
        ),
        gradient_check(
            lambda v: float(np.sum((v @ weights) * grad)),
            lambda v: call(v, weights, grad),
            lambda rng: x,
            case,
            name="grad_input",
            mistakes=mistakes(lambda v: (v, weights, grad)),
        ),
    ]

    def check(tally: Tally) -> None:
        for run in checks:
            run(tally)

    return check
