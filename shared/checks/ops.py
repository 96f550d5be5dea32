"""The first level of the equivalence check: every operation alone, on random numbers, against the reference.

Matrix products at awkward sizes (every rung of the ladder, not only the one in use), activations and
losses with their derivatives, the dense layer, the optimizers. Both stages get the same numbers, rounded
to the dtype beforehand, so that what differs is the operation and nothing else.

Each check gives the tolerance two numbers: k, how many terms the operation sums, and scale, how large these terms are
(shared/checks/scales.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from shared.checks.pair import Pair, random_targets
from shared.checks.scales import activation_scale, loss_scales, slope_scale
from shared.checks.tolerance import Comparison, compare, failed
from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES

SIZES = ((1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 97, 2), (3, 2, 61), (31, 2, 29), (33, 65, 17))
"""(M, K, N): ones, primes, one past a power of two, K much larger than N and the reverse."""

MORE_SIZES = ((1, 499, 1), (67, 5, 71), (2, 3, 257), (64, 64, 64), (65, 129, 33))
"""Added by a full check."""

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"learning_rate": 0.1}),
    "SGD, momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "SGD, Nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD, weight decay": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "RMSProp": ("RMSProp", {"learning_rate": 0.01}),
    "RMSProp, weight decay": ("RMSProp", {"learning_rate": 0.01, "weight_decay": 0.01}),
    "Adam": ("Adam", {"learning_rate": 0.01}),
    "Adam, weight decay": ("Adam", {"learning_rate": 0.01, "weight_decay": 0.01}),
}
"""Every optimizer with each of its options."""

FAR = 2000.0
"""How far from 0 rows lie. The exponential of its negative rounds to 0 in float64, too."""

FEW = 8
"""Roundings in an element-wise operation: an exponential (accurate to two units), a sum, a quotient, two products."""


def op_checks(
    pair: Pair, rng: np.random.Generator, sizes: Iterable[tuple[int, int, int]] = SIZES
) -> Iterator[Comparison]:
    """Every operation of the stage, one comparison for each result."""
    sizes = tuple(sizes)
    for size in sizes:
        yield from matmul_checks(pair, rng, size)
    for rows, _, columns in sizes:
        yield from activation_checks(pair, rng, (rows, columns))
        yield from loss_checks(pair, rng, (rows, columns))
    for size in sizes:
        yield from dense_checks(pair, rng, size)
    for name in OPTIMIZERS:
        yield from optimizer_checks(pair, rng, name)


def matmul_checks(pair: Pair, rng: np.random.Generator, size: tuple[int, int, int]) -> Iterator[Comparison]:
    """`product_checks` of two random matrices."""
    m, k, n = size
    a, b = pair.rounded(rng.standard_normal((m, k))), pair.rounded(rng.standard_normal((k, n)))
    yield from product_checks(pair, a, b)


def product_checks(pair: Pair, a: np.ndarray, b: np.ndarray) -> Iterator[Comparison]:
    """Every rung, `matmul`, `matmul_tn` and `matmul_nt` against the reference's first rung, its simplest loop."""
    (m, k), n = a.shape, b.shape[1]
    simplest = next(iter(pair.reference.matmul.LADDER.values()))
    expected = pair.from_reference(simplest(pair.to_reference(a), pair.to_reference(b)))
    scale = np.abs(a) @ np.abs(b)
    room, case = pair.stage.matmul, f"({m}, {k}) times ({k}, {n})"
    for rung, multiply in room.LADDER.items():
        run = partial(multiply, pair.to_stage(a), pair.to_stage(b))
        yield pair.check(f"matmul.LADDER[{rung!r}]", run, expected, k, scale, case=case)
    yield pair.check("matmul", lambda: room.matmul(pair.to_stage(a), pair.to_stage(b)), expected, k, scale, case=case)
    yield pair.check(
        "matmul_tn", lambda: room.matmul_tn(pair.to_stage(a.T), pair.to_stage(b)), expected, k, scale, case=case
    )
    yield pair.check(
        "matmul_nt", lambda: room.matmul_nt(pair.to_stage(a), pair.to_stage(b.T)), expected, k, scale, case=case
    )


def activation_checks(pair: Pair, rng: np.random.Generator, shape: tuple[int, int]) -> Iterator[Comparison]:
    """Every activation and derivative, near zero, at 0 itself, at logits in the thousands, and at rows far apart.

    At 0 the derivatives of relu and leaky_relu jump, and no random number is 0.
    """
    at_zero = np.arange(shape[0] * shape[1]).reshape(shape) % 3 - 1.0, "-1, 0 and 1"
    for name in ACTIVATIONS:
        for z, about in (*logits(pair, rng, shape), at_zero):
            grad = pair.rounded(rng.standard_normal(shape))
            case = f"{shape}, z {about}"
            yield activation_check(pair, name, z, case=case)
            yield activation_backward_check(pair, name, z, grad, case=case)


