"""Max pooling in NumPy: windows, winners, and the known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.problems.images import NONE, Pair, array, output_of, windows_of

Pool = tuple[int, int, int, int, Pair, Pair | None]

TYPICAL: Pool = (2, 2, 5, 4, (2, 3), (2, 1))

CASES: list[Pool] = [
    (1, 1, 1, 1, (1, 1), None),
    (2, 3, 7, 5, (3, 2), None),
    (1, 2, 6, 9, (2, 3), (1, 2)),
    (3, 1, 4, 8, (1, 3), (3, 1)),
    (1, 2, 3, 5, (3, 5), None),
    (2, 2, 9, 2, (4, 1), (5, 1)),
]
"""(batch, channels, rows, columns, size, stride): windows that do not fit, that overlap, with pixels between them, and
one as large as the image."""


def step_of(size: Pair, stride: Pair | None) -> Pair:
    """The stride; None means the size."""
    return size if stride is None else stride


def places_of(x: np.ndarray, size: Pair, stride: Pair | None) -> Pair:
    """(rows, columns) of a pool's output."""
    return output_of(x.shape, size, step_of(size, stride), NONE)


def pool_arguments(rng: np.random.Generator, case: Pool) -> tuple[np.ndarray, Pair, Pair | None]:
    """A random x of few numbers, most of them negative, so that many are equal; size and stride."""
    n, c, rows, columns, size, stride = case
    return rng.integers(-5, 2, (n, c, rows, columns)).astype(np.float64), size, stride


