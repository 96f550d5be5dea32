"""Week 4: the same functions on NumPy arrays, without loops over numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import equal, handed
from groundup.course.checks.source import loops_in, syntax_of, uses_none_of, with_helpers, without_loops
from groundup.course.grading.calling.on_arrays import (
    LOOP,
    OVERFLOWED,
    below,
    both,
    floor_below,
    graded,
    on_arrays,
    speed_check,
    stage,
    twice,
)
from groundup.course.grading.problems.activations import (
    MAXIMUM_MISTAKES,
    RELU_HAND,
    RELU_MISTAKES,
    SHAPES,
    SOFTMAX_HAND,
    SOFTMAX_MISTAKES,
    naive_softmax,
    relu_arguments,
    relu_slopes,
    softmax_arguments,
    softmax_of,
    softmax_scale,
)
from groundup.course.grading.problems.dense import (
    AGAIN,
    BACKWARD_HAND,
    BACKWARD_MISTAKES,
    DENSE_HAND,
    DENSE_MISTAKES,
    NO_OUT,
    another_layer,
    backward_arguments,
    dense_arguments,
    dense_slopes,
    first_layers_backward,
    gradient_scales,
    layer_of,
    weights_unread,
)
from groundup.course.grading.problems.matrices import MATMUL_HAND, MATMUL_MISTAKES, SIZES, matrices


def outer_products() -> list[Check]:
    """The product as a sum of outer products."""
    function = stage().matmul.outer_products
    exercise = Exercise(
        call=on_arrays(function, lambda a, b: (len(a), b.shape[1]), "a", "b", scratch=False),
        reference=below(floor_below().matmul.matmul),
        show=lambda a, b: f"outer_products(a {a.shape}, b {b.shape})",
        hand=twice(MATMUL_HAND),
        arguments=matrices,
        typical=(4, 3, 5),
        sizes=SIZES,
        terms=lambda a, b: a.shape[1],
        scale=lambda a, b: np.abs(a) @ np.abs(b),
        mistakes=[
            *MATMUL_MISTAKES,
            Mistake(
                "out holds whatever was there before, NaN here: set it to 0 before the first product is added",
                lambda a, b: np.full((len(a), b.shape[1]), np.nan),
            ),
        ],
    )

    def against(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros((len(a), b.shape[1]))
        for k in range(len(b)):
            total += np.outer(a[:, k], b[k])
        return total

    cause = "a loop over rows, columns or elements of the result: only k is looped over, K times in all"
    rungs = ("dot_per_output", "at_operator", "matmul_tn", "matmul_nt", "LADDER")
    names = ("@", "matmul", "dot", "vdot", "vecdot", "matvec", "vecmat", "inner", "tensordot", "multi_dot")
    whole = "this is the whole product in one call: write it as a sum over k of column k of a times row k of b"

    def way(tally: Tally) -> None:
        uses_none_of(function, dict.fromkeys((*names, *rungs), whole))(tally)
        for helper in with_helpers(function):
            for node in filter(_sums, ast.walk(syntax_of(helper))):
                raise Wrong(f"{helper.__name__} uses einsum", cause=whole, line=getattr(node, "lineno", 0))
        tally.holds(
            any(True for helper in with_helpers(function) for _ in loops_in(syntax_of(helper))),
            "outer_products has no loop over k",
            cause="the products of all k at once take K times the memory of the result: add one outer product after "
            "the other",
        )
        without_loops(function, cause, nested=1)(tally)

    # Many rows or columns and one k: a loop over either takes thousands of rounds.
    sizes = ((120, 4, 120), (3000, 1, 1), (1, 1, 3000))
    times = [speed_check(exercise, function, against, partial(matrices, size=size), cause) for size in sizes]
    return graded(replace(exercise, way=way), *times)


def _sums(node: ast.AST) -> bool:
    """Whether this is a call of einsum that adds up products: "ik,kj->ij" does, and "i,j->ij" does not."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != "einsum":
        return False
    subscripts = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
    factors, _, result = str(subscripts).partition("->")
    return not result or not set(factors) - {",", " "} <= set(result)


