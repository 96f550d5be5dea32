"""Phase 6: the tools that look into a network, on NumPy arrays. What is right is computed with NumPy in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from groundup import inside, live
from groundup.course.checks import STEP, Check, Exercise, Tally, Wrong, checks_of, gradient_check, unchanged
from groundup.course.grading.layers import one_hot
from groundup.course.grading.networks import FORWARD_PROBLEM, SLOPES, Problem, column, network_trace, problem
from groundup.course.likely import Guess
from shared.checks import gradients
from shared.checks.tolerance import tolerance

# -------- week 17: looking inside the network --------


def confusion_matrix() -> list[Check]:
    """Which class is taken for which."""
    function = inside.confusion_matrix

    def call(labels: np.ndarray, predictions: np.ndarray, classes: int) -> Any:
        before = labels.copy(), predictions.copy()
        counts = function(labels, predictions, classes)
        unchanged(Tally(), before, (labels, predictions), ("labels", "predictions"))
        if isinstance(counts, np.ndarray) and counts.dtype.kind not in "iu":
            raise Wrong("confusion_matrix: counts are whole numbers", expected="int64", got=str(counts.dtype))
        return counts

    def reference(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
        counts: np.ndarray = one_hot(labels, classes).T @ one_hot(predictions, classes)
        return counts

    def arguments(rng: np.random.Generator, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, int]:
        count, classes = size
        return rng.integers(0, classes, count), rng.integers(0, classes, count), classes

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
            ],
            arguments=arguments,
            typical=(50, 4),
            sizes=[(1, 1), (1, 5), (7, 3), (1000, 10)],
            guesses=[
                Guess(
                    "transposed: the row is the true label, the column what it was taken for",
                    lambda y, p, n: reference(p, y, n),
                ),
                Guess(once, lambda y, p, n: np.minimum(reference(y, p, n), 1)),
                Guess(
                    "the diagonal is missing: what was right is counted, too",
                    lambda y, p, n: reference(y, p, n) * (1 - np.eye(n)),
                ),
                Guess(
                    "only the diagonal is counted: what was wrong is, too",
                    lambda y, p, n: reference(y, p, n) * np.eye(n),
                ),
            ],
        )
    )


def listed_layers(found: Any, wanted: Sequence[str], of: str) -> dict[str, Any]:
    """A list with one array for each hidden layer, by name."""
    if not isinstance(found, list):
        raise Wrong(f"{of}: no list came back", expected=f"a list of {len(wanted)}", got=type(found).__name__)
    if len(found) != len(wanted):
        likely = ""
        if len(found) == len(wanted) + 1:
            likely = "the last layer is no hidden one: its output is not asked for here"
        raise Wrong(
            f"{of}: one array for each hidden layer", expected=str(len(wanted)), got=str(len(found)), likely=likely
        )
    return dict(zip(wanted, found, strict=True))


def hidden_problem(rng: np.random.Generator, size: tuple[tuple[int, ...], int, str]) -> tuple[Problem]:
    """A random network of layer sizes, batch and activation."""
    sizes, batch, activation = size
    return (problem(rng, sizes, batch, activation=activation),)


HIDDEN: list[tuple[tuple[int, ...], int, str]] = [
    ((1, 1, 1), 1, "tanh"),
    ((2, 5, 3), 7, "relu"),
    ((3, 4, 2, 5), 4, "tanh"),
    ((5, 3, 3, 3, 2), 3, "relu"),
]


def hidden_activations() -> list[Check]:
    """The output of every hidden layer."""
    function = inside.hidden_activations

    def outputs_of(given: Problem, **mistake: bool) -> dict[str, np.ndarray]:
        trace = network_trace(given, **mistake)
        return {f"layer {i}": trace[f"output{i}"] for i in range(1, given.layers)}

    def call(given: Problem) -> dict[str, Any]:
        handed, x = [each.copy() for each in given.parameters], given.x.copy()
        found = function(handed, given.activation, x)
        unchanged(Tally(), [*given.parameters, given.x], [*handed, x], [*["a parameter"] * len(handed), "x"])
        layers = listed_layers(found, list(outputs_of(given)), f"hidden_activations of {given}")
        none = function(handed[-2:], given.activation, np.zeros((1, len(handed[-2]))))
        if none != []:
            raise Wrong("hidden_activations of a network without a hidden layer", expected="[]", got=str(none)[:100])
        return layers

    mistakes: list[tuple[str, Callable[[Problem], dict[str, np.ndarray]]]] = [
        ("these are the z: the activation comes after each layer", lambda p: outputs_of(p, activated=False)),
        ("the biases are not added", lambda p: outputs_of(p, bias=False)),
    ]
    every_layer_gets_x = Guess(
        "every layer gets x: it has to get the output of the layer before",
        lambda p: (
            SLOPES[p.activation][0](p.x @ p.parameters[2] + p.parameters[3])
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
            show=lambda given: f"hidden_activations of {given}",
            hand=[
                ((FORWARD_PROBLEM,), {"layer 1": [[5.0, 0.0], [0.0, 1.0]]}),
                ((two,), {"layer 1": [[4.0, 2.0], [0.0, 0.0]], "layer 2": [[9.0, 0.0], [1.0, 0.0]]}),
            ],
            arguments=hidden_problem,
            typical=((3, 3, 3, 2), 4, "tanh"),
            sizes=HIDDEN,
            terms=lambda given: 64,
            scale=lambda given: 1 + sum(float(np.abs(z).max()) for z in network_trace(given).values()),
            guesses=[
                *(
                    Guess(text, lambda given, wrong=wrong, name=name: wrong(given).get(name), name)
                    for text, wrong in mistakes
                    for name in ("layer 1", "layer 2")
                ),
                every_layer_gets_x,
            ],
        )
    )


def active_shares() -> list[Check]:
    """How often each unit says anything."""
    function = inside.active_shares

    def call(activations: np.ndarray) -> Any:
        before = activations.copy()
        shares = function(activations)
        unchanged(Tally(), [before], [activations], ["activations"])
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
            ],
            arguments=arguments,
            typical=(8, 5),
            sizes=[(1, 1), (1, 7), (13, 1), (31, 17)],
            guesses=[
                Guess(
                    "this is a share for each sample: each unit has one, over all samples",
                    lambda a: (a != 0).mean(axis=1),
                ),
                Guess(
                    "these are shares of silence: where a unit is not 0, it is active", lambda a: (a == 0).mean(axis=0)
                ),
                Guess(
                    "these are counts: a share is divided by the number of samples",
                    lambda a: (a != 0).sum(axis=0) * 1.0 if len(a) > 1 else None,
                ),
                Guess(
                    "a negative output says something, too: not 0, rather than above 0", lambda a: (a > 0).mean(axis=0)
                ),
                Guess("this is the mean output: asked is how often it is not 0", lambda a: a.mean(axis=0)),
                Guess("this is one share for all units together: each unit has its own", lambda a: (a != 0).mean()),
            ],
        )
    )


def scores_of(given: Problem) -> np.ndarray:
    """The score of each sample's label."""
    outputs = network_trace(given)[f"z{given.layers}"]
    return outputs[np.arange(len(outputs)), given.y]


