"""The second and third level of the equivalence check: each layer of a training step, then the step as a whole.

`trace_step` goes forward and backward through a network op by op and gives every op the reference's inputs. So only a
wrong op disagrees, and the ops after it do not: the first disagreement is the cause.

`whole_step` compares the outputs, loss, predictions and gradients of the network itself. Its ops may be right and still
be put together in a wrong way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shared.checks.ops import activation_backward_check, activation_check, backward_checks, forward_check, loss_check
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides
from shared.checks.scales import loss_scales
from shared.checks.tolerance import Comparison, compare, failed
from shared.contract import LABEL_LOSSES


@dataclass(frozen=True)
class Walk:
    """The intermediate results of the reference in one step of a problem; one entry for each layer.

    inputs: the layer's x, after dropout; zs: xW + b, the last of them being the network's outputs
    grad_zs: dL/dz; grad_outputs: dL/d(activation of the layer), None for the last layer, which has no activation
    """

    inputs: list[np.ndarray]
    zs: list[np.ndarray]
    grad_zs: list[np.ndarray]
    grad_outputs: list[np.ndarray | None]


def reference_walk(pair: Pair, problem: Problem) -> Walk:
    """One step of the reference with dropout, every intermediate result rounded to the dtype under test."""
    sides = Sides(pair, problem)
    layers = sides.theirs.layers
    room, name = pair.reference.activations, problem.activation
    activate, activate_backward = getattr(room, name), getattr(room, f"{name}_backward")

    def computed(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
        return pair.from_reference(function(*map(pair.to_reference, arrays)))

    x, y = problem.batches[0]
    inputs, zs = [x], []
    for layer, mask in zip(layers, [*problem.masks, None], strict=True):
        zs.append(pair.rounded(computed(layer.forward, inputs[-1])))
        if mask is not None:
            inputs.append(pair.rounded(computed(activate, zs[-1]) * mask))
    backward = getattr(pair.reference.losses, f"{problem.loss}_backward")
    grad_zs = [pair.rounded(pair.from_reference(backward(*sides.for_reference(zs[-1], y))))]
    grad_outputs: list[np.ndarray | None] = [None]
    for i in reversed(range(1, len(layers))):
        grad = pair.rounded(computed(layers[i].backward, grad_zs[0]) * problem.masks[i - 1])
        output = pair.rounded(computed(activate, zs[i - 1]))
        grad_outputs.insert(0, grad)
        grad_zs.insert(0, pair.rounded(computed(activate_backward, grad, zs[i - 1], output)))
    return Walk(inputs, zs, grad_zs, grad_outputs)


def trace_step(pair: Pair, problem: Problem) -> Iterator[Comparison]:
    """Every op of one training step in order, by the network's own layers, each with the reference's numbers."""
    walk, sides = reference_walk(pair, problem), Sides(pair, problem)
    where: dict[str, Any] = {"level": "layer", "case": problem.name}
    last = len(walk.zs) - 1
    layers = list(zip(sides.ours.layers, sides.theirs.layers, strict=True))
    for i, (ours, theirs) in enumerate(layers):
        yield forward_check(pair, ours, theirs, walk.inputs[i], layer=i + 1, **where)
        if i < last:
            yield activation_check(pair, problem.activation, walk.zs[i], layer=i + 1, **where)
    yield from loss_check(pair, problem.loss, walk.zs[-1], problem.batches[0][1], layer=last + 1, **where)
    for i, (ours, theirs) in reversed(list(enumerate(layers))):
        grad = walk.grad_outputs[i]
        if grad is not None:
            yield activation_backward_check(pair, problem.activation, walk.zs[i], grad, layer=i + 1, **where)
        yield from backward_checks(pair, ours, theirs, walk.inputs[i], walk.grad_zs[i], layer=i + 1, **where)


def whole_step(pair: Pair, problem: Problem) -> Iterator[Comparison]:
    """`Network.forward`, `loss`, `gradients`, without dropout and with it, and `predict`; and every rung of the step
    ladder, on a stage that has one."""
    sides = Sides(pair, problem)
    x, y = problem.batches[0]
    # The longest path of a rounding error: forward through every layer, and backward over the batch.
    k = 2 * sum(len(w) + 1 for w in problem.parameters[::2]) + len(x)
    where: dict[str, Any] = {"level": "step", "case": problem.name}

    def check(
        op: str, result: Callable[..., Sequence[Any]], scales: Sequence[Any], masks: Sequence[np.ndarray] | None
    ) -> Iterator[Comparison]:
        for_theirs = None if masks is None else [pair.to_reference(mask) for mask in masks]
        expected = [pair.from_reference(r) for r in result(sides.theirs, *sides.for_reference(x, y), for_theirs)]
        try:
            for_ours = None if masks is None else [pair.to_stage(mask) for mask in masks]
            got = [pair.from_stage(r) for r in result(sides.ours, *sides.for_stage(x, y), for_ours)]
        except Exception as error:
            yield failed(op, f"raised {type(error).__name__}: {error}", **where)
            return
        if len(got) != len(expected):
            yield failed(op, f"got {len(got)} arrays, expected {len(expected)}", **where)
            return
        with_loss = len(expected) % 2  # a loss, and then two gradients for each layer
        for i, (g, e) in enumerate(zip(got, expected, strict=True), start=-with_loss):
            name, layer = (op, None) if i < 0 else (f"{op}: {parameter_name(i)}", i // 2 + 1)
            yield compare(name, g, e, pair.dtype, k, scale=scales[i + with_loss], layer=layer, **where)

    for masks, dropout in ((None, ""), (problem.masks, " with dropout")):
        outputs, loss, gradients = step_scales(pair, problem, masks)
        yield from check(f"Network.forward{dropout}", lambda n, x, y, m: [n.forward(x, m)], [outputs], masks)
        yield from check(f"Network.loss{dropout}", lambda n, x, y, m: [n.loss(x, y, m)], [loss], masks)
        yield from check(f"Network.gradients{dropout}", lambda n, x, y, m: n.gradients(x, y, m), gradients, masks)
        for name, rung in getattr(pair.stage.network, "STEP_LADDER", {}).items():
            both = partial(_loss_and_gradients, sides.ours, rung)
            yield from check(f"step ladder, {name}{dropout}", both, [loss, *gradients], masks)
    # Classes are whole numbers: any tolerance below 1 tells whether they are equal.
    yield from check("Network.predict", lambda n, x, y, m: [n.predict(x)], [1.0], None)


def _loss_and_gradients(ours: Any, rung: Callable[..., float], network: Any, x: Any, y: Any, masks: Any) -> list[Any]:
    """The loss and the gradients by a rung of the step ladder; by the network's own methods on the reference."""
    if network is not ours:
        return [network.loss(x, y, masks), *network.gradients(x, y, masks)]
    loss = rung(network, x, y, None, masks)
    return [loss, *(array for layer in network.layers for array in (layer.grad_weights, layer.grad_bias))]


