"""Week 17: tools that look inside a network. The right results are computed with NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup import inside
from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Tally, Wrong, unchanged
from groundup.course.checks.derivatives import gradient_check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.cross_entropy import one_hot
from groundup.course.grading.problems.networks import (
    FORWARD_PROBLEM,
    Problem,
    bend,
    bend_back,
    column,
    network_trace,
    problem,
)


def confusion_matrix() -> list[Check]:
    """How often each class is taken for each other one."""
    function = inside.confusion_matrix

    def call(labels: np.ndarray, predictions: np.ndarray, classes: int) -> Any:
        handed = repeated.handed(labels), repeated.handed(predictions)
        counts = function(*handed, classes)
        repeated.returned(counts, handed)
        unchanged(Tally(), (labels, predictions), handed, ("labels", "predictions"))
        if isinstance(counts, np.ndarray) and counts.dtype != np.int64:
            raise Wrong("confusion_matrix: counts are whole numbers", expected="int64", got=str(counts.dtype))
        return counts

    def reference(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
        counts: np.ndarray = one_hot(labels, classes).T @ one_hot(predictions, classes)
        return counts

    def arguments(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, int]:
        count, classes, *kinds = size
        labels, predictions = (rng.integers(0, classes, count).astype(kind) for kind in kinds or ("int64", "int64"))
        return labels, predictions, classes

    once = "each pair counts only once: counts[labels, predictions] += 1 forgets repeated places; np.add.at does not"
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=reference,
            show=lambda labels, predictions, classes: f"confusion_matrix of {len(labels)} samples, {classes} classes",
            hand=[
                ((np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), 3), [[1, 1, 0], [0, 1, 0], [1, 0, 0]]),
                ((np.array([1, 1, 1, 0]), np.array([1, 1, 0, 1]), 2), [[0, 1], [1, 2]]),
                # Class 2 occurs neither as a label nor as a prediction, and has its row and column all the same.
                ((np.array([0, 0]), np.array([1, 0]), 3), [[1, 1, 0], [0, 0, 0], [0, 0, 0]]),
            ],
            arguments=arguments,
            typical=(50, 4),
            sizes=[
                (1, 1),
                (1, 5),
                (7, 3),
                (1000, 10),
                (70_000, 1),
                (900, 20, *UNSIGNED),
                (9, 130, *UNSIGNED),
            ],
            again=[(50, 4), (90, 4), (7, 3), (50, 4), (50, 4)],
            mistakes=[
                Mistake(
                    "transposed: the row is the true label, the column what it was taken for",
                    lambda y, p, n: reference(p, y, n),
                ),
                Mistake(once, lambda y, p, n: np.minimum(reference(y, p, n), 1)),
                Mistake(
                    "the diagonal is missing: what was right is counted, too",
                    lambda y, p, n: reference(y, p, n) * (1 - np.eye(n)),
                ),
                Mistake(
                    "only the diagonal is counted: what was wrong is, too",
                    lambda y, p, n: reference(y, p, n) * np.eye(n),
                ),
            ],
        )
    )


def listed_layers(layers: Any, wanted: Sequence[str], of: str) -> dict[str, Any]:
    """A list with one array for each hidden layer, as a mapping by name."""
    if not isinstance(layers, list):
        raise Wrong(f"{of}: no list came back", expected=f"a list of {len(wanted)}", got=type(layers).__name__)
    if len(layers) != len(wanted):
        cause = ""
        if len(layers) == len(wanted) + 1:
            cause = "the last layer is no hidden one: its output is not asked for here"
        raise Wrong(
            f"{of}: one array for each hidden layer", expected=str(len(wanted)), got=str(len(layers)), cause=cause
        )
    return dict(zip(wanted, layers, strict=True))


def hidden_problem(rng: np.random.Generator, size: tuple[Any, ...]) -> tuple[Problem]:
    """A random network of layer sizes, batch, activation, and a factor of x."""
    sizes, batch, activation, *factor = size
    drawn = problem(rng, sizes, batch, activation=activation)
    return (replace(drawn, x=drawn.x * (factor or [1])[0]),)


UNSIGNED = ("uint8", "uint8")
"""The type of labels that MNIST's own files have."""

HIDDEN: list[tuple[Any, ...]] = [
    ((1, 1, 1), 1, "tanh"),
    ((2, 5, 3), 7, "relu"),
    ((3, 4, 2, 5), 4, "tanh"),
    ((5, 3, 3, 3, 2), 3, "relu"),
    ((3, 4, 5, 19), 5, "softmax"),
    ((3, 4, 2), 4, "leaky_relu"),
    ((3, 4, 2), 4, "sigmoid"),
    ((4, 6, 5, 3), 6, "relu", 1e6),
    ((4, 6, 5, 3), 6, "relu", 1e-9),
]
HIDDEN_AGAIN = [((3, 4, 3, 2), batch, "relu") for batch in (4, 9, 2, 4, 4)]