def saliency_of(given: Problem, *, slope: bool = True, start: np.ndarray | None = None) -> np.ndarray:
    """d score[label] / dx. slope: False for leaving out f'; start: another gradient of the outputs to begin with."""
    trace = network_trace(given)
    activate, slope_of = SLOPES[given.activation]
    classes = given.parameters[-1].size
    grad = one_hot(given.y, classes) if start is None else start
    for i in reversed(range(given.layers)):
        grad = grad @ given.parameters[2 * i].T
        if i and slope:
            grad = grad * slope_of(trace[f"z{i}"], activate(trace[f"z{i}"]))
    return grad


SALIENCY_GUESSES = [
    Guess(
        "the activation's derivative is left out: on the way back through a layer the gradient is multiplied by f'(z)",
        lambda p: saliency_of(p, slope=False) if p.layers > 1 else None,
    ),
    Guess(
        "all classes' scores are added up: asked is the label's alone",
        lambda p: (
            saliency_of(p, start=np.ones((len(p.x), p.parameters[-1].size))) if p.parameters[-1].size > 1 else None
        ),
    ),
    Guess("the sign is lost: where more ink lowers the score, the value is negative", lambda p: np.abs(saliency_of(p))),
    Guess(
        "the label of the first sample is taken for all: each row has its own",
        lambda p: saliency_of(replace(p, y=np.full(len(p.y), p.y[0]))),
    ),
    Guess(
        "this is the gradient of the largest score: asked is that of the label given",
        lambda p: saliency_of(replace(p, y=network_trace(p)[f"z{p.layers}"].argmax(axis=1))),
    ),
    Guess(
        "a row of the last weights is taken: a score hangs on the label's column of them",
        lambda p: (
            saliency_of(replace(p, parameters=[*p.parameters[:-2], p.parameters[-2].T, p.parameters[-1]]))
            if p.parameters[-2].shape[0] == p.parameters[-2].shape[1]
            else None
        ),
    ),
    Guess("this is gradient times input; asked is the gradient", lambda p: saliency_of(p) * p.x),
]


