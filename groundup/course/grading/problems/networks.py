"""A whole network in NumPy and float64, for weeks 3 and 5. Its switches turn it into the known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.cross_entropy import cross_entropy_of, cross_entropy_slopes


@dataclass(frozen=True, eq=False)
class Problem:
    """A network and a batch. parameters: [W1, b1, W2, b2, …]; masks: of the hidden layers, None without dropout."""

    parameters: list[np.ndarray]
    x: np.ndarray
    y: np.ndarray
    activation: str = "tanh"
    loss: str = "softmax_cross_entropy"
    masks: list[np.ndarray] | None = None

    def __str__(self) -> str:
        sizes = "-".join(str(size) for size in [len(self.parameters[0]), *map(len, self.parameters[1::2])])
        dropout = ", with dropout" if self.masks else ""
        return f"a {sizes} network ({self.activation}, {self.loss}), batch {len(self.x)}{dropout}"

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.parameters) // 2

    @property
    def flat(self) -> np.ndarray:
        """All parameters in one row."""
        return np.concatenate([each.ravel() for each in self.parameters])

    def at(self, flat: np.ndarray) -> Problem:
        """The same problem with other parameters, given in one row."""
        ends = np.cumsum([each.size for each in self.parameters])[:-1]
        parts = [part.reshape(p.shape) for part, p in zip(np.split(flat, ends), self.parameters, strict=True)]
        return replace(self, parameters=parts)


def problem(
    rng: np.random.Generator, sizes: Sequence[int], batch: int = 4, dropout: bool = False, activation: str = "tanh"
) -> Problem:
    """A random network and batch. With dropout its masks hold 0 and 2."""
    parameters = [
        array for m, n in pairwise(sizes) for array in (rng.standard_normal((m, n)), 0.5 * rng.standard_normal(n))
    ]
    masks = [2.0 * rng.integers(0, 2, (batch, n)) for n in sizes[1:-1]] if dropout else None
    x, y = rng.standard_normal((batch, sizes[0])), rng.integers(0, sizes[-1], batch)
    return Problem(parameters, x, y, activation, "softmax_cross_entropy", masks)


NETWORKS: list[tuple[tuple[int, ...], int, bool]] = [
    ((1, 1, 1), 1, False),
    ((4, 3), 3, False),
    ((2, 5, 1), 7, False),
    ((3, 4, 2, 5), 4, False),
    ((3, 5, 4, 2), 6, True),
]
"""Layer sizes, batch, dropout: ones, no hidden layer, narrow, deep."""


SLOPES: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "tanh": (np.tanh, lambda z, output: 1 - output**2),
    "relu": (lambda z: np.maximum(z, 0), lambda z, output: (z > 0) * 1.0),
}
"""f(z) and f'(z)."""


def network_trace(
    given: Problem, *, activated: bool = True, masked: bool = True, last: bool = False, bias: bool = True
) -> dict[str, np.ndarray]:
    """z and output of every layer, by name. The switches make known mistakes:

    activated=False     the activation is left out
    masked=False        the masks are not used
    last=True           the last layer is activated, too
    bias=False          the bias is left out
    """
    trace: dict[str, np.ndarray] = {}
    signal = given.x
    activate, _ = SLOPES[given.activation]
    for i in range(given.layers):
        z = signal @ given.parameters[2 * i] + (given.parameters[2 * i + 1] if bias else 0)
        final = i == given.layers - 1
        trace[f"z{i + 1}"] = activate(z) if final and last else z
        if not final:
            signal = trace[f"output{i + 1}"] = activate(z) if activated else z
            if given.masks and masked:
                signal = signal * given.masks[i]
    return trace


def network_loss(given: Problem) -> float:
    """The loss of a problem."""
    outputs = network_trace(given)[f"z{given.layers}"]
    if given.loss == "mean_squared_error":
        return float(np.mean((outputs - given.y) ** 2))
    return cross_entropy_of(outputs, given.y)


