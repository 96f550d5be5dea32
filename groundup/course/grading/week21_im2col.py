"""Week 21: windows copied into columns and back, and convolution as one product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong, and_then, unchanged
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.repeated import handed
from groundup.course.checks.source import names_in, syntax_of, uses_none_of, with_helpers, without_loops
from groundup.course.grading.calling import on_arrays
from groundup.course.grading.calling.c_functions import alike
from groundup.course.grading.calling.noted_products import axes_of_products
from groundup.course.grading.problems import images
from groundup.course.grading.problems.images import CASES, NONE, ONE, TYPICAL, Case, array
from shared.contract import load_part
from shared.windows import output_size


def columns_file() -> Any:
    """stage2_numpy/columns.py, with the learner's function in it."""
    return load_part("stage2_numpy", "columns")


def geometry(s: Case) -> Any:
    """The project's own record of these sizes."""
    return columns_file().Geometry(s.image, s.window, s.stride, s.padding, s.output)


SMALL = Case(1, 1, 2, 3, 1, 2, 2)

PIXELS = "a loop in Python over windows or pixels: loop at most over the places in the window, kh times kw of them"

SIDE_BY_SIDE = "the windows are side by side, as if the stride were 1"
TURNED = "each window is turned by half a turn: place (i, j) of the window is i rows below its corner"
EXCHANGED = "the window's rows and columns have changed places"


def gather_columns() -> list[Check]:
    """im2col: every number where it belongs, whatever the window's shape and stride."""
    function = columns_file().gather_columns

    def call(padded: np.ndarray, g: Any) -> np.ndarray:
        given = handed(padded)
        columns = np.full((padded.shape[1], *g.window, len(padded), *g.output), np.nan, padded.dtype)
        function(given, columns, g)
        unchanged(Tally(), (padded,), (given,), ("padded",))
        return columns

    def windows(padded: np.ndarray, g: Any) -> np.ndarray:
        return images.windows_of(padded, g.window, g.stride, NONE)

    def reference(padded: np.ndarray, g: Any) -> np.ndarray:
        return windows(padded, g).transpose(1, 4, 5, 0, 2, 3)

    def arguments(rng: np.random.Generator, s: Case) -> tuple[Any, ...]:
        return rng.standard_normal((s.batch, s.channels, *s.padded)), geometry(s)

    def densely(padded: np.ndarray, g: Any) -> np.ndarray | None:
        return None if g.stride == ONE else reference(padded, replace(g, stride=ONE))[..., : g.output[0], : g.output[1]]

    def images_first(padded: np.ndarray, g: Any) -> np.ndarray:
        return windows(padded, g).transpose(0, 1, 4, 5, 2, 3).reshape(reference(padded, g).shape)

    def images_before_channels(padded: np.ndarray, g: Any) -> np.ndarray:
        channels, kh, kw, *of_places = reference(padded, g).shape
        mixed = windows(padded, g).transpose(4, 5, 0, 1, 2, 3).reshape(kh, kw, channels, *of_places)
        return mixed.transpose(2, 0, 1, 3, 4, 5)

    def reshaped(padded: np.ndarray, g: Any) -> np.ndarray:
        right = reference(padded, g)
        return windows(padded, g).reshape(right.shape)

    exercise = Exercise(
        call=call,
        reference=reference,
        show=lambda padded, g: f"gather_columns(padded {padded.shape}) for windows {g.window}, stride {g.stride}",
        hand=[
            (
                (array([1, 2, 3], [4, 5, 6]), geometry(SMALL)),
                np.array([[1.0, 2], [2, 3], [4, 5], [5, 6]]).reshape(1, 2, 2, 1, 1, 2),
            ),
            (
                (np.arange(1.0, 17).reshape(2, 1, 2, 4), geometry(Case(2, 1, 2, 4, 1, 1, 2, (1, 2)))),
                np.array([[1.0, 3, 5, 7, 9, 11, 13, 15], [2, 4, 6, 8, 10, 12, 14, 16]]).reshape(1, 1, 2, 2, 2, 2),
            ),
        ],
        arguments=arguments,
        typical=TYPICAL,
        sizes=CASES,
        way=without_loops(
            function,
            PIXELS,
            of_size=lambda size: call(
                *arguments(np.random.default_rng(3), TYPICAL._replace(batch=size, rows=6 * size, columns=6 * size))
            ),
        ),
        mistakes=[
            Mistake(
                "the numbers stand in the order of the windows' view: reshape does not move an axis, transpose does",
                reshaped,
            ),
            *(
                Mistake(
                    "images and channels are in the wrong order: C stands first, and N behind the window's rows and "
                    "columns. Reshape does not move an axis",
                    mixed,
                )
                for mixed in (images_first, images_before_channels)
            ),
            Mistake(SIDE_BY_SIDE, densely),
            Mistake(TURNED, lambda padded, g: reference(padded, g)[:, ::-1, ::-1]),
            Mistake(
                EXCHANGED,
                lambda padded, g: reference(padded, g).swapaxes(1, 2) if g.window[0] == g.window[1] > 1 else None,
            ),
            Mistake(
                "every image has the numbers of the first one",
                lambda padded, g: reference(np.repeat(padded[:1], len(padded), 0), g) if len(padded) > 1 else None,
            ),
            Mistake(
                "every channel has the numbers of the first one",
                lambda padded, g: (
                    reference(np.repeat(padded[:, :1], padded.shape[1], 1), g) if padded.shape[1] > 1 else None
                ),
            ),
            Mistake(
                "every place of the window has the number of its corner: place (i, j) is i rows and j columns on",
                lambda padded, g: np.broadcast_to(reference(padded, g)[:, :1, :1], reference(padded, g).shape),
            ),
        ],
    )

    def plainly(padded: np.ndarray, g: Any) -> np.ndarray:
        columns = np.empty((padded.shape[1], *g.window, len(padded), *g.output))
        function(padded, columns, g)
        return columns

    speed = on_arrays.speed_check(
        exercise,
        plainly,
        lambda padded, g: np.ascontiguousarray(reference(padded, g)),
        lambda rng: arguments(rng, Case(8, 4, 20, 20, 1, 3, 3)),
        PIXELS,
    )
    return on_arrays.graded(exercise, speed)


