"""Convolutions in NumPy and float64, forward and backward, for weeks 19 to 21, with the known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from groundup.course.checks.mistakes import Mistake

Pair = tuple[int, int]
ONE: Pair = (1, 1)
NONE: Pair = (0, 0)


class Case(NamedTuple):
    """The sizes of a convolution. No two of one case are equal where that could hide an exchange."""

    batch: int
    channels: int
    rows: int
    columns: int
    kernels: int
    window_rows: int
    window_columns: int
    stride: Pair = ONE
    padding: Pair = NONE

    @property
    def image(self) -> Pair:
        return self.rows, self.columns

    @property
    def window(self) -> Pair:
        return self.window_rows, self.window_columns

    @property
    def padded(self) -> Pair:
        return self.rows + 2 * self.padding[0], self.columns + 2 * self.padding[1]

    @property
    def output(self) -> Pair:
        return output_of(self.image, self.window, self.stride, self.padding)


TYPICAL = Case(2, 2, 5, 4, 3, 3, 2, (2, 1), (1, 0))

CASES = [
    Case(1, 1, 1, 1, 1, 1, 1, (1, 1), (0, 0)),
    Case(2, 3, 5, 7, 4, 3, 2, (1, 1), (1, 0)),
    Case(3, 2, 7, 4, 1, 2, 3, (2, 3), (0, 2)),
    Case(1, 2, 6, 8, 3, 3, 3, (2, 2), (1, 1)),
    Case(1, 2, 4, 5, 2, 4, 5, (1, 1), (0, 0)),
    Case(2, 1, 3, 2, 2, 5, 3, (1, 2), (1, 1)),
    Case(1, 3, 5, 8, 2, 1, 1, (3, 2), (0, 0)),
    Case(2, 2, 1, 9, 3, 1, 3, (1, 4), (0, 1)),
    Case(5, 1, 2, 3, 1, 2, 2, (7, 1), (3, 1)),
]
"""Ones; an image and a kernel of no square; windows that are cut off below and to the right; a window as large as the
image, and one that only the border makes fit; pixels between the windows; one row; a stride longer than the image."""


def output_of(image: Sequence[int], window: Pair, stride: Pair, padding: Pair) -> Pair:
    """(rows, columns) of an output."""
    rows, columns = ((image[axis - 2] + 2 * padding[axis] - window[axis]) // stride[axis] + 1 for axis in range(2))
    return rows, columns


def conv_arguments(rng: np.random.Generator, case: Case) -> tuple[Any, ...]:
    """Random x, weights and bias; and stride and padding."""
    x = rng.standard_normal((case.batch, case.channels, *case.image))
    weights = rng.standard_normal((case.kernels, case.channels, *case.window))
    return x, weights, rng.standard_normal(case.kernels), case.stride, case.padding


def gathered(
    x: np.ndarray, window: Pair, places: Pair, step: Pair, start: Pair, border: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """All windows, (N, C, places, window). Window (r, s) begins at r * step - start, in an image that `border` fills up
    with as many numbers on each side as are ever asked for."""
    more = [window[axis] + start[axis] + places[axis] * step[axis] for axis in range(2)]
    wide = border(np.pad(x, ((0, 0), (0, 0), (more[0],) * 2, (more[1],) * 2)))
    views = sliding_window_view(wide, window, axis=(2, 3))
    at = [more[axis] - start[axis] + step[axis] * np.arange(places[axis]) for axis in range(2)]
    found: np.ndarray = views[:, :, at[0][:, None], at[1]]
    return found


def zeros_around(wide: np.ndarray) -> np.ndarray:
    """The image with its border of zeros, as it is."""
    return wide


def windows_of(x: np.ndarray, window: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """All windows of a convolution, (N, C, H', W', kh, kw)."""
    return gathered(x, window, output_of(x.shape, window, stride, padding), stride, padding, zeros_around)


def conv_of(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
    """The convolution."""
    return _summed(windows_of(x, _window(weights), stride, padding), weights, bias)


def _summed(windows: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        # no border is multiplied with an infinite weight here: the special numbers of these tasks are in x and the bias
        sums: np.ndarray = np.einsum("nchwij,ocij->nohw", windows, weights) + bias[:, None, None]
    return sums


def _window(weights: np.ndarray) -> Pair:
    return weights.shape[2], weights.shape[3]


def conv_scale(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
    """The scale of each sum's rounding."""
    return conv_of(np.abs(x), np.abs(weights), np.abs(bias), stride, padding)


