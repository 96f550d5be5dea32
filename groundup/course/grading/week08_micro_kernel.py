"""Week 8: the micro-kernel, and backpropagation in one call.

`tile`, the micro-kernel, is `static`: it has no name outside its file, so the products made of it are graded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise, checks_of
from groundup.course.checks.mistakes import Mistake, likely_cause
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import (
    alike,
    and_then,
    c_floor,
    c_function,
    faster,
    library,
    numpy_floor,
    read_at_strides,
)
from groundup.course.grading.calling.failing_calls import hands_on_failure
from groundup.course.grading.calling.fenced_arrays import filled, read
from groundup.course.grading.problems.c_products import PRODUCT_MISTAKES, factors, product, product_call, times


def tile() -> list[Check]:
    """The micro-kernel, graded by the products that are made of its tiles."""
    name = "matmul_packed"
    width = tile_columns()

    def second_register(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        j = np.arange(b.shape[1])
        return (a @ b)[:, np.where(j // (width // 2) % 2 == 1, j - width // 2, j)]

    def more(tally: Tally) -> None:
        rng = np.random.default_rng(6)
        strides = "a is read by both its strides: element (i, p) is a.values[i * a.row + p * a.column]"
        # aᵀb with few columns reads a where it lies, column by column, with many it is packed; abᵀ packs b.
        for form, (m, k, n) in (("tn", (9, 5, 33)), ("tn", (9, 5, 520)), ("nt", (9, 5, 33))):
            a, b = factors(rng, (m, k, n))
            given = (np.ascontiguousarray(a.T), b) if form == "tn" else (a, np.ascontiguousarray(b.T))
            case = f"matmul_{form}(m={m}, k={k}, n={n})"
            tally.trying(case)
            got = product_call(f"matmul_{form}")(*given)
            cause = likely_cause(got, a @ b, "", [*mistakes, *PRODUCT_MISTAKES], (a, b)) or strides
            alike(tally, case, got, a @ b, cause, scale=np.abs(a) @ np.abs(b))
        a, b = (each.astype("float32") for each in factors(rng, (13, 40, 70)))
        case = f"{name}(m=13, k=40, n=70) in float32"
        tally.trying(case)
        scale = np.abs(a) @ np.abs(b)
        alike(tally, case, product_call(name, "float32")(a, b), a.astype("float64") @ b, "", "float32", scale)

    def with_bias(tally: Tally) -> None:
        function = c_function("dense_forward")
        rng = np.random.default_rng(7)
        (x, w), bias = factors(rng, (9, 600, 21)), rng.standard_normal(21)
        case = "dense_forward of x (9, 600), weights (600, 21), with relu"
        tally.trying(case)
        arguments = (read("x", x), read("w", w), read("b", bias), RELU, filled("y", (9, 21)))
        got = fenced_arrays.run("dense_forward", function, library.pool(), 9, 600, 21, *arguments)["y"]
        cause = (
            "hand added, bias and activation on to put_away unchanged: they say what c holds and what is added to it"
        )
        alike(tally, case, got, np.maximum(x @ w + bias, 0), cause, scale=np.abs(x) @ np.abs(w) + np.abs(bias))

    mistakes = [
        Mistake(
            "b's rows are b_row numbers apart: where b is read from where it lies, that is not a tile's width",
            lambda a, b: times(a, read_at_strides(b, width, 1)),
        ),
        Mistake(
            "the second register of a row holds the next LANES columns: load from v * LANES further on", second_register
        ),
    ]
    sizes = [(5, 3, 2 * width), (2, 9, width + 1), (17, 33, 70), (9, 600, 40), (260, 3, width + 3)]
    made = checks_of(product(name, sizes, mistakes))
    m, k, n = 32, 256, 256
    a, b = factors(np.random.default_rng(4), (m, k, n))
    c, packed, ikj, handle = np.empty((m, n)), c_function(name), c_function("matmul_ikj"), library.pool()
    speed = faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: packed(handle, m, k, n, a, b, c),
        "matmul_ikj",
        lambda: ikj(m, k, n, a, b, c),
        0.8,
        "the sums are stored and loaded again for every product: they stay in `sum`, in registers, until the end",
    )
    return [*and_then(and_then(made, "agreement", more), "sizes", with_bias), speed]


RELU = 1
"""In `enum activation` of groundup.h."""


def tile_columns() -> int:
    """The width of a tile in float64 numbers: two registers."""
    c_floor()
    return 2 * library.plain_function("simd_bytes")() // 8


def backward() -> list[Check]:
    """Backpropagation through all layers, graded by the gradients that a network's step writes."""
    network_in_c, floor = c_floor().network.Network, numpy_floor().network.Network

    def gradients(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, masks: Any, held: float) -> Any:
        network = network_in_c.from_parameters(parameters, "relu", "mean_squared_error", "float64")
        buffers = network.buffers(len(x))
        for memory in (*network.layer_gradients, *buffers.output, *buffers.dropped, *buffers.grad):
            memory.fill(held)
        found = dict(zip(_names(parameters), network.gradients(x, y, masks), strict=True))
        slopes, of_bias = np.asarray(buffers.grad[0]).sum(axis=0), found["grad b1"]
        if np.isnan(held) and np.isfinite(of_bias).all() and not np.allclose(slopes, of_bias, rtol=1e-9, atol=1e-9):
            what = "backward: the first layer's grad was written over after its own gradients were computed"
            raise Wrong(what, cause="no layer lies below the first, so nobody needs dL/dx: hand over NULL as grad_x")
        return found

    def call(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, masks: Any) -> dict[str, np.ndarray]:
        first: dict[str, np.ndarray] = gradients(parameters, x, y, masks, np.nan)
        second = gradients(parameters, x, y, masks, fenced_arrays.HELD)
        output = fenced_arrays.differing(first, second)
        if output:
            raise fenced_arrays.depends_on_before("backward", output, NOT_YET_WRITTEN)
        return first

    def reference(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, masks: Any) -> dict[str, Any]:
        network = floor.from_parameters(parameters, "relu", "mean_squared_error", "float64")
        return dict(zip(_names(parameters), network.gradients(x, y, masks), strict=True))

    def arguments(rng: np.random.Generator, case: tuple[int, tuple[int, ...], bool]) -> tuple[Any, ...]:
        batch, widths, dropout = case
        parameters = tuple(
            rng.standard_normal(shape) for inputs, out in pairwise(widths) for shape in ((inputs, out), (out,))
        )
        masks = [2.0 * rng.integers(0, 2, (batch, width)) for width in widths[1:-1]] if dropout else None
        return parameters, rng.standard_normal((batch, widths[0])), rng.standard_normal((batch, widths[-1])), masks

    def mistake(text: str, activation: bool = True, masked: bool = True) -> list[Mistake]:
        def wrong(name: str) -> Callable[..., Any]:
            return lambda parameters, x, y, masks: backpropagated(parameters, x, y, masks, activation, masked).get(name)

        return [Mistake(text, wrong(name), name) for name in ("grad W1", "grad b1", "grad W2", "grad b2")]

    p1 = (np.array([[3.0, -3.0]]), np.array([1.0, 1.0]), np.array([[0.5], [2.0]]), np.array([-1.0]))
    parameters, x, y, _ = arguments(np.random.default_rng(5), (4, (3, 5, 2), False))

    def loss(w: np.ndarray) -> float:
        network = floor.from_parameters((w, *parameters[1:]), "relu", "mean_squared_error", "float64")
        return float(network.loss(x, y))

    made = checks_of(
        Exercise(
            call=call,
            reference=reference,
            show=lambda parameters, x, y, masks: (
                f"backward of a network {'-'.join(map(str, [x.shape[1], *(len(b) for b in parameters[1::2])]))} "
                f"for {len(x)} rows{', with dropout' if masks else ''}"
            ),
            hand=[
                (
                    (p1, np.array([[2.0]]), np.array([[1.0]]), None),
                    {
                        "grad W1": [[3.0, 0.0]],
                        "grad b1": [1.5, 0.0],
                        "grad W2": [[21.0], [0.0]],
                        "grad b2": [3.0],
                    },
                )
            ],
            arguments=arguments,
            typical=(4, (5, 4, 3, 2), False),
            sizes=[
                (1, (1, 1), False),
                (3, (2, 1), False),
                (1, (3, 1, 2), False),
                (5, (7, 11, 3), True),
                (9, (4, 5, 3, 2, 6), True),
            ],
            gradient=gradient_check(
                loss,
                lambda w: call((w, *parameters[1:]), x, y, None)["grad W1"],
                lambda rng: parameters[0],
                "the loss of a network 3-5-2 by its first weights",
            ),
            terms=lambda *given: 256,
            scale=lambda *given: 10.0,
            mistakes=[
                *mistake(
                    "the derivative of the activation is missing between the layers: through_activation brings it in",
                    activation=False,
                ),
                *mistake("the dropout mask is missing on the way back", masked=False),
            ],
        )
    )
    return and_then(made, "sizes", hands_on_failure())


