"""One function of a room, called on a small random input and compared with the reference as the whole check does.

    example(room, name, seed)     the input of a function, and how its results are checked
    called(stage, example, rung)  the numbers that a stage computes from it, how far they are from the reference's, and
                                  how far rounding may take them

Every input is a number with one decimal, so that a reader can compute along. The dtype is float64, in which all stages
compute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from shared.checks import batch_norm_ops, convolution_ops, ops, pooling_ops
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides, dense_problem
from shared.checks.tolerance import C, Comparison, in_tolerances, tolerance
from shared.checks.trajectory import longest_sum
from shared.checks.walk import noise_of
from shared.contract import Stage, load_stage
from shared.names import LABEL_LOSSES

DTYPE = "float64"
REFERENCE = "stage2_numpy"
IMAGE, WINDOW, PLACES = (1, 1, 4, 4), (1, 1, 3, 3), (1, 1, 2, 2)
RATE = 0.1
"""Learning rate of the optimizers' step."""

KINK = 1e-9
"""Closer to 0 than this, rounding decides on which side relu sees a number, and so whether a gradient passes."""

FORWARD = ("Network.forward", "Network.predict")
PARAMETERS = ("W1", "b1", "W2", "b2")


@dataclass(frozen=True)
class Result:
    """One array that a stage returned. name: which of several results, "" for the only one

    apart: how far one number is from the reference's, where that is most in units of what rounding explains: `allowed`
    agrees: whether rounding explains that; for NaN and infinity, whether the reference has the same
    """

    name: str
    values: np.ndarray
    apart: float
    allowed: float
    agrees: bool


@dataclass(frozen=True)
class Example:
    """A function's input by name, and the checks that call it. before: what has to be called first, "" for nothing"""

    name: str
    inputs: Mapping[str, Any]
    checks: Callable[[Pair], Iterable[object]]
    before: str = ""


@dataclass
class Called:
    """What one call on one stage gave. seconds: from the numbers to the numbers, the ways to the stage and back too"""

    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0


class _Recording(Pair):
    """A pair that runs and keeps the results of one operation, and skips the others."""

    def __init__(self, stage: Stage, name: str, before: str) -> None:
        super().__init__(stage, load_stage(REFERENCE), DTYPE)
        self.name, self.before, self.call = name, before, Called()

    def check(self, op: str, run: Callable[[], Any], expected: Any, k: float, scale: Any, **where: Any) -> Comparison:
        own, _, part = op.partition(": ")
        if own == self.before:
            run()
        if own == self.name:
            began = time.perf_counter()
            got = self.from_stage(run())
            self.call.seconds += time.perf_counter() - began
            self.keep(part, got, np.asarray(expected, np.float64), k, scale)
        return Comparison(op, None, (), 0.0, 0.0, 0.0)

    def keep(self, part: str, got: np.ndarray, expected: np.ndarray, k: float, scale: Any) -> None:
        """Keep a result beside the reference's."""
        if got.shape != expected.shape:
            raise ValueError(f"{self.name}: expected a result of shape {expected.shape}, got {got.shape}")
        allowed = np.broadcast_to(tolerance(DTYPE, k, scale), expected.shape)
        apart = in_tolerances(got, expected, allowed)
        worst = np.unravel_index(int(np.argmax(apart)), apart.shape)
        distance = abs(float(got[worst]) - float(expected[worst]))
        self.call.results.append(Result(part, got, distance, float(allowed[worst]), bool(apart[worst] <= 1)))


def called(stage: Stage, example: Example, rung: str = "") -> Called:
    """Call the function on a stage. rung: of a ladder, which one."""
    pair = _Recording(stage, example.name.format(rung), example.before)
    for _ in example.checks(pair):
        pass
    return pair.call


def example(room: str, name: str, seed: int = 0) -> Example:
    """The example of a function of a room, or of a ladder, "matmul ladder". Raises KeyError where there is none."""
    return _MAKERS[room](np.random.default_rng(seed), name)


def _numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-20, 21, shape) / 10