def conv_shown(name: str) -> Callable[..., str]:
    """How a call reads in a message."""

    def show(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Pair, padding: Pair) -> str:
        return f"{name}(x {x.shape}, weights {weights.shape}, bias, stride {stride}, padding {padding})"

    return show


def array(*rows: Any) -> np.ndarray:
    """One image of one channel, or one kernel of it: (1, 1, rows, columns)."""
    return np.array(rows, np.float64)[np.newaxis, np.newaxis]


IMAGE = array([1, 2, 0, 1], [0, 3, 1, 2], [2, 1, 0, 1], [1, 0, 2, 1])
KERNEL = array([1, 0, -1], [2, 1, 0], [0, -1, 1])
"""Those of docs/guides/convolution.md."""

CONV_HAND: list[tuple[tuple[Any, ...], Any]] = [
    (
        (array([1, 2, 3], [4, 5, 6]), np.array([[[[2.0, -1.0]]], [[[0.0, 1.0]]]]), np.array([10.0, 0.0]), ONE, NONE),
        [[[[10.0, 11.0], [13.0, 14.0]], [[2.0, 3.0], [5.0, 6.0]]]],
    ),
    ((IMAGE, KERNEL, np.array([1.0]), ONE, NONE), array([4, 10], [7, 3])),
    ((IMAGE, KERNEL, np.array([1.0]), (2, 2), ONE), array([5, 6], [-1, 3])),
    (  # two channels, two kernels, two images
        (
            np.array([[[[1.0, 2.0]], [[3.0, 4.0]]], [[[0.0, 1.0]], [[1.0, 0.0]]]]),
            np.array([[[[1.0]], [[10.0]]], [[[0.0]], [[-1.0]]]]),
            np.array([0.0, 0.5]),
            ONE,
            NONE,
        ),
        [[[[31.0, 42.0]], [[-2.5, -3.5]]], [[[10.0, 1.0]], [[-0.5, 0.5]]]],
    ),
]


def wrapped(x: np.ndarray, rows_too: bool = True, columns_too: bool = True) -> Callable[[np.ndarray], np.ndarray]:
    """The border as Python's negative indices read it: above the first row is the last one.

    rows_too, columns_too: False where the border above, or to the left, is asked for
    """

    def border(wide: np.ndarray) -> np.ndarray:
        rows, columns = x.shape[2:]
        top, left = (wide.shape[2] - rows) // 2, (wide.shape[3] - columns) // 2
        filled = np.zeros_like(wide)
        for down in range(1 + rows_too):
            for right in range(1 + columns_too):
                first, at = top - rows * down, left - columns * right
                if first >= 0 and at >= 0:
                    filled[:, :, first : first + rows, at : at + columns] = x
        return filled

    return border


Windows = Callable[[np.ndarray, Pair, Pair, Pair], np.ndarray | None]
"""The windows of a mistake, from (x, window, stride, padding); None where they are the right ones."""


def _elsewhere(steps: Callable[[Pair], Pair] = lambda t: t, starts: Callable[[Pair], Pair] = lambda p: p) -> Windows:
    """Windows at other places. steps: from the stride, starts: from the padding, as `gathered` takes them."""

    def windows(x: np.ndarray, window: Pair, stride: Pair, padding: Pair) -> np.ndarray | None:
        step, start = steps(stride), starts(padding)
        if (step, start) == (stride, padding):
            return None
        return gathered(x, window, output_of(x.shape, window, stride, padding), step, start, zeros_around)

    return windows


def _wrapped_around(*axes: bool) -> Windows:
    def windows(x: np.ndarray, window: Pair, stride: Pair, padding: Pair) -> np.ndarray | None:
        if padding == NONE:
            return None
        return gathered(x, window, output_of(x.shape, window, stride, padding), stride, padding, wrapped(x, *axes))

    return windows


def _edge_repeated(x: np.ndarray, window: Pair, stride: Pair, padding: Pair) -> np.ndarray | None:
    if padding == NONE:
        return None
    (rows, columns) = padding
    return windows_of(np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)), "edge"), window, stride, NONE)


def left_out(than: int) -> list[Callable[[Pair], Pair]]:
    """Both numbers of a pair left out, or one of them. than: what stands there then"""
    return [lambda pair: (than, than), lambda pair: (than, pair[1]), lambda pair: (pair[0], than)]


EXCHANGED: list[Callable[[Pair], Pair]] = [
    lambda pair: (pair[1], pair[0]),
    lambda pair: (pair[0], pair[0]),
    lambda pair: (pair[1], pair[1]),
]

ONE_PLACE = "the window moves by one place: output (r, s) has its window at r * stride and s * stride"

