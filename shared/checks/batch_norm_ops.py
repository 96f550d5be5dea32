"""Batch normalisation alone, against the reference: training, running statistics, evaluation, and the gradients.

    batch_norm_checks   at awkward sizes; channels far from 0, constant ones, and several updates
    norm_checks         one batch normalisation forward and backward; the layer level calls it with a network's numbers

The condition of x̂ = (x - mean) / √(variance + ε) is |mean| / deviation: what was rounded in x is as large in x̂ as x is
in deviations. The scales in image_scales.py say so, and so rows far from 0 get the tolerance that no formula escapes,
but not that of the difference E[x²] - mean², which would need the square of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from shared.checks.image_scales import Normalised
from shared.checks.ops import FEW
from shared.checks.pair import Pair
from shared.checks.tolerance import Comparison

MOMENTUM, EPSILON = 0.1, 1e-5
SHAPES: tuple[tuple[int, ...], ...] = ((2, 1, 1, 1), (3, 2, 5, 7), (2, 17, 2, 3), (1, 3, 4, 4), (7, 5), (2, 1))
MORE_SHAPES: tuple[tuple[int, ...], ...] = ((31, 3, 7, 5), (67, 13))
"""Added by a full check."""
UPDATES = 3


def batch_norm_checks(
    pair: Pair, rng: np.random.Generator, shapes: Iterable[tuple[int, ...]] = SHAPES
) -> Iterator[Comparison]:
    """Every shape with channels of several kinds, and the running statistics after several updates."""
    for shape in shapes:
        channels = shape[1]
        gamma, beta = (pair.rounded(rng.standard_normal(channels)) for _ in range(2))
        running = [pair.rounded(rng.standard_normal(channels)), pair.rounded(0.5 + rng.random(channels))]
        grad = pair.rounded(rng.standard_normal(shape))
        for x, about in inputs(pair, rng, shape):
            for training in (True, False):
                case = f"{shape}, {about}, {'training' if training else 'evaluation'}"
                yield from norm_checks(pair, x, gamma, beta, running, grad, training, case=case)
        yield from layer_checks(pair, rng, shape, gamma, beta, grad)


def inputs(pair: Pair, rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[tuple[np.ndarray, str]]:
    """Inputs of each kind at which the statistics can go wrong, and the words for each."""
    yield pair.rounded(rng.standard_normal(shape)), "about 0"
    yield pair.rounded(1e4 + rng.standard_normal(shape)), "mean 1e4, deviation 1"
    yield pair.rounded(1e-3 * rng.standard_normal(shape)), "about as small as √ε"
    yield np.full(shape, 3.0), "constant"


def norm_checks(
    pair: Pair,
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    running: list[np.ndarray],
    grad: np.ndarray,
    training: bool,
    **where: Any,
) -> Iterator[Comparison]:
    """`batch_norm`, the running arrays after it, and `batch_norm_backward`. Each stage goes back from its own saved."""
    sides: list[Any] = [(pair.reference.batch_norm, pair.to_reference), (pair.stage.batch_norm, pair.to_stage)]
    tracked = [[give(array.copy()) for array in running] for _, give in sides]
    saved: list[Any] = []

    def forward(side: int) -> Any:
        room, give = sides[side]
        output, kept = room.batch_norm(*map(give, (x, gamma, beta)), *tracked[side], training, MOMENTUM, EPSILON)
        saved.append(kept)
        return output

    expected = pair.from_reference(forward(0))
    rules = norm_scales(x, gamma, beta, running, grad, training, pair.dtype)
    done = pair.check("batch_norm", lambda: forward(1), expected, *rules["output"], **where)
    yield done
    if done.note:
        return
    for i, name in enumerate(("running_mean", "running_var")):
        right = pair.from_reference(tracked[0][i])
        yield pair.check(f"batch_norm: {name}", lambda i=i: tracked[1][i], right, *rules[name], **where)  # type: ignore[misc]
    slopes = [
        pair.from_reference(gradient) for gradient in sides[0][0].batch_norm_backward(pair.to_reference(grad), saved[0])
    ]
    got: list[Any] = []

    def backward() -> Any:
        got.extend(sides[1][0].batch_norm_backward(pair.to_stage(grad), saved[1]))
        return got[0]

    yield pair.check("batch_norm_backward: grad_input", backward, slopes[0], *rules["grad_input"], **where)
    for i, name in ((1, "grad_gamma"), (2, "grad_beta")):
        op = f"batch_norm_backward: {name}"
        yield pair.check(op, lambda i=i: got[i], slopes[i], *rules[name], **where)  # type: ignore[misc]


def layer_checks(
    pair: Pair, rng: np.random.Generator, shape: tuple[int, ...], gamma: np.ndarray, beta: np.ndarray, grad: np.ndarray
) -> Iterator[Comparison]:
    """The layer `BatchNorm` over several batches in training, from the statistics it begins with; then evaluation."""
    ours = pair.stage.batch_norm.BatchNorm(pair.to_stage(gamma), pair.to_stage(beta))
    theirs = pair.reference.batch_norm.BatchNorm(pair.to_reference(gamma), pair.to_reference(beta))
    for update in range(UPDATES + 1):
        training = update < UPDATES
        x = pair.rounded(update + rng.standard_normal(shape))
        where = {"case": f"{shape}, batch {update + 1}, {'training' if training else 'evaluation'}"}
        before = [pair.from_reference(statistic) for statistic in (theirs.running_mean, theirs.running_var)]
        rules = norm_scales(x, gamma, beta, before, grad, training, pair.dtype)
        k = FEW * (update + 1)  # what earlier updates rounded is in the running statistics still
        expected = pair.from_reference(theirs.forward(pair.to_reference(x), training=training))
        forward = lambda x=x, training=training: ours.forward(pair.to_stage(x), training=training)  # noqa: E731
        done = pair.check("BatchNorm.forward", forward, expected, k + rules["output"][0], rules["output"][1], **where)
        yield done
        if done.note:
            return
        right = pair.from_reference(theirs.backward(pair.to_reference(grad)))
        rule, op = rules["grad_input"], "BatchNorm.backward: grad_input"
        yield pair.check(op, lambda: ours.backward(pair.to_stage(grad)), right, k + rule[0], rule[1], **where)
        for name in ("running_mean", "running_var", "grad_gamma", "grad_beta"):
            op = f"BatchNorm.{'backward: ' if name.startswith('grad') else ''}{name}"
            right, rule = pair.from_reference(getattr(theirs, name)), rules[name]
            if name.startswith("running") and not training:
                rule = k, np.abs(right)  # as rounded in the updates before
            yield pair.check(op, lambda name=name: getattr(ours, name), right, k + rule[0], rule[1], **where)  # type: ignore[misc]


def norm_scales(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    running: list[np.ndarray],
    grad: np.ndarray,
    training: bool,
    dtype: str,
) -> dict[str, tuple[int, np.ndarray]]:
    """(k, scale) of the output, the running statistics and the gradients, by their names."""
    rows, g = _by_channel(x), _by_channel(grad)
    n = len(rows)
    k = n + FEW
    mean, variance = (rows.mean(axis=0), rows.var(axis=0)) if training else running
    mean_size = np.abs(rows).mean(axis=0) if training else np.abs(mean)
    normal = Normalised.of(rows, mean, mean_size, variance, EPSILON)
    relative = normal.variance_size(dtype, k) * normal.inverse**2 if training else 1.0
    output = np.abs(gamma) * (normal.size + np.abs(normal.hat) * relative) + np.abs(beta)
    if training:
        back = normal.grad_input_size(g, gamma) * (1.0 + relative)
        kept = [(1 - MOMENTUM) * np.abs(statistic) for statistic in running]
        kept[0] = kept[0] + MOMENTUM * mean_size
        kept[1] = kept[1] + MOMENTUM * n / max(n - 1, 1) * normal.variance_size(dtype, k)
        tracked = [(k, size) for size in kept]
    else:
        back = np.abs(gamma) * normal.inverse * np.abs(g)
        tracked = [(1, np.zeros(len(gamma)))] * 2  # an evaluation leaves them as they are
    return {
        "output": (k, _as_images(output, x.shape)),
        "running_mean": tracked[0],
        "running_var": tracked[1],
        "grad_input": (k, _as_images(back, x.shape)),
        "grad_gamma": (k, (np.abs(g) * (normal.size + np.abs(normal.hat) * relative)).sum(axis=0)),
        "grad_beta": (k, np.abs(g).sum(axis=0)),
    }


def _by_channel(x: np.ndarray) -> np.ndarray:
    """(N, C, H, W) or (N, C) -> (values of a channel, C)."""
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _as_images(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse of `_by_channel`."""
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
