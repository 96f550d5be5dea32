"""One training step of the reference through any architecture, operation by operation, with all that lies between.

    walk            every operation with its inputs, its gradients and its numbers, as `Op`s in forward order
    noise_of        how far rounding moves the outputs, the loss and the gradients, measured by adding noise

The walk calls the reference's rooms and puts their results together itself: it adds the input of a residual block,
multiplies by dropout masks and changes shapes. So it is a second opinion about what a network of these rooms computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared import layers
from shared.checks.batch_norm_ops import MOMENTUM, norm_scales
from shared.checks.convolution_ops import backward_scales, forward_scale
from shared.checks.ops import FEW
from shared.checks.pair import Pair
from shared.checks.pooling_ops import max_pool_back_scale
from shared.checks.problems import Problem
from shared.checks.scales import activation_scale, loss_scales, slope_scale
from shared.names import LABEL_LOSSES
from shared.windows import as_pair

Rule = tuple[float, Any]
"""(k, scale) of a result, as `tolerance` takes them."""

PROBE = 1e-7
"""The eps at which noise is measured: far above float64's own rounding, and small enough to move few numbers over a
kink. The noise grows in proportion."""
RUNS = 6
SIGMA = 0.41
"""Standard deviation of one result's rounding in units of eps √k scale (docs/numerics.md)."""
SIGMAS = 10.0
"""How many measured standard deviations a whole step may be away: as many as the tolerance of one operation allows."""


@dataclass
class Op:
    """One layer at its place. number: '3', or '3.2' in a residual block. Images are (N, C, H, W), rows (N, features).

    parameters: of this layer; running: its mean and variance before the step; slopes: dL/d(each parameter)
    """

    number: str
    layer: layers.Layer
    input: np.ndarray
    parameters: list[np.ndarray]
    running: list[np.ndarray]
    output: np.ndarray
    grad_output: np.ndarray | None = None
    slopes: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class Walk:
    """One step: every operation in forward order, the loss and dL/d(outputs)."""

    ops: list[Op]
    loss: float
    grad_outputs: np.ndarray

    @property
    def results(self) -> dict[str, np.ndarray]:
        """The outputs of each top-level layer, the loss, and the gradients of each parameter, by names."""
        found = {f"outputs {op.number}": op.output for op in self.ops if "." not in op.number}
        found["loss"] = np.array(self.loss)
        slopes = [slope for op in self.ops for slope in op.slopes]
        return found | {f"gradient {i}": slope for i, slope in enumerate(slopes)}


def walk(
    pair: Pair, problem: Problem, masks: bool, training: bool = True, noise: np.random.Generator | None = None
) -> Walk:
    """One step on the problem's first batch.

    masks: with dropout; training: whether batch normalisation uses the statistics of the batch
    noise: None, and every result is rounded to the dtype under test; or a generator, and every result gets normal noise
    of the size of its rounding at PROBE
    """
    return _Walker(pair, problem, masks, training, noise).step()


def noise_of(pair: Pair, problem: Problem, masks: bool, training: bool) -> dict[str, float]:
    """Name in `Walk.results` -> the distance that rounding may explain, in units of the dtype's eps.

    A sum of absolute values through a whole network, as dense networks use it, becomes useless with depth: every layer
    is some √k too generous, and batch normalisation divides. Here each result of each operation is moved at random by
    as much as its own rounding moves it, RUNS times, and the spread of what comes out is measured (Monte Carlo
    arithmetic, Parker 1997).
    """
    exact = walk(pair, problem, masks, training, _NoNoise()).results
    squares = {name: np.zeros_like(each) for name, each in exact.items()}
    for run in range(RUNS):
        for name, each in walk(pair, problem, masks, training, np.random.default_rng(run)).results.items():
            squares[name] += (each - exact[name]) ** 2 / RUNS
    return {name: SIGMAS * float(np.sqrt(np.max(each))) / PROBE for name, each in squares.items()}


