"""Week 3: the dense layer, and backpropagation through a network, on lists of lists."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import equal, handed
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.calling.watched_lists import look_ups, most_walks, watched
from groundup.course.grading.problems.activations import FAR, LOG3, SHAPES, softmax_of
from groundup.course.grading.problems.dense import (
    AGAIN,
    BACKWARD_HAND,
    BACKWARD_MISTAKES,
    DENSE_HAND,
    DENSE_MISTAKES,
    another_layer,
    backward_arguments,
    dense_arguments,
    dense_gradients,
    dense_slopes,
    first_layers_backward,
    gradient_scales,
    layer_of,
    weights_unread,
)
from groundup.course.grading.problems.matrices import SIZES
from groundup.course.grading.problems.networks import (
    BATCHES,
    FORWARD_PROBLEM,
    NETWORKS,
    SMALL,
    Problem,
    backward_exercise,
    backward_of_first,
    bend,
    by_name,
    column,
    loss_slopes,
    network_case,
    network_gradients,
    network_loss,
    network_trace,
    parameters_by_name,
)
from shared.architectures import Architecture
from shared.contract import load_stage
from shared.layers import Activate, BatchNorm, Dense, Dropout, Residual

FORWARD_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    (
        (FORWARD_PROBLEM,),
        {"z1": [[5.0, -2.0], [-1.0, 1.0]], "output1": [[5.0, 0.0], [0.0, 1.0]], "z2": [[11.0], [8.0]]},
    ),
    (
        (replace(FORWARD_PROBLEM, masks=[np.array([[2.0, 2.0], [2.0, 0.0]])]),),
        {
            "z1": [[5.0, -2.0], [-1.0, 1.0]],
            "output1": [[5.0, 0.0], [0.0, 1.0]],
            "dropped1": [[10.0, 0.0], [0.0, 0.0]],
            "z2": [[21.0], [1.0]],
        },
    ),
]


def traced(outputs: Any, case: Problem) -> dict[str, Any]:
    """The outputs that `forward` returned, by name."""
    wanted = list(network_trace(case))
    expected = f"a list of {len(wanted)}: {', '.join(wanted)}"
    if not isinstance(outputs, list):
        raise Wrong(f"forward of {case}: no list came back", expected=expected, got=type(outputs).__name__)
    if len(outputs) != len(wanted):
        cause = "the output of every layer is wanted, those of the activations, too"
        what = f"forward of {case}: the list is not as long"
        raise Wrong(what, expected=expected, got=str(len(outputs)), cause=cause)
    return dict(zip(wanted, outputs, strict=True))


GOES_IN = "this is what goes into the layer: what comes out of it is wanted"

FORWARD_MISTAKES = [
    Mistake(
        "the dropout masks are not used: a Dropout layer's forward takes the next of them",
        lambda p: network_trace(p, masked=False)["dropped1"] if p.masks else None,
        "dropped1",
    ),
    Mistake(GOES_IN, lambda p: p.x, "z1"),
    Mistake(GOES_IN, lambda p: network_trace(p).get("output1"), "z2"),
    Mistake(
        "every layer gets x: it has to get the output of the layer before",
        lambda p: bend(p.activation, p.x),
        "output1",
    ),
]


REMEMBER = "backward will ask what x was: keep it, self._x = x"


def dense_forward() -> list[Check]:
    """Dense.forward: its result, and that x is stored."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Any:
        layer = layer_of(dense, weights, bias, np.ndarray.tolist)
        y = on_lists(layer.forward, "x")(x)
        another_layer(dense, layer, (-x).tolist())
        if layer._x is None or not equal(layer._x, x.tolist()):
            raise Wrong("Dense.forward does not remember x", cause=REMEMBER)
        if not equal(layer.weights, weights.tolist()) or not equal(layer.bias, bias.tolist()):
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
            again=AGAIN,
            terms=lambda x, w, b: len(w) + 1,
            scale=lambda x, w, b: np.abs(x) @ np.abs(w) + np.abs(b),
            mistakes=DENSE_MISTAKES,
        )
    )


def first_layer(tally: Tally) -> None:
    """Dense.backward with needs_grad_input=False does not read the weights: they are for dL/dx alone."""
    x, weights, grad = backward_arguments(np.random.default_rng(8), (3, 4, 2))
    layer = stage().dense.Dense(weights.tolist(), [0.0, 0.0])
    layer.forward(x.tolist())
    layer.weights = given = watched(weights)
    tally.trying("Dense.backward with needs_grad_input=False")
    layer.backward(grad.tolist(), needs_grad_input=False)
    weights_unread(tally, look_ups(given) > 0 or most_walks(given) > 0)


