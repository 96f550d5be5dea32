"""Week 23: max pooling back without atomics, and the statistics of batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.early_returns import left_early
from groundup.course.grading.calling.kernel_arithmetic import only_float32
from groundup.course.grading.calling.kernel_launches import (
    NO_STRIDE,
    RUNS,
    Launch,
    Out,
    as_float,
    launched,
    module,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, races, reads, watched
from groundup.course.grading.calling.launched_again import APART, ONLY_NAN, kernel_checks
from groundup.course.grading.calling.line_by_line import line_by_line
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.kernel_reductions import BARRIER_IN_TREE, BARRIER_MISSING

TANH = 4
"""Its number among the activations of the kernels. Its slope says which output it was given; that of ReLU does not, for
the largest number and what ReLU makes of it are above 0 together."""


class Pool(NamedTuple):
    """(planes, rows, columns) of the image, the window, its stride, and the numbers of the activations after and before
    the pool: 0 for none, 1 for ReLU, TANH."""

    planes: int
    image: tuple[int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    after: int = 0
    before: int = 0


def pooled(x: np.ndarray, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """(largest number of each window, its place)"""
    rows, columns = (
        (size - window) // stride + 1
        for size, window, stride in zip(x.shape[1:], pool.window, pool.stride, strict=True)
    )
    output, indices = np.empty((len(x), rows, columns), x.dtype), np.empty((len(x), rows, columns), np.int32)
    for n, r, s in np.ndindex(output.shape):
        top, left = r * pool.stride[0], s * pool.stride[1]
        window = x[n, top : top + pool.window[0], left : left + pool.window[1]]
        i, j = np.unravel_index(int(window.argmax()), window.shape)
        output[n, r, s], indices[n, r, s] = window[i, j], (top + i) * x.shape[2] + left + j
    return output, indices


def pool_arguments(rng: np.random.Generator, pool: Pool) -> tuple[Any, ...]:
    """(grad_output, output, indices, x, pool) of random images"""
    x = random(rng, pool.planes, *pool.image)
    if pool.after or pool.before:
        x -= 1  # so that many windows have nothing above 0, where ReLU hands nothing back
    if pool.before:
        x = np.maximum(x, 0)
    output, indices = pooled(x, pool)
    if pool.after:
        output = np.tanh(output) if pool.after == TANH else np.maximum(output, 0)
    return random(rng, *output.shape), output, indices, x, pool


def slopes_of(activation: int, grad: np.ndarray, output: np.ndarray) -> np.ndarray:
    """grad through an activation: none, tanh, or ReLU."""
    if activation == TANH:
        return grad * (1 - output.astype(np.float64) ** 2)
    return np.where(output > 0, grad, 0) if activation else grad


def handed_back(
    grad: np.ndarray,
    output: np.ndarray,
    indices: np.ndarray,
    x: np.ndarray,
    pool: Pool,
    *,
    among: Callable[[np.ndarray, np.ndarray, Pool], bool] | None = None,
    add: Callable[[float, float], float] | None = None,
) -> np.ndarray:
    """dL/dx in float64. among: which (row, column) of the windows are looked at; add: in place of the sum"""
    slopes = slopes_of(pool.after, grad, output)
    found = np.zeros((len(x), x[0].size))
    for n, r, s in np.ndindex(*grad.shape):
        place = int(indices[n, r, s])
        if among is None or among(np.array([r, s]), np.array(divmod(place, x.shape[2])), pool):
            slope = float(slopes[n, r, s])
            found[n, place] = found[n, place] + slope if add is None else add(found[n, place], slope)
    return slopes_of(pool.before, found.reshape(x.shape), x)


def _first(place: np.ndarray, pool: Pool) -> np.ndarray:
    """(row, column) of the first window over a place."""
    return np.maximum(0, -(-(place - pool.window + np.array(1)) // np.array(pool.stride)))


def _last(place: np.ndarray, pool: Pool) -> np.ndarray:
    """That of the last one that there is."""
    count = (np.array(pool.image) - pool.window) // np.array(pool.stride)
    return np.minimum(place // np.array(pool.stride), count)


LOOKED_AT: list[tuple[str, Callable[[np.ndarray, np.ndarray, Pool], bool]]] = [
    (
        "only the first window over each number is looked at: both loops go on to the last one",
        lambda window, place, pool: bool((window == _first(place, pool)).all()),
    ),
    (
        "only the last window over each number is looked at: both loops begin with the first one",
        lambda window, place, pool: bool((window == _last(place, pool)).all()),
    ),
    *(
        (
            "the last window over each number is left out: last_row and last_column belong to it, so i <= last_row",
            lambda window, place, pool, axes=axes: bool((window < _last(place, pool))[axes].all()),
        )
        for axes in ([0, 1], [0], [1])
    ),
]
"""Known mistakes, and at which windows over a place they look."""

LOOKS_EVERYWHERE = (
    "each number looks into windows that it does not lie in: those over row begin with first_window(row, window_rows, "
    "stride_rows) and end with row // stride_rows, the columns likewise"
)

GATHERS = (
    "a thread has one number of the image and adds up what the windows over it hand back, in a variable; nobody else "
    "writes this number, so nothing has to be atomic, and the order is the same in every run"
)


def given(grad: np.ndarray, output: np.ndarray, indices: np.ndarray, x: np.ndarray, pool: Pool) -> tuple[Any, ...]:
    """The kernel's arguments."""
    return grad, output, pool.after, indices, x, pool.before, *pool.window, *pool.stride, Out(x.shape)