NO_BORDER = (
    "the border above or to the left is left out: place (0, 0) of the first window is pixel (-padding, -padding) of "
    "the image"
)

BELOW_ZERO = (
    "an index below 0 counts from the end in Python: row -1 is the last row of the image, and no part of the border. "
    "Ask whether 0 <= row, and 0 <= column"
)

OF_BOTH_AXES = "{}'s two numbers are exchanged, or one of them serves for both: the first one is for the rows"

WINDOW_MISTAKES: list[tuple[str, Windows]] = [
    *((ONE_PLACE, _elsewhere(steps=steps)) for steps in left_out(1)),
    *((OF_BOTH_AXES.format("stride"), _elsewhere(steps=exchanged)) for exchanged in EXCHANGED),
    *((NO_BORDER, _elsewhere(starts=starts)) for starts in left_out(0)),
    *((OF_BOTH_AXES.format("padding"), _elsewhere(starts=exchanged)) for exchanged in EXCHANGED),
    *((BELOW_ZERO, _wrapped_around(*axes)) for axes in ((True, True), (True, False), (False, True))),
    ("the border repeats the outermost pixels: it is 0", _edge_repeated),
]
"""For all functions that walk over windows."""

TURNED: list[tuple[slice, slice]] = [
    (slice(None, None, -1), slice(None, None, -1)),
    (slice(None), slice(None, None, -1)),
    (slice(None, None, -1), slice(None)),
]
"""A kernel turned by half a circle, or mirrored."""


def _without_last(values: np.ndarray, axis: int) -> np.ndarray:
    """Zeros in the last row (axis 2) or column (axis 3)."""
    rest = values.copy()
    np.moveaxis(rest, axis, 0)[-1] = 0
    return rest


def _at_the_first(weights: np.ndarray, axis: int) -> np.ndarray:
    """All rows (axis 2) or columns (axis 3) added up in the first one."""
    summed = np.zeros_like(weights)
    np.moveaxis(summed, axis, 0)[0] = weights.sum(axis=axis)
    return summed


def _changed(change: Callable[..., Any], x: np.ndarray, w: np.ndarray, *more: Any) -> np.ndarray | None:
    """The convolution of other images or kernels; None where they are the same."""
    others = change(x, w)
    same = all(map(np.array_equal, others, (x, w)))
    return None if same else conv_of(*others, *more)