OUTSIDE = 7.0

IN_PLACE = (
    "padded may be a view into a larger array: padded[…] += … changes it in place, and a reshaped or a copied one is "
    "another array"
)


def scatter_columns() -> list[Check]:
    """col2im: every number added to the pixel it came from, in place, into a view of a larger array."""
    function = columns_file().scatter_columns

    def call(columns: np.ndarray, before: np.ndarray, g: Any) -> np.ndarray:
        (channels, n, rows, wide), given = before.shape, handed(columns)
        room = np.full((channels, n, rows + 2, wide + 3), OUTSIDE, before.dtype)
        padded = room[:, :, 1:-1, 2:-1]
        padded[...] = before
        function(given, padded, g)
        unchanged(Tally(), (columns,), (given,), ("columns",))
        result = padded.copy()
        padded[...] = OUTSIDE
        if not np.all(room == OUTSIDE):
            raise Wrong("scatter_columns writes beside padded", cause=IN_PLACE)
        return result

    def added(columns: np.ndarray, before: np.ndarray, g: Any, keep: bool = True) -> np.ndarray:
        total = before.copy()
        for i, j in np.ndindex(*g.window):
            pixels = total[
                :, :, i : i + g.stride[0] * g.output[0] : g.stride[0], j : j + g.stride[1] * g.output[1] : g.stride[1]
            ]
            pixels[...] = pixels + columns[:, i, j] if keep else columns[:, i, j]
        return total

    def arguments(rng: np.random.Generator, s: Case) -> tuple[Any, ...]:
        columns = rng.standard_normal((s.channels, *s.window, s.batch, *s.output))
        return columns, rng.standard_normal((s.channels, s.batch, *s.padded)), geometry(s)

    def densely(columns: np.ndarray, before: np.ndarray, g: Any) -> np.ndarray | None:
        return None if g.stride == (1, 1) else added(columns, before, replace(g, stride=(1, 1)))

    def rows_overlapping(tally: Tally) -> None:
        """As the gradient of the image calls it where the stride is 1: kh long rows, one row of the image apart."""
        s = Case(2, 3, 4, 5, 1, 2, 3, ONE, (1, 0))
        rng = np.random.default_rng(7)
        (rows, wide), (kh, kw) = s.padded, s.window
        length = (rows - kh + 1) * wide
        columns = rng.standard_normal((3, kh, kw, 2, 1, length))
        line, known = np.zeros((3, 2, rows * wide + kw)), np.zeros((3, 2, rows * wide + kw))
        strides = (*line.strides[:2], wide * line.itemsize, line.itemsize)
        view = np.lib.stride_tricks.as_strided(line, (3, 2, kh, length + kw - 1), strides)
        for i, j in np.ndindex(kh, kw):
            known[..., i * wide + j :][..., :length] += columns[:, i, j, :, 0]
        case = "scatter_columns into a view whose rows overlap, as conv2d_backward hands it over"
        tally.trying(case)
        function(columns, view, replace(geometry(s), output=(1, length)))
        alike(tally, case, line, known, IN_PLACE)

    exercise = Exercise(
        call=call,
        reference=added,
        show=lambda columns, before, g: (
            f"scatter_columns(columns {columns.shape}, padded {before.shape}), stride {g.stride}"
        ),
        hand=[
            (
                (
                    np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]]).reshape(1, 2, 2, 1, 1, 2),
                    np.zeros((1, 1, 2, 3)),
                    geometry(SMALL),
                ),
                [[[[1.0, 5.0, 4.0], [5.0, 13.0, 8.0]]]],
            ),
            (
                (
                    np.arange(1.0, 5).reshape(1, 1, 2, 1, 1, 2),
                    np.full((1, 1, 1, 5), 10.0),
                    geometry(Case(1, 1, 1, 5, 1, 1, 2, (1, 3))),
                ),
                [[[[11.0, 13.0, 10.0, 12.0, 14.0]]]],
            ),
        ],
        arguments=arguments,
        typical=TYPICAL,
        sizes=CASES,
        scale=lambda columns, before, g: added(np.abs(columns), np.abs(before), g),
        way=without_loops(
            function,
            PIXELS,
            of_size=lambda size: call(
                *arguments(np.random.default_rng(3), TYPICAL._replace(batch=size, rows=6 * size, columns=6 * size))
            ),
        ),
        mistakes=[
            Mistake(
                "a pixel in several windows keeps what the last one brought: the numbers are added up",
                lambda columns, before, g: added(columns, before, g, keep=False),
            ),
            Mistake(
                "what padded held before is lost: the numbers are added to it",
                lambda columns, before, g: added(columns, 0 * before, g),
            ),
            Mistake(f"padded is as it was before: {IN_PLACE}", lambda columns, before, g: before),
            Mistake(SIDE_BY_SIDE, densely),
            Mistake(TURNED, lambda columns, before, g: added(columns[:, ::-1, ::-1], before, g)),
            Mistake(
                EXCHANGED,
                lambda columns, before, g: (
                    added(columns.swapaxes(1, 2), before, g) if g.window[0] == g.window[1] > 1 else None
                ),
            ),
            Mistake(
                "all places of the window are added to the window's corner: place (i, j) is i rows and j columns on",
                lambda columns, before, g: added(
                    columns.sum(axis=(1, 2), keepdims=True), before, replace(g, window=(1, 1))
                ),
            ),
            Mistake(
                "only the corner of each window comes back",
                lambda columns, before, g: added(columns[:, :1, :1], before, replace(g, window=(1, 1))),
            ),
        ],
    )
    speed = on_arrays.speed_check(
        exercise,
        function,
        added,
        lambda rng: arguments(rng, Case(8, 4, 20, 20, 1, 3, 3)),
        PIXELS,
    )
    return and_then(on_arrays.graded(exercise, speed), "sizes", rows_overlapping)