def step_scales(pair: Pair, problem: Problem, masks: Sequence[np.ndarray] | None) -> tuple[Any, Any, list[Any]]:
    """The scales of a whole step, (outputs, loss, [each gradient]): its formulas with every minus made a plus.

    Errors go from layer to layer as values do, forward through |W| and backward through |Wᵀ|, but they never cancel. An
    activation makes no error larger, because no activation here has a slope above 1.
    """
    x, y = problem.batches[0]
    weights, biases = ([np.abs(p) for p in problem.parameters[i::2]] for i in (0, 1))
    keep = [1.0] * len(weights) if masks is None else [*masks, 1.0]
    sizes = [np.abs(x)]
    for w, b, mask in zip(weights, biases, keep, strict=True):
        sizes.append((sizes[-1] @ w + b + 1.0) * mask)  # + 1: sigmoid and softmax are not 0 at z = 0
    network = Sides(pair, problem).theirs
    outputs = pair.from_reference(
        network.forward(pair.to_reference(x), None if masks is None else [pair.to_reference(m) for m in masks])
    )
    backward = getattr(pair.reference.losses, f"{problem.loss}_backward")
    slope = pair.from_reference(
        backward(pair.to_reference(outputs), y if problem.loss in LABEL_LOSSES else pair.to_reference(y))
    )
    loss, size = loss_scales(problem.loss, outputs, y, slope)
    loss = loss + np.sum(np.abs(slope) * sizes[-1])
    size = size + np.max(sizes[-1]) / len(x)  # the outputs' own errors move the slope: by less than 1 / batch each
    gradients: list[Any] = []
    for i in reversed(range(len(weights))):
        gradients[:0] = [np.max(sizes[i].T @ size), np.max(size.sum(axis=0))]
        size = (size @ weights[i].T) * (keep[i - 1] if i else 1.0)
    return sizes[-1], loss, gradients


def parameter_name(i: int) -> str:
    """'W1', 'b1', 'W2', …: the i-th of a network's parameters, from 0."""
    return f"{'Wb'[i % 2]}{i // 2 + 1}"