def winners(x: np.ndarray, size: Pair, stride: Pair | None, last: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The largest number of each window, and where it stands in the window, (N, C, H', W'). last: of equal ones the
    last wins"""
    windows = windows_of(x, size, step_of(size, stride), NONE)
    flat = windows.reshape(*windows.shape[:4], -1)
    at = flat.shape[-1] - 1 - flat[..., ::-1].argmax(axis=-1) if last else flat.argmax(axis=-1)
    return np.take_along_axis(flat, at[..., None], axis=-1)[..., 0], at


def in_plane(
    x: np.ndarray, size: Pair, stride: Pair | None, at: np.ndarray, step: Pair | None = None, width: int = 0
) -> np.ndarray:
    """The indices of places in windows, counted through the H x W numbers of a channel. step, width: of a mistake"""
    down, right = step or step_of(size, stride)
    rows, columns = np.indices(at.shape[2:])
    plane: np.ndarray = (rows * down + at // size[1]) * (width or x.shape[3]) + columns * right + at % size[1]
    return plane


def max_pool(x: np.ndarray, size: Pair, stride: Pair | None) -> dict[str, np.ndarray]:
    """The output and the indices by name."""
    largest, at = winners(x, size, stride)
    return {"": largest, "indices": in_plane(x, size, stride, at)}


SMALL = array([1, 3, 2, 0], [4, 0, 1, 2], [0, 1, 5, 1], [2, 1, 0, 3])

MAX_HAND: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((array([1, 5, 2], [7, 0, 7]), (2, 2), (1, 1)), {"": array([7, 7]), "indices": array([3, 5])}),
    ((SMALL, (2, 2), None), {"": array([4, 2], [2, 5]), "indices": array([4, 2], [12, 10])}),
    ((array([-3, -1, -1, -2, -9]), (1, 2), None), {"": array([-1, -1]), "indices": array([1, 2])}),
    ((array([3, 3, 3], [3, 3, 3]), (2, 2), (1, 1)), {"": array([3, 3]), "indices": array([0, 1])}),
    ((array([2, 1, -np.inf, -np.inf]), (1, 2), None), {"": array([2, -np.inf]), "indices": array([0, 2])}),
]


def max_mistakes() -> list[Mistake]:
    """The known mistakes of a max pool."""

    def stepped(step: Callable[[Pair, Pair], Pair], name: str) -> Callable[..., np.ndarray | None]:
        def result(x: np.ndarray, size: Pair, stride: Pair | None) -> np.ndarray | None:
            mistaken, places = step(size, step_of(size, stride)), places_of(x, size, stride)
            found = max_pool(x, size, mistaken)[name]
            enough = found.shape[2] >= places[0] and found.shape[3] >= places[1]
            return found[:, :, : places[0], : places[1]] if enough and mistaken != step_of(size, stride) else None

        return result

    def places_alone(x: np.ndarray, size: Pair, stride: Pair | None) -> np.ndarray | None:
        rows, columns = places_of(x, size, stride)
        at = winners(x, size, (1, 1))[1][:, :, :rows, :columns]
        return in_plane(x, size, stride, at) if step_of(size, stride) != (1, 1) else None

    def of_indices(change: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        return lambda x, size, stride: change(x, size, stride, winners(x, size, stride)[1])

    def through_array(x: np.ndarray, size: Pair, stride: Pair | None, at: np.ndarray) -> np.ndarray:
        planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], 1, 1)
        return in_plane(x, size, stride, at) + planes * x.shape[2] * x.shape[3]

    by_one = "the windows move by one place: they move by the stride, and by their own size if it is None"
    by_size = "the windows lie side by side: they move by the stride, which may be another one than their size"
    return [
        Mistake(
            "of equal numbers the first one wins, row by row: does >= stand where > belongs?",
            lambda x, size, stride: in_plane(x, size, stride, winners(x, size, stride, last=True)[1]),
            "indices",
        ),
        Mistake(
            "these indices count within the window: they have to count through the rows of the whole channel, "
            "row * columns + column",
            of_indices(lambda x, size, stride, at: at),
            "indices",
        ),
        Mistake(
            "a window of -inf alone has index 0: nothing is larger than -inf, so begin with the window's first number",
            lambda x, size, stride: np.where(
                np.isneginf(max_pool(x, size, stride)[""]), 0, max_pool(x, size, stride)["indices"]
            ),
            "indices",
        ),
        Mistake(
            "these indices count through the whole array: each channel begins anew at 0",
            of_indices(through_array),
            "indices",
        ),
        Mistake(
            "row times the columns of the output, or of the window: a row of the image is as long as the image is wide",
            of_indices(lambda x, size, stride, at: in_plane(x, size, stride, at, width=at.shape[3])),
            "indices",
        ),
        Mistake(
            "row times the columns of the output, or of the window: a row of the image is as long as the image is wide",
            of_indices(lambda x, size, stride, at: in_plane(x, size, stride, at, width=size[1])),
            "indices",
        ),
        Mistake(
            "row times the rows of the image: a row of the image is as long as the image is wide",
            of_indices(lambda x, size, stride, at: in_plane(x, size, stride, at, width=x.shape[2])),
            "indices",
        ),
        *(
            Mistake(
                "the window's corner is not at the place's number: it is at r * stride and s * stride",
                of_indices(lambda x, size, stride, at, of=of: in_plane(x, size, stride, at, step=of(size))),
                "indices",
            )
            for of in (lambda size: (1, 1), lambda size: size)
        ),
        Mistake(
            "where the corner is, and not where the largest number is",
            of_indices(lambda x, size, stride, at: in_plane(x, size, stride, 0 * at)),
            "indices",
        ),
        Mistake(
            "the largest is sought from 0 on: a window of negative numbers has a negative maximum",
            lambda x, *more: np.maximum(winners(x, *more)[0], 0),
        ),
        Mistake("the smallest number of each window", lambda x, *more: -winners(-x, *more)[0]),
        Mistake(
            "the mean of each window, which is another pool",
            lambda x, size, stride: windows_of(x, size, step_of(size, stride), NONE).mean(axis=(4, 5)),
        ),
        Mistake(by_one, places_alone, "indices"),
        *(Mistake(by_one, stepped(lambda size, step: (1, 1), name), name) for name in ("", "indices")),
        *(Mistake(by_size, stepped(lambda size, step: size, name), name) for name in ("", "indices")),
    ]


def back_arguments(rng: np.random.Generator, case: Pool) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Random grad_output, the indices of a pool, and the shape of its input."""
    x, size, stride = pool_arguments(rng, case)
    indices = max_pool(x, size, stride)["indices"].astype(np.int64)
    return rng.standard_normal(indices.shape), indices, x.shape


def back_of(grad: np.ndarray, indices: np.ndarray, shape: tuple[int, ...], add: bool = True) -> np.ndarray:
    """dL/dx. add=False: of several windows with one winner the last one counts"""
    found = np.zeros((shape[0] * shape[1], shape[2] * shape[3]))
    plane = np.arange(len(found))[:, None]
    flat, values = np.asarray(indices).reshape(len(found), -1), grad.reshape(len(found), -1)
    if add:
        np.add.at(found, (plane, flat), values)
    else:
        found[plane, flat] = values
    return found.reshape(shape)


def back_mistakes() -> list[Mistake]:
    """The known mistakes of a max pool's way back."""

    def one_plane(grad: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
        if shape[0] * shape[1] == 1:
            return None
        found = np.zeros(shape)
        np.add.at(found.reshape(-1), np.asarray(indices).ravel(), grad.ravel())
        return found

    def one_image(grad: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
        if shape[0] == 1:
            return None
        found = np.zeros(shape)
        found[0] = back_of(grad, indices, shape).sum(axis=0)
        return found

    return [
        Mistake(
            "windows overlap and have one winner: its gradients add up. With an array of indices, = and += write each "
            "place once; np.add.at adds every time",
            lambda grad, indices, shape: back_of(grad, indices, shape, add=False),
        ),
        Mistake(
            "everything goes to the first channel of the first image: an index counts within its channel, so channel k "
            "of all begins at k * rows * columns",
            one_plane,
        ),
        Mistake("everything goes to the first image: an index counts within its channel, of every image", one_image),
        Mistake(
            "a 1 goes back, and not the gradient",
            lambda grad, *more: back_of(np.ones_like(grad), *more),
        ),
        Mistake(
            "each place gets the mean of its gradients: the windows add up",
            lambda grad, *more: back_of(grad, *more) / np.maximum(back_of(np.ones_like(grad), *more), 1),
        ),
        Mistake(
            "out holds whatever was there before, NaN here: set it to 0 first",
            lambda grad, indices, shape: np.where(
                back_of(np.ones_like(grad), indices, shape) > 0, back_of(grad, indices, shape), np.nan
            ),
        ),
        Mistake(
            "out holds whatever was there before, NaN here: set it to 0 first",
            lambda grad, indices, shape: np.full(shape, np.nan),
        ),
    ]


BACK_HAND: list[tuple[tuple[Any, ...], Any]] = [
    ((array([10, 20]), np.array([[[[1, 1]]]]), (1, 1, 1, 3)), array([0, 30, 0])),
    (
        (array([1, -2], [3, 4]), np.array([[[[4, 2], [12, 10]]]]), (1, 1, 4, 4)),
        array([0, 0, -2, 0], [1, 0, 0, 0], [0, 0, 4, 0], [3, 0, 0, 0]),
    ),
    (
        (np.array([[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]), np.array([[[[0]], [[1]]], [[[1]], [[0]]]]), (2, 2, 1, 2)),
        [[[[1.0, 0.0]], [[0.0, 2.0]]], [[[0.0, 3.0]], [[4.0, 0.0]]]],
    ),
]
