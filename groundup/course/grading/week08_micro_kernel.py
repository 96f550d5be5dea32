"""Week 8: the micro-kernel, and a training step in one call.

`tile`, the micro-kernel, is `static`: it has no name outside its file, so the products made of it are graded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake, likely_cause
from groundup.course.checks.repeated import overwrite, same
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.c_functions import (
    alike,
    c_floor,
    c_function,
    faster,
    graded,
    library,
    numpy_floor,
    read_at_strides,
)
from groundup.course.grading.calling.failing_calls import hands_on_failure
from groundup.course.grading.calling.fenced_arrays import filled, read
from groundup.course.grading.problems.c_products import PRODUCT_MISTAKES, product, product_call, times
from groundup.course.grading.problems.matrices import matrices
from shared.architectures import mlp


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
            a, b = matrices(rng, (m, k, n))
            operands = (np.ascontiguousarray(a.T), b) if form == "tn" else (a, np.ascontiguousarray(b.T))
            case = f"matmul_{form}(m={m}, k={k}, n={n})"
            tally.trying(case)
            got = product_call(f"matmul_{form}")(*operands)
            cause = likely_cause(got, a @ b, "", [*mistakes, *PRODUCT_MISTAKES], (a, b)) or strides
            alike(tally, case, got, a @ b, cause, scale=np.abs(a) @ np.abs(b))
        a, b = (array.astype("float32") for array in matrices(rng, (13, 40, 70)))
        case = f"{name}(m=13, k=40, n=70) in float32"
        tally.trying(case)
        scale = np.abs(a) @ np.abs(b)
        alike(tally, case, product_call(name)(a, b), a.astype("float64") @ b, "", "float32", scale)

    def with_bias(tally: Tally) -> None:
        function = c_function("dense_forward")
        rng = np.random.default_rng(7)
        (x, w), bias = matrices(rng, (9, 600, 21)), rng.standard_normal(21)
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
    checks = graded(product(name, sizes, mistakes))
    m, k, n = 32, 256, 256
    a, b = matrices(np.random.default_rng(4), (m, k, n))
    c, packed, ikj, handle = np.empty((m, n)), c_function(name), c_function("matmul_ikj"), library.pool()
    speed = faster(
        f"{name}(m={m}, k={k}, n={n})",
        lambda: packed(handle, m, k, n, a, b, c),
        "matmul_ikj",
        lambda: ikj(m, k, n, a, b, c),
        0.8,
        "the sums are stored and loaded again for every product: they stay in `sum`, in registers, until the end",
    )
    return [*and_then(and_then(checks, "agreement", more), "sizes", with_bias), speed]


RELU = 1
"""In `enum activation` of groundup.h."""


def tile_columns() -> int:
    """The width of a tile in float64 numbers: two registers."""
    c_floor()
    return 2 * library.plain_function("simd_bytes")() // 8


LEARNING_RATE, MOMENTUM = 0.125, 0.5

STEP_BY_HAND = {
    "grad W1": [[3.0, 0.0]],
    "grad b1": [1.5, 0.0],
    "grad W2": [[21.0], [0.0]],
    "grad b2": [3.0],
    "the loss": 2.25,
    "W1 after a step": [[2.625, -3.0]],
    "b1 after a step": [0.8125, 1.0],
    "W2 after a step": [[-2.125], [2.0]],
    "b2 after a step": [-1.375],
}
"""z = 3 * 2 + 1 and -3 * 2 + 1, of which ReLU lets 7 pass; the output is 0.5 * 7 - 1 = 2.5, and off by 1.5."""


def network_step() -> list[Check]:
    """A whole step: the loss, the gradients, and the parameters after two steps with momentum."""

    def network(floor: Any, parameters: Sequence[np.ndarray], masks: Any) -> Any:
        widths = [len(parameters[0]), *(len(b) for b in parameters[1::2])]
        architecture = mlp(widths, "relu", 0.5 if masks else 0.0)
        from_parameters = floor.network.Network.from_parameters
        network = same(
            (floor.network.__name__, tuple(widths), masks is None),
            lambda: from_parameters(parameters, loss="mean_squared_error", dtype="float64", architecture=architecture),
        )
        for there, values in zip(network.parameters, parameters, strict=True):
            overwrite(there, values)
        return network

    def stepped_on(floor: Any, inputs: Sequence[Any], held: float | None = None) -> dict[str, Any]:
        parameters, x, _, masks = inputs
        model, optimizer = network(floor, parameters, masks), floor.optimizers.SGD(LEARNING_RATE, MOMENTUM)
        if held is not None:
            for memory in (*model.layer_gradients, *model.plan_for(len(x), training=True)._own.values()):
                memory.fill(held)
        return stepped(model, optimizer, *inputs)

    def call(*inputs: Any) -> dict[str, Any]:
        first, second = (stepped_on(c_floor(), inputs, held) for held in (np.nan, fenced_arrays.HELD))
        output = fenced_arrays.differing(first, second)
        if output:
            raise fenced_arrays.depends_on_before("network_step", output, NOT_YET_WRITTEN)
        return first

    def arguments(rng: np.random.Generator, case: tuple[int, tuple[int, ...], bool]) -> tuple[Any, ...]:
        batch, widths, dropout = case
        parameters = tuple(
            rng.standard_normal(shape) for inputs, out in pairwise(widths) for shape in ((inputs, out), (out,))
        )
        masks = [2.0 * rng.integers(0, 2, (batch, width)) for width in widths[1:-1]] if dropout else None
        return parameters, rng.standard_normal((batch, widths[0])), rng.standard_normal((batch, widths[-1])), masks

    p1 = (np.array([[3.0, -3.0]]), np.array([1.0, 1.0]), np.array([[0.5], [2.0]]), np.array([-1.0]))
    checks = checks_of(
        Exercise(
            call=call,
            reference=lambda *inputs: stepped_on(numpy_floor(), inputs),
            show=lambda parameters, x, y, masks: (
                f"network_step of {'-'.join(map(str, [x.shape[1], *(len(b) for b in parameters[1::2])]))} "
                f"for {len(x)} rows{', with dropout' if masks else ''}"
            ),
            hand=[((p1, np.array([[2.0]]), np.array([[1.0]]), None), STEP_BY_HAND)],
            arguments=arguments,
            typical=(4, (5, 4, 3, 2), False),
            sizes=[
                (1, (1, 1), False),
                (3, (2, 1), False),
                (1, (3, 1, 2), False),
                (5, (7, 11, 3), True),
                (9, (4, 5, 3, 2, 6), True),
            ],
            again=[(batch, (5, 4, 3, 2), True) for batch in (4, 9, 2, 4, 4)],
            terms=lambda *inputs: 256,
            scale=lambda *inputs: 100.0,
            mistakes=[
                Mistake(text, lambda parameters, *others, i=i: parameters[i], f"{name} after a step")
                for i, name in enumerate(("W1", "b1"))
                for text in (f"the {'biases' if i else 'weights'} have not moved: optimize moves them",)
            ],
        )
    )
    return and_then(and_then(checks, "sizes", with_labels), "sizes", hands_on_failure())


def with_labels(tally: Tally) -> None:
    """Steps with a loss that takes labels."""
    case, x = "a step of 3-4-5 with softmax_cross_entropy", np.random.default_rng(9).standard_normal((4, 3))
    tally.trying(case)
    floors = c_floor(), numpy_floor()
    made = [floor.network.Network([3, 4, 5], seed=1, dtype="float64") for floor in floors]
    for number in range(1, 3):
        optimizers = [floor.optimizers.SGD(LEARNING_RATE) for floor in floors]
        got, wanted = (each.train_step(x, [0, 4, 2, 0], by) for each, by in zip(made, optimizers, strict=True))
        alike(tally, f"loss {number} of {case}", got, wanted, "")
    for mine, right in zip(made[0].parameters, made[1].parameters, strict=True):
        alike(tally, f"a parameter {right.shape} after {case}", mine, right, "")


def stepped(network: Any, optimizer: Any, parameters: Sequence[Any], x: Any, y: Any, masks: Any) -> dict[str, Any]:
    """Gradients without an optimizer, which move nothing, and then some steps with one."""
    names = [f"{'b' if i % 2 else 'W'}{i // 2 + 1}" for i in range(len(parameters))]
    found = {f"grad {name}": each for name, each in zip(names, network.gradients(x, y, masks), strict=True)}
    for name, now, before in zip(names, network.parameters, parameters, strict=True):
        if np.any(now != before):
            cause = "optimizer is NULL where only the gradients are wanted"
            raise Wrong(f"network_step without an optimizer has moved {name}", cause=cause)
    found["the loss"] = np.array(network.train_step(x, y, optimizer, masks))
    found |= {f"{name} after a step": each.copy() for name, each in zip(names, network.parameters, strict=True)}
    found["the next loss"] = np.array(network.train_step(x, y, optimizer, masks))
    return found | {f"{name} after two": each for name, each in zip(names, network.parameters, strict=True)}


NOT_YET_WRITTEN = (
    "something is read before it is written: forward fills every output, the loss the last operation's grad_output, "
    "and backward needs both"
)

GRADES: dict[str, Callable[[], list[Check]]] = {
    "8.3": tile,
    "8.4": network_step,
}