def saliency() -> list[Check]:
    """The gradient of a score with respect to the input."""
    function = inside.saliency

    def call(given: Problem) -> Any:
        handed, x, y = [each.copy() for each in given.parameters], given.x.copy(), given.y.copy()
        found = function(handed, given.activation, x, y)
        names = [*["a parameter"] * len(handed), "x", "labels"]
        unchanged(Tally(), [*given.parameters, given.x, given.y], [*handed, x, y], names)
        return found

    rng = np.random.default_rng(8)
    given = problem(rng, (3, 4, 4, 3), 3)
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
            show=lambda given: f"saliency of {given}",
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
            sizes=[((4, 3), 3, "relu"), *HIDDEN],
            terms=lambda given: 64,
            scale=lambda given: 10.0 + float(np.abs(given.flat).max()) ** 2,
            gradient=gradient_check(
                lambda x: float(scores_of(replace(given, x=x)).sum()),
                lambda x: call(replace(given, x=x)),
                lambda rng: given.x,
                f"the labels' scores of {given}",
                guesses=[
                    replace(each, wrong=lambda x, w=each.wrong: w(replace(given, x=x))) for each in SALIENCY_GUESSES
                ],
            ),
            guesses=SALIENCY_GUESSES,
        )
    )


# -------- week 18: a live view, and gradient checking --------


BLOCKS = "▁▂▃▄▅▆▇█"


