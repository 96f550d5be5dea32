"""Pooling alone, against the reference: maxima and their places, means, and both gradients.

    pooling_checks        at awkward sizes, and on ties, negative numbers, NaN and infinities
    max_pool_checks       one max pooling forward and backward; the layer level calls it with a network's own numbers
    average_pool_checks   the same of an average pooling

A maximum is one of its inputs, so nothing is rounded: both stages must give the same number, and name the same place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from shared.checks.pair import Pair
from shared.checks.tolerance import Comparison
from shared.windows import Pair as Two
from shared.windows import as_pair, output_size


class Form(NamedTuple):
    """One pooling: x (N, C, H, W). size, stride: a number or a pair, as a caller gives them."""

    x: tuple[int, int, int, int]
    size: int | Two
    stride: int | Two | None = None


FORMS = (
    Form((1, 1, 1, 1), 1),
    Form((2, 3, 5, 7), 2),  # a row and a column are left over
    Form((2, 2, 7, 6), (3, 2), (2, 1)),  # windows overlap
    Form((1, 2, 7, 7), 2, 3),  # pixels between the windows
    Form((2, 1, 4, 3), (4, 3)),  # as large as the image
    Form((1, 3, 2, 29), (1, 3), (1, 2)),
)
MORE_FORMS = (Form((3, 5, 28, 28), 2), Form((2, 7, 13, 11), 3, 1))
"""Added by a full check."""


def pooling_checks(pair: Pair, rng: np.random.Generator, forms: Iterable[Form] = FORMS) -> Iterator[Comparison]:
    """Both kinds of pooling at every form."""
    for form in forms:
        outputs = (*form.x[:2], *output_size("check", form.x, as_pair(form.size), as_pair(form.stride or form.size)))
        grad = pair.rounded(rng.standard_normal(outputs))
        for x, about in images(pair, rng, form.x):
            case = f"{form.x}, size {form.size}, stride {form.stride}, {about}"
            yield from max_pool_checks(pair, x, grad, form.size, form.stride, case=case)
        x = pair.rounded(rng.standard_normal(form.x))
        case = f"{form.x}, size {form.size}, stride {form.stride}"
        yield from average_pool_checks(pair, x, grad, form.size, form.stride, case=case)


def images(pair: Pair, rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[tuple[np.ndarray, str]]:
    """Images of each kind at which a maximum can go wrong, and the words for each."""
    yield pair.rounded(rng.standard_normal(shape)), "random"
    yield rng.integers(0, 2, shape).astype(float), "0 and 1: ties"
    yield pair.rounded(-1.0 - rng.random(shape)), "all negative"
    odd = pair.rounded(rng.standard_normal(shape))
    flat = odd.reshape(*shape[:2], -1)
    flat[:, :, 0] = np.inf
    flat[:, :, -1] = np.nan  # no more than one in an image: which of two would win is not what this asks
    yield odd, "with NaN and infinity"
    yield np.full(shape, -np.inf), "minus infinity"


def max_pool_checks(
    pair: Pair, x: np.ndarray, grad: np.ndarray, size: object, stride: object, **where: Any
) -> Iterator[Comparison]:
    """`max_pool2d`, the places of its maxima, and `max_pool2d_backward` with the reference's places."""
    ours, theirs = pair.stage.pooling, pair.reference.pooling
    expected, places = theirs.max_pool2d(pair.to_reference(x), size, stride)
    got: list[Any] = []

    def forward() -> Any:
        got.extend(ours.max_pool2d(pair.to_stage(x), size, stride))
        return got[0]

    yield pair.check("max_pool2d", forward, pair.from_reference(expected), 1, 0.0, **where)
    exact = np.asarray(places, np.int64)
    yield pair.check("max_pool2d: indices", lambda: np.asarray(got[1], np.int64), exact, 1, 0.0, **where)
    back = theirs.max_pool2d_backward(pair.to_reference(grad), places, x.shape)
    k, scale = max_pool_back_scale(grad, exact, x.shape)
    yield pair.check(
        "max_pool2d_backward",
        lambda: ours.max_pool2d_backward(pair.to_stage(grad), _indices(pair, exact), x.shape),
        pair.from_reference(back),
        k,
        scale,
        **where,
    )


def average_pool_checks(
    pair: Pair, x: np.ndarray, grad: np.ndarray, size: Any, stride: Any, **where: Any
) -> Iterator[Comparison]:
    """`average_pool2d` and its gradient. Their scales are the same operations on absolute values."""
    ours, theirs = pair.stage.pooling, pair.reference.pooling

    def of_reference(values: np.ndarray) -> np.ndarray:
        return pair.from_reference(theirs.average_pool2d(pair.to_reference(values), size, stride))

    def back_of_reference(values: np.ndarray) -> np.ndarray:
        return pair.from_reference(theirs.average_pool2d_backward(pair.to_reference(values), x.shape, size, stride))

    rows, columns = as_pair(size)
    yield pair.check(
        "average_pool2d",
        lambda: ours.average_pool2d(pair.to_stage(x), size, stride),
        of_reference(x),
        rows * columns + 1,
        of_reference(np.abs(x)),
        **where,
    )
    yield pair.check(
        "average_pool2d_backward",
        lambda: ours.average_pool2d_backward(pair.to_stage(grad), x.shape, size, stride),
        back_of_reference(grad),
        rows * columns + 1,  # no more windows than that lie on a pixel
        back_of_reference(np.abs(grad)),
        **where,
    )


def max_pool_back_scale(grad: np.ndarray, places: np.ndarray, shape: tuple[int, ...]) -> tuple[int, np.ndarray]:
    """(k, scale) of max_pool2d_backward: where windows overlap, a pixel that is the maximum of several gets the sum."""
    total = np.zeros((shape[0] * shape[1], shape[2] * shape[3]))
    image = np.arange(len(total))[:, np.newaxis]
    np.add.at(total, (image, places.reshape(len(total), -1)), np.abs(grad).reshape(len(total), -1))
    return int(grad.shape[2] * grad.shape[3]), total.reshape(shape)


def _indices(pair: Pair, places: np.ndarray) -> Any:
    """The places as the stage's own `max_pool2d` gives them: nested lists on the first floor."""
    return places.tolist() if pair.stage.number == 1 else places