def logits(pair: Pair, rng: np.random.Generator, shape: tuple[int, int]) -> Iterator[tuple[np.ndarray, str]]:
    """Random matrices of each kind at which a formula with an exponential can fail, and the words for each.

    In rows far apart a maximum that starts at 0, or that of another row, of a column or of the whole matrix is so far
    from the row's own that all of its exponentials round to 0, or one overflows.
    """
    for spread in (2.0, 3000.0):
        yield pair.rounded(spread * rng.standard_normal(shape)), f"about {spread:g}"
    for first, words in ((-1.0, "in rows far apart, the first far below 0"), (1.0, "in rows far apart")):
        signs = first * np.where(np.arange(shape[0]) % 2, -1.0, 1.0)[:, np.newaxis]
        yield pair.rounded(FAR * signs + 2.0 * rng.standard_normal(shape)), words


def activation_check(pair: Pair, name: str, z: np.ndarray, **where: Any) -> Comparison:
    """One activation, f(z)."""
    ours, theirs = (getattr(side.activations, name) for side in (pair.stage, pair.reference))
    output = pair.from_reference(theirs(pair.to_reference(z)))
    return pair.check(
        name, lambda: ours(pair.to_stage(z)), output, _terms(name, z), activation_scale(name, z, output), **where
    )


def activation_backward_check(pair: Pair, name: str, z: np.ndarray, grad: np.ndarray, **where: Any) -> Comparison:
    """One derivative, f_backward(grad, z, f(z)), with the reference's f(z)."""
    op = f"{name}_backward"
    ours, theirs = (getattr(side.activations, op) for side in (pair.stage, pair.reference))
    output = pair.rounded(pair.from_reference(getattr(pair.reference.activations, name)(pair.to_reference(z))))
    expected = pair.from_reference(theirs(pair.to_reference(grad), pair.to_reference(z), pair.to_reference(output)))
    scale = slope_scale(name, grad, output)
    return pair.check(
        op,
        lambda: ours(pair.to_stage(grad), pair.to_stage(z), pair.to_stage(output)),
        expected,
        _terms(name, z),
        scale,
        **where,
    )


def _terms(name: str, z: np.ndarray) -> int:
    return FEW + (z.shape[1] if name == "softmax" else 0)


def loss_checks(pair: Pair, rng: np.random.Generator, shape: tuple[int, int]) -> Iterator[Comparison]:
    """Every loss and its gradient, near zero, at logits in the thousands, and at rows far apart."""
    for name in LOSSES:
        for outputs, about in logits(pair, rng, shape):
            y = random_targets(pair, rng, name, shape)
            yield from loss_check(pair, name, outputs, y, case=f"{shape}, outputs {about}")


def loss_check(pair: Pair, name: str, outputs: np.ndarray, y: np.ndarray, **where: Any) -> Iterator[Comparison]:
    """One loss and its gradient with respect to the outputs."""
    ours, theirs = (side.losses for side in (pair.stage, pair.reference))
    labels = name in LABEL_LOSSES
    expected = getattr(theirs, name)(pair.to_reference(outputs), y if labels else pair.to_reference(y))
    backward = f"{name}_backward"
    slope = pair.from_reference(
        getattr(theirs, backward)(pair.to_reference(outputs), y if labels else pair.to_reference(y))
    )
    value_scale, gradient_scale = loss_scales(name, outputs, y, slope)
    yield pair.check(
        name,
        lambda: getattr(ours, name)(pair.to_stage(outputs), y if labels else pair.to_stage(y)),
        expected,
        outputs.size + FEW,
        value_scale,
        **where,
    )
    yield pair.check(
        backward,
        lambda: getattr(ours, backward)(pair.to_stage(outputs), y if labels else pair.to_stage(y)),
        slope,
        outputs.shape[1] + FEW,
        gradient_scale,
        **where,
    )


def dense_checks(pair: Pair, rng: np.random.Generator, size: tuple[int, int, int]) -> Iterator[Comparison]:
    """`layer_checks` of a random layer."""
    batch, inputs, outputs = size
    weights, bias = rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)
    x, grad = rng.standard_normal((batch, inputs)), rng.standard_normal((batch, outputs))
    yield from layer_checks(pair, *(pair.rounded(values) for values in (weights, bias, x, grad)))