def line_of(
    values: Sequence[float],
    width: int,
    *,
    rounded: bool = True,
    averaged: bool = True,
    whole: bool = False,
    from_zero: bool = False,
    upwards: bool = True,
    levels: int = 7,
) -> str:
    """A sparkline. The switches make its mistakes: heights cut off, not rounded, groups taken whole or not at all, …"""
    count = min(width, len(values))
    ends = [len(values) // count * i + min(i, len(values) % count) for i in range(count + 1)] if count else [0]
    means: list[float | None] = []
    for begin, end in pairwise(ends):
        group = [v for v in values[begin:end] if math.isfinite(v)]
        group = [] if whole and len(group) < end - begin else group
        means.append((sum(group) / len(group) if averaged else group[0]) if group else None)
    known = [mean for mean in means if mean is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    low = 0.0 if from_zero else low
    line = ""
    for mean in means:
        if mean is None:
            line += " "
            continue
        height = levels * (mean - low) / (high - low) if high > low else 0.0
        height = max(0.0, min(7.0, height))
        level = round(height) if rounded else math.floor(height)
        line += BLOCKS[level if upwards else 7 - level]
    return line


SPARKLINE_MISTAKES: list[tuple[str, Callable[..., str]]] = [
    (
        "one NaN or infinite value takes its whole group with it: leave it out, and average the others",
        lambda values, width: line_of(values, width, whole=True),
    ),
    (
        "round to the nearest block; here it is rounded down",
        lambda values, width: line_of(values, width, rounded=False),
    ),
    (
        "one value of each group is taken: the group's mean is wanted",
        lambda values, width: line_of(values, width, averaged=False),
    ),
    (
        "the smallest shown value is the lowest block, not 0",
        lambda values, width: line_of(values, width, from_zero=True),
    ),
    ("upside down: the largest is the full block", lambda values, width: line_of(values, width, upwards=False)),
    (
        "only the last values are shown: all are, averaged in groups",
        lambda values, width: line_of(values[-width:], width),
    ),
    (
        "only the first values are shown: all are, averaged in groups",
        lambda values, width: line_of(values[:width], width),
    ),
    ("eight blocks have seven steps between them: 7 times the height", lambda v, width: line_of(v, width, levels=8)),
    (
        "NaN is left out of the series: it keeps its place, as a space",
        lambda values, width: line_of([v for v in values if math.isfinite(v)], width),
    ),
]


def sparkline() -> list[Check]:
    """A series as a line of blocks."""
    function = live.sparkline
    nan, inf = math.nan, math.inf

    def one(tally: Tally, values: list[float], width: int, expected: str) -> None:
        case = f"sparkline of {str(values) if len(values) < 12 else f'{len(values)} values'}, width {width}"
        tally.trying(case)
        try:
            got = function(list(values), width)
        except (ValueError, OverflowError) as error:
            if not any(word in str(error).lower() for word in ("nan", "inf")):
                raise
            likely = "NaN and infinite values are left out of the means, and a group without a number is a space"
            raise Wrong(f"{case}: {type(error).__name__}: {error}", likely=likely) from None
        tally.holds(got is not None, f"{case}: nothing came back", got="None", likely="no return?")
        guesses = (text for text, wrong in SPARKLINE_MISTAKES if got == wrong(values, width) != expected)
        tally.holds(
            got == expected,
            f"{case}: another line",
            expected=repr(expected),
            got=repr(got),
            likely=next(guesses, ""),
        )

    def shape(tally: Tally) -> None:
        for count, width, expected in ((8, 8, 8), (3, 8, 3), (20, 8, 8), (0, 8, 0)):
            values = [float(v) for v in range(count)]
            case = f"sparkline of {count} values, width {width}"
            tally.trying(case)
            got = function(values, width)
            tally.holds(isinstance(got, str), f"{case}: expected text", got=type(got).__name__)
            likely = "with more values than width there are width groups; with fewer, one character for each value"
            tally.holds(
                len(got) == expected, f"{case}: its length", expected=str(expected), got=str(len(got)), likely=likely
            )

    def values(tally: Tally) -> None:
        one(tally, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8, "▁▂▃▄▅▆▇█")
        one(tally, [9.0, 2.0], 5, "█▁")
        one(tally, [3.0, 3.0, 3.0], 3, "▁▁▁")
        one(tally, [10.0, 10.95, 11.0], 3, "▁██")
        one(tally, [8.0, 0.0, 4.0, 4.0, 0.0, 16.0], 3, "▁▁█")
        one(tally, [0.0, nan, 7.0], 3, "▁ █")
        one(tally, [nan, 1.0, 4.0, inf, nan, nan], 3, "▁█ ")

    def random(rng: np.random.Generator, count: int) -> list[float]:
        return [float(v) for v in np.cumsum(rng.standard_normal(count)) + 5]

    def agreement(tally: Tally) -> None:
        rng = np.random.default_rng(1)
        for width in (8, 24):
            line = random(rng, 24)
            one(tally, line, width, line_of(line, width))

    def sizes(tally: Tally) -> None:
        rng = np.random.default_rng(2)
        for count, width in ((1, 1), (7, 1), (5, 40), (80, 40), (1000, 40)):
            line = random(rng, count)
            one(tally, line, width, line_of(line, width))
        for count, width in ((41, 40), (79, 40), (1000, 37)):  # uneven groups: which are the larger ones is left open
            case = f"sparkline of {count} growing values, width {width}"
            tally.trying(case)
            got = function([float(v) for v in range(count)], width)
            grows = len(got) == width and got[0] == "▁" and got[-1] == "█" and list(got) == sorted(got)
            tally.holds(grows, f"{case}: it should grow over {width} characters from ▁ to █", got=repr(got))
        one(tally, [nan, inf], 2, "  ")
        one(tally, [-1e300, 0.0, 1e-300], 3, "▁██")

    return [Check("shape", shape), Check("values", values), Check("agreement", agreement), Check("sizes", sizes)]


ALL_ZERO = "where the weights are all 0, the ratio is inf, or 0 if the gradient is 0, too"

Pair = tuple[list[np.ndarray], list[np.ndarray]]


def gradient_ratios() -> list[Check]:
    """How large each layer's gradient is beside its weights."""
    function = live.gradient_ratios

    def norm(array: np.ndarray) -> float:
        return math.sqrt(float((array * array).sum()))

    def reference(parameters: list[np.ndarray], gradients: list[np.ndarray]) -> list[float]:
        pairs = [(norm(g), norm(p)) for p, g in zip(parameters[::2], gradients[::2], strict=True)]
        return [size / beside if beside else math.inf if size else 0.0 for size, beside in pairs]

    def call(parameters: list[np.ndarray], gradients: list[np.ndarray]) -> Any:
        before = [each.copy() for each in (*parameters, *gradients)]
        try:
            with np.errstate(all="ignore"):
                found = function(parameters, gradients)
        except ZeroDivisionError as error:
            raise Wrong(f"gradient_ratios where a norm is 0: {error}", likely=ALL_ZERO) from None
        names = ["a parameter"] * len(parameters) + ["a gradient"] * len(gradients)
        unchanged(Tally(), before, [*parameters, *gradients], names)
        return found

    def arguments(rng: np.random.Generator, sizes: tuple[int, ...]) -> Pair:
        first, second = problem(rng, sizes), problem(rng, sizes)
        return first.parameters, second.parameters

    def of_each(p: list[np.ndarray], g: list[np.ndarray], formula: Callable[..., float]) -> list[float]:
        return [formula(gradient, weights) for weights, gradient in zip(p[::2], g[::2], strict=True)]

    def safe(above: float, below: float) -> float:
        return above / below if below else math.nan

    three_four, bias = np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([1.0, 0.0])
    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=reference,
            show=lambda p, g: f"gradient_ratios of weights {', '.join(str(w.shape) for w in p[::2])}",
            hand=[
                (
                    (
                        [three_four, bias, np.array([[2.0], [1.0]]), np.zeros(1)],
                        [three_four / 10, bias, np.array([[0.5], [1.0]]), bias[:1]],
                    ),
                    [0.1, 0.5],
                ),
                (([np.full((2, 2), 2.0), bias], [np.array([[0.0, 0.0], [-1.0, 0.0]]), bias]), [0.25]),
                (
                    ([np.zeros((1, 1)), np.ones(1)] * 2, [np.ones((1, 1)), np.ones(1), np.zeros((1, 1)), np.ones(1)]),
                    [math.inf, 0.0],
                ),
            ],
            arguments=arguments,
            typical=(4, 5, 3),
            sizes=[(1, 1), (1, 7, 1), (3, 2, 5, 4), (31, 17, 2)],
            terms=lambda p, g: 1024,
            guesses=[
                Guess(
                    "upside down: the gradient's size is divided by the weights'",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(norm(w), norm(gr))),
                ),
                Guess(
                    "the roots are missing: a norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(norm(gr) ** 2, norm(w) ** 2)),
                ),
                Guess(
                    "the sums of absolute values are compared: the norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(float(np.abs(gr).sum()), float(np.abs(w).sum()))),
                ),
                Guess(
                    "the largest elements are compared: the norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(float(np.abs(gr).max()), float(np.abs(w).max()))),
                ),
                Guess(
                    "norm(…, 2) of a matrix is its largest singular value: the root of the sum of squares is norm(…)",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(*(float(np.linalg.norm(a, 2)) for a in (gr, w)))),
                ),
                Guess(
                    ALL_ZERO,
                    lambda p, g: [
                        a / b if b else (math.inf if a else math.nan)
                        for a, b in ((norm(x), norm(w)) for w, x in zip(p[::2], g[::2], strict=True))
                    ],
                ),
                Guess(
                    "the biases have ratios here, too: only the weights have, one number a layer",
                    lambda p, g: [reference([a, a], [b, b])[0] for a, b in zip(p, g, strict=True)],
                ),
            ],
        )
    )