def dense_backward() -> list[Check]:
    """Dense.backward: the three gradients by name, after a second call."""
    dense = stage().dense.Dense

    def call(x: np.ndarray, weights: np.ndarray, grad: np.ndarray) -> dict[str, Any]:
        layer = layer_of(dense, weights, np.full(weights.shape[1], 0.5), np.ndarray.tolist)
        layer.forward(handed(x, np.ndarray.tolist))
        other = another_layer(dense, layer, (-x).tolist())
        returned = layer.backward(grad.tolist(), needs_grad_input=False)
        right = {"weights": x.T @ grad, "bias": grad.sum(axis=0)}
        missing = [of for of, sums in right.items() if np.any(sums) and not np.any(getattr(layer, f"grad_{of}"))]
        first_layers_backward(returned, missing)
        returned = on_lists(layer.backward, "grad_output")(grad)
        if not equal(layer.weights, weights.tolist()) or not equal(layer.bias, [0.5] * weights.shape[1]):
            cause = "backward only finds the gradients; moving the weights is the optimizer's task"
            raise Wrong("the layer's weights or bias were changed by backward", cause=cause)
        other.backward((2 * grad).tolist())
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
            again=AGAIN,
            terms=lambda x, w, g: max(len(x), w.shape[1]) + 16,
            scale=gradient_scales,
            gradient=dense_slopes(call),
            way=first_layer,
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
            special=(0, 2),
            infinite=False,
            terms=lambda g, z, s: z.shape[1] + 16,
            scale=lambda g, z, s: np.nanmax(np.abs(g)) * max(1.0, np.nanmax(np.abs(s))) ** 2,
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


OTHER_LAYERS = Architecture(
    (3,),
    (Dense(4), BatchNorm(), Dropout(0.5), Residual((Dense(4), BatchNorm(), Activate("tanh"), Dropout(0.5))), Dense(2)),
)

HANDED_ON = (
    "BatchNorm's forward takes training, Dropout's a mask or None, and Residual's takes training and masks, "
    "because it has layers inside"
)


def network_forward() -> list[Check]:
    """forward: the output of every layer."""
    network = stage().network

    def call(case: Problem) -> dict[str, Any]:
        layers = case.network(stage()).layers

        def forward(x: Any, masks: Any) -> Any:
            return network.forward(layers, x, False, None if masks is None else iter(masks))

        masks = None if case.masks is None else [mask.tolist() for mask in case.masks]
        try:
            return traced(on_lists(forward, "x", "masks")(case.x, masks), case)
        except StopIteration:
            cause = "next(masks) is for a Dropout layer, and for no other"
            raise Wrong(f"forward of {case}: there are no more masks", cause=cause) from None

    def other_layers(tally: Tally) -> None:
        rng = np.random.default_rng(10)
        mine, right = (floor.network.Network(OTHER_LAYERS, dtype="float64") for floor in (stage(), load_stage("numpy")))
        for masks in ([2.0 * rng.integers(0, 2, (5, 4)) for _ in range(2)], None):
            x, training = rng.standard_normal((5, 3)), masks is not None
            case = f"forward with training={training} and masks" if training else "forward without training and masks"
            tally.trying(case)
            masks_left = iter([mask.tolist() for mask in masks]) if masks else None
            outputs = network.forward(mine.layers, x.tolist(), training, masks_left)
            for layer, got, expected in zip(mine.layers, outputs, right.outputs(x, masks, training), strict=True):
                sentence = f"{case}: the output of the {type(layer).__name__} is wrong"
                tally.holds(np.allclose(got, expected), sentence, cause=HANDED_ON)

    return graded(
        Exercise(
            call=call,
            reference=network_trace,
            show=lambda case: f"forward of {case}",
            hand=FORWARD_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 2), 4, True),
            sizes=NETWORKS,
            again=BATCHES,
            terms=lambda case: 64,
            scale=lambda case: sum(float(np.abs(z).max()) for z in network_trace(case).values()) + 1,
            mistakes=FORWARD_MISTAKES,
            way=other_layers,
        )
    )


def network_backward() -> list[Check]:
    """backward: dL/dx and all gradients."""

    def call(case: Problem) -> dict[str, Any]:
        made = case.network(stage())
        outputs = made._forward(case.x.tolist(), case.masks and [mask.tolist() for mask in case.masks], True)[-1]
        grad = loss_slopes(case, np.array(outputs))
        of_x = on_lists(lambda grad: stage().network.backward(made.layers, grad), "grad")(grad)
        unmoved("backward", made.parameters, case)
        return by_name(made.layer_gradients, of_x)

    return graded(backward_exercise(call))


def unmoved(function: str, parameters: Any, case: Problem) -> None:
    """Raise Wrong if the network's parameters are not the given ones any more."""
    if any(np.any(np.asarray(new) != old) for new, old in zip(parameters, case.parameters, strict=True)):
        cause = "this only finds the gradients; moving the weights is the optimizer's task"
        raise Wrong(f"the network's parameters were changed by {function}", cause=cause)