def layer_checks(
    pair: Pair, weights: np.ndarray, bias: np.ndarray, x: np.ndarray, grad: np.ndarray
) -> Iterator[Comparison]:
    """A layer of its own, forward and backward."""
    ours = pair.stage.dense.Dense(pair.to_stage(weights), pair.to_stage(bias))
    theirs = pair.reference.dense.Dense(pair.to_reference(weights), pair.to_reference(bias))
    case = f"batch {len(x)}, {weights.shape[0]} to {weights.shape[1]}"
    yield forward_check(pair, ours, theirs, x, case=case)
    yield from backward_checks(pair, ours, theirs, x, grad, case=case)


def forward_check(pair: Pair, ours: Any, theirs: Any, x: np.ndarray, **where: Any) -> Comparison:
    """xW + b: in_features products and a bias."""
    expected = pair.from_reference(theirs.forward(pair.to_reference(x)))
    weights, bias = pair.from_reference(theirs.weights), pair.from_reference(theirs.bias)
    scale = np.abs(x) @ np.abs(weights) + np.abs(bias)
    return pair.check("Dense.forward", lambda: ours.forward(pair.to_stage(x)), expected, x.shape[1] + 1, scale, **where)


def backward_checks(
    pair: Pair, ours: Any, theirs: Any, x: np.ndarray, grad: np.ndarray, **where: Any
) -> Iterator[Comparison]:
    """The three results of Dense.backward, for the x of the last forward of both."""
    expected = pair.from_reference(theirs.backward(pair.to_reference(grad)))
    weights = np.abs(pair.from_reference(theirs.weights))
    batch, size = len(x), np.abs(grad)
    op = "Dense.backward"
    result = pair.check(
        f"{op}: grad_input",
        lambda: ours.backward(pair.to_stage(grad)),
        expected,
        grad.shape[1],
        size @ weights.T,
        **where,
    )
    if result.note:  # after an exception or a wrong shape the stored gradients mean nothing
        yield result
        return
    yield pair.check(
        f"{op}: grad_weights",
        lambda: ours.grad_weights,
        pair.from_reference(theirs.grad_weights),
        batch,
        np.abs(x).T @ size,
        **where,
    )
    yield pair.check(
        f"{op}: grad_bias",
        lambda: ours.grad_bias,
        pair.from_reference(theirs.grad_bias),
        batch,
        size.sum(axis=0),
        **where,
    )
    yield result


def optimizer_checks(pair: Pair, rng: np.random.Generator, name: str, steps: int = 5) -> Iterator[Comparison]:
    """A weight matrix and a bias after each of a few steps, and then the buffers of the optimizer.

    Both stages begin every step with the reference's parameters, so errors accumulate in the optimizer's buffers only.
    The scale is the size of the terms of a step: the old parameter, and the largest change of all; that of one number
    may be small because earlier gradients and this one cancel.
    """
    kind, options = OPTIMIZERS[name]
    ours, theirs = (getattr(side.optimizers, kind)(**options) for side in (pair.stage, pair.reference))
    before = [pair.rounded(rng.standard_normal(shape)) for shape in ((5, 3), (3,))]
    for step in range(1, steps + 1):
        gradients = [pair.rounded(rng.standard_normal(p.shape)) for p in before]
        got = [pair.to_stage(p.copy()) for p in before]  # a stage may take an array as its own, and a step changes it
        expected = [pair.to_reference(p.copy()) for p in before]
        theirs.step(expected, [pair.to_reference(g) for g in gradients])
        case = f"{name}, step {step}"
        try:
            ours.step(got, [pair.to_stage(g) for g in gradients])
        except Exception as error:
            yield failed(f"{kind}.step", f"raised {type(error).__name__}: {error}", case=case)
            return
        after = [pair.from_reference(p) for p in expected]
        for i, (p, old, new) in enumerate(zip(got, before, after, strict=True)):
            scale, where = np.abs(old) + np.max(np.abs(new - old)), f"{case}, parameter {i}"
            yield compare(f"{kind}.step", pair.from_stage(p), new, pair.dtype, FEW * step, scale=scale, case=where)
        before = [pair.rounded(p) for p in after]
    state = ours.state()
    buffers = state["buffers"]
    yield pair.check(f"{kind}.state: steps", lambda: state["steps"], theirs.state()["steps"], 1, 0.0, case=name)
    for key, arrays in theirs.state()["buffers"].items():
        for i, array in enumerate(arrays):
            op, where = f"{kind}.state: {key}", f"{name}, after step {steps}, parameter {i}"
            entry = partial(_entry, buffers, key, i)
            yield pair.check(op, entry, pair.from_reference(array), FEW * steps, None, case=where)


def _entry(buffers: dict[str, Any], key: str, i: int) -> Any:
    return buffers[key][i]
