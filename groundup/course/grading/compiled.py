"""Phase 3: the network in C. What is right is computed by stage 2, in float64, and at the end by stage 1.

guarded.py        calling C on arrays that lie inside larger ones, so that a step outside is seen
c_functions.py    what goes over numbers in a line or row by row: activations, bias, loss, optimizer
c_products.py     the matmul ladder
here              the dense layer, backpropagation, and the checkpoint
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks import Check, Exercise, Tally, Wrong, checks_of, gradient_check
from groundup.course.grading import guarded
from groundup.course.grading.c_functions import (
    add_bias,
    c_floor,
    column_sums,
    numpy_floor,
    refused,
    relu_backward,
    sgd,
    softmax,
    softmax_cross_entropy_fused,
)
from groundup.course.grading.c_products import (
    SIZES,
    A,
    B,
    factors,
    matmul_blocked,
    matmul_ijk,
    matmul_ikj,
    matmul_restrict,
    prepare_nn,
    tile,
)
from groundup.course.likely import Guess
from shared.contract import load_part, load_stage
from shared.initialize import initialize_parameters

library: Any = load_part("stage3_c", "library")


def dense_forward() -> list[Check]:
    """Dense.forward: the product and the bias, written where the caller wants it, and x kept for the way back."""
    dense, floor = c_floor().dense.Dense, numpy_floor().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Any:
        return dense(weights, bias).forward(x)

    def backward_finds_x(w: np.ndarray) -> Any:
        layer = dense(w, np.zeros(w.shape[1]))
        layer.forward(x)
        try:
            layer.backward(grad)
        except ValueError as error:
            raise Wrong(f"backward after forward: {error}", likely="forward keeps x for backward, as self._x") from None
        return layer.grad_weights

    def arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
        batch, inputs, out = size
        return rng.standard_normal((batch, inputs)), rng.standard_normal((inputs, out)), rng.standard_normal(out)

    def memory(tally: Tally) -> None:
        case = "Dense.forward(x, out=out)"
        tally.trying(case)
        x, weights, bias = arguments(np.random.default_rng(6), (5, 3, 4))
        layer, out, called = dense(weights, bias), np.full((5, 4), np.nan), []
        original = library.function

        def noted(name: str, dtype: Any) -> Any:
            called.append(name)
            return original(name, dtype)

        library.function = noted
        try:
            got = layer.forward(x, out=out)
        finally:
            library.function = original
        tally.holds(
            got is out, f"{case}: the result is not in out",
            likely="matmul takes where to write as its third argument, and forward returns it",
        )  # fmt: skip
        tally.equal(out, x @ weights + bias, case=f"out of {case}", terms=3)
        tally.holds(
            "add_bias" in called and len(called) == 2, f"{case} is to be two calls into C: the product and add_bias",
            got=", ".join(called) or "none",
            likely="NumPy holds the memory here; library.function(name, dtype) gives the C function that computes",
        )  # fmt: skip
        refused(
            tally, "Dense.forward of x (5, 4) by weights (3, 4)", lambda: dense(weights, bias).forward(np.ones((5, 4))),
            ValueError, ("(5, 4)", "(3, 4)"), "self._prepare checks x, and makes out where there is none",
        )  # fmt: skip
        refused(
            tally, "Dense.forward with out (5, 3)", lambda: layer.forward(x, out=np.ones((5, 3))),
            ValueError, ("(5, 3)", "(5, 4)"), "self._prepare checks out, too",
        )  # fmt: skip

    x, w, _ = arguments(np.random.default_rng(5), (4, 3, 2))
    grad = np.random.default_rng(7).standard_normal((4, 2))
    return checks_of(
        Exercise(
            call=call,
            reference=lambda x, weights, bias: floor(weights, bias).forward(x),
            show=lambda x, weights, bias: f"Dense.forward for x {x.shape}, weights {weights.shape}",
            hand=[((A, B, np.array([10.0, 100.0])), [[17.0, 99.0], [26.0, 99.0]])],
            arguments=arguments,
            typical=(4, 4, 4),
            sizes=SIZES,
            gradient=gradient_check(
                lambda w: float(np.sum((x @ w) * grad)),
                backward_finds_x,
                lambda rng: w,
                "sum(y * grad_output) for weights (3, 2): what backward makes of the x that forward kept",
            ),
            terms=lambda x, weights, bias: x.shape[1] + 1,
            scale=lambda x, weights, bias: np.abs(x) @ np.abs(weights) + np.abs(bias),
            guesses=[
                Guess("the bias is missing", lambda x, w, b: x @ w),
                Guess("the bias is added twice", lambda x, w, b: x @ w + 2 * b),
                Guess("the product is missing: only the bias is there", lambda x, w, b: np.tile(b, (len(x), 1))),
            ],
            memory=memory,
        )
    )


def backward() -> list[Check]:
    """Backpropagation through all layers, by the gradients that a network's step writes."""
    network_in_c, floor = c_floor().network.Network, numpy_floor().network.Network

    def gradients(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, masks: Any, held: float) -> Any:
        network = network_in_c.from_parameters(parameters, "relu", "mean_squared_error", "float64")
        buffers = network.buffers(len(x))
        for memory in (*network.layer_gradients, *buffers.output, *buffers.dropped, *buffers.grad):
            memory.fill(held)
        return dict(zip(_names(parameters), network.gradients(x, y, masks), strict=True))

    def call(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, masks: Any) -> dict[str, np.ndarray]:
        first: dict[str, np.ndarray] = gradients(parameters, x, y, masks, np.nan)
        second = gradients(parameters, x, y, masks, guarded.HELD)
        output = guarded.differing(first, second)
        if output:
            raise guarded.depends_on_before("backward", output, NOT_YET_WRITTEN)
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

    def guess(text: str, activation: bool = True, masked: bool = True) -> list[Guess]:
        def wrong(name: str) -> Callable[..., Any]:
            return lambda parameters, x, y, masks: backpropagated(parameters, x, y, masks, activation, masked).get(name)

        return [Guess(text, wrong(name), name) for name in ("grad W1", "grad b1", "grad W2", "grad b2")]

    p1 = (np.array([[3.0, -3.0]]), np.array([1.0, 1.0]), np.array([[0.5], [2.0]]), np.array([-1.0]))
    parameters, x, y, _ = arguments(np.random.default_rng(5), (4, (3, 5, 2), False))

    def loss(w: np.ndarray) -> float:
        network = floor.from_parameters((w, *parameters[1:]), "relu", "mean_squared_error", "float64")
        return float(network.loss(x, y))

    return checks_of(
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
            guesses=[
                *guess(
                    "the derivative of the activation is missing between the layers: through_activation brings it in",
                    activation=False,
                ),
                *guess("the dropout mask is missing on the way back", masked=False),
            ],
        )
    )