def conv_mistakes(output: str = "") -> list[Mistake]:
    """The known mistakes of a convolution."""

    def misplaced(windows: Windows) -> Callable[..., np.ndarray | None]:
        def result(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray | None:
            found = windows(x, _window(w), stride, padding)
            return None if found is None else _summed(found, w, b)

        return result

    def last_only(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
        kept = np.zeros_like(w)
        kept[:, -1, -1, -1] = w[:, -1, -1, -1]
        return conv_of(x, kept, 0 * b, stride, padding)

    def last_inside(x: np.ndarray, w: np.ndarray, b: np.ndarray, *more: Pair) -> np.ndarray:
        result = np.broadcast_to(b[:, None, None], conv_of(x, w, b, *more).shape).copy()
        windows, inside = (windows_of(each, _window(w), *more) for each in (x, np.ones_like(x)))
        for c, i, j in np.ndindex(w.shape[1:]):
            products = windows[:, c, None, :, :, i, j] * w[:, c, i, j, None, None]
            np.copyto(result, products, where=inside[:, c, None, :, :, i, j] > 0)
        return result

    Change = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    of_x: list[tuple[str, Change]] = [
        (
            "all channels of the kernel meet the first of x: x goes on with the channel, too",
            lambda x, w: (np.repeat(x[:, :1], x.shape[1], axis=1), w),
        ),
        *(
            (f"the last {line} of the image is left out", lambda x, w, axis=axis: (_without_last(x, axis), w))
            for line, axis in (("row", 2), ("column", 3))
        ),
    ]
    of_w: list[tuple[str, Change]] = [
        (
            "all channels meet the first channel of the kernel: w goes on with the channel, too",
            lambda x, w: (x, np.repeat(w[:, :1], w.shape[1], axis=1)),
        ),
        *(
            (f"the last {line} of the kernel is left out", lambda x, w, axis=axis: (x, _without_last(w, axis)))
            for line, axis in (("row", 2), ("column", 3))
        ),
        *(
            (
                f"all {lines} of the kernel meet the window's first: {number} {lines[:-1]}s further on",
                lambda x, w, axis=axis: (x, _at_the_first(w, axis)),
            )
            for lines, number, axis in (("rows", "row i lies i", 2), ("columns", "column j lies j", 3))
        ),
    ]

    def bias_each(once_more: int) -> Callable[..., np.ndarray]:
        def result(x: np.ndarray, w: np.ndarray, b: np.ndarray, *more: Pair) -> np.ndarray:
            counts = conv_of(np.ones_like(x), np.ones_like(w), np.full(len(b), once_more), *more)
            return conv_of(x, w, 0 * b, *more) + b[:, None, None] * counts

        return result

    return [
        *(
            Mistake(
                "the kernel is turned: its number (i, j) belongs to number (i, j) of the window. Only mathematics' "
                "convolution turns it",
                lambda x, w, b, *more, turn=turn: conv_of(x, w[:, :, turn[0], turn[1]], b, *more),
                output,
            )
            for turn in TURNED
        ),
        Mistake(
            "rows and columns of the kernel are exchanged",
            lambda x, w, b, *more: conv_of(x, w.swapaxes(2, 3), b, *more) if w.shape[2] == w.shape[3] else None,
            output,
        ),
        Mistake("the bias is not added", lambda x, w, b, *more: conv_of(x, w, 0 * b, *more), output),
        Mistake(
            "the bias is added once for every input channel: once for each output, after the sum",
            lambda x, w, b, *more: conv_of(x, w, x.shape[1] * b, *more) if x.shape[1] > 1 else None,
            output,
        ),
        *(
            Mistake(
                "the bias is added once for every product: once for each output, before the sum or after it",
                wrong,
                output,
            )
            for wrong in (bias_each(0), bias_each(1), lambda x, w, b, *more: conv_of(x, w, w[0].size * b, *more))
        ),
        *(
            Mistake("only the last product is kept: add to the sum, do not assign", wrong, output)
            for wrong in (last_inside, last_only)
        ),
        *(
            Mistake(
                f"only the {name} input channel counts: the sum runs over all channels, begin it before their loop",
                lambda x, w, *more, one=one: conv_of(x[:, one], w[:, one], *more) if x.shape[1] > 1 else None,
                output,
            )
            for name, one in (("last", slice(-1, None)), ("first", slice(1)))
        ),
        Mistake(
            "every image has the result of the first one: x[n], and not x[0]",
            lambda x, w, b, *more: conv_of(np.broadcast_to(x[:1], x.shape), w, b, *more) if len(x) > 1 else None,
            output,
        ),
        *(Mistake(text, misplaced(windows), output) for text, windows in WINDOW_MISTAKES),
        *(
            Mistake(text, lambda x, w, *more, change=change: _changed(change, x, w, *more), output)
            for text, change in (*of_x, *of_w)
        ),
    ]


def grads_of(rng: np.random.Generator, case: Case) -> np.ndarray:
    """Random dL/doutput (N, O, H', W')."""
    return rng.standard_normal((case.batch, case.kernels, *case.output))


def grad_weights_of(grad: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """dL/dweights, from dL/doutput and all windows."""
    found: np.ndarray = np.einsum("nors,ncrsij->ocij", grad, windows)
    return found


def grad_input_of(
    grad: np.ndarray,
    weights: np.ndarray,
    image: Pair,
    stride: Pair,
    padding: Pair,
    *,
    wraps: bool = False,
    adds: bool = True,
    cut: bool = True,
) -> np.ndarray:
    """dL/dx: each window's gradient, spread over the place of the window. The switches make known mistakes:

    wraps=True      what belongs to the border above and to the left is added at the other side of the image
    adds=False      of several windows over one pixel the last one counts, and of all kernels the last one
    cut=False       the border is still around it
    """
    window, (rows, columns) = _window(weights), image
    (top, left), places = padding, grad.shape[2:]
    more = [
        max(0, (places[axis] - 1) * stride[axis] + window[axis] - 2 * padding[axis] - image[axis]) for axis in (0, 1)
    ]
    wide = np.zeros((len(grad), weights.shape[1], rows + 2 * top + more[0], columns + 2 * left + more[1]))
    for o in range(len(weights)):
        for r, s in np.ndindex(*places):
            at = wide[:, :, r * stride[0] : r * stride[0] + window[0], s * stride[1] : s * stride[1] + window[1]]
            at[...] = at * adds + grad[:, o, r, s, None, None, None] * weights[o]
    if not cut:
        return wide[:, :, : rows + 2 * top, : columns + 2 * left]
    if wraps:
        high, wide_part = min(top, rows), min(left, columns)
        wide[:, :, top + rows - high : top + rows] += wide[:, :, top - high : top]
        wide[..., left + columns - wide_part : left + columns] += wide[..., left - wide_part : left]
    return wide[:, :, top : top + rows, left : left + columns]