def hidden_activations() -> list[Check]:
    """The output of every hidden layer."""
    function = inside.hidden_activations

    def outputs_of(case: Problem, **mistake: bool) -> dict[str, np.ndarray]:
        trace = network_trace(case, **mistake)
        return {f"layer {i}": trace[f"output{i}"] for i in range(1, case.layers)}

    def call(case: Problem) -> dict[str, Any]:
        handed, x = [repeated.handed(array) for array in case.parameters], repeated.handed(case.x)
        result = function(handed, case.activation, x)
        repeated.returned(result, [*handed, x])
        unchanged(Tally(), [*case.parameters, case.x], [*handed, x], [*["a parameter"] * len(handed), "x"])
        layers = listed_layers(result, list(outputs_of(case)), f"hidden_activations of {case}")
        none = function(handed[-2:], case.activation, np.zeros((1, len(handed[-2]))))
        if none != []:
            raise Wrong("hidden_activations of a network without a hidden layer", expected="[]", got=str(none)[:100])
        return layers

    mistakes: list[tuple[str, Callable[[Problem], dict[str, np.ndarray]]]] = [
        ("these are the z: the activation comes after each layer", lambda p: outputs_of(p, activated=False)),
        ("the biases are not added", lambda p: outputs_of(p, bias=False)),
    ]
    every_layer_gets_x = Mistake(
        "every layer gets x: it has to get the output of the layer before",
        lambda p: (
            bend(p.activation, p.x @ p.parameters[2] + p.parameters[3])
            if p.x.shape[1] == len(p.parameters[2])
            else None
        ),
        "layer 2",
    )
    two = Problem(
        [
            np.eye(2),
            np.array([0.0, -3.0]),
            np.array([[1.0, -1.0], [2.0, 0.0]]),
            np.array([1.0, 0.0]),
            column(1.0, 1.0),
            np.zeros(1),
        ],
        np.array([[4.0, 5.0], [-1.0, 2.0]]),
        np.zeros(2),
        "relu",
    )
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=outputs_of,
            show=lambda case: f"hidden_activations of {case}",
            hand=[
                ((FORWARD_PROBLEM,), {"layer 1": [[5.0, 0.0], [0.0, 1.0]]}),
                ((two,), {"layer 1": [[4.0, 2.0], [0.0, 0.0]], "layer 2": [[9.0, 0.0], [1.0, 0.0]]}),
            ],
            arguments=hidden_problem,
            typical=((3, 3, 3, 2), 4, "tanh"),
            sizes=HIDDEN,
            again=HIDDEN_AGAIN,
            terms=lambda case: 64,
            scale=lambda case: sum(float(np.abs(z).max()) for z in network_trace(case).values()),
            mistakes=[
                *(
                    Mistake(text, lambda case, wrong=wrong, name=name: wrong(case).get(name), name)
                    for text, wrong in mistakes
                    for name in ("layer 1", "layer 2")
                ),
                every_layer_gets_x,
            ],
        )
    )


def active_shares() -> list[Check]:
    """How often each unit is active."""
    function = inside.active_shares

    def call(activations: np.ndarray) -> Any:
        handed = repeated.handed(activations)
        shares = function(handed)
        repeated.returned(shares, [handed])
        unchanged(Tally(), [activations], [handed], ["activations"])
        return shares

    def arguments(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray]:
        return (
            np.maximum(rng.standard_normal(shape), 0) - 0.5 * rng.integers(0, 2, shape) * (rng.random(shape) < 0.2),
        )

    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=lambda a: (a != 0).sum(axis=0) / len(a),
            show=lambda a: f"active_shares(activations {a.shape})",
            hand=[
                ((np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0]]),), [0.0, 0.5, 1.0]),
                ((np.array([[0.0, -1.0], [0.0, 2.0], [0.5, 0.0], [0.0, -4.0]]),), [0.25, 0.75]),
                ((np.array([[1e-12, 0.0], [-1e-300, 1e300]]),), [1.0, 0.5]),
                # What is not a number is not 0 either, and -0.0 is 0
                ((np.array([[np.nan, -0.0], [0.0, np.inf]]),), [0.5, 0.5]),
            ],
            arguments=arguments,
            typical=(8, 5),
            sizes=[(1, 1), (1, 7), (13, 1), (31, 17), (300, 3)],
            again=[(8, 5), (13, 5), (3, 5), (8, 5), (8, 5)],
            special=[0],
            mistakes=[
                Mistake(
                    "NaN and inf are no zeros: a unit that gives them is active, and something is wrong with it",
                    lambda a: (np.nan_to_num(a, posinf=0.0, neginf=0.0) != 0).mean(axis=0),
                ),
                Mistake(
                    "NaN is no zero: a unit that gives it is active, and something is wrong with it",
                    lambda a: (np.nan_to_num(a) != 0).mean(axis=0),
                ),
                Mistake(
                    "this is a share for each sample: each unit has one, over all samples",
                    lambda a: (a != 0).mean(axis=1),
                ),
                Mistake(
                    "this is how often a unit is 0: where it is not 0, it is active", lambda a: (a == 0).mean(axis=0)
                ),
                Mistake(
                    "these are counts: a share is divided by the number of samples",
                    lambda a: (a != 0).sum(axis=0) * 1.0 if len(a) > 1 else None,
                ),
                Mistake(
                    "a negative output is active, too: count what is not 0, not what is above 0",
                    lambda a: (a > 0).mean(axis=0),
                ),
                Mistake("this is the mean output: how often it is not 0 is asked for", lambda a: a.mean(axis=0)),
                Mistake("this is one share for all units together: each unit has its own", lambda a: (a != 0).mean()),
            ],
        )
    )


