"""Week 2: activations, losses and their gradients on lists of lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.problems.activations import (
    FAR,
    LOG2,
    LOG3,
    RELU_HAND,
    RELU_MISTAKES,
    SHAPES,
    SOFTMAX_HAND,
    SOFTMAX_MISTAKES,
    relu_arguments,
    relu_slopes,
    softmax_arguments,
    softmax_of,
    softmax_scale,
)
from groundup.course.grading.problems.cross_entropy import (
    CROSS_ENTROPY_BACKWARD_HAND,
    CROSS_ENTROPY_BACKWARD_MISTAKES,
    CROSS_ENTROPY_HAND,
    CROSS_ENTROPY_MISTAKES,
    cross_entropy_gradient,
    cross_entropy_of,
    cross_entropy_slopes,
    labelled,
    loss_scale,
    slopes_scale,
)

OVERFLOW = "exp of more than 709 is larger than any float: subtract {} first, which cancels and changes nothing else"

UNDERFLOW = (
    "every exp of a row has rounded to 0: subtract the largest of the row's own numbers, not of the whole matrix, and "
    "not a maximum that starts at 0"
)

LOGARITHM = (
    "a share has rounded to 0, or the exps of a row all have, and the logarithm of 0 is no number: work with z - "
    "max(z), as the docstring does, where max(z) is the largest of the row's own numbers"
)


def relu_backward() -> list[Check]:
    """The derivative of ReLU."""
    call = on_lists(stage().activations.relu_backward, "grad_output", "z", "output")
    return graded(
        Exercise(
            call=call,
            reference=lambda g, z, o: np.where(z > 0, g, 0.0),
            show=lambda g, z, o: f"relu_backward(grad_output, z, output), each {z.shape}",
            hand=RELU_HAND,
            arguments=relu_arguments,
            typical=(4, 5),
            sizes=SHAPES,
            special=(0,),
            gradient=relu_slopes(call),
            mistakes=RELU_MISTAKES,
        )
    )


def sigmoid_of() -> list[Check]:
    """The sigmoid of one number at a time."""
    of_one = on_lists(
        stage().activations.sigmoid_of,
        overflow=(
            "exp of more than 709 is larger than any float: for v below 0, exp(v) / (1 + exp(v)) is the same number"
        ),
    )

    def reference(v: float) -> float:
        e = math.exp(-abs(v))
        return 1.0 / (1.0 + e) if v >= 0 else e / (1.0 + e)

    return graded(
        Exercise(
            call=of_one,
            reference=reference,
            show=lambda v: f"sigmoid_of({v:g})",
            hand=[
                ((0.0,), 0.5),
                ((LOG3,), 0.75),
                ((-LOG3,), 0.25),
                ((-LOG2,), 1 / 3),
                ((1000.0,), 1.0),
                ((-1000.0,), 0.0),
                ((-708.0,), math.exp(-708.0)),
            ],
            arguments=lambda rng, size: (float(size * rng.standard_normal()),),
            typical=3.0,
            sizes=[0.1, 1.0, 10.0, -10.0, 40.0, -40.0, 300.0, FAR, -FAR, 0.0, np.nan, np.inf, -np.inf],
            scale=reference,
            mistakes=[
                Mistake("this is the sigmoid of -v: the exponent's sign", lambda v: 1.0 - reference(v)),
                Mistake(
                    "this is the sigmoid's slope, s (1 - s); wanted is s itself",
                    lambda v: reference(v) * (1 - reference(v)),
                ),
                Mistake("this is tanh, between -1 and 1; the sigmoid lies between 0 and 1", lambda v: math.tanh(v)),
                Mistake(
                    "this is exp(-v): what is missing is 1 / (1 + ...)", lambda v: math.exp(-v) if v > -700 else None
                ),
                Mistake(
                    "this is 1 + exp(-v): what is missing is 1 / ...", lambda v: 1 + math.exp(-v) if v > -700 else None
                ),
            ],
        )
    )


def softmax() -> list[Check]:
    """Softmax of every row."""
    return graded(
        Exercise(
            call=on_lists(
                stage().activations.softmax,
                "z",
                overflow=OVERFLOW.format("the row's maximum"),
                division=UNDERFLOW,
            ),
            reference=softmax_of,
            show=lambda z: f"softmax(z {z.shape})",
            hand=SOFTMAX_HAND,
            arguments=softmax_arguments,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda z: z.shape[1] + 16,
            scale=softmax_scale,
            mistakes=SOFTMAX_MISTAKES,
        )
    )


def pair_of(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random outputs and targets."""
    return rng.standard_normal(shape), rng.standard_normal(shape)