def network_gradients(
    given: Problem,
    *,
    slope: bool = True,
    masked: bool = True,
    of_z: bool = True,
    of_output: bool = True,
    order: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The loss and every parameter's gradient, by name. The switches make known mistakes:

    slope=False         the activation's derivative is left out
    masked=False        the masks are not used on the way back
    of_z=False          z and output are those of the layer itself, not of the one before
    of_output=False     z stands in the place of the output
    order               the layers in this order, not from the last to the second
    """
    trace = network_trace(given)
    outputs = trace[f"z{given.layers}"]
    activate, slope_of = SLOPES[given.activation]
    if given.loss == "mean_squared_error":
        grad = 2 * (outputs - given.y) / outputs.size
    else:
        grad = cross_entropy_slopes(outputs, given.y)
    found: dict[int, np.ndarray] = {}

    def layer_back(i: int, grad: np.ndarray) -> np.ndarray:
        signal = given.x if i == 0 else trace[f"output{i}"] * (given.masks[i - 1] if given.masks else 1)
        found[2 * i], found[2 * i + 1] = signal.T @ grad, grad.sum(axis=0)
        back: np.ndarray = grad @ given.parameters[2 * i].T
        return back

    for i in reversed(range(1, given.layers)) if order is None else order:
        grad = layer_back(i, grad)
        if given.masks and masked:
            grad = grad * given.masks[i - 1]
        if slope:
            z = trace[f"z{i}" if of_z else f"z{i + 1}"]
            grad = grad * slope_of(z, activate(z) if of_output else z)
    layer_back(0, grad)
    named = {f"dL/d{'Wb'[k % 2]}{k // 2 + 1}": found[k] for k in range(2 * given.layers)}
    return {"the loss": network_loss(given), **named}


def network_case(rng: np.random.Generator, size: tuple[tuple[int, ...], int, bool]) -> tuple[Problem]:
    """A random problem of a size from NETWORKS."""
    sizes, batch, dropout = size
    return (problem(rng, sizes, batch, dropout),)


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
    # z1 = 5, output 21, off by 1: dL/dz2 = 2, which W2 = 4 takes back to 8.
    ((SMALL,), {"the loss": 1.0, "dL/dW1": [[16.0]], "dL/db1": [8.0], "dL/dW2": [[10.0]], "dL/db2": [2.0]}),
    # z1 = -7: ReLU is closed, output 1, off by -2.
    (
        (replace(SMALL, parameters=[column(-3.0), *SMALL.parameters[1:]], y=column(3.0)),),
        {"the loss": 4.0, "dL/dW1": [[0.0]], "dL/db1": [0.0], "dL/dW2": [[0.0]], "dL/db2": [-4.0]},
    ),
    # Twice the output of z1 = 5 goes on: output 41, off by 1, and the way back is doubled, too.
    (
        (replace(SMALL, y=column(40.0), masks=[column(2.0)]),),
        {"the loss": 1.0, "dL/dW1": [[32.0]], "dL/db1": [16.0], "dL/dW2": [[20.0]], "dL/db2": [2.0]},
    ),
]


def _forwards(given: Problem) -> dict[str, Any] | None:
    """The gradients if the layers are walked from the second to the last; None if their sizes do not allow it."""
    sizes = {each.shape for each in given.parameters[::2]}
    if given.layers < 3 or len(sizes) > 1 or len(next(iter(sizes))) == 0:
        return None
    rows, columns = next(iter(sizes))
    return network_gradients(given, order=range(1, given.layers)) if rows == columns else None


MISTAKES: list[tuple[str, Callable[[Problem], dict[str, Any] | None]]] = [
    (
        "the activation's derivative is left out: between two layers the gradient is multiplied by f'(z)",
        lambda given: network_gradients(given, slope=False) if given.layers > 1 else None,
    ),
    (
        "the layers are walked forwards: backpropagation begins at the last layer and ends at the first",
        _forwards,
    ),
    (
        "the dropout mask is ignored on the way back: what was multiplied by it forwards is multiplied by it backwards",
        lambda given: network_gradients(given, masked=False) if given.masks else None,
    ),
    (
        "the derivative is taken at the wrong layer's z: on the way back, layer i is followed by the activation of "
        "layer i - 1",
        lambda given: (
            network_gradients(given, of_z=False)
            if given.layers > 1 and len({each.shape for each in given.parameters[1::2]}) == 1
            else None
        ),
    ),
    (
        "the activation's backward gets z where the output belongs: the trace is z1, output1, z2, output2, …",
        lambda given: network_gradients(given, of_output=False) if given.layers > 1 else None,
    ),
]


BACKPROPAGATION_MISTAKES = [
    Mistake(text, lambda given, wrong=wrong, name=name: (wrong(given) or {}).get(name), name)
    for text, wrong in MISTAKES
    for name in ("dL/dW1", "dL/dW2", "dL/dW3")
]
BACKPROPAGATION_MISTAKES.append(
    Mistake(
        "the dropout masks are not used on the way forward: hand them to _forward",
        lambda given: network_loss(replace(given, masks=None)) if given.masks else None,
        "the loss",
    )
)


def network_slopes(call: Callable[[Problem], Mapping[str, Any]]) -> Callable[[Tally], None]:
    """The gradient check of a network, with the gradients of all parameters in one row."""
    rng = np.random.default_rng(7)
    checks = [_network_slopes(call, problem(rng, (3, 3, 3, 3), 4, dropout)) for dropout in (False, True)]

    def check(tally: Tally) -> None:
        for each in checks:
            each(tally)

    return check


def _network_slopes(call: Callable[[Problem], Mapping[str, Any]], given: Problem) -> Callable[[Tally], None]:
    def flat(found: Mapping[str, Any] | None) -> np.ndarray | None:
        if found is None:
            return None
        return np.concatenate([np.ravel(value) for name, value in found.items() if name != "the loss"])

    return gradient_check(
        lambda theta: network_loss(given.at(theta)),
        lambda theta: flat(call(given.at(theta))),
        lambda rng: given.flat,
        f"the loss of {given}, by all parameters in a row,",
        mistakes=[Mistake(text, lambda theta, wrong=wrong: flat(wrong(given.at(theta)))) for text, wrong in MISTAKES],
    )


def remark_on_first_layer(tally: Tally, network: Any, run: Callable[[], Any]) -> None:
    """Note that backpropagation computes dL/dx of the first layer, which nothing uses, if it does."""
    first, returned = network.layers[0], []
    backward = first.backward

    def noted(*arguments: Any, **named: Any) -> Any:
        returned.append(backward(*arguments, **named))
        return returned[-1]

    first.backward = noted
    tally.trying("the first layer's way back")
    run()
    tally.holds(len(returned) == 1, "the first layer's backward is called once", got=f"{len(returned)} calls")
    if returned[0] is not None:
        tally.note("the first layer's dL/dx is computed, and nothing needs it: backward(grad, needs_grad_input=False)")


NO_LOSS = "the loss of this batch is to be returned, as a number"


def gradients_by_name(loss: Any, gradients: Sequence[Any]) -> dict[str, Any]:
    """The loss and the gradients of all parameters."""
    if loss is None:
        raise Wrong("_forward_backward: no loss came back", got="None", cause=NO_LOSS)
    return {"the loss": loss, **{f"dL/d{'Wb'[k % 2]}{k // 2 + 1}": each for k, each in enumerate(gradients)}}
