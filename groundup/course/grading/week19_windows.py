"""Week 19: how many places a window has, and a convolution on lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.source import uses_none_of
from groundup.course.grading.calling.on_lists import graded, on_lists, stage
from groundup.course.grading.calling.watched_lists import watched
from groundup.course.grading.problems.images import (
    CASES,
    CONV_HAND,
    NONE,
    ONE,
    TYPICAL,
    Case,
    Pair,
    conv_arguments,
    conv_mistakes,
    conv_of,
    conv_scale,
    conv_shown,
    output_of,
)
from shared import windows as window_sizes

SIZES = [
    ((1, 1), (1, 1), (1, 1), (0, 0)),
    ((28, 28), (5, 5), (1, 1), (2, 2)),
    ((2, 3, 9, 4), (3, 2), (2, 1), (0, 0)),
    ((7, 11), (3, 4), (3, 4), (0, 0)),
    ((4, 3), (4, 3), (1, 1), (0, 0)),
    ((5, 1, 1, 6), (3, 1), (1, 1), (1, 0)),
    ((8, 8), (2, 3), (2, 2), (1, 0)),
    ((3, 5), (1, 2), (4, 9), (0, 1)),
]
"""(image, window, stride, padding): with and without the batch and the channels before rows and columns."""


def output_size() -> list[Check]:
    """How many places a window has."""

    def call(image: Sequence[int], window: Pair, stride: Pair, padding: Pair) -> Any:
        result = window_sizes.output_size("conv2d", image, window, stride, padding)
        foreign = [type(number).__name__ for number in result or () if type(number) is not int]
        if foreign:
            cause = "a number of places is whole: // divides and rounds down, / gives a float"
            raise Wrong(f"{show(image, window, stride, padding)}: expected whole numbers", got=foreign[0], cause=cause)
        return result

    def show(image: Sequence[int], window: Pair, stride: Pair, padding: Pair) -> str:
        return f"output_size of an image {tuple(image)}, window {window}, stride {stride}, padding {padding}"

    def drawn(rng: np.random.Generator, size: Any) -> tuple[Any, ...]:
        image, window, stride, padding = size
        more = rng.integers(0, 40, 2)  # so that the result depends on what is drawn
        return (*image[:-2], image[-2] + int(more[0]), image[-1] + int(more[1])), window, stride, padding

    def by_axis(of: Callable[[int, int, int, int], int]) -> Callable[..., tuple[int, ...]]:
        return lambda image, window, stride, padding: tuple(map(of, image[-2:], window, stride, padding))

    def larger_window(tally: Tally) -> None:
        tally.trying("output_size of a window that is larger than the image")
        try:
            window_sizes.output_size("conv2d", (4, 5), (3, 6), ONE, NONE)
        except ValueError:
            tally.count += 1
            return
        cause = "the first line of the function, check_window(…), has to stay: it raises the error"
        raise Wrong("a window of 6 columns has no place in an image of 5, and no error is raised", cause=cause)

    exercise = Exercise(
        call=call,
        reference=output_of,
        show=show,
        hand=[
            (((3, 4), (2, 2), ONE, NONE), (2, 3)),
            (((4, 4), (3, 3), ONE, ONE), (4, 4)),
            (((4, 4), (3, 3), (2, 2), ONE), (2, 2)),
            (((1, 1, 7, 10), (3, 4), (2, 3), (0, 1)), (3, 3)),
            *((size, output_of(*size)) for size in SIZES),
        ],
        arguments=drawn,
        typical=SIZES[2],
        sizes=SIZES,
        way=larger_window,
        mistakes=[
            Mistake("the first place is not counted: + 1", by_axis(lambda h, k, t, p: (h + 2 * p - k) // t)),
            Mistake(
                "padding is added once: there is a border on both sides",
                by_axis(lambda h, k, t, p: (h + p - k) // t + 1),
            ),
            Mistake("the border is left out", by_axis(lambda h, k, t, p: (h - k) // t + 1)),
            Mistake(
                "rounded up: a window that would reach over the edge has no place",
                by_axis(lambda h, k, t, p: -((h + 2 * p - k) // -t) + 1),
            ),
            Mistake("the stride is left out", by_axis(lambda h, k, t, p: h + 2 * p - k + 1)),
            Mistake(
                "the 1 is added before the division: divide the way of the window, then count its first place",
                by_axis(lambda h, k, t, p: (h + 2 * p - k + 1) // t),
            ),
            Mistake("the window is left out", by_axis(lambda h, k, t, p: (h + 2 * p) // t)),
            *(
                Mistake(
                    "one number of a pair serves for both axes: window, stride and padding are (rows, columns)",
                    lambda *size, at=at, one=one: output_of(
                        *(size[0], *size[1:at], (size[at][one],) * 2, *size[at + 1 :])
                    ),
                )
                for at in (1, 2, 3)
                for one in (0, 1)
            ),
            Mistake("rows and columns are exchanged", lambda *size: output_of(*size)[::-1]),
            Mistake(
                "the image's rows and columns are its last two numbers: image may be a whole shape, (…, rows, columns)",
                lambda image, *more: output_of(image[:2], *more) if len(image) > 2 else None,
            ),
        ],
    )
    return checks_of(exercise)


RUNGS = ("seven_loops", "zip_rows", "im2col", "conv2d", "CONVOLUTION_LADDER", "_windows", "matmul_nt")

ANOTHER = "this calls another function that has the sums already: write the loops of this one"


def convolution(rung: str, way: Callable[[Tally], None] | None = None) -> list[Check]:
    """The checks of a rung of the convolution ladder."""
    function = getattr(stage().convolution, rung)
    by_itself = uses_none_of(function, dict.fromkeys((name for name in RUNGS if name != rung), ANOTHER))

    def both(tally: Tally) -> None:
        by_itself(tally)
        if way is not None:
            way(tally)

    def wrong_shapes(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Pair, padding: Pair) -> dict[Any, str]:
        n, o, rows, columns = conv_of(x, w, b, stride, padding).shape
        return {
            (o, rows, columns): "the images of the batch are missing: the result is a list with one entry an image",
            (n, rows, columns): "the output channels are missing: each kernel makes a channel of its own",
            (1, n, o, rows, columns): "there is one list too many around it",
        }

    return graded(
        Exercise(
            call=on_lists(function, "x", "weights", "bias"),
            reference=conv_of,
            show=conv_shown(rung),
            hand=CONV_HAND,
            arguments=conv_arguments,
            typical=TYPICAL,
            sizes=CASES,
            special=(0, 2),
            terms=lambda x, w, *more: w[0].size,
            scale=conv_scale,
            shapes=wrong_shapes,
            way=both,
            mistakes=[
                *conv_mistakes(),
                Mistake(
                    "all rows of a channel are one and the same list: [row] * n does not copy the row",
                    lambda *arguments: _one_row(conv_of(*arguments), arguments[2]),
                ),
            ],
        )
    )


def _one_row(output: np.ndarray, bias: np.ndarray) -> np.ndarray | None:
    """The result of loops that add to one row, which stands for all rows of a channel."""
    if output.shape[2] == 1:
        return None
    summed = (output - bias[:, None, None]).sum(axis=2, keepdims=True) + bias[:, None, None]
    return np.broadcast_to(summed, output.shape)


def by_rows(tally: Tally) -> None:
    """zip_rows reads the image by rows and slices: no number of it by its index, and each slice for a whole row."""
    case = Case(1, 2, 5, 12, 3, 2, 2)
    x, weights, bias, *more = conv_arguments(np.random.default_rng(3), case)
    tally.trying(f"zip_rows(x {x.shape}, weights {weights.shape}), and how it reads x")
    image = [[watched(channel) for channel in each] for each in x]
    rows = [row for each in image for channel in each for row in channel]
    stage().convolution.zip_rows(image, weights.tolist(), bias.tolist(), *more)
    tally.holds(
        sum(row.by_index for row in rows) <= len(rows),  # a check of the arguments looks at some
        "zip_rows looks up numbers of the image one by one",
        expected="slices of rows",
        got=f"{sum(row.by_index for row in rows)} look-ups",
        cause="a weight meets a slice of a row: row[j : j + span : across]; zip pairs it with the row of sums",
    )
    most = weights.size * (x.shape[2] - 1) + 4 * len(rows)
    reads = sum(row.slices + row.walks for row in rows)
    tally.holds(
        reads <= most,
        "zip_rows takes a slice for every output",
        expected=f"at most {most} slices and walks along rows",
        got=str(reads),
        cause="one slice for a whole row of outputs: all of them that one weight is multiplied for",
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "19.1": output_size,
    "19.2": lambda: convolution("seven_loops"),
    "19.6": lambda: convolution("zip_rows", by_rows),
}