def scores_of(case: Problem) -> np.ndarray:
    """The score of each sample's label."""
    outputs = network_trace(case)[f"z{case.layers}"]
    return outputs[np.arange(len(outputs)), case.y]


def saliency_of(case: Problem, *, slope: bool = True, start: np.ndarray | None = None) -> np.ndarray:
    """d score[label] / dx, with known mistakes.

    slope: False leaves the activation's derivative out; start: another gradient of the outputs
    """
    trace = network_trace(case)
    classes = case.parameters[-1].size
    grad = one_hot(case.y, classes) if start is None else start
    for i in reversed(range(case.layers)):
        grad = grad @ case.parameters[2 * i].T
        if i and slope:
            grad = bend_back(case.activation, grad, trace[f"z{i}"])
    return grad


SALIENCY_MISTAKES = [
    Mistake(
        "the activation's derivative is left out: on the way back through a layer the gradient is multiplied by f'(z)",
        lambda p: saliency_of(p, slope=False) if p.layers > 1 else None,
    ),
    Mistake(
        "all classes' scores are added up: only the label's is asked for",
        lambda p: (
            saliency_of(p, start=np.ones((len(p.x), p.parameters[-1].size))) if p.parameters[-1].size > 1 else None
        ),
    ),
    Mistake(
        "the sign is lost: where more ink lowers the score, the value is negative", lambda p: np.abs(saliency_of(p))
    ),
    Mistake(
        "the label of the first sample is taken for all: each row has its own",
        lambda p: saliency_of(replace(p, y=np.full(len(p.y), p.y[0]))),
    ),
    Mistake(
        "this is the gradient of the largest score: that of the given label is asked for",
        lambda p: saliency_of(replace(p, y=network_trace(p)[f"z{p.layers}"].argmax(axis=1))),
    ),
    Mistake(
        "a row of the last weights is taken: a score depends on the label's column of them",
        lambda p: (
            saliency_of(replace(p, parameters=[*p.parameters[:-2], p.parameters[-2].T, p.parameters[-1]]))
            if p.parameters[-2].shape[0] == p.parameters[-2].shape[1]
            else None
        ),
    ),
    Mistake("this is gradient times input: the gradient alone is asked for", lambda p: saliency_of(p) * p.x),
]


def saliency() -> list[Check]:
    """The gradient of a score with respect to the input."""
    function = inside.saliency

    def call(case: Problem) -> Any:
        handed = [repeated.handed(array) for array in case.parameters]
        x, y = repeated.handed(case.x), repeated.handed(case.y.astype("uint8" if len(case.y) % 2 else "int64"))
        result = function(handed, case.activation, x, y)
        repeated.returned(result, [*handed, x, y])
        names = [*["a parameter"] * len(handed), "x", "labels"]
        unchanged(Tally(), [*case.parameters, case.x, case.y], [*handed, x, y], names)
        return result

    rng = np.random.default_rng(8)
    example = problem(rng, (3, 4, 4, 3), 3)
    small = replace(
        FORWARD_PROBLEM,
        parameters=[*FORWARD_PROBLEM.parameters[:2], np.array([[2.0, -1.0], [7.0, 5.0]]), np.zeros(2)],
        x=np.array([[1.0, 2.0], [1.0, 2.0], [-3.0, 1.0]]),
        y=np.array([0, 1, 1]),
    )
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=saliency_of,
            show=lambda case: f"saliency of {case}",
            hand=[
                # Of the first two samples only unit 0 is above 0, weights (1, 2); of the third only unit 1, (-1, 1).
                ((small,), [[2.0, 4.0], [-1.0, -2.0], [-5.0, 5.0]]),
                (
                    (Problem([np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2)], np.ones((2, 2)), np.array([1, 0])),),
                    [[2.0, 4.0], [1.0, 3.0]],
                ),
            ],
            arguments=hidden_problem,
            typical=((3, 3, 3, 3), 4, "tanh"),
            sizes=[((4, 3), 3, "relu"), ((4, 3), 5, "tanh"), *HIDDEN],
            again=HIDDEN_AGAIN,
            terms=lambda case: 64,
            scale=lambda case: 10.0 + float(np.abs(case.flat).max()) ** 2,
            gradient=gradient_check(
                lambda x: float(scores_of(replace(example, x=x)).sum()),
                lambda x: call(replace(example, x=x)),
                lambda rng: example.x,
                f"the labels' scores of {example}",
                mistakes=[
                    replace(mistake, result=lambda x, w=mistake.result: w(replace(example, x=x)))
                    for mistake in SALIENCY_MISTAKES
                ],
            ),
            mistakes=SALIENCY_MISTAKES,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "17.1": confusion_matrix,
    "17.2": hidden_activations,
    "17.3": active_shares,
    "17.4": saliency,
}