def _arrays(rng: np.random.Generator, name: str) -> Example:
    x = _numbers(rng, 2, 3)
    check = lambda pair: [pair.check(name, lambda: pair.to_stage(x), x, 1, 0.0)]  # noqa: E731
    return Example(name, {"values": x}, check)


def _matmul(rng: np.random.Generator, name: str) -> Example:
    a, b = _numbers(rng, 2, 3), _numbers(rng, 3, 2)
    inputs = {"a": a.T if name == "matmul_tn" else a, "b": b.T if name == "matmul_nt" else b}
    own = "matmul.LADDER[{!r}]" if name == "matmul ladder" else name
    return Example(own, inputs, lambda pair: ops.product_checks(pair, a, b))


def _activations(rng: np.random.Generator, name: str) -> Example:
    z, grad = _numbers(rng, 2, 3), _numbers(rng, 2, 3)
    if not name.endswith("_backward"):
        return Example(name, {"z": z}, lambda pair: [ops.activation_check(pair, name, z)])
    own = name.removesuffix("_backward")
    output = getattr(load_stage(REFERENCE).activations, own)(z)
    inputs = {"grad_output": grad, "z": z, "output": output}
    return Example(name, inputs, lambda pair: [ops.activation_backward_check(pair, own, z, grad)])


def _losses(rng: np.random.Generator, name: str) -> Example:
    own = name.removesuffix("_backward")
    outputs = _numbers(rng, 2, 3)
    y = rng.integers(0, 3, 2) if own in LABEL_LOSSES else rng.integers(0, 11, (2, 3)) / 10
    return Example(name, {"outputs": outputs, "y": y}, lambda pair: ops.loss_check(pair, own, outputs, y))


def _dense(rng: np.random.Generator, name: str) -> Example:
    weights, bias, x, grad = (_numbers(rng, *shape) for shape in ((3, 2), (2,), (2, 3), (2, 2)))
    inputs = {"x": x, "weights": weights, "bias": bias} | ({"grad_output": grad} if name == "Dense.backward" else {})
    check = lambda pair: ops.layer_checks(pair, weights, bias, x, grad)  # noqa: E731
    return Example(name, inputs, check, "Dense.forward" if name == "Dense.backward" else "")


def _convolution(rng: np.random.Generator, name: str) -> Example:
    x, weights, bias, grad = (_numbers(rng, *shape) for shape in (IMAGE, WINDOW, (1,), PLACES))
    form = convolution_ops.Form(IMAGE, WINDOW)
    inputs = {"x": x, "weights": weights, "bias": bias}
    if name == "conv2d ladder":
        check = lambda pair: convolution_ops.rung_checks(pair, x, weights, bias, form)  # noqa: E731
        return Example("CONVOLUTION_LADDER[{!r}]", inputs, check)
    if name == "conv2d_backward":
        inputs = {"grad_output": grad, "x": x, "weights": weights}
    window = (form.stride, form.padding)
    return Example(name, inputs, lambda pair: convolution_ops.conv_checks(pair, x, weights, bias, grad, *window))


def _pooling(rng: np.random.Generator, name: str) -> Example:
    x, grad = _numbers(rng, *IMAGE), _numbers(rng, *PLACES)
    kind = pooling_ops.max_pool_checks if name.startswith("max") else pooling_ops.average_pool_checks
    inputs = {"grad_output": grad, "x": x} if name.endswith("_backward") else {"x": x}
    return Example(name, {**inputs, "size": 2}, lambda pair: kind(pair, x, grad, 2, None))


def _batch_norm(rng: np.random.Generator, name: str) -> Example:
    x, gamma, beta, grad = (_numbers(rng, *shape) for shape in ((4, 2), (2,), (2,), (4, 2)))
    running = [np.zeros(2), np.ones(2)]
    inputs = {"x": x, "gamma": gamma, "beta": beta, "running_mean": running[0], "running_var": running[1]}
    before = "batch_norm" if name == "batch_norm_backward" else ""
    inputs = {"grad_output": grad, **inputs} if before else inputs
    check = lambda pair: batch_norm_ops.norm_checks(pair, x, gamma, beta, running, grad, True)  # noqa: E731
    return Example(name, inputs, check, before)


