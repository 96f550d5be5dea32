"""The second and third level of the equivalence check: each layer of a training step, then the step as a whole.

`trace_step` goes forward and backward through a network op by op and gives every op the reference's inputs. So only a
wrong op disagrees, and the ops after it do not: the first disagreement is the cause.

`whole_step` compares the outputs of every layer, the loss, the gradients and the predictions of the network itself. Its
ops may be right and still be put together in a wrong way.

Layers are named by their numbers in the architecture: '4', or '4.2' in a residual block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from shared import layers
from shared.checks.batch_norm_ops import norm_checks
from shared.checks.convolution_ops import conv_checks
from shared.checks.ops import activation_backward_check, activation_check, backward_checks, forward_check, loss_check
from shared.checks.pair import Pair
from shared.checks.pooling_ops import average_pool_checks, max_pool_checks
from shared.checks.problems import Problem, Sides
from shared.checks.tolerance import C, Comparison, compare, failed
from shared.checks.walk import Op, as_rows, noise_of, walk
from shared.contract import NetworkLike
from shared.windows import as_pair

Rule = tuple[str, str | None, float]
"""(what is added to the op's name, layer, how far apart in eps)"""

Call = Callable[[Any, Any, Any, Any], Sequence[Any]]
"""(network, x, y, masks) -> the results to compare."""


def trace_step(pair: Pair, problem: Problem) -> Iterator[Comparison]:
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
        ours = pair.stage.dense.Dense(*map(pair.to_stage, op.parameters))
        theirs = pair.reference.dense.Dense(*map(pair.to_reference, op.parameters))
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


def whole_step(pair: Pair, problem: Problem, rungs: bool = True) -> Iterator[Comparison]:
    """`Network.outputs` of every layer in training, `loss` and `gradients`, without dropout and with it, and what they
    leave unchanged; `outputs`, `forward` and `predict` in evaluation.

    rungs: also every rung of the step ladder, on a stage that has one
    """
    step = _WholeStep(pair, problem)
    for masks in (False, True) if problem.masks else (False,):
        yield from step.training(masks, rungs)
    yield from step.evaluation()


class _WholeStep:
    def __init__(self, pair: Pair, problem: Problem) -> None:
        self.pair, self.problem = pair, problem
        self.where: dict[str, Any] = {"level": "step", "case": problem.name}
        self.numbers = [placed.number for placed in problem.architecture.placed() if "." not in placed.number]
        self.names = [parameter.name for parameter in problem.architecture.parameters()]

    def training(self, masks: bool, rungs: bool) -> Iterator[Comparison]:
        dropout = " with dropout" if masks else ""
        noise = noise_of(self.pair, self.problem, masks, training=True)
        outputs: list[Rule] = [("", number, noise[f"outputs {number}"]) for number in self.numbers]
        loss: list[Rule] = [("", None, noise["loss"])]
        slopes: list[Rule] = [
            (f": {name.partition(': ')[2]}", layer_number(name), noise[f"gradient {i}"])
            for i, name in enumerate(self.names)
        ]
        calls: list[tuple[str, Call, list[Rule]]] = [
            ("Network.outputs", lambda n, x, y, m: n.outputs(x, m, training=True), outputs),
            ("Network.forward", lambda n, x, y, m: [n.forward(x, m, training=True)], outputs[-1:]),
            ("Network.loss", lambda n, x, y, m: [n.loss(x, y, m, training=True)], loss),
            ("Network.gradients", lambda n, x, y, m: n.gradients(x, y, m), slopes),
        ]
        for op, call, rules in calls:
            sides = Sides(self.pair, self.problem)
            yield from self.compared(f"{op}{dropout}", sides, call, masks, rules)
            if rules in (loss, slopes):  # the outputs in training change the running statistics
                yield from self.unchanged(f"{op}{dropout}", sides)
        ladder = getattr(self.pair.stage.network, "STEP_LADDER", {})
        for name, rung in ladder.items() if rungs else ():
            sides = Sides(self.pair, self.problem)
            both = partial(_loss_and_gradients, sides.ours, rung)
            yield from self.compared(f"step ladder, {name}{dropout}", sides, both, masks, [*loss, *slopes])

    def evaluation(self) -> Iterator[Comparison]:
        sides = Sides(self.pair, self.problem)
        noise = noise_of(self.pair, self.problem, masks=False, training=False)
        outputs = [("", number, noise[f"outputs {number}"]) for number in self.numbers]
        yield from self.compared(
            "Network.outputs in evaluation", sides, lambda n, x, y, m: n.outputs(x), False, outputs
        )
        yield from self.compared(
            "Network.forward in evaluation", sides, lambda n, x, y, m: [n.forward(x)], False, outputs[-1:]
        )
        # Classes are whole numbers: any tolerance below 1 tells whether they are equal.
        yield from self.compared("Network.predict", sides, lambda n, x, y, m: [n.predict(x)], False, [("", None, 1.0)])

    def compared(self, op: str, sides: Sides, call: Call, masks: bool, rules: Sequence[Rule]) -> Iterator[Comparison]:
        """The results of a call on both sides."""
        x, y = self.problem.batches[0]
        for_ours, for_theirs = sides.masks(masks)
        expected = call(sides.theirs, *sides.for_reference(x, y), for_theirs)
        try:
            got = call(sides.ours, *sides.for_stage(x, y), for_ours)
        except Exception as error:
            yield failed(op, f"raised {type(error).__name__}: {error}", **self.where)
            return
        if len(got) != len(expected):
            yield failed(op, f"got {len(got)} arrays, expected {len(expected)}", **self.where)
            return
        for (name, layer, allowed), ours, theirs in zip(rules, got, expected, strict=True):
            g, e = self.pair.from_stage(ours), self.pair.from_reference(theirs)
            yield compare(f"{op}{name}", g, e, self.pair.dtype, 1, scale=allowed / C, layer=layer, **self.where)

    def unchanged(self, op: str, sides: Sides) -> Iterator[Comparison]:
        """The running statistics of the network under test are what they were before the call."""
        for i, (array, before) in enumerate(zip(sides.ours.running_statistics, self.problem.running, strict=True)):
            name = f"running_statistics[{i}] after {op}"
            yield compare(name, self.pair.from_stage(array), before, self.pair.dtype, 1, scale=0.0, **self.where)


def _loss_and_gradients(
    ours: Any, rung: Callable[..., float], network: NetworkLike, x: Any, y: Any, masks: Any
) -> list[Any]:
    """The loss and the gradients by a rung of the step ladder; by the network's own methods on the reference."""
    if network is not ours:
        return [network.loss(x, y, masks, training=True), *network.gradients(x, y, masks)]
    return [rung(network, x, y, None, masks), *network.layer_gradients]


def layer_number(name: str) -> str:
    """'3.2' of 'layer 3.2, Conv: weights'."""
    return name.removeprefix("layer ").partition(",")[0]
