"""A whole network in NumPy and float64, for weeks 3 and 5. Its switches turn it into the known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import overwrite, same
from groundup.course.grading.problems.activations import softmax_of
from groundup.course.grading.problems.cross_entropy import cross_entropy_of, cross_entropy_slopes
from shared.architectures import mlp


@dataclass(frozen=True, eq=False)
class Problem:
    """A network and a batch. parameters: [W1, b1, W2, b2, …]; masks: of the Dropout layers, None without them."""

    parameters: list[np.ndarray]
    x: np.ndarray
    y: np.ndarray
    activation: str = "tanh"
    loss: str = "softmax_cross_entropy"
    masks: list[np.ndarray] | None = None

    def __str__(self) -> str:
        dropout = ", with dropout" if self.masks else ""
        sizes = "-".join(map(str, self.sizes))
        return f"a {sizes} network ({self.activation}, {self.loss}), batch {len(self.x)}{dropout}"

    @property
    def sizes(self) -> list[int]:
        """The numbers of features: of x, and of every dense layer's output."""
        return [len(self.parameters[0]), *map(len, self.parameters[1::2])]

    @property
    def layers(self) -> int:
        """The number of dense layers."""
        return len(self.parameters) // 2

    def network(self, floor: Any) -> Any:
        """The network on a stage: Dense, activation, Dropout where there are masks, Dense, …"""
        architecture = mlp(self.sizes, self.activation, 0.5 if self.masks else 0.0)
        dtype = self.parameters[0].dtype.name
        made = floor.network.Network.from_parameters
        key = (floor.network.__name__, tuple(self.sizes), self.activation, self.loss, self.masks is None, dtype)
        network = same(key, lambda: made(self.parameters, loss=self.loss, dtype=dtype, architecture=architecture))
        for there, values in zip(network.parameters, self.parameters, strict=True):
            overwrite(there, values)  # the network of the call before may be used again
        return network

    @property
    def flat(self) -> np.ndarray:
        """All parameters in one row."""
        return np.concatenate([each.ravel() for each in self.parameters])

    def at(self, flat: np.ndarray) -> Problem:
        """This problem with other parameters. flat: all of them in one row"""
        ends = np.cumsum([each.size for each in self.parameters])[:-1]
        parts = [part.reshape(p.shape) for part, p in zip(np.split(flat, ends), self.parameters, strict=True)]
        return replace(self, parameters=parts)


def problem(
    rng: np.random.Generator,
    sizes: Sequence[int],
    batch: int = 4,
    dropout: bool = False,
    activation: str = "tanh",
    size: float = 1.0,
) -> Problem:
    """A random network and batch. With dropout its masks hold 0 and 2."""
    parameters = [
        size * array
        for m, n in pairwise(sizes)
        for array in (rng.standard_normal((m, n)), 0.5 * rng.standard_normal(n))
    ]
    masks = [2.0 * rng.integers(0, 2, (batch, n)) for n in sizes[1:-1]] if dropout else None
    x, y = rng.standard_normal((batch, sizes[0])), rng.integers(0, sizes[-1], batch)
    return Problem(parameters, x, y, activation, "softmax_cross_entropy", masks)


NETWORKS: list[tuple[Any, ...]] = [
    ((1, 1, 1), 1, False),
    ((4, 3), 3, False),
    ((2, 5, 1), 7, False),
    ((3, 4, 2, 5), 4, False),
    ((3, 5, 4, 2), 6, True),
    ((3, 5, 4, 19), 5, True, "softmax"),
    ((2, 4, 3), 70, False, "relu"),
    ((3, 4, 3), 4, False, "relu", 100.0),
]
"""Layer sizes, batch, dropout, the hidden activation if it is not tanh, and by what the parameters are multiplied:
ones, no hidden layer, narrow, deep, far out. With softmax, each output of which depends on the whole row, it matters
whether the mask or the derivative comes first."""

BATCHES = [((3, 4, 3, 2), batch, True) for batch in (4, 9, 2, 4, 4)]
"""Cases of one network whose batch grows and shrinks."""


SLOPES: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "tanh": (np.tanh, lambda z, output: 1 - output**2),
    "relu": (lambda z: np.maximum(z, 0), lambda z, output: (z > 0) * 1.0),
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z, output: np.where(z > 0, 1.0, 0.01)),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda z, output: output * (1 - output)),
}
"""f(z) and f'(z)."""


def bend(activation: str, z: np.ndarray) -> np.ndarray:
    """f(z), softmax included."""
    return softmax_of(z) if activation == "softmax" else SLOPES[activation][0](z)