class Moving:
    """In the place of an optimizer: it notes the gradients that it gets, and adds 1 to every bias of the last layer."""

    def __init__(self) -> None:
        self.gradients: list[Any] = []

    def step(self, parameters: Any, gradients: Any) -> None:
        """Note the gradients, and add 1 to the last bias."""
        self.gradients.append(copy.deepcopy(gradients))
        parameters[-1][:] = [b + 1.0 for b in parameters[-1]]


STEP_MISTAKES = [
    Mistake(
        "the dropout masks are not used on the way forward: hand them to _forward",
        lambda given: network_loss(replace(given, masks=None)) if given.masks else None,
        "the loss",
    ),
    Mistake(
        "this is the loss after the step: it is computed before the optimizer moves the parameters",
        lambda given: network_loss(replace(given, parameters=[*given.parameters[:-1], given.parameters[-1] + 1.0])),
        "the loss",
    ),
]

STEP_HAND: list[tuple[tuple[Problem], dict[str, Any]]] = [
    ((SMALL,), {"the loss": 1.0, "dL/dW1": [[16.0]], "dL/db1": [8.0], "dL/dW2": [[10.0]], "dL/db2": [2.0]}),
    (
        (replace(SMALL, y=column(40.0), masks=[column(2.0)]),),
        {"the loss": 1.0, "dL/dW1": [[32.0]], "dL/db1": [16.0], "dL/dW2": [[20.0]], "dL/db2": [2.0]},
    ),
]


def network_step() -> list[Check]:
    """Network._step: the loss, and the gradients that the optimizer gets."""

    def call(case: Problem) -> dict[str, Any]:
        network, optimizer = case.network(stage()), Moving()
        masks = case.masks and [mask.tolist() for mask in case.masks]
        network._step(case.x.tolist(), case.y.tolist(), None, masks)
        unmoved("_step without an optimizer", network.parameters, case)
        step = on_lists(lambda x, y, masks: network._step(x, y, optimizer, masks), "x", "y", "masks")
        loss = step(case.x, case.y, masks)
        if loss is None:
            raise Wrong("_step: no loss came back", got="None", cause="the loss of this batch is to be returned")
        if len(optimizer.gradients) != 1:
            cause = "optimizer.step(self.parameters, self.layer_gradients), once, after the way back"
            raise Wrong(f"_step calls the optimizer's step {len(optimizer.gradients)} times, and not once", cause=cause)
        if not equal(network.parameters[-1], (case.parameters[-1] + 1.0).tolist()):
            sentence = "what the optimizer moves are not this network's parameters"
            raise Wrong(sentence, cause="optimizer.step(self.parameters, …): in every step those of the network itself")
        return {"the loss": loss, **parameters_by_name(optimizer.gradients[0])}

    def reference(case: Problem) -> dict[str, Any]:
        slopes = network_gradients(case)
        return {"the loss": network_loss(case), **{name: slope for name, slope in slopes.items() if name != "dL/dx"}}

    def way(tally: Tally) -> None:
        (case,) = network_case(np.random.default_rng(9), ((3, 2, 2), 4, False))
        network = case.network(stage())
        tally.trying("the first layer's way back")
        returned = backward_of_first(network, lambda: network._step(case.x.tolist(), case.y.tolist(), None, None))
        tally.holds(len(returned) == 1, "the first layer's backward is called once", got=f"{len(returned)} calls")
        if returned[0] is not None:
            tally.note(
                "the first layer's dL/dx is computed, and nothing needs it: backward(grad, needs_grad_input=False)"
            )
        normalising = stage().network.Network(Architecture((3,), (BatchNorm(), Dense(2))))
        tally.trying("a step of a network that begins with a batch normalisation")
        normalising._step(case.x.tolist(), case.y.tolist(), None, None)
        means = normalising.running_statistics[0]
        cause = "this step is training: hand training=True to _forward"
        tally.holds(any(means), "the batch normalisation was not in training: its running mean is still 0", cause=cause)

    return graded(
        Exercise(
            call=call,
            reference=reference,
            show=lambda case: f"_step of {case}",
            hand=STEP_HAND,
            arguments=network_case,
            typical=((3, 3, 3, 3), 4, True),
            sizes=NETWORKS,
            again=BATCHES,
            terms=lambda case: 256,
            scale=lambda case: 10.0 + float(np.abs(case.flat).max()) ** 2,
            way=way,
            mistakes=STEP_MISTAKES,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "3.1": dense_forward,
    "3.2": dense_backward,
    "3.3": softmax_backward,
    "3.4": network_forward,
    "3.5": network_backward,
    "3.7": network_step,
}
