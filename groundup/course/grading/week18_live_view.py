"""Week 18: a live view of training: the loss as one line of blocks, and each layer's gradient beside its weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, combinations, pairwise
from typing import Any

import numpy as np

from groundup import live
from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Question, Tally, Wrong, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.networks import problem

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
    ties_up: bool = False,
) -> str:
    """A sparkline. The switches make known mistakes, such as heights cut off, not rounded."""
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
        level = math.floor(height + 0.5) if ties_up else round(height) if rounded else math.floor(height)
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
    (
        "half a block goes to the even one, as Python's round has it: here it goes up",
        lambda values, width: line_of(values, width, ties_up=True),
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
            cause = "NaN and infinite values are left out of the means, and a group without a number is a space"
            raise Wrong(f"{case}: {type(error).__name__}: {error}", cause=cause) from None
        tally.holds(got is not None, f"{case}: nothing came back", got="None", cause="no return?")
        mistakes = (text for text, wrong in SPARKLINE_MISTAKES if got == wrong(values, width) != expected)
        tally.holds(
            got == expected,
            f"{case}: another line",
            expected=repr(expected),
            got=repr(got),
            cause=next(mistakes, ""),
        )

    def shape(tally: Tally) -> None:
        for count, width, expected in ((8, 8, 8), (3, 8, 3), (20, 8, 8), (0, 8, 0)):
            values = [float(v) for v in range(count)]
            case = f"sparkline of {count} values, width {width}"
            tally.trying(case)
            got = function(values, width)
            tally.holds(isinstance(got, str), f"{case}: expected text", got=type(got).__name__)
            cause = "with more values than width there are width groups; with fewer, one character for each value"
            tally.holds(
                len(got) == expected, f"{case}: its length", expected=str(expected), got=str(len(got)), cause=cause
            )

    def values(tally: Tally) -> None:
        one(tally, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8, "▁▂▃▄▅▆▇█")
        one(tally, [9.0, 2.0], 5, "█▁")
        one(tally, [3.0, 3.0, 3.0], 3, "▁▁▁")
        one(tally, [10.0, 10.95, 11.0], 3, "▁██")
        one(tally, [8.0, 0.0, 4.0, 4.0, 0.0, 16.0], 3, "▁▁█")
        one(tally, [0.0, nan, 7.0], 3, "▁ █")
        one(tally, [nan, 1.0, 4.0, inf, nan, nan], 3, "▁█ ")
        one(tally, [-inf, -2.0, -1.0, 0.0, inf], 5, " ▁▅█ ".replace("▅", line_of([-2.0, -1.0, 0.0], 3)[1]))

    def uneven(tally: Tally, values: list[float], width: int) -> None:
        """Groups of two lengths: whichever of them are the larger ones, the line is that of their means."""
        short, longer = divmod(len(values), width)
        case = f"sparkline of {[round(v, 2) for v in values]}, width {width}"
        tally.trying(case)
        got, allowed = function(list(values), width), set()
        for places in combinations(range(width), longer):
            ends = [0, *accumulate(short + (i in places) for i in range(width))]
            allowed.add(line_of([float(np.mean(values[a:b])) for a, b in pairwise(ends)], width))
        tally.holds(
            got in allowed,
            f"{case}: no line of {width} groups whose lengths differ by 1 at most",
            expected=repr(line_of(values, width)),
            got=repr(got),
            cause=f"the groups have {short} or {short + 1} values, and all of them; each is shown by its mean",
        )

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
        # Small ranges, numbers below 0, and a large number to which little is added
        for begin, step in ((0.0, 1e-9), (-3.0, 0.5), (1e6, 1e-3), (-1e-5, 1e-7), (1e300, 1e298)):
            drawn = [begin + step * v for v in (0.0, 0.6, 1.4, 2.6, 3.4, 7.0, 6.4, 5.6, 4.0)]
            one(tally, drawn, 9, line_of(drawn, 9))
        for begin in (0.0, -3.0):  # ties: Python rounds half a block to the even one
            drawn = [begin + v for v in (0.0, 0.5, 1.5, 2.5, 7.0, 6.5, 5.5, 4.5)]
            one(tally, drawn, 8, line_of(drawn, 8))
        falling = [-float(v) for v in range(24)]
        one(tally, falling, 8, line_of(falling, 8))
        for count, width in ((5, 3), (7, 3), (7, 4), (10, 4), (11, 8)):
            uneven(tally, random(rng, count), width)
        for count, width in ((41, 40), (79, 40), (1000, 37)):  # uneven groups: any of them may be the larger ones
            case = f"sparkline of {count} growing values, width {width}"
            tally.trying(case)
            got = function([float(v) for v in range(count)], width)
            grows = len(got) == width and got[0] == "▁" and got[-1] == "█" and list(got) == sorted(got)
            tally.holds(grows, f"{case}: it should grow over {width} characters from ▁ to █", got=repr(got))
        one(tally, [nan, inf], 2, "  ")
        one(tally, [-1e300, 0.0, 1e-300], 3, "▁██")

    question = Question(
        call=lambda values, width: heights(function(values, width)),
        reference=lambda values, width: heights(line_of(values, width)),
        arguments=lambda rng, size: (random(rng, size[0]), size[1]),
        size=(200, 40),
    )
    checks = [("shape", shape), ("values", values), ("agreement", agreement), ("sizes", sizes)]
    return [Check(name, run, question) for name, run in checks]


def heights(line: str) -> list[int]:
    """The heights of the blocks of a line, from 1; 0 for anything else."""
    return [BLOCKS.find(character) + 1 for character in line]


ALL_ZERO = "where the weights are all 0, the ratio is inf, or 0 if the gradient is 0, too"

Pair = tuple[list[np.ndarray], list[np.ndarray]]


def gradient_ratios() -> list[Check]:
    """The size of each layer's gradient beside that of its weights."""
    function = live.gradient_ratios

    def norm(array: np.ndarray) -> float:
        return math.sqrt(float((array * array).sum()))

    def reference(parameters: list[np.ndarray], gradients: list[np.ndarray]) -> list[float]:
        pairs = [(norm(g), norm(p)) for p, g in zip(parameters[::2], gradients[::2], strict=True)]
        return [size / beside if beside else math.inf if size else 0.0 for size, beside in pairs]

    def call(parameters: list[np.ndarray], gradients: list[np.ndarray]) -> Any:
        handed = [repeated.handed(array) for array in (*parameters, *gradients)]
        inputs = handed[: len(parameters)], handed[len(parameters) :]
        try:
            with np.errstate(all="ignore"):
                ratios = function(*inputs)
        except ZeroDivisionError as error:
            raise Wrong(f"gradient_ratios where a norm is 0: {error}", cause=ALL_ZERO) from None
        names = ["a parameter"] * len(parameters) + ["a gradient"] * len(gradients)
        unchanged(Tally(), [*parameters, *gradients], handed, names)
        repeated.returned(ratios, handed)
        return ratios

    def arguments(rng: np.random.Generator, sizes: tuple[int, ...]) -> Pair:
        first, second = problem(rng, sizes), problem(rng, sizes)
        return first.parameters, second.parameters

    def of_each(p: list[np.ndarray], g: list[np.ndarray], formula: Callable[..., float]) -> list[float]:
        return [formula(gradient, weights) for weights, gradient in zip(p[::2], g[::2], strict=True)]

    def safe(above: float, below: float) -> float:
        return above / below if below else math.nan

    def spectral(above: np.ndarray, below: np.ndarray) -> float:
        finite = np.isfinite(above).all() and np.isfinite(below).all()
        return safe(*(float(np.linalg.norm(matrix, 2)) for matrix in (above, below))) if finite else math.nan

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
                (([np.full((1, 1), 2e-20), bias[:1]], [np.full((1, 1), 1e-20), bias[:1]]), [0.5]),
                (([np.full((1, 1), 2e-90), bias[:1]], [np.full((1, 1), 1e-10), bias[:1]]), [5e79]),
                (([np.array([[3.0, math.nan]]), bias], [np.ones((1, 2)), bias]), [math.nan]),
                (([np.ones((1, 2)), bias], [np.array([[math.nan, 1.0]]), bias]), [math.nan]),
                (([np.ones((1, 2)), bias], [np.array([[0.0, -math.inf]]), bias]), [math.inf]),
                (([np.array([[1.0, math.inf]]), bias], [np.ones((1, 2)), bias]), [0.0]),
            ],
            arguments=arguments,
            typical=(4, 5, 3),
            sizes=[(1, 1), (1, 7, 1), (3, 2, 5, 4), (31, 17, 2)],
            again=[(4, 5, 3), (4, 9, 3), (4, 2, 3), (4, 5, 3), (4, 5, 3)],
            terms=lambda p, g: 1024,
            mistakes=[
                Mistake(
                    "upside down: the gradient's size is divided by the weights'",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(norm(w), norm(gr))),
                ),
                Mistake(
                    "the roots are missing: a norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(norm(gr) ** 2, norm(w) ** 2)),
                ),
                Mistake(
                    "the sums of absolute values are compared: the norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(float(np.abs(gr).sum()), float(np.abs(w).sum()))),
                ),
                Mistake(
                    "the largest elements are compared: the norm is the root of the sum of squares",
                    lambda p, g: of_each(p, g, lambda gr, w: safe(float(np.abs(gr).max()), float(np.abs(w).max()))),
                ),
                Mistake(
                    "norm(…, 2) of a matrix is its largest singular value: the root of the sum of squares is norm(…)",
                    lambda p, g: of_each(p, g, lambda gr, w: spectral(gr, w)),
                ),
                Mistake(
                    ALL_ZERO,
                    lambda p, g: [
                        a / b if b else (math.inf if a else math.nan)
                        for a, b in ((norm(x), norm(w)) for w, x in zip(p[::2], g[::2], strict=True))
                    ],
                ),
                Mistake(
                    "weights that are small are not 0: inf and 0 are for weights that are all exactly 0",
                    lambda p, g: of_each(
                        p, g, lambda gr, w: norm(gr) / norm(w) if norm(w) > 1e-6 else math.inf if gr.any() else 0.0
                    ),
                ),
                Mistake(
                    "NaN and infinity are replaced: in weights or gradients they have to show",
                    lambda p, g: of_each(
                        p, g, lambda gr, w: 0.0 if not math.isfinite(norm(gr) + norm(w)) else safe(norm(gr), norm(w))
                    ),
                ),
                Mistake(
                    "the biases have ratios here, too: only the weights have, one number a layer",
                    lambda p, g: [reference([a, a], [b, b])[0] for a, b in zip(p, g, strict=True)],
                ),
            ],
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "18.1": sparkline,
    "18.2": gradient_ratios,
}