def _optimizers(rng: np.random.Generator, name: str) -> Example:
    weights, gradient = _numbers(rng, 2, 3), _numbers(rng, 2, 3)
    inputs = {"parameter": weights, "gradient": gradient, "learning_rate": RATE}
    return Example(name, inputs, partial(_step, name=name, weights=weights, gradient=gradient))


def _step(pair: Pair, name: str, weights: np.ndarray, gradient: np.ndarray) -> list[Comparison]:
    def stepped(stage: Stage, give: Callable[[Any], Any]) -> Any:
        parameter = give(weights.copy())  # a stage may take the array as its own, and a step changes it
        getattr(stage.optimizers, name.removesuffix(".step"))(RATE).step([parameter], [give(gradient)])
        return parameter

    new = pair.from_reference(stepped(pair.reference, pair.to_reference))
    scale = np.abs(weights) + np.max(np.abs(new - weights))
    return [pair.check(name, lambda: stepped(pair.stage, pair.to_stage), new, ops.FEW, scale)]


def _network(rng: np.random.Generator, name: str) -> Example:
    pair = Pair(load_stage(REFERENCE), load_stage(REFERENCE), DTYPE)
    while True:
        problem = dense_problem(pair, rng, "relu", "softmax_cross_entropy", sizes=(3, 4, 2), batch=2, dropout=0.0)
        parameters = [np.round(each, 1) + 0.0 for each in problem.parameters]  # no -0
        x, y = np.round(problem.batches[0][0], 1), problem.batches[0][1]
        if np.abs(x @ parameters[0] + parameters[1]).min() > KINK:
            break
    problem = replace(problem, parameters=parameters, batches=[(x, y)])
    inputs = {"x": x} if name in FORWARD else {"x": x, "y": y, "learning_rate": RATE}
    inputs |= dict(zip(PARAMETERS, parameters, strict=True))
    own = "train_step by {}" if name == "train_step ladder" else name
    return Example(own, inputs, partial(_network_checks, name=name, problem=problem))


def _network_checks(pair: _Recording, name: str, problem: Problem) -> Iterator[Comparison]:
    noise = noise_of(pair, problem, masks=False, training=False)
    sides, batch = Sides(pair, problem), problem.batches[0]
    if name in FORWARD:
        method = name.partition(".")[2]
        expected = pair.from_reference(getattr(sides.theirs, method)(sides.for_reference(*batch)[0]))
        allowed = noise[f"outputs {len(problem.architecture.layers)}"] / C if method == "forward" else 0.0
        yield pair.check(name, lambda: getattr(sides.ours, method)(sides.for_stage(*batch)[0]), expected, 1, allowed)
        return
    rung = pair.name.removeprefix("train_step by ")
    take = getattr(pair.stage.network, "STEP_LADDER", {}).get(rung, type(sides.ours).train_step)
    ours, theirs = (each.optimizers.SGD(RATE) for each in (pair.stage, pair.reference))
    loss = sides.theirs.train_step(*sides.for_reference(*batch), theirs)
    yield pair.check(
        f"{pair.name}: loss", lambda: take(sides.ours, *sides.for_stage(*batch), ours), loss, 1, noise["loss"] / C
    )
    k = longest_sum(problem.architecture, problem.batch)
    news = [pair.from_reference(each) for each in sides.theirs.parameters]
    scale = max(np.max(np.abs(new)) for new in news)  # a bias can be next to 0, where all that it is made of cancels
    for which, mine, new in zip(PARAMETERS, sides.ours.parameters, news, strict=True):
        yield pair.check(f"{pair.name}: {which}", partial(_itself, mine), new, k, scale)


def _itself(array: Any) -> Any:
    return array


_MAKERS: dict[str, Callable[[np.random.Generator, str], Example]] = {
    "arrays": _arrays,
    "matmul": _matmul,
    "activations": _activations,
    "losses": _losses,
    "dense": _dense,
    "convolution": _convolution,
    "pooling": _pooling,
    "batch_norm": _batch_norm,
    "optimizers": _optimizers,
    "network": _network,
}
"""Room -> what makes its examples."""