def relative_error() -> list[Check]:
    """How far a gradient and a slope are apart, as a share."""
    function = gradients.relative_error

    def reference(analytic: float, numeric: float, loss: float) -> float:
        scale = float(np.max(np.abs([analytic, numeric, loss])))
        return 0.0 if scale == 0 else abs(analytic - numeric) / scale

    def call(analytic: float, numeric: float, loss: float) -> Any:
        try:
            return function(analytic, numeric, loss)
        except ZeroDivisionError as error:
            case = f"relative_error({analytic:g}, {numeric:g}, {loss:g})"
            raise Wrong(
                f"{case}: {error}", likely="where all three are 0, nothing is wrong: 0, before dividing"
            ) from None

    def arguments(rng: np.random.Generator, size: tuple[float, float]) -> tuple[float, float, float]:
        analytic, loss = size[0] * rng.standard_normal(), size[1] * rng.standard_normal()
        return analytic, analytic + 0.1 * size[0] * rng.standard_normal(), loss

    return checks_of(
        Exercise(
            call=call,
            fresh=True,
            reference=reference,
            show=lambda analytic, numeric, loss: f"relative_error({analytic:.6g}, {numeric:.6g}, {loss:.6g})",
            hand=[
                ((2.0, 1.0, 0.5), 0.5),
                ((1.0, 2.0, 0.5), 0.5),
                ((-4.0, -3.0, 0.5), 0.25),
                ((1.0, -1.0, 0.0), 2.0),
                ((3.0, 4.0, -10.0), 0.1),
                ((0.0, 0.0, 0.0), 0.0),
                ((0.0, 0.0, 3.0), 0.0),
                ((0.0, 1e-12, 1.0), 1e-12),
                ((math.nan, 1.0, 1.0), math.nan),
            ],
            arguments=arguments,
            typical=(1.0, 1.0),
            sizes=[(1e-8, 1.0), (1.0, 1e-8), (1e6, 3.0), (1.0, 100.0)],
            guesses=[
                Guess("the sign: an error is never negative", lambda a, n, loss: -reference(a, n, loss)),
                Guess(
                    "divided by the two gradients alone: where both are near 0 that is noise, so the loss counts, too",
                    lambda a, n, loss: abs(a - n) / max(abs(a), abs(n)) if a or n else None,
                ),
                Guess("divided by the gradient alone", lambda a, n, loss: abs(a - n) / abs(a) if a else None),
                Guess("divided by the slope alone", lambda a, n, loss: abs(a - n) / abs(n) if n else None),
                Guess(
                    "divided by the sum of the sizes: the largest is asked",
                    lambda a, n, loss: abs(a - n) / s if (s := abs(a) + abs(n) + abs(loss)) else None,
                ),
                Guess("this is the absolute error: it has to be divided by the size", lambda a, n, loss: abs(a - n)),
                Guess(
                    "the largest of the numbers is taken with their signs: of -4 and -3 the size is 4",
                    lambda a, n, loss: abs(a - n) / m if (m := max(a, n, loss)) else None,
                ),
            ],
        )
    )