def bend_back(activation: str, grad: np.ndarray, z: np.ndarray) -> np.ndarray:
    """dL/dz from dL/df(z)."""
    output = bend(activation, z)
    if activation == "softmax":
        return output * (grad - (grad * output).sum(axis=1, keepdims=True))
    return grad * SLOPES[activation][1](z, output)


def network_trace(
    case: Problem, *, activated: bool = True, masked: bool = True, bias: bool = True
) -> dict[str, np.ndarray]:
    """The output of every layer, by name: z of a dense layer, output of its activation, dropped where there are masks.

    The switches make known mistakes:

    activated=False     the activation is left out
    masked=False        the masks are not used
    bias=False          the bias is left out
    """
    trace: dict[str, np.ndarray] = {}
    signal = case.x.astype(np.float64)
    for i in range(case.layers):
        z = trace[f"z{i + 1}"] = signal @ case.parameters[2 * i] + (case.parameters[2 * i + 1] if bias else 0)
        if i < case.layers - 1:
            signal = trace[f"output{i + 1}"] = bend(case.activation, z) if activated else z
            if case.masks:
                signal = trace[f"dropped{i + 1}"] = signal * (case.masks[i] if masked else 1)
    return trace


def network_loss(case: Problem) -> float:
    """The loss of a problem."""
    outputs = network_trace(case)[f"z{case.layers}"]
    if case.loss == "mean_squared_error":
        return float(np.mean((outputs - case.y) ** 2))
    return cross_entropy_of(outputs, case.y)


def network_gradients(
    case: Problem, *, slope: bool = True, masked: bool = True, handed_on: bool = True
) -> dict[str, np.ndarray]:
    """Every parameter's gradient and dL/dx, by name. The switches make known mistakes:

    slope=False         the activation's derivative is left out
    masked=False        the masks are not used on the way back
    handed_on=False     every layer gets the gradient of the loss
    """
    trace = {"x": case.x, **network_trace(case)}
    grad = of_loss = loss_slopes(case, trace[f"z{case.layers}"])
    gradients: dict[str, np.ndarray] = {}
    for came_in, name in reversed(list(pairwise(trace))):
        i = int(name[-1]) - 1
        if not handed_on:
            grad = of_loss
        if name.startswith("z"):
            gradients[f"dL/dW{i + 1}"], gradients[f"dL/db{i + 1}"] = trace[came_in].T @ grad, grad.sum(axis=0)
            grad = grad @ case.parameters[2 * i].T
        elif name.startswith("output"):
            grad = bend_back(case.activation, grad, trace[came_in]) if slope else grad
        elif case.masks and masked:
            grad = grad * case.masks[i]
    ordered = [gradients[f"dL/d{p}{k + 1}"] for k in range(case.layers) for p in "Wb"]
    return by_name(ordered, grad)


def loss_slopes(case: Problem, outputs: np.ndarray) -> np.ndarray:
    """The gradient of the loss by the network's outputs."""
    if case.loss == "mean_squared_error":
        return 2 * (outputs - case.y) / outputs.size
    return cross_entropy_slopes(outputs, case.y)


def network_case(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Problem]:
    """A random problem of a size from NETWORKS."""
    return (problem(rng, *size),)


def column(*values: float) -> np.ndarray:
    """A matrix with one column."""
    return np.array(values)[:, np.newaxis]


FORWARD_PROBLEM = Problem(
    [np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([0.0, -3.0]), column(2.0, 7.0), np.array([1.0])],
    np.array([[1.0, 2.0], [-3.0, 1.0]]),
    column(0.0, 0.0),
    "relu",
    "mean_squared_error",
)


SMALL = Problem(
    [column(3.0), np.array([-1.0]), column(4.0), np.array([1.0])],
    column(2.0),
    column(20.0),
    "relu",
    "mean_squared_error",
)


BACKPROPAGATION_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    # z1 = 5, output 21, off by 1: dL/dz2 = 2, which W2 = 4 takes back to 8, and W1 = 3 to 24.
    ((SMALL,), {"dL/dW1": [[16.0]], "dL/db1": [8.0], "dL/dW2": [[10.0]], "dL/db2": [2.0], "dL/dx": [[24.0]]}),
    # z1 = -7: ReLU is closed, output 1, off by -2.
    (
        (replace(SMALL, parameters=[column(-3.0), *SMALL.parameters[1:]], y=column(3.0)),),
        {"dL/dW1": [[0.0]], "dL/db1": [0.0], "dL/dW2": [[0.0]], "dL/db2": [-4.0], "dL/dx": [[0.0]]},
    ),
    # Twice the output of z1 = 5 goes on: output 41, off by 1, and the way back is doubled, too.
    (
        (replace(SMALL, y=column(40.0), masks=[column(2.0)]),),
        {"dL/dW1": [[32.0]], "dL/db1": [16.0], "dL/dW2": [[20.0]], "dL/db2": [2.0], "dL/dx": [[48.0]]},
    ),
]
"""The loss is the square of what the output is off by: 1, 4 and 1."""


