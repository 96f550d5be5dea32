"""Week 3: the dense layer, backpropagation through a network, and gradient descent, on lists of lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.calling.watched_lists import look_ups, most_walks, watched
from groundup.course.grading.problems.activations import FAR, LOG3, SHAPES, softmax_of
from groundup.course.grading.problems.dense import (
    BACKWARD_HAND,
    BACKWARD_MISTAKES,
    DENSE_HAND,
    DENSE_MISTAKES,
    backward_arguments,
    dense_arguments,
    dense_gradients,
    dense_slopes,
)
from groundup.course.grading.problems.matrices import SIZES
from groundup.course.grading.problems.networks import (
    BACKPROPAGATION_HAND,
    BACKPROPAGATION_MISTAKES,
    FORWARD_PROBLEM,
    NETWORKS,
    Problem,
    gradients_by_name,
    network_case,
    network_gradients,
    network_slopes,
    network_trace,
    remark_on_first_layer,
)
from groundup.course.grading.problems.optimizer_steps import (
    SGD_ALL,
    SGD_HAND,
    SGD_SIZES,
    Steps,
    sgd_mistakes,
    sgd_steps,
    state_name,
    steps_case,
)

FORWARD_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    (
        (FORWARD_PROBLEM,),
        {"z1": [[5.0, -2.0], [-1.0, 1.0]], "output1": [[5.0, 0.0], [0.0, 1.0]], "z2": [[11.0], [8.0]]},
    ),
    (
        (replace(FORWARD_PROBLEM, masks=[np.array([[2.0, 2.0], [2.0, 0.0]])]),),
        {"z1": [[5.0, -2.0], [-1.0, 1.0]], "output1": [[5.0, 0.0], [0.0, 1.0]], "z2": [[21.0], [1.0]]},
    ),
]


def traced(trace: Any, given: Problem) -> dict[str, Any]:
    """The trace that `_forward` returned, by name."""
    wanted = [name for i in range(given.layers) for name in (f"z{i + 1}", f"output{i + 1}")][:-1]
    expected = f"a list of {len(wanted)}: {', '.join(wanted)}"
    if not isinstance(trace, list):
        raise Wrong(f"_forward of {given}: no list came back", expected=expected, got=type(trace).__name__)
    if len(trace) != len(wanted):
        cause = "z and its activation for every hidden layer, and of the last layer z alone"
        raise Wrong(
            f"_forward of {given}: the trace is not as long", expected=expected, got=str(len(trace)), cause=cause
        )
    return dict(zip(wanted, trace, strict=True))


FORWARD_MISTAKES = [
    Mistake(
        "the activation is applied after the last layer, too: its raw outputs are wanted, the loss does the rest",
        lambda p, name=name: network_trace(p, last=True).get(name),
        name,
    )
    for name in ("z1", "z2", "z3")
]
FORWARD_MISTAKES += [
    Mistake(
        "the activation is left out between the layers: the next layer gets its output, not z",
        lambda p, name=name: network_trace(p, activated=False).get(name),
        name,
    )
    for name in ("output1", "z2", "z3")
]
FORWARD_MISTAKES += [
    Mistake(
        "the dropout masks are not used: what the next layer gets is output * mask",
        lambda p, name=name: network_trace(p, masked=False).get(name) if p.masks else None,
        name,
    )
    for name in ("z2", "z3")
]
FORWARD_MISTAKES += [
    Mistake(
        "the trace holds the output after dropout: backward needs it as the activation gave it",
        lambda p: network_trace(p)["output1"] * p.masks[0] if p.masks else None,
        "output1",
    ),
    Mistake("output1 is z1 once more: apply the activation", lambda p: network_trace(p)["z1"], "output1"),
    Mistake(
        "every layer gets x: it has to get the output of the layer before",
        lambda p: (
            p.x @ p.parameters[2] + p.parameters[3] if p.layers > 1 and p.x.shape[1] == len(p.parameters[2]) else None
        ),
        "z2",
    ),
]


REMEMBER = "backward will ask what x was: keep it, self._x = x"


def dense_forward() -> list[Check]:
    """Dense.forward: its result, and that x is stored."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Any:
        layer = dense(weights.tolist(), bias.tolist())
        y = on_lists(layer.forward, "x")(x)
        if layer._x is None or np.shape(layer._x) != x.shape or np.any(np.asarray(layer._x) != x):
            raise Wrong("Dense.forward does not remember x", cause=REMEMBER)
        if layer.weights != weights.tolist() or layer.bias != bias.tolist():
            raise Wrong("the layer's weights or bias were changed by forward", cause="forward only reads them")
        return y

    return graded(
        Exercise(
            call=call,
            reference=lambda x, w, b: x @ w + b,
            show=lambda x, w, b: f"Dense.forward(x {x.shape}) for weights {w.shape}",
            hand=DENSE_HAND,
            arguments=dense_arguments,
            typical=(4, 3, 4),
            sizes=SIZES,
            terms=lambda x, w, b: len(w) + 1,
            scale=lambda x, w, b: np.abs(x) @ np.abs(w) + np.abs(b),
            mistakes=DENSE_MISTAKES,
        )
    )