def everywhere(grad: np.ndarray, output: np.ndarray, indices: np.ndarray, x: np.ndarray, pool: Pool) -> np.ndarray:
    """The mistake that hands the whole gradient of a window to every number of it."""
    found, slopes = np.zeros(x.shape), slopes_of(pool.after, grad, output)
    for n, r, s in np.ndindex(*grad.shape):
        top, left = r * pool.stride[0], s * pool.stride[1]
        found[n, top : top + pool.window[0], left : left + pool.window[1]] += slopes[n, r, s]
    return slopes_of(pool.before, found, x)


def max_backward() -> list[Check]:
    """23.5: each number of the image gathers from the windows that it lies in. The launch has fewer threads than there
    are lines and columns."""
    kernel, launch = module("kernels.pooling").max_backward, Launch(2, (4, 2))
    typical = Pool(3, (7, 6), (3, 2), (2, 1), after=1)

    def written(text: str, where: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Mistake:
        """Only where this holds of (line, column) is something written."""

        def wrong(*arguments: Any) -> Any:
            right = handed_back(*arguments)
            line, column = np.indices((right.shape[0] * right.shape[1], right.shape[2]))
            return np.where(where(line, column).reshape(right.shape), right, np.nan)

        return Mistake(text, wrong)

    def without(text: str, **none: Any) -> Mistake:
        def wrong(grad: np.ndarray, output: np.ndarray, indices: np.ndarray, x: np.ndarray, pool: Pool) -> np.ndarray:
            return handed_back(grad, output, indices, x, pool._replace(**none))

        return Mistake(text, wrong)

    image = as_float([[[1, 5, 2], [0, 3, 4]]])
    overlapping = (
        as_float([[[10, 20]]]),
        as_float([[[5, 5]]]),
        np.array([[[1, 1]]], np.int32),
        image,
        Pool(1, (2, 3), (2, 2), (1, 1)),
    )
    alone = (
        as_float([[[1, 2], [3, 4]]]),
        as_float([[[1, 2], [0, 4]]]),
        np.array([[[0, 2], [3, 5]]], np.int32),
        image,
        Pool(1, (2, 3), (1, 1), (1, 2)),
    )
    return kernel_checks(
        Exercise(
            call=lambda *arguments: launched(kernel, launch, *given(*arguments)),
            reference=handed_back,
            show=lambda grad, output, indices, x, pool: (
                f"max_backward of x {x.shape}, window {pool.window}, stride {pool.stride}, activations {pool.after} "
                f"after it and {pool.before} before it"
            ),
            hand=[
                # Both windows have the 5 as their largest number: 10 + 20 go there.
                (overlapping, [[[0, 30, 0], [0, 0, 0]]]),
                (alone, [[[1, 0, 2], [3, 0, 4]]]),
            ],
            arguments=pool_arguments,
            typical=typical,
            sizes=[
                Pool(1, (1, 1), (1, 1), (1, 1)),
                Pool(2, (5, 9), (2, 3), (2, 2), before=1),
                Pool(1, (9, 4), (3, 3), (1, 1)),
                Pool(2, (8, 7), (2, 2), (3, 4), after=TANH, before=1),
            ],
            dtype="float32",
            terms=lambda *arguments: 9,
            scale=lambda grad, *arguments: handed_back(np.abs(grad), *arguments) + np.abs(grad).max(),
            mistakes=[
                written(NO_STRIDE, lambda line, column: line < 4),
                written(
                    "columns beyond the block are left out: go on along the line by cuda.blockDim.x",
                    lambda line, column: column < 4,
                ),
                Mistake(
                    "only one window hands back: where windows overlap, a number may have won several, and their "
                    "gradients are added up",
                    lambda *arguments: handed_back(*arguments, add=lambda old, slope: slope),
                ),
                *(
                    Mistake(text, lambda *arguments, among=among: handed_back(*arguments, among=among))
                    for text, among in LOOKED_AT
                ),
                Mistake(
                    "every number of a window gets its gradient: only the one whose place stands in indices has won",
                    everywhere,
                ),
                without(
                    "the activation after the pool is left out: back(after, grad_output[…], output[…])",
                    after=0,
                ),
                without(
                    "the activation before the pool is left out: where before is not 0, back(before, total, x[…])",
                    before=0,
                ),
                Mistake(
                    "after and before have changed places: `after` made output, and `before` made x",
                    lambda grad, output, indices, x, pool: handed_back(
                        grad, output, indices, x, pool._replace(after=pool.before, before=pool.after)
                    ),
                ),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch(2, (32, 2)),
                lambda rng: given(*pool_arguments(rng, Pool(1, (8, 32), (3, 3), (1, 1)))),
                reads(3, 9, LOOKS_EVERYWHERE, per="launch"),
                reads(0, 9, LOOKS_EVERYWHERE, per="launch"),
                reads(10, 0, "the sum is kept in global memory: keep it in a variable, and write it once"),
                coalesced(10, RUNS),
                race=GATHERS,
                atomics=GATHERS,
                work=[Work(10, 4)],
            ),
            types=only_float32(
                kernel,
                Launch(1, (4, 2)),
                lambda rng: given(*pool_arguments(rng, Pool(1, (3, 4), (2, 2), (1, 1), 1, 1))),
            ),
        ),
        special=ONLY_NAN,
        sizes=[typical, Pool(2, (4, 5), (2, 2), (1, 2))],
    )


FAR = 1e4
"""A mean so far from 0 that the mean of the squares less the square of the mean leaves nothing of the deviations."""


def channels_far_apart(rng: np.random.Generator, images: int, channels: int, length: int) -> np.ndarray:
    """Random numbers whose channels lie far from 0 and apart."""
    offsets = np.resize([0.0, FAR, -50.0], channels)[:, None]
    return (rng.standard_normal((images, channels, length)) + offsets).astype(np.float32)


def shares(x: np.ndarray, parts: int) -> list[np.ndarray]:
    """x - x[0, c, 0] of each part: (channels, numbers of the part)."""
    d = x.astype(np.float64) - x[:1, :, :1].astype(np.float64)
    share = -(-len(x) // parts)
    return [d[p * share : (p + 1) * share].swapaxes(0, 1).reshape(x.shape[1], -1) for p in range(parts)]


def stated(groups: list[np.ndarray]) -> np.ndarray:
    """Count, mean and squared deviations of each group, (P, 3, C); zeros for a group without numbers."""
    found = np.zeros((len(groups), 3, len(groups[0])))
    for p, group in enumerate(groups):
        if group.size:
            mean = group.mean(axis=1)
            found[p, 0] = group.shape[1]
            found[p, 1:] = mean, ((group - mean[:, None]) ** 2).sum(axis=1)
    return found


def statistics() -> list[Check]:
    """23.6: a block's numbers, joined by a tree of halves."""
    batch_norm = module("kernels.batch_norm")
    kernel = batch_norm.statistics

    def call(x: np.ndarray, parts: int, threads: int) -> np.ndarray:
        launch = Launch((x.shape[1], parts), threads)
        return line_by_line(kernel, launch, x, Out((parts, 3, x.shape[1])))

    def scale(x: np.ndarray, parts: int, threads: int) -> np.ndarray:
        sizes = stated(shares(x, parts))
        for p, group in enumerate(shares(x, parts)):
            if group.size:
                sizes[p, 1] = np.abs(group).mean(axis=1)
                sizes[p, 2] = (group**2).sum(axis=1)
        return sizes

    def by_threads(join: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[..., Any]:
        """A result computed from the threads' own three numbers of each part: join takes (3, C) for each thread."""

        def wrong(x: np.ndarray, parts: int, threads: int) -> Any:
            found = np.zeros((parts, 3, x.shape[1]))
            for p, group in enumerate(shares(x, parts)):
                own = [stated([group[:, thread::threads]])[0] for thread in range(threads)]
                with np.errstate(all="ignore"):
                    found[p] = join(own)
            return found

        return wrong

    def tree(join: Callable[[np.ndarray, np.ndarray], np.ndarray], guarded: bool = True) -> Callable[..., Any]:
        def joined(own: list[np.ndarray]) -> np.ndarray:
            places = list(own)
            while half := len(places) // 2:
                pairs = zip(places[:half], places[half:], strict=True)
                places = [join(a, b) if not guarded or b[0].max() > 0 else a for a, b in pairs]
            return places[0]

        return by_threads(joined)

    def chan(a: np.ndarray, b: np.ndarray, *, mistake: str = "") -> np.ndarray:
        """Two groups joined, with or without a mistake."""
        both = a[0] + b[0]
        own = both if mistake == "count first" else a[0]
        weight = b[0] / (own + b[0])
        mean = (a[1] + b[1]) / 2 if mistake == "halves" else a[1] + (b[1] - a[1]) * weight
        distance = b[1] - (mean if mistake == "mean first" else a[1])
        return np.array([both, mean, a[2] + b[2] + (mistake != "only added") * distance * distance * own * weight])

    def mistaken(mistake: str) -> Callable[..., Any]:
        return tree(lambda a, b: chan(a, b, mistake=mistake))

    def single(x: np.ndarray, parts: int, threads: int) -> Any:
        """Every part has all images."""
        return np.repeat(stated(shares(x, 1)), parts, axis=0)

    def first_part(x: np.ndarray, parts: int, threads: int) -> Any:
        return np.where(np.arange(parts)[:, None, None] == 0, stated(shares(x, parts)), np.nan)

    def own_shift(x: np.ndarray, parts: int, threads: int) -> Any:
        """Each part is shifted by its own first number."""
        found, share = stated(shares(x, parts)), -(-len(x) // parts)
        for p in range(-(-len(x) // share)):
            found[p, 1] -= x[p * share, :, 0].astype(np.float64) - x[0, :, 0]
        return found

    def unshifted(x: np.ndarray, parts: int, threads: int) -> Any:
        found = stated(shares(x, parts))
        found[:, 1] += np.where(found[:, 0] > 0, x[0, :, 0], 0)
        return found

    two = as_float([[[1, 3]], [[5, 7]]])
    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda x, parts, threads: stated(shares(x, parts)),
            show=lambda x, parts, threads: (
                f"statistics of x {x.shape} in {parts} part{'s' * (parts > 1)}, {threads} threads a block"
            ),
            hand=[
                # Less the first number: 0, 2, 4, 6. Their mean is 3, the squared deviations 9 + 1 + 1 + 9.
                ((two, 1, 4), [[[4], [3], [20]]]),
                ((two, 2, 2), [[[2], [1], [2]], [[2], [5], [2]]]),
                ((two, 1, 8), [[[4], [3], [20]]]),
            ],
            arguments=lambda rng, size: (channels_far_apart(rng, *size[0]), *size[1:]),
            typical=((6, 3, 7), 2, 8),
            sizes=[((2, 1, 1), 1, 1), ((5, 2, 9), 4, 16), ((3, 4, 30), 1, 32), ((9, 1, 1), 3, 4), ((2, 2, 5), 1, 64)],
            dtype="float32",
            terms=lambda x, parts, threads: len(x) * x.shape[2],
            scale=scale,
            mistakes=[
                *left_early(),
                Mistake(
                    "a group without numbers is joined: where both counts are 0, b / (a + b) is 0 / 0. Join only if "
                    "counts[thread + half] is more than 0",
                    tree(chan, guarded=False),
                ),
                Mistake(
                    "the mean is replaced before the squares are joined, which need both means as they were",
                    mistaken("mean first"),
                ),
                Mistake(
                    "the count is replaced before the others are joined, which need both counts as they were",
                    mistaken("count first"),
                ),
                Mistake(
                    "the squared deviations are only added: each group's are from its own mean, and joined_squares "
                    "adds what the distance of the two means brings",
                    mistaken("only added"),
                ),
                Mistake(
                    "the means are averaged as if both groups had equally many numbers: joined_mean weighs them",
                    mistaken("halves"),
                ),
                Mistake("no tree: only what thread 0 has seen comes out", by_threads(lambda own: own[0])),
                Mistake(
                    "the first level of the tree is left out: it begins with half of the block's threads",
                    by_threads(lambda own: _joined_in_turn(own[: len(own) // 2], chan) if len(own) > 1 else own[0]),
                ),
                Mistake(
                    BARRIER_IN_TREE,
                    by_threads(
                        lambda own: _joined_in_turn(
                            [own[0], *(own[1 << i] for i in reversed(range((len(own) - 1).bit_length())))], chan
                        )
                    ),
                ),
                Mistake(
                    "every part has all images: a part has `share` of them, from cuda.blockIdx.y * share on", single
                ),
                Mistake("only the first part is written: cuda.blockIdx.y counts the parts", first_part),
                Mistake("the shift is the channel's first number, x[0, channel, 0], in every part", own_shift),
                Mistake("the shift is missing: the mean is that of x - x[0, channel, 0]", unshifted),
                *races(),
            ],
            memory=watched(
                kernel,
                Launch((2, 2), 64),
                lambda rng: (channels_far_apart(rng, 4, 2, 64), Out((2, 3, 2))),
                coalesced(0, "neighbouring threads take neighbouring numbers of the image: seen_by_thread does so"),
                race=BARRIER_MISSING,
                work=[
                    Work(0, 3, "load"),
                    Work(1, 3),
                    Work(None, 80, "load", "the groups of 64 threads are joined by a tree of halves, in six levels"),
                ],
            ),
            types=only_float32(
                kernel, Launch((1, 1), 4), lambda rng: (channels_far_apart(rng, 2, 1, 4), Out((1, 3, 1)))
            ),
        ),
        special=APART[:1],
        sizes=[((4, 2, 5), 2, 8)],
    )


def _joined_in_turn(own: list[np.ndarray], join: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """These groups joined one after the other, those without numbers left out."""
    total = own[0]
    for other in own[1:]:
        if other[0].max() > 0:
            total = join(total, other)
    return total


GRADES: dict[str, Callable[[], list[Check]]] = {
    "23.5": max_backward,
    "23.6": statistics,
}