MISTAKES: list[tuple[str, Callable[[Problem], dict[str, np.ndarray] | None]]] = [
    (
        "the activation's derivative is left out: every layer has a backward, those without weights, too",
        lambda given: network_gradients(given, slope=False) if given.layers > 1 else None,
    ),
    (
        "the dropout mask is ignored on the way back: what was multiplied by it forwards is multiplied by it backwards",
        lambda given: network_gradients(given, masked=False) if given.masks else None,
    ),
    (
        "the first layer gets the gradient of the loss itself: begin at the last layer, and hand to each layer what "
        "the one after it has returned",
        lambda given: (
            network_gradients(given, handed_on=False) if given.layers > 1 and len(set(given.sizes)) == 1 else None
        ),
    ),
]


BACKPROPAGATION_MISTAKES = [
    Mistake(text, lambda given, wrong=wrong, name=name: (wrong(given) or {}).get(name), name)
    for text, wrong in MISTAKES
    for name in ("dL/dx", "dL/dW1", "dL/dW2", "dL/dW3")
]


def network_slopes(call: Callable[[Problem], Mapping[str, Any]]) -> Callable[[Tally], None]:
    """The gradient check of a network, with the gradients of all parameters in one row."""
    rng = np.random.default_rng(7)
    checks = [_network_slopes(call, problem(rng, (3, 3, 3, 3), 4, dropout)) for dropout in (False, True)]

    def check(tally: Tally) -> None:
        for each in checks:
            each(tally)

    return check


def _network_slopes(call: Callable[[Problem], Mapping[str, Any]], given: Problem) -> Callable[[Tally], None]:
    def flat(gradients: Mapping[str, Any] | None) -> np.ndarray | None:
        if gradients is None:
            return None
        return np.concatenate([np.ravel(gradients[f"dL/d{p}{k + 1}"]) for k in range(given.layers) for p in "Wb"])

    return gradient_check(
        lambda theta: network_loss(given.at(theta)),
        lambda theta: flat(call(given.at(theta))),
        lambda rng: given.flat,
        f"the loss of {given}, by all parameters in a row,",
        mistakes=[Mistake(text, lambda theta, wrong=wrong: flat(wrong(given.at(theta)))) for text, wrong in MISTAKES],
    )


def backward_exercise(
    call: Callable[[Problem], dict[str, Any]],
    mistakes: Sequence[Mistake] = (),
    way: Callable[[Tally], None] | None = None,
) -> Exercise:
    """How a stage's `backward` is graded. call: all gradients and dL/dx, as `by_name` has them."""
    return Exercise(
        call=call,
        reference=network_gradients,
        show=lambda case: f"backward of {case}",
        hand=BACKPROPAGATION_HAND,
        arguments=network_case,
        typical=((3, 3, 3, 3), 4, True),
        sizes=NETWORKS,
        again=BATCHES,
        terms=lambda case: 256,
        scale=lambda case: 10.0 + float(np.abs(case.flat).max()) ** 2,
        gradient=network_slopes(call),
        way=way,
        mistakes=[*BACKPROPAGATION_MISTAKES, *mistakes],
        fresh=True,
    )


def by_name(gradients: Sequence[Any], of_x: Any) -> dict[str, Any]:
    """The gradients of all parameters, and dL/dx as `backward` returned it."""
    if of_x is None:
        cause = "what the first layer's backward gives is dL/dx: return it"
        raise Wrong("backward: no dL/dx came back", got="None", cause=cause)
    return {**parameters_by_name(gradients), "dL/dx": of_x}


def parameters_by_name(gradients: Sequence[Any]) -> dict[str, Any]:
    """The gradients of all parameters."""
    return {f"dL/d{'Wb'[k % 2]}{k // 2 + 1}": each for k, each in enumerate(gradients)}


def backward_of_first(network: Any, run: Callable[[], Any]) -> list[Any]:
    """What the backward of the network's first layer returns, each time that `run` calls it."""
    first, returned = network.layers[0], []
    backward = first.backward

    def noted(*arguments: Any, **named: Any) -> Any:
        returned.append(backward(*arguments, **named))
        return returned[-1]

    first.backward = noted
    run()
    return returned