def relu_backward() -> list[Check]:
    """The derivative of ReLU."""
    function = stage().activations.relu_backward
    call = on_arrays(function, lambda g, z, o: z.shape, "grad_output", "z", "output")
    exercise = Exercise(
        call=call,
        reference=below(floor_below().activations.relu_backward),
        show=lambda g, z, o: f"relu_backward(grad_output, z, output), each {z.shape}",
        hand=twice(RELU_HAND),
        arguments=relu_arguments,
        typical=(4, 5),
        sizes=SHAPES,
        special=(0,),
        gradient=relu_slopes(call),
        way=without_loops(function, LOOP, of_size=lambda size: function(*np.ones((3, 3 * size, 2 * size)))),
        mistakes=RELU_MISTAKES,
    )
    plain = speed_check(
        exercise, function, lambda g, z, o: np.where(z > 0, g, 0), lambda rng: relu_arguments(rng, (3000, 4))
    )
    return graded(exercise, plain)


def without_keepdims(z: np.ndarray) -> np.ndarray | None:
    """Softmax whose row sums are broadcast along the columns. Only a square batch allows that."""
    exps = np.exp(z - z.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1) if z.shape[0] == z.shape[1] else None


def softmax() -> list[Check]:
    """Softmax of every row."""
    function = stage().activations.softmax
    exercise = Exercise(
        call=on_arrays(function, lambda z: z.shape, "z"),
        reference=below(floor_below().activations.softmax),
        show=lambda z: f"softmax(z {z.shape})",
        hand=twice(SOFTMAX_HAND),
        arguments=softmax_arguments,
        typical=(4, 3),
        sizes=SHAPES,
        terms=lambda z: z.shape[1] + 16,
        scale=softmax_scale,
        way=without_loops(function, LOOP, of_size=lambda size: function(np.ones((3 * size, 2 * size)))),
        mistakes=[
            Mistake(OVERFLOWED, naive_softmax),
            *SOFTMAX_MISTAKES,
            *MAXIMUM_MISTAKES,
            Mistake(
                "a row's sum is broadcast along the columns: keepdims=True keeps it a column, (batch, 1)",
                without_keepdims,
            ),
        ],
    )
    return graded(exercise, speed_check(exercise, function, softmax_of, lambda rng: softmax_arguments(rng, (3000, 4))))


def dense_forward() -> list[Check]:
    """Dense.forward: its result, and that x is stored."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
        layer = layer_of(dense, weights, bias)
        results = on_arrays(layer.forward, lambda x: (len(x), len(bias)), "x", scratch=False)(x)
        another_layer(dense, layer, -x)
        if layer._x is None or not equal(np.asarray(layer._x), x):
            raise Wrong("Dense.forward does not remember x", cause="backward will ask what x was: self._x = x")
        unchanged(Tally(), (weights, bias), (layer.weights, layer.bias), ("weights", "bias"))
        return results

    def reference(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
        return both(floor_below().dense.Dense(weights.tolist(), bias.tolist()).forward(x.tolist()))

    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda x, w, b: f"Dense.forward(x {x.shape}) for weights {w.shape}",
        hand=twice(DENSE_HAND),
        arguments=dense_arguments,
        typical=(4, 3, 4),
        sizes=SIZES,
        again=AGAIN,
        terms=lambda x, w, b: len(w) + 1,
        scale=lambda x, w, b: np.abs(x) @ np.abs(w) + np.abs(b),
        mistakes=DENSE_MISTAKES,
        way=without_loops(dense.forward, LOOP),
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            lambda x, w, b: dense(w, b).forward(x),
            lambda x, w, b: x @ w + b,
            lambda rng: dense_arguments(rng, (3000, 4, 3)),
        ),
    )


HELD = 0.1234375
"""What grad_weights and grad_bias hold before the first way back. No gradient here is this number in every place."""


class Unread:
    """Stands in the place of a layer's weights, and notes whether more than their shape is read."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights, self.read = weights, False

    def __getattr__(self, name: str) -> Any:
        self.read = self.read or name not in ("shape", "ndim", "size", "dtype")
        return getattr(self._weights, name)

    def __array__(self, *arguments: Any, **named: Any) -> np.ndarray:
        self.read = True
        return self._weights.__array__(*arguments, **named)

    def __len__(self) -> int:
        return len(self._weights)