def mean_squared_error_backward() -> list[Check]:
    """The gradient of the mean squared error."""
    call = on_lists(stage().losses.mean_squared_error_backward, "outputs", "targets")
    mistakes = [
        Mistake("the derivative of a square brings a factor of 2", lambda o, t: (o - t) / o.size),
        Mistake(
            "divided by the batch alone: the mean is over all elements, rows times columns",
            lambda o, t: 2 * (o - t) / len(o),
        ),
        Mistake(
            "divided by the columns alone: the mean is over all elements, rows times columns",
            lambda o, t: 2 * (o - t) / o.shape[1],
        ),
        Mistake("forgot the mean: divide by the number of elements", lambda o, t: 2 * (o - t)),
        Mistake(
            "wrong sign: it is output minus target, because above the target a larger output has a larger error",
            lambda o, t: 2 * (t - o) / o.size,
        ),
        Mistake("this is the error itself, squared; wanted is its slope", lambda o, t: (o - t) ** 2 / o.size),
    ]
    _, targets = pair_of(np.random.default_rng(6), (3, 4))
    return graded(
        Exercise(
            call=call,
            reference=lambda o, t: 2 * (o - t) / o.size,
            show=lambda o, t: f"mean_squared_error_backward(outputs {o.shape}, targets)",
            hand=[
                ((np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.0, 0.0], [3.0, 1.0]])), [[0.5, 1.0], [0.0, 2.0]]),
                ((np.array([[7.0]]), np.array([[10.0]])), [[-6.0]]),
                ((np.array([[1e6, -1e6]]), np.array([[0.0, 1e6]])), [[1e6, -2e6]]),
            ],
            arguments=pair_of,
            typical=(4, 3),
            sizes=SHAPES,
            gradient=gradient_check(
                lambda o: float(np.mean((o - targets) ** 2)),
                lambda o: call(o, targets),
                lambda rng: rng.standard_normal((3, 4)),
                "mean_squared_error for outputs (3, 4)",
                mistakes=[
                    replace(mistake, result=lambda o, wrong=mistake.result: wrong(o, targets)) for mistake in mistakes
                ],
            ),
            mistakes=mistakes,
        )
    )


def softmax_cross_entropy() -> list[Check]:
    """Softmax cross-entropy."""
    return graded(
        Exercise(
            call=on_lists(
                stage().losses.softmax_cross_entropy,
                "logits",
                "labels",
                overflow=OVERFLOW.format("the row's maximum"),
                division=UNDERFLOW,
                logarithm=LOGARITHM,
            ),
            infinite=False,  # inf - inf is NaN in another form of the formula
            reference=cross_entropy_of,
            show=lambda z, labels: f"softmax_cross_entropy(logits {z.shape}, labels)",
            hand=CROSS_ENTROPY_HAND,
            arguments=labelled,
            typical=(4, 3),
            sizes=SHAPES,
            terms=lambda z, labels: z.size + 16,
            scale=loss_scale,
            mistakes=CROSS_ENTROPY_MISTAKES,
        )
    )


def softmax_cross_entropy_backward() -> list[Check]:
    """The gradient of softmax cross-entropy."""
    call = on_lists(
        stage().losses.softmax_cross_entropy_backward,
        "logits",
        "labels",
        overflow=OVERFLOW.format("the row's maximum"),
        division=UNDERFLOW,
    )
    return graded(
        Exercise(
            call=call,
            reference=cross_entropy_slopes,
            show=lambda z, labels: f"softmax_cross_entropy_backward(logits {z.shape}, labels)",
            hand=CROSS_ENTROPY_BACKWARD_HAND,
            arguments=labelled,
            typical=(4, 3),
            sizes=SHAPES,
            gradient=cross_entropy_gradient(call),
            terms=lambda z, labels: z.shape[1] + 16,
            scale=slopes_scale,
            mistakes=CROSS_ENTROPY_BACKWARD_MISTAKES,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "2.1": relu_backward,
    "2.2": sigmoid_of,
    "2.3": softmax,
    "2.4": mean_squared_error_backward,
    "2.5": softmax_cross_entropy,
    "2.6": softmax_cross_entropy_backward,
}