NOT_YET_WRITTEN = (
    "a layer's grad is read before it is written: dense_backward of each layer but the first writes the grad "
    "of the layer below"
)


def _names(parameters: Sequence[Any]) -> list[str]:
    return [f"grad {'b' if i % 2 else 'W'}{i // 2 + 1}" for i in range(len(parameters))]


def backpropagated(
    parameters: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    masks: Any,
    activation: bool = True,
    masked: bool = True,
) -> dict[str, np.ndarray]:
    """The gradients without the activation's derivative, or without the masks."""
    weights, biases = parameters[::2], parameters[1::2]
    inputs, outputs, signal = [x], [], x
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        outputs.append(signal @ w + b if i + 1 == len(weights) else np.maximum(signal @ w + b, 0))
        signal = outputs[i] * masks[i] if masks and i < len(masks) else outputs[i]
        inputs.append(signal)
    grad, found = 2 * (signal - y) / y.size, {}
    for i in reversed(range(len(weights))):
        found[f"grad W{i + 1}"], found[f"grad b{i + 1}"] = inputs[i].T @ grad, grad.sum(axis=0)
        if i:
            grad = grad @ weights[i].T
            grad = grad * masks[i - 1] if masks and masked else grad
            grad = grad * (outputs[i - 1] > 0) if activation else grad
    return found


GRADES: dict[str, Callable[[], list[Check]]] = {
    "8.3": tile,
    "8.4": backward,
}