NOT_YET_WRITTEN = (
    "a layer's grad is read that nobody wrote: going down, dense_backward writes that of the layer below, for every "
    "layer but the first"
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
    """What the gradients come to for who leaves out the activation's derivative, or the masks."""
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
    "6.1": relu_backward,
    "6.2": add_bias,
    "6.3": column_sums,
    "6.4": matmul_ijk,
    "6.5": softmax,
    "7.1": matmul_ikj,
    "7.2": matmul_blocked,
    "7.3": softmax_cross_entropy_fused,
    "7.4": sgd,
    "7.5": matmul_restrict,
    "8.1": prepare_nn,
    "8.2": dense_forward,
    "8.3": tile,
    "8.4": backward,
}


# The checkpoint

CLOSE = 1e-5
"""What the phase promises: C's numbers are Python's to so much, relative to the largest of them."""

STEPS, PAIRS, PER_PAIR = 10, 31, 3


def checkpoint() -> list[Check]:
    """What ends the phase: the learner's functions together compute what Python does, and are faster than NumPy."""
    c_floor()
    return [Check("agrees with Python to 1e-5", agrees), Check("faster than NumPy", faster_than_numpy)]


def agrees(tally: Tally) -> None:
    """Every product, and some steps of training by each way to make a step, against stage 1."""
    python, c = load_stage("stage1_pure_python"), c_floor()
    worst = 0.0

    def close(case: str, got: Any, expected: Any) -> None:
        nonlocal worst
        expected = np.asarray(expected, np.float64)
        found = float(np.max(np.abs(np.asarray(got, np.float64) - expected)) / np.max(np.abs(expected)))
        tally.holds(
            found <= CLOSE,
            f"{case} differs from stage 1",
            expected=f"at most {CLOSE:g} of the largest number",
            got=f"{found:.2g}",
            likely="each function has passed alone: groundup learn check WEEK.NUMBER tells whether it still does",
        )
        worst = max(worst, found)

    a, b = factors(np.random.default_rng(1), (13, 70, 19))
    expected = python.matmul.matmul(a.tolist(), b.tolist())
    for name, rung in c.matmul.LADDER.items():
        tally.trying(f"the product by {name}")
        close(f"the product by {name}", rung(a.astype("float32"), b.astype("float32")), expected)
    rng = np.random.default_rng(2)
    x, labels = rng.standard_normal((8, 6)), rng.integers(0, 3, 8)
    parameters = initialize_parameters([6, 5, 3], "he", seed=1)
    reference = python.network.Network.from_parameters(parameters)
    optimizer = python.optimizers.SGD(0.1, momentum=0.9)
    for _ in range(STEPS):
        reference.train_step(x.tolist(), labels.tolist(), optimizer)
    for name, step in c.network.STEP_LADDER.items():
        for dtype in ("float64", "float32"):
            case = f"after {STEPS} steps by {name} in {dtype}"
            tally.trying(case)
            network = c.network.Network.from_parameters(parameters, dtype=dtype)
            optimizer = c.optimizers.SGD(0.1, momentum=0.9)
            for _ in range(STEPS):
                step(network, x, labels, optimizer)
            close(f"the output {case}", network.forward(x), reference.forward(x.tolist()))
            for parameter, right in zip(network.parameters, reference.parameters, strict=True):
                close(f"a parameter {case}", parameter, right)
    tally.note(f"the largest difference from stage 1 is {worst:.1e} of the largest number, float32 included")