def first_layer(tally: Tally) -> None:
    """Dense.backward with needs_grad_input=False does not read the weights: they are for dL/dx alone."""
    x, weights, grad = (each.astype(np.float32) for each in backward_arguments(np.random.default_rng(8), (3, 4, 2)))
    layer = stage().dense.Dense(weights, np.zeros(2))
    layer.forward(x)
    layer.weights = given = Unread(weights)
    tally.trying("Dense.backward with needs_grad_input=False")
    layer.backward(grad, needs_grad_input=False)
    weights_unread(tally, given.read)
    without_loops(layer.backward, LOOP)(tally)


NEW_ARRAY = "write into the array that is there: out={0}, or {0}[...] = …"


def dense_backward() -> list[Check]:
    """Dense.backward: three gradients, written into arrays that exist already."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = layer_of(dense, weights, np.full(weights.shape[1], 0.5, weights.dtype))
        layer.forward(handed(x))
        other = another_layer(dense, layer, -x)
        layer.grad_weights[...], layer.grad_bias[...] = HELD, HELD
        returned = layer.backward(grad, needs_grad_input=False)
        first_layers_backward(
            returned, [of for of in ("weights", "bias") if np.all(getattr(layer, f"grad_{of}") == HELD)]
        )
        of_weights, of_bias = layer.grad_weights, layer.grad_bias
        of_weights[...], of_bias[...] = np.nan, np.nan
        results = on_arrays(layer.backward, lambda grad: x.shape, "grad_output", scratch=False)(grad)
        for name, there in (("grad_weights", of_weights), ("grad_bias", of_bias)):
            if getattr(layer, name) is not there:
                raise Wrong(f"{name} is another array than before the call", cause=NEW_ARRAY.format(f"self.{name}"))
        unchanged(Tally(), (weights,), (layer.weights,), ("weights",))
        other.backward(2 * grad)
        return {
            "grad_input": results[""],
            "grad_weights": of_weights,
            "grad_bias": of_bias,
            f"{NO_OUT}: grad_input": results.get(NO_OUT),
        }

    def reference(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = floor_below().dense.Dense(weights.tolist(), [0.0] * weights.shape[1])
        layer.forward(x.tolist())
        returned = layer.backward(grad.tolist())
        gradients = {"grad_input": returned, "grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}
        return {**gradients, f"{NO_OUT}: grad_input": returned}

    def alone(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> Any:
        layer = dense(weights, np.zeros(weights.shape[1]))
        layer.forward(x)
        return layer.backward(grad)

    added = "NaN is still there: these sums are added to what the array held; they have to replace it"
    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda x, w, g: f"Dense.backward(grad_output {g.shape}) for x {x.shape}, weights {w.shape}",
        hand=BACKWARD_HAND,
        arguments=backward_arguments,
        typical=(4, 3, 2),
        sizes=SIZES,
        again=AGAIN,
        terms=lambda x, w, g: max(len(x), w.shape[1]) + 16,
        scale=gradient_scales,
        gradient=dense_slopes(call),
        way=first_layer,
        mistakes=[
            *BACKWARD_MISTAKES,
            Mistake(added, lambda x, w, g: np.full(w.shape, np.nan), "grad_weights"),
            Mistake(added, lambda x, w, g: np.full(w.shape[1], np.nan), "grad_bias"),
        ],
    )
    return graded(
        exercise,
        speed_check(
            exercise,
            alone,
            lambda x, w, g: (x.T @ g, g.sum(axis=0), g @ w.T),
            lambda rng: backward_arguments(rng, (3000, 4, 3)),
        ),
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "4.1": outer_products,
    "4.2": relu_backward,
    "4.3": softmax,
    "4.4": dense_forward,
    "4.5": dense_backward,
}