NOT_NEEDED = "no layer needs dL/dx of the first one: return None without computing it where needs_grad_input is False"


STILL_NEEDED = "grad_weights and grad_bias are wanted in any case; only dL/dx may be left out"


def weights_unread(tally: Tally) -> None:
    """Dense.backward with needs_grad_input=False does not read the weights: they are for dL/dx alone."""
    x, weights, grad = backward_arguments(np.random.default_rng(8), (3, 4, 2))
    layer = stage().dense.Dense(weights.tolist(), [0.0, 0.0])
    layer.forward(x.tolist())
    layer.weights = given = watched(weights)
    tally.trying("Dense.backward with needs_grad_input=False")
    layer.backward(grad.tolist(), needs_grad_input=False)
    tally.holds(
        look_ups(given) == 0 and most_walks(given) == 0,
        "backward(…, needs_grad_input=False) computes dL/dx all the same: it reads the weights",
        cause=NOT_NEEDED,
    )


def dense_backward() -> list[Check]:
    """Dense.backward: the three gradients by name, after a second call."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = dense(weights.tolist(), [0.5] * weights.shape[1])
        layer.forward(x.tolist())
        if layer.backward(grad.tolist(), needs_grad_input=False) is not None:
            raise Wrong("backward(…, needs_grad_input=False) returned something", expected="None", cause=NOT_NEEDED)
        for name, of, sums in (("grad_weights", "weights", x.T @ grad), ("grad_bias", "bias", grad.sum(axis=0))):
            if np.any(sums) and not np.any(getattr(layer, name)):
                what = f"backward(…, needs_grad_input=False) has found no gradient of the {of}"
                raise Wrong(what, cause=STILL_NEEDED)
        returned = on_lists(layer.backward, "grad_output")(grad)
        if layer.weights != weights.tolist() or layer.bias != [0.5] * weights.shape[1]:
            cause = "backward only finds the gradients; moving the weights is the optimizer's task"
            raise Wrong("the layer's weights or bias were changed by backward", cause=cause)
        return {"grad_input": returned, "grad_weights": layer.grad_weights, "grad_bias": layer.grad_bias}

    return graded(
        Exercise(
            call=call,
            reference=dense_gradients,
            show=lambda x, w, g: f"Dense.backward(grad_output {g.shape}) for x {x.shape}, weights {w.shape}",
            hand=BACKWARD_HAND,
            arguments=backward_arguments,
            typical=(4, 3, 2),
            sizes=SIZES,
            terms=lambda x, w, g: max(len(x), w.shape[1]) + 16,
            scale=lambda x, w, g: np.abs(x).sum() + np.abs(w).sum() + np.abs(g).sum(),
            gradient=dense_slopes(call),
            way=weights_unread,
            mistakes=BACKWARD_MISTAKES,
        )
    )


def softmax_slopes(grad: np.ndarray, output: np.ndarray) -> np.ndarray:
    """s (g - sum of g s), row by row."""
    slopes: np.ndarray = output * (grad - (grad * output).sum(axis=1, keepdims=True))
    return slopes


def softmax_backward() -> list[Check]:
    """The derivative of softmax."""
    call = on_lists(stage().activations.softmax_backward, "grad_output", "z", "output")
    grad = np.random.default_rng(6).standard_normal((3, 4))
    mistakes = [
        Mistake(
            "this is the sigmoid's rule, s (1 - s): in softmax, every output of a row depends on every z of the row",
            lambda g, z, s: g * s * (1 - s),
        ),
        Mistake("the factor s_i in front is missing", lambda g, z, s: g - (g * s).sum(axis=1, keepdims=True)),
        Mistake("the sum over the row is not subtracted", lambda g, z, s: g * s),
        Mistake(
            "the sum is over the batch: it runs along the row, over the classes of one sample",
            lambda g, z, s: s * (g - (g * s).sum(axis=0)),
        ),
        Mistake(
            "the sum is of g alone: each g_j counts with its share s_j",
            lambda g, z, s: s * (g - g.sum(axis=1, keepdims=True)),
        ),
        Mistake("the wrong order: g minus the sum, not the sum minus g", lambda g, z, s: -softmax_slopes(g, s)),
        Mistake(
            "the sum is of another row: it belongs to one row, and starts at 0 in each",
            lambda g, z, s: s * (g - np.cumsum((g * s).sum(axis=1))[:, np.newaxis]),
        ),
    ]

    def arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
        z = rng.standard_normal(shape)
        return rng.standard_normal(shape), z, softmax_of(z)

    half, quarters = np.zeros((1, 2)), np.array([[0.0, LOG3], [LOG3, 0.0]])
    return graded(
        Exercise(
            call=call,
            reference=lambda g, z, s: softmax_slopes(g, s),
            show=lambda g, z, s: f"softmax_backward(grad_output, z, output), each {z.shape}",
            hand=[
                ((np.array([[1.0, 0.0]]), half, np.array([[0.5, 0.5]])), [[0.25, -0.25]]),
                (
                    (np.array([[4.0, 8.0], [4.0, 8.0]]), quarters, np.array([[0.25, 0.75], [0.75, 0.25]])),
                    [[-0.75, 0.75], [-0.75, 0.75]],
                ),
                ((np.array([[3.0, 5.0]]), np.array([[FAR, -FAR]]), np.array([[1.0, 0.0]])), [[0.0, 0.0]]),
            ],
            arguments=arguments,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda g, z, s: z.shape[1] + 16,
            scale=lambda g, z, s: np.abs(g).max(),
            gradient=gradient_check(
                lambda z: float(np.sum(softmax_of(z) * grad)),
                lambda z: call(grad, z, softmax_of(z)),
                lambda rng: rng.standard_normal((3, 4)),
                "sum(softmax(z) * grad_output) for z (3, 4)",
                mistakes=[
                    replace(mistake, result=lambda z, wrong=mistake.result: wrong(grad, z, softmax_of(z)))
                    for mistake in mistakes
                ],
            ),
            mistakes=mistakes,
        )
    )


def network_forward() -> list[Check]:
    """Network._forward: the whole trace."""
    network = stage().network.Network

    def call(given: Problem) -> dict[str, Any]:
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        masks = None if given.masks is None else [mask.tolist() for mask in given.masks]
        return traced(on_lists(made._forward, "x", "dropout_masks")(given.x, masks), given)

    return graded(
        Exercise(
            call=call,
            reference=network_trace,
            show=lambda given: f"_forward of {given}",
            hand=FORWARD_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 2), 4, True),
            sizes=NETWORKS,
            terms=lambda given: 64,
            scale=lambda given: sum(float(np.abs(z).max()) for z in network_trace(given).values()) + 1,
            mistakes=FORWARD_MISTAKES,
        )
    )


def network_forward_backward() -> list[Check]:
    """Network._forward_backward: the loss and all gradients."""
    network = stage().network.Network

    def way(tally: Tally) -> None:
        (given,) = network_case(np.random.default_rng(9), ((3, 2, 2), 4, False))
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        remark_on_first_layer(tally, made, lambda: made._forward_backward(given.x.tolist(), given.y.tolist(), None))

    def call(given: Problem) -> dict[str, Any]:
        made = network.from_parameters(given.parameters, given.activation, given.loss, "float64")
        masks = None if given.masks is None else [mask.tolist() for mask in given.masks]
        loss = on_lists(made._forward_backward, "x", "y", "dropout_masks")(given.x, given.y, masks)
        if any(np.any(np.asarray(new) != old) for new, old in zip(made.parameters, given.parameters, strict=True)):
            cause = "backpropagation only finds the gradients; moving the weights is the optimizer's task"
            raise Wrong("the network's parameters were changed by _forward_backward", cause=cause)
        return gradients_by_name(loss, made._gradients())

    return graded(
        Exercise(
            call=call,
            reference=network_gradients,
            show=lambda given: f"_forward_backward of {given}",
            hand=BACKPROPAGATION_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 3), 4, True),
            sizes=NETWORKS,
            terms=lambda given: 256,
            scale=lambda given: 10.0 + float(np.abs(given.flat).max()) ** 2,
            gradient=network_slopes(call),
            way=way,
            mistakes=BACKPROPAGATION_MISTAKES,
        )
    )


NOT_IN_PLACE = (
    "nothing has changed: the numbers have to change inside the lists that are given, p[i] -= …; a new list is lost"
)


def sgd_step() -> list[Check]:
    """SGD.step, on lists that must change in place."""
    sgd = stage().optimizers.SGD

    def call(given: Steps) -> dict[str, Any]:
        weights, bias = given.weights.tolist(), given.bias.tolist()
        optimizer = sgd(given.rates[0], **given.settings)
        for gradients, rate in zip(given.gradients, given.rates, strict=True):
            optimizer.learning_rate = rate
            on_lists(lambda g, h: optimizer.step([weights, bias], [g, h]), "the gradient", "the gradient")(*gradients)
        after = {"weights": weights, "bias": bias}
        if given.settings.get("momentum"):
            after[state_name("velocity", "weights")], after[state_name("velocity", "bias")] = optimizer.state()[
                "buffers"
            ]["velocity"]
        return after

    return graded(
        Exercise(
            call=call,
            reference=sgd_steps,
            show=lambda given: f"SGD.step ({given})",
            hand=SGD_HAND,
            arguments=steps_case,
            typical=((3, 2), SGD_ALL),
            sizes=SGD_SIZES,
            scale=lambda given: 10.0,
            mistakes=sgd_mistakes(NOT_IN_PLACE),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "3.1": dense_forward,
    "3.2": dense_backward,
    "3.3": softmax_backward,
    "3.4": network_forward,
    "3.5": network_forward_backward,
    "3.6": sgd_step,
}