def faster_than_numpy(tally: Tally) -> None:
    """A training step of 784-128-10 with 64 images, in turn with stage 2's, by the median of many pairs."""
    tally.trying("training steps of 784-128-10 with 64 images")
    rng = np.random.default_rng(3)
    x, labels = rng.random((64, 784), np.float32), rng.integers(0, 10, 64)
    parameters = initialize_parameters([784, 128, 10], "he", seed=1)
    steps = []
    for stage in (c_floor(), numpy_floor()):
        network, optimizer = stage.network.Network.from_parameters(parameters), stage.optimizers.SGD(0.1)
        steps.append(lambda network=network, optimizer=optimizer: network.train_step(x, labels, optimizer))
    times: list[list[float]] = [[], []]
    for pair in range(-3, PAIRS):
        for which in (0, 1) if pair % 2 else (1, 0):
            start = time.perf_counter()
            for _ in range(PER_PAIR):
                steps[which]()
            if pair >= 0:
                times[which].append((time.perf_counter() - start) / PER_PAIR)
    mine, numpys = (statistics.median(each) * 1e3 for each in times)
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    text = f"a step takes {mine:.3g} ms in your C and {numpys:.3g} ms in NumPy, {ratio:.2g} times as long"
    tally.holds(
        ratio < 1,
        text,
        expected="less than 1 times",
        likely="which function is slow? groundup learn check 8.3 times the micro-kernel, which most of a step is",
    )
    tally.note(f"{text} (784-128-10, 64 images, float32, the median of {PAIRS} pairs)")