Curve = tuple[str, Callable[[float], float], Callable[[float], float]]
CURVES: list[Curve] = [
    ("sin", math.sin, math.cos),
    ("exp", math.exp, math.exp),
    ("tanh", math.tanh, lambda p: 1 - math.tanh(p) ** 2),
    ("x³ - 2x", lambda p: p**3 - 2 * p, lambda p: 3 * p * p - 2),
    ("5x + 7", lambda p: 5 * p + 7, lambda p: 5.0),
]


def slope() -> list[Check]:
    """A derivative by central differences, and the kinks that have none."""
    function: Callable[..., Any] = gradients.slope

    def one(tally: Tally, name: str, loss: Callable[[float], float], at: float, expected: float) -> None:
        case = f"slope of {name} at {at:.6g}"
        tally.trying(case)
        tally.fresh = True
        here = loss(at)
        h = STEP * max(1.0, abs(at))
        got = function(loss, at, here)
        likely = (
            "a smooth curve bends, too: its right and left slope differ by h times the curvature, which halves with h"
        )
        tally.holds(got is not None, f"{case}: there is no kink", expected=f"{expected:.9g}", got="None", likely=likely)
        allowed = 3 * gradients.LIMIT * max(1.0, abs(here), abs(expected))
        for side, points, wrong in (
            ("right", "(L(p + h) - L(p)) / h", (loss(at + h) - here) / h),
            ("left", "(L(p) - L(p - h)) / h", (here - loss(at - h)) / h),
        ):
            if abs(wrong - expected) > allowed and np.ndim(got) == 0 and math.isclose(got, wrong, rel_tol=1e-9):
                likely = f"this is the slope to the {side}, {points}: central differences err less"
                raise Wrong(f"{case}: wrong", expected=f"{expected:.9g}", got=f"{got:.9g}", likely=likely)
        tally.equal(
            got,
            expected,
            case=case,
            terms=1,
            scale=allowed / tolerance("float64", 1, 1.0),
            guesses=[
                Guess("the two points are 2h apart, not h", lambda: (loss(at + h) - loss(at - h)) / h),
                Guess("this is how much the loss changes: divide by 2h", lambda: loss(at + h) - loss(at - h)),
                Guess("wrong sign: above minus below", lambda: (loss(at - h) - loss(at + h)) / (2 * h)),
                Guess(
                    "this is the bend, right slope minus left slope",
                    lambda: (loss(at + h) - 2 * here + loss(at - h)) / h,
                ),
            ],
        )

    def kink(tally: Tally, name: str, loss: Callable[[float], float], at: float, where: str, likely: str) -> None:
        case = f"slope of {name} at {at:.9g}"
        tally.trying(case)
        got = function(loss, at, loss(at))
        tally.holds(got is None, f"{case}: {where}", expected="None", got=f"{got}", likely=likely)

    def shape(tally: Tally) -> None:
        tally.trying("slope of x² at 3")
        got = function(lambda p: p * p, 3.0, 9.0)
        tally.holds(
            got is not None, "slope of x² at 3: nothing came back", got="None", likely="no return, or taken for a kink?"
        )
        tally.holds(np.ndim(got) == 0, "slope of x² at 3: expected a number", got=type(got).__name__)

    bend = (
        "right slope minus left slope is h times the curvature on a smooth curve, so it halves with h; here it does not"
    )
    central = "the slopes measured with h and with h / 2 disagree, which on a smooth curve they do not"

    def values(tally: Tally) -> None:
        one(tally, "x²", lambda p: p * p, 3.0, 6.0)
        one(tally, "3x", lambda p: 3 * p, 1.0, 3.0)
        one(tally, "a constant", lambda p: 4.0, 2.0, 0.0)
        one(tally, "x³", lambda p: p**3, -2.0, 12.0)
        kink(tally, "relu", lambda p: max(p, 0.0), 0.0, "the kink is right there", bend)
        kink(tally, "|x|", abs, STEP / 3, "a kink lies a third of a step away", central)
        kink(tally, "|x|", abs, -0.8 * STEP, "a kink lies within the wide step", central)
        one(tally, "relu", lambda p: max(p, 0.0), 0.5, 1.0)
        one(tally, "relu", lambda p: max(p, 0.0), -0.5, 0.0)

    def agreement(tally: Tally) -> None:
        rng = np.random.default_rng(1)
        for name, loss, derivative in CURVES:
            at = float(rng.uniform(-1, 1))
            one(tally, name, loss, at, derivative(at))

    def sizes(tally: Tally) -> None:
        for at in (0.0, 1e-9, 10.0, -300.0):
            one(tally, "5x + 7", lambda p: 5 * p + 7, at, 5.0)
            one(tally, "x² / 100", lambda p: p * p / 100, at, at / 50)

    return [Check("shape", shape), Check("values", values), Check("agreement", agreement), Check("sizes", sizes)]


GRADES: dict[str, Callable[[], list[Check]]] = {
    "17.1": confusion_matrix,
    "17.2": hidden_activations,
    "17.3": active_shares,
    "17.4": saliency,
    "18.1": sparkline,
    "18.2": gradient_ratios,
    "18.3": relative_error,
    "18.4": slope,
}


def checkpoint() -> list[Check]:
    """The tools together: on a network in which a neuron has died, and on one whose gradient is wrong."""
    # Imported here: training and data sets take half as long to import as grading a task takes.
    from groundup.course.grading.checkpoints import tools_together

    return tools_together()