class _NoNoise(np.random.Generator):
    """A generator whose normal numbers are all 0: results that are neither moved nor rounded."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return np.zeros(args[0])


class _Walker:
    def __init__(
        self, pair: Pair, problem: Problem, masks: bool, training: bool, noise: np.random.Generator | None
    ) -> None:
        self.pair, self.problem, self.training, self.noise = pair, problem, training, noise
        self.parameters, self.running = iter(problem.parameters), iter(problem.running)
        self.masks = iter(problem.masks) if masks else None
        self.ladder = pair.stage.convolution.CONVOLUTION_LADDER
        self.room: Any = pair.reference
        self.ops: list[Op] = []
        self.backs: list[Callable[[np.ndarray], np.ndarray]] = []

    def step(self) -> Walk:
        x, y = self.problem.batches[0]
        outputs = self.forward(self.problem.architecture.layers, x, "")
        give, labels = self.pair.to_reference, self.problem.loss in LABEL_LOSSES
        own = give(outputs), y if labels else give(y)
        losses = self.pair.reference.losses
        loss, exact = (getattr(losses, f"{self.problem.loss}{end}")(*own) for end in ("", "_backward"))
        slope = self.pair.from_reference(exact)
        scales = loss_scales(self.problem.loss, outputs, y, slope)
        grad = self.rounded(slope, lambda: (outputs.shape[1] + FEW, scales[1]))
        value = self.rounded(np.array([loss]), lambda: (outputs.size + FEW, scales[0]))
        if self.training:  # in evaluation nobody asks for gradients
            self.backward(grad)
        return Walk(self.ops, float(value[0]), grad)

    def rounded(self, values: np.ndarray, rule: Callable[[], Rule]) -> np.ndarray:
        """A result rounded to the dtype, or with noise as large as rounding at PROBE."""
        if self.noise is None:
            return self.pair.rounded(values)
        k, scale = rule()
        return values + SIGMA * PROBE * np.sqrt(k) * scale * self.noise.standard_normal(values.shape)

    def call(self, function: Callable[..., Any], *arrays: np.ndarray, **more: Any) -> Any:
        return function(*(self.pair.to_reference(each) for each in arrays), **more)

    # ---- forward: each layer's method also puts its way back on `backs`

    def forward(self, chosen: Sequence[layers.Layer], x: np.ndarray, block: str) -> np.ndarray:
        for i, layer in enumerate(chosen, start=1):
            x = self.one(layer, x, f"{block}{i}")
        return x

    def one(self, layer: layers.Layer, x: np.ndarray, number: str) -> np.ndarray:
        if isinstance(layer, layers.Residual):
            return self.residual(layer, x, number)
        rooms: dict[type[Any], Callable[[Op, Any], Callable[[np.ndarray], np.ndarray]]] = {
            layers.Conv: self.conv,
            layers.Dense: self.dense,
            layers.BatchNorm: self.batch_norm,
            layers.Activate: self.activate,
            layers.MaxPool: self.max_pool,
            layers.AveragePool: self.average_pool,
            layers.Flatten: self.flatten,
            layers.Dropout: self.dropout,
        }
        op = Op(number, layer, x, [], [], x)
        self.ops.append(op)
        back = rooms[type(layer)](op, layer)

        def backward(grad: np.ndarray) -> np.ndarray:
            op.grad_output = grad
            return back(grad)

        self.backs.append(backward)
        return op.output

    def backward(self, grad: np.ndarray) -> np.ndarray:
        for back in reversed(self.backs):
            grad = back(grad)
        return grad

    def residual(self, layer: layers.Residual, x: np.ndarray, number: str) -> np.ndarray:
        around, self.backs = self.backs, []
        inner = self.forward(layer.layers, x, f"{number}.")
        inside, self.backs = self.backs, around
        output = self.rounded(inner + x, lambda: (1, np.abs(inner) + np.abs(x)))
        op = Op(number, layer, x, [], [], output)
        self.ops.append(op)

        def back(grad: np.ndarray) -> np.ndarray:
            op.grad_output = through = grad
            for each in reversed(inside):
                through = each(through)
            return self.rounded(through + grad, lambda: (1, np.abs(through) + np.abs(grad)))

        self.backs.append(back)
        return output

    def conv(self, op: Op, layer: layers.Conv) -> Callable[[np.ndarray], np.ndarray]:
        room, x = self.room.convolution, op.input
        weights, bias = op.parameters = [next(self.parameters), next(self.parameters)]
        window = as_pair(layer.stride), as_pair(layer.padding)
        output = self.pair.from_reference(self.call(room.conv2d, x, weights, bias, stride=window[0], padding=window[1]))
        op.output = self.rounded(output, lambda: forward_scale(self.ladder, "conv2d", x, weights, bias, *window))

        def back(grad: np.ndarray) -> np.ndarray:
            slopes = self.call(room.conv2d_backward, grad, x, weights, stride=window[0], padding=window[1])
            rules: list[Rule] = list(backward_scales(self.ladder, grad, x, weights, *window)) if self.noise else []
            into, *op.slopes = self._slopes(slopes, rules)
            return into

        return back

    def dense(self, op: Op, layer: layers.Dense) -> Callable[[np.ndarray], np.ndarray]:
        weights, bias = op.parameters = [next(self.parameters), next(self.parameters)]
        own, x = self.room.dense.Dense(*map(self.pair.to_reference, op.parameters)), op.input
        output = self.pair.from_reference(self.call(own.forward, x))
        op.output = self.rounded(output, lambda: (len(weights) + 1, np.abs(x) @ np.abs(weights) + np.abs(bias)))

        def back(grad: np.ndarray) -> np.ndarray:
            into = self.call(own.backward, grad)
            size = np.abs(grad)
            rules: list[Rule] = [(grad.shape[1], size @ np.abs(weights).T), (len(x), np.abs(x).T @ size)]
            rules.append((len(x), size.sum(axis=0)))
            into, *op.slopes = self._slopes((into, own.grad_weights, own.grad_bias), rules)
            return into

        return back

    def batch_norm(self, op: Op, layer: layers.BatchNorm) -> Callable[[np.ndarray], np.ndarray]:
        room, x = self.room.batch_norm, op.input
        gamma, beta = op.parameters = [next(self.parameters), next(self.parameters)]
        op.running = [next(self.running), next(self.running)]
        tracked = [each.copy() for each in op.running]
        output, saved = self.call(room.batch_norm, x, gamma, beta, *tracked, training=self.training, momentum=MOMENTUM)

        def rules(grad: np.ndarray) -> dict[str, tuple[int, np.ndarray]]:
            return norm_scales(x, gamma, beta, op.running, grad, self.training, self.pair.dtype)

        op.output = self.rounded(self.pair.from_reference(output), lambda: rules(x)["output"])

        def back(grad: np.ndarray) -> np.ndarray:
            slopes = room.batch_norm_backward(self.pair.to_reference(grad), saved)
            into, *op.slopes = self._slopes(slopes, list(rules(grad).values())[3:] if self.noise else [])
            return into

        return back

    def activate(self, op: Op, layer: layers.Activate) -> Callable[[np.ndarray], np.ndarray]:
        room, z = self.room.activations, as_rows(op.input)
        terms = FEW + (z.shape[1] if layer.name == "softmax" else 0)
        output = self.pair.from_reference(self.call(getattr(room, layer.name), z))
        rows = self.rounded(output, lambda: (terms, activation_scale(layer.name, z, output)))
        op.output = rows.reshape(op.input.shape)

        def back(grad: np.ndarray) -> np.ndarray:
            g = as_rows(grad)
            slope = self.pair.from_reference(self.call(getattr(room, f"{layer.name}_backward"), g, z, rows))
            return self.rounded(slope, lambda: (terms, slope_scale(layer.name, g, rows))).reshape(op.input.shape)

        return back

    def max_pool(self, op: Op, layer: layers.MaxPool) -> Callable[[np.ndarray], np.ndarray]:
        room, x = self.room.pooling, op.input
        output, places = self.call(room.max_pool2d, x, size=layer.size, stride=layer.stride)
        op.output = self.pair.from_reference(output)

        def back(grad: np.ndarray) -> np.ndarray:
            into = room.max_pool2d_backward(self.pair.to_reference(grad), places, x.shape)
            exact = np.asarray(places, np.int64)
            return self.rounded(self.pair.from_reference(into), lambda: max_pool_back_scale(grad, exact, x.shape))

        return back

    def average_pool(self, op: Op, layer: layers.AveragePool) -> Callable[[np.ndarray], np.ndarray]:
        room, x = self.room.pooling, op.input
        window = {"size": layer.size, "stride": layer.stride}
        k = int(np.prod(as_pair(layer.size))) + 1

        def averaged(values: np.ndarray) -> np.ndarray:
            return self.pair.from_reference(self.call(room.average_pool2d, values, **window))

        def spread(values: np.ndarray) -> np.ndarray:
            return self.pair.from_reference(
                self.call(room.average_pool2d_backward, values, input_shape=x.shape, **window)
            )

        op.output = self.rounded(averaged(x), lambda: (k, averaged(np.abs(x))))
        return lambda grad: self.rounded(spread(grad), lambda: (k, spread(np.abs(grad))))

    def flatten(self, op: Op, layer: layers.Flatten) -> Callable[[np.ndarray], np.ndarray]:
        op.output = as_rows(op.input)
        return lambda grad: grad.reshape(op.input.shape)

    def dropout(self, op: Op, layer: layers.Dropout) -> Callable[[np.ndarray], np.ndarray]:
        mask = np.ones(1) if self.masks is None else next(self.masks).reshape(op.input.shape)
        op.output = self.rounded(op.input * mask, lambda: (1, np.abs(op.input * mask)))
        return lambda grad: self.rounded(grad * mask, lambda: (1, np.abs(grad * mask)))

    def _slopes(self, slopes: Sequence[Any], rules: Sequence[Rule]) -> list[np.ndarray]:
        """Three gradients, that of the input first, each rounded or with noise."""
        exact = [self.pair.from_reference(each) for each in slopes]
        return [self.rounded(each, lambda i=i: rules[i]) for i, each in enumerate(exact)]  # type: ignore[misc]


def as_rows(x: np.ndarray) -> np.ndarray:
    """(N, C, H, W) -> (N, C * H * W)."""
    return x.reshape(len(x), -1)
