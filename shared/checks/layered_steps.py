"""The upper levels of the equivalence check for networks with images: each layer, the whole step, many steps.

    trace_layers        every operation of a training step, with the reference's numbers: a wrong one is the cause
    whole_layered_step  outputs of every layer, loss, gradients and predictions of the network itself
    layered_trajectory  parameters and running statistics after many steps

Layers are named by their numbers in the architecture: '4', or '4.2' in a residual block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared import layers
from shared.checks.batch_norm_ops import norm_checks
from shared.checks.convolution_ops import conv_checks
from shared.checks.layered_problems import LayeredProblem, LayeredSides
from shared.checks.layered_walk import Op, as_rows, noise_of, walk
from shared.checks.ops import activation_backward_check, activation_check, backward_checks, forward_check, loss_check
from shared.checks.pair import Pair
from shared.checks.pooling_ops import average_pool_checks, max_pool_checks
from shared.checks.tolerance import C, Comparison, compare, eps, failed
from shared.checks.trajectory import trajectory_optimizer
from shared.windows import as_pair


def trace_layers(pair: Pair, problem: LayeredProblem) -> Iterator[Comparison]:
    """Every operation of one training step, forward and backward, by the stage's rooms with the reference's numbers."""
    step = walk(pair, problem, masks=True)
    where: dict[str, Any] = {"level": "layer", "case": problem.name}
    for op in step.ops:
        yield from _layer_checks(pair, op, layer=op.number, **where)
    last = step.ops[-1]
    yield from loss_check(pair, problem.loss, last.output, problem.batches[0][1], layer=last.number, **where)


def _layer_checks(pair: Pair, op: Op, **where: Any) -> Iterator[Comparison]:
    layer, x, grad = op.layer, op.input, op.grad_output
    assert grad is not None  # the walk went all the way back
    if isinstance(layer, layers.Conv):
        window = as_pair(layer.stride), as_pair(layer.padding)
        weights, bias = op.parameters
        yield from conv_checks(pair, x, weights, bias, grad, *window, **where)
    elif isinstance(layer, layers.Dense):
        own = [side.dense.Dense for side in (pair.stage, pair.reference)]
        ours, theirs = (kind(*map(give, op.parameters)) for kind, give in zip(own, _givers(pair), strict=True))
        yield forward_check(pair, ours, theirs, x, **where)
        yield from backward_checks(pair, ours, theirs, x, grad, **where)
    elif isinstance(layer, layers.BatchNorm):
        gamma, beta = op.parameters
        yield from norm_checks(pair, x, gamma, beta, op.running, grad, True, **where)
    elif isinstance(layer, layers.Activate):
        yield activation_check(pair, layer.name, as_rows(x), **where)
        yield activation_backward_check(pair, layer.name, as_rows(x), as_rows(grad), **where)
    elif isinstance(layer, layers.MaxPool):
        yield from max_pool_checks(pair, x, grad, layer.size, layer.stride, **where)
    elif isinstance(layer, layers.AveragePool):
        yield from average_pool_checks(pair, x, grad, layer.size, layer.stride, **where)


def _givers(pair: Pair) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return pair.to_stage, pair.to_reference


def whole_layered_step(pair: Pair, problem: LayeredProblem) -> Iterator[Comparison]:
    """`Network.outputs` of every layer in training, `forward`, `loss` and `gradients`, with dropout and without; then
    what they leave unchanged, and `forward` and `predict` in evaluation."""
    sides = LayeredSides(pair, problem)
    x, y = problem.batches[0]
    where: dict[str, Any] = {"level": "step", "case": problem.name}
    names = [each.name for each in problem.architecture.parameters()]
    numbers = [each.number for each in problem.architecture.placed() if "." not in each.number]

    def both(result: Callable[[Any, Any, Any, Any], Any], masks: bool) -> tuple[Any, Any]:
        """What the network under test gives, and what the reference gives; an exception instead of the first."""
        for_ours, for_theirs = sides.masks(masks)
        expected = result(sides.theirs, *sides.for_reference(x, y), for_theirs)
        try:
            return result(sides.ours, *sides.for_stage(x, y), for_ours), expected
        except Exception as error:
            return error, expected

    def each(op: str, got: Any, expected: Any, rules: Sequence[tuple[str, str | None, float]]) -> Iterator[Comparison]:
        """rules: (what is added to the op's name, layer, how far apart in eps)"""
        if isinstance(got, Exception):
            yield failed(op, f"raised {type(got).__name__}: {got}", **where)
        elif len(got) != len(expected):
            yield failed(op, f"got {len(got)} arrays, expected {len(expected)}", **where)
        else:
            for (name, layer, allowed), ours, theirs in zip(rules, got, expected, strict=True):
                g, e = pair.from_stage(ours), pair.from_reference(theirs)
                yield compare(f"{op}{name}", g, e, pair.dtype, 1, scale=allowed / C, layer=layer, **where)

    for masks, dropout in ((False, ""), (True, " with dropout")):
        if masks and not problem.masks:
            continue
        noise = noise_of(pair, problem, masks, training=True)
        outputs = [("", number, noise[f"outputs {number}"]) for number in numbers]
        slopes = [
            (f": {name.partition(': ')[2]}", _number(name), noise[f"gradient {i}"]) for i, name in enumerate(names)
        ]
        calls = _calls(training=True)
        yield from each(f"Network.outputs{dropout}", *both(calls["outputs"], masks), outputs)
        sides = LayeredSides(pair, problem)  # the outputs in training have changed the running statistics
        before = [pair.from_stage(each) for each in sides.ours.running_statistics]
        yield from each(f"Network.loss{dropout}", *both(calls["loss"], masks), [("", None, noise["loss"])])
        yield from each(f"Network.gradients{dropout}", *both(calls["gradients"], masks), slopes)
        for i, (was, array) in enumerate(zip(before, sides.ours.running_statistics, strict=True)):
            op = f"running_statistics[{i}] after Network.gradients{dropout}"
            yield compare(op, pair.from_stage(array), was, pair.dtype, 1, scale=0.0, **where)
    calls = _calls(training=False)
    noise = noise_of(pair, problem, masks=False, training=False)
    evaluation = [("", number, noise[f"outputs {number}"]) for number in numbers]
    yield from each("Network.outputs in evaluation", *both(calls["outputs"], False), evaluation)
    yield from each("Network.forward", *both(calls["forward"], False), evaluation[-1:])
    # Classes are whole numbers: any tolerance below 1 tells whether they are equal.
    yield from each("Network.predict", *both(calls["predict"], False), [("", None, 1.0)])


def _calls(training: bool) -> dict[str, Callable[[Any, Any, Any, Any], Any]]:
    return {
        "outputs": lambda n, x, y, m: n.outputs(x, m, training=training),
        "forward": lambda n, x, y, m: [n.forward(x, m, training=training)],
        "loss": lambda n, x, y, m: [n.loss(x, y, m, training=training)],
        "gradients": lambda n, x, y, m: n.gradients(x, y, m),
        "predict": lambda n, x, y, m: [n.predict(x)],
    }


def layered_trajectory(
    pair: Pair,
    problem: LayeredProblem,
    optimizer: str,
    steps: int,
    share: float | None = None,
    take: Callable[..., object] | None = None,
) -> list[Comparison]:
    """Both networks trained for `steps` steps with dropout: a comparison for each parameter and running statistic.

    As for dense networks, k is the number of steps times the longest sum of a step.
    share: of the largest number of each array, that two of them may differ by instead; None for that rule
    take: a rung of the step ladder, (network, x, y, optimizer, masks); None: `train_step`
    """
    sides = LayeredSides(pair, problem)
    ours, theirs = (trajectory_optimizer(stage, optimizer) for stage in (pair.stage, pair.reference))
    where: dict[str, Any] = {"level": "trajectory", "case": f"{optimizer}, {problem.name}, {steps} steps"}
    masks = sides.masks(bool(problem.masks))
    for step in range(steps):
        batch = problem.batches[step % len(problem.batches)]
        try:
            given = (*sides.for_stage(*batch), ours, masks[0])
            take(sides.ours, *given) if take else sides.ours.train_step(*given)
        except Exception as error:
            note = f"raised {type(error).__name__} in step {step + 1}: {error}"
            return [failed("Network.train_step", note, **where)]
        sides.theirs.train_step(*sides.for_reference(*batch), theirs, masks[1])
    k = steps * problem.longest_sum if share is None else max(1.0, (share / (C * eps(pair.dtype))) ** 2)
    return compare_trained(sides, k, **where)


def compare_trained(sides: LayeredSides, k: float, **where: Any) -> list[Comparison]:
    """Both networks after their steps: a comparison for each parameter and running statistic. where: of Comparison"""
    pair, architecture = sides.pair, sides.problem.architecture
    expected = [pair.from_reference(each) for each in (*sides.theirs.parameters, *sides.theirs.running_statistics)]
    if not all(np.isfinite(each).all() for each in expected):
        note = "the reference itself diverged, so there is nothing to compare; use another seed"
        return [failed("Network.train_step", note, **where)]
    names = [each.name for each in architecture.parameters()]
    numbers = [each.number for each in architecture.placed() if isinstance(each.layer, layers.BatchNorm)]
    names += [f"layer {number}, BatchNorm: {name}" for number in numbers for name in ("running_mean", "running_var")]
    got = [pair.from_stage(each) for each in (*sides.ours.parameters, *sides.ours.running_statistics)]
    return [
        compare(f"trained {name.partition(': ')[2]}", g, e, pair.dtype, k, layer=_number(name), **where)
        for name, g, e in zip(names, got, expected, strict=True)
    ]


def _number(name: str) -> str:
    """'3.2' of 'layer 3.2, Conv: weights'."""
    return name.removeprefix("layer ").partition(",")[0]