ONE_PRODUCT = "the point of im2col is one product of two matrices, for all images, filters and places at once"

OTHER_WAYS = dict.fromkeys(
    (
        *("einsum", "convolve", "correlate", "tensordot", "inner", "vdot", "rfft2"),
        *("conv2d", "sliding_einsum", "kernel_loops", "fourier", "im2col_in_cache", "columns_by_piece"),
    ),
    f"this is another way to a convolution: {ONE_PRODUCT}",
)

PRODUCTS = ("@", "matmul", "dot")


def im2col() -> list[Check]:
    """The rung: one product, for the whole batch."""
    function = on_arrays.stage().convolution.im2col

    def call(x: Any, weights: Any, bias: Any, stride: Any, padding: Any) -> dict[str, Any]:
        size = output_size("conv2d", x.shape, weights.shape[2:], stride, padding)

        def within(x: Any, weights: Any, bias: Any, out: Any = None) -> Any:
            return function(x, weights, bias, stride, padding, out=out)

        within.__name__ = "im2col"
        shape = (len(x), len(weights), *size)
        return on_arrays.on_arrays(within, lambda *rest: shape, "x", "weights", "bias", scratch=False)(x, weights, bias)

    def reference(*arguments: Any) -> dict[str, Any]:
        return on_arrays.both(images.conv_of(*arguments))

    def way(tally: Tally) -> None:
        uses_none_of(function, OTHER_WAYS)(tally)
        without_loops(function, ONE_PRODUCT)(tally)
        own = [syntax_of(each) for each in with_helpers(function)]
        count = sum(name in PRODUCTS for tree in own for name, _ in names_in(tree))
        tally.holds(count == 1, f"im2col has {count} products of matrices", expected="1", cause=ONE_PRODUCT)
        tally.trying("how many matrices im2col multiplies")
        axes = axes_of_products(on_arrays.stage().convolution, images.conv_arguments(np.random.default_rng(3), TYPICAL))
        side_by_side = f"{ONE_PRODUCT}: the images' columns stand side by side, (C kh kw, N H' W')"
        tally.holds(axes == 2, "im2col has a product for each image", cause=side_by_side)

    def unmoved(x: Any, w: Any, b: Any, stride: Any, padding: Any) -> Any:
        """The sums (O, N H' W') read as (N, O, H', W')."""
        sums = images.conv_of(x, w, 0 * b, stride, padding)
        return sums.swapaxes(0, 1).reshape(sums.shape) + b[:, np.newaxis, np.newaxis] if len(x) > 1 else None

    exercise = Exercise(
        call=call,
        reference=reference,
        show=images.conv_shown("im2col"),
        hand=on_arrays.twice(images.CONV_HAND),
        arguments=images.conv_arguments,
        typical=TYPICAL,
        sizes=CASES,
        special=(0, 2),
        terms=lambda x, w, *more: w[0].size,
        scale=images.conv_scale,
        way=way,
        mistakes=[
            *images.conv_mistakes(),
            Mistake(
                "the product is (O, N H' W'): its axes are filters, images, places. Bring the images to the front with "
                "a transpose; _by_image does it",
                unmoved,
            ),
            Mistake(
                "the bias goes along the columns of an image: it is one number for each filter, bias[:, np.newaxis, "
                "np.newaxis]",
                lambda x, w, b, stride, padding: (
                    images.conv_of(x, w, 0 * b, stride, padding) + b
                    if output_size("", x.shape, w.shape[2:], stride, padding)[1] == len(b) > 1
                    else None
                ),
            ),
        ],
    )
    speed = on_arrays.speed_check(
        exercise,
        function,
        images.conv_of,
        lambda rng: images.conv_arguments(rng, Case(8, 3, 16, 16, 6, 3, 3)),
    )
    return on_arrays.graded(exercise, speed)


GRADES: dict[str, Callable[[], list[Check]]] = {
    "21.1": gather_columns,
    "21.2": scatter_columns,
    "21.3": im2col,
}
