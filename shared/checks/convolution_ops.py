"""Convolution alone, against the reference: every rung, the layer, and the three gradients.

    convolution_checks   at awkward sizes, every rung
    conv_checks          one convolution forward and backward; the layer level calls it with a network's own numbers

Two ways to convolve round more than the definition, and their rungs are known by their names: `winograd…` and `fourier`
or `fft`. A rung may use the rungs below it, so that every rung above a Winograd rung, and `conv2d`, which is the last
one, have its tolerance, too. All arrays are float64 numbers that the dtype holds exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from shared.checks.image_scales import (
    WINOGRAD,
    convolved,
    convolved_back,
    convolved_weights,
    spectral,
    transformed,
)
from shared.checks.ops import FEW
from shared.checks.pair import Pair
from shared.checks.tolerance import Comparison
from shared.windows import Pair as Two
from shared.windows import output_size

SPREADS = (1.0, 1e3)
"""How far the images of a batch are apart in size: by this factor from one to the next."""


class Form(NamedTuple):
    """The shapes of one convolution: x (N, C, H, W), weights (O, C, kh, kw)."""

    x: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    stride: Two = (1, 1)
    padding: Two = (0, 0)

    @property
    def name(self) -> str:
        """'(2, 3, 5, 7) by (4, 3, 3, 3), stride (2, 1), padding (1, 0)'."""
        return f"{self.x} by {self.weights}, stride {self.stride}, padding {self.padding}"


FORMS = (
    Form((1, 1, 1, 1), (1, 1, 1, 1)),
    Form((2, 3, 5, 7), (4, 3, 3, 3)),
    Form((1, 2, 6, 9), (3, 2, 3, 3), (1, 1), (1, 1)),
    Form((3, 1, 7, 5), (2, 1, 5, 5), (1, 1), (2, 2)),
    Form((2, 2, 8, 7), (3, 2, 3, 2), (2, 3), (1, 0)),  # windows that do not fit, and are not square
    Form((2, 5, 4, 6), (1, 5, 4, 6)),  # as large as the image
    Form((1, 3, 3, 3), (2, 3, 1, 1), (2, 2), (1, 1)),  # windows of nothing but padding
    Form((2, 13, 11, 9), (17, 13, 3, 3), (1, 1), (1, 1)),
    Form((1, 1, 2, 31), (1, 1, 2, 3), (1, 2), (0, 2)),
)
"""Ones, primes, one image far longer than high, and no multiple of a tile of 2 or 4."""

MORE_FORMS = (
    Form((5, 1, 28, 28), (6, 1, 5, 5), (1, 1), (2, 2)),
    Form((1, 33, 9, 10), (31, 33, 3, 3), (1, 1), (1, 1)),
    Form((2, 3, 12, 12), (5, 3, 7, 7), (3, 3), (3, 3)),
    Form((7, 17, 5, 5), (16, 17, 3, 3), (1, 1), (2, 2)),
)
"""Added by a full check."""


def convolution_checks(pair: Pair, rng: np.random.Generator, forms: Iterable[Form] = FORMS) -> Iterator[Comparison]:
    """Every rung, `conv2d`, its gradients and the layer at every form, of images alike in size and far apart."""
    for form, spread in zip(forms, cycle(SPREADS), strict=False):
        sizes = spread ** -np.arange(form.x[0], dtype=float)[:, np.newaxis, np.newaxis, np.newaxis]
        x = pair.rounded(sizes * rng.standard_normal(form.x))
        weights = pair.rounded(rng.standard_normal(form.weights))
        bias = pair.rounded(rng.standard_normal(form.weights[0]))
        outputs = output_size("check", form.x, form.weights[2:], form.stride, form.padding)
        grad = pair.rounded(rng.standard_normal((form.x[0], form.weights[0], *outputs)))
        yield from rung_checks(pair, x, weights, bias, form)
        yield from conv_checks(pair, x, weights, bias, grad, form.stride, form.padding, case=form.name)


def rung_checks(pair: Pair, x: np.ndarray, weights: np.ndarray, bias: np.ndarray, form: Form) -> Iterator[Comparison]:
    """Every rung of the ladder against the reference's first rung, its simplest loops.

    From the second stage up a rung writes into an array that is full of NaN: a number that it leaves out is seen.
    """
    ladder = pair.stage.convolution.CONVOLUTION_LADDER
    simplest = next(iter(pair.reference.convolution.CONVOLUTION_LADDER.values()))
    given = [pair.to_reference(each) for each in (x, weights, bias)]
    expected = pair.from_reference(simplest(*given, form.stride, form.padding))
    for rung, convolve in ladder.items():
        k, scale = forward_scale(ladder, rung, x, weights, bias, form.stride, form.padding)
        run = partial(_written, pair, convolve, expected.shape, x, weights, bias, form)
        yield pair.check(f"CONVOLUTION_LADDER[{rung!r}]", run, expected, k, scale, case=form.name)


def _written(pair: Pair, convolve: Callable[..., Any], shape: tuple[int, ...], *arrays: Any) -> Any:
    *given, form = arrays
    own = [pair.to_stage(each) for each in given]
    if pair.stage.number == 1:
        return convolve(*own, form.stride, form.padding)
    out = pair.to_stage(np.full(shape, np.nan))
    convolve(*own, form.stride, form.padding, out=out)
    return out


def conv_checks(
    pair: Pair,
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    grad: np.ndarray,
    stride: Two,
    padding: Two,
    **where: Any,
) -> Iterator[Comparison]:
    """`conv2d`, `conv2d_backward` with dL/dx and without, and the layer `Conv2d`."""
    ours, theirs = pair.stage.convolution, pair.reference.convolution
    window = (stride, padding)
    expected = pair.from_reference(theirs.conv2d(*(pair.to_reference(array) for array in (x, weights, bias)), *window))
    k, scale = forward_scale(ours.CONVOLUTION_LADDER, "conv2d", x, weights, bias, *window)
    x_, weights_, bias_, grad_ = (pair.to_stage(array) for array in (x, weights, bias, grad))
    yield pair.check("conv2d", lambda: ours.conv2d(x_, weights_, bias_, *window), expected, k, scale, **where)
    layer = ours.Conv2d(weights_, bias_, *window)
    yield pair.check("Conv2d.forward", lambda: layer.forward(x_), expected, k, scale, **where)

    slopes = theirs.conv2d_backward(*(pair.to_reference(array) for array in (grad, x, weights)), *window)
    names = ("grad_input", "grad_weights", "grad_bias")
    right = dict(zip(names, map(pair.from_reference, slopes), strict=True))
    rules = dict(zip(names, backward_scales(ours.CONVOLUTION_LADDER, grad, x, weights, *window), strict=True))
    got: dict[str, Any] = {}

    def whole() -> Any:
        got.update(zip(names, ours.conv2d_backward(grad_, x_, weights_, *window), strict=True))
        return got["grad_input"]

    def without_input() -> Any:
        nothing, *others = ours.conv2d_backward(grad_, x_, weights_, *window, needs_grad_input=False)
        if nothing is not None:
            raise ValueError("grad_input is not None where it is not needed")
        return others[0]

    def by_layer() -> Any:
        got["input"] = layer.backward(grad_)
        return got["input"]

    runs: tuple[tuple[str, str, Callable[[], Any]], ...] = (
        ("conv2d_backward: grad_input", "grad_input", whole),
        ("conv2d_backward: grad_weights", "grad_weights", lambda: got["grad_weights"]),
        ("conv2d_backward: grad_bias", "grad_bias", lambda: got["grad_bias"]),
        ("conv2d_backward without grad_input", "grad_weights", without_input),
        ("Conv2d.backward: grad_input", "grad_input", by_layer),
        ("Conv2d.backward: grad_weights", "grad_weights", lambda: layer.grad_weights),
        ("Conv2d.backward: grad_bias", "grad_bias", lambda: layer.grad_bias),
    )
    for op, name, run in runs:
        yield pair.check(op, run, right[name], *rules[name], **where)


# ---- tolerances


def forward_scale(
    ladder: Mapping[str, Any],
    rung: str,
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    stride: Two,
    padding: Two,
) -> tuple[int, np.ndarray]:
    """(k, scale) of a rung, or of "conv2d", the last one: the products of a window, and a bias."""
    bias_size = np.abs(bias)[:, np.newaxis, np.newaxis]
    sizes = convolved(np.abs(x), np.abs(weights), stride, padding)
    k = int(np.prod(weights.shape[1:])) + 1
    if re.match("fourier|fft", rung):
        sizes, k = np.maximum(sizes, spectral(x, weights)), k + FEW + int(np.log2(np.prod(x.shape[2:])) + 1)
    elif tile := _tile(ladder, rung, weights.shape, stride):
        sizes, k = np.maximum(sizes, transformed(x, weights, padding, tile)), k + FEW
    return k, sizes + bias_size


def backward_scales(
    ladder: Mapping[str, Any], grad: np.ndarray, x: np.ndarray, weights: np.ndarray, stride: Two, padding: Two
) -> list[tuple[int, np.ndarray]]:
    """(k, scale) of grad_input, grad_weights and grad_bias."""
    sizes = [np.abs(each) for each in (grad, x, weights)]
    outputs = grad.shape[0] * grad.shape[2] * grad.shape[3]
    into = convolved_back(sizes[0], sizes[2], x.shape, stride, padding)
    back = grad.shape[1] * weights.shape[2] * weights.shape[3]
    tile = _tile(ladder, "conv2d", weights.shape, stride)
    if tile and max(padding) <= 2:  # dL/dx is a convolution itself: with the turned kernel, and the rest of the padding
        turned = weights.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
        rest = (2 - padding[0], 2 - padding[1])
        into, back = np.maximum(into, transformed(grad, turned, rest, tile)), back + FEW
    return [
        (back, into),
        (outputs, convolved_weights(sizes[0], sizes[1], weights.shape, stride, padding)),
        (outputs, sizes[0].sum(axis=(0, 2, 3))),
    ]


def _tile(ladder: Mapping[str, Any], rung: str, shape: tuple[int, ...], stride: Two) -> int:
    """The largest Winograd tile that a rung may use, by the names of it and of the rungs below; 0 for none."""
    if shape[2:] != (3, 3) or tuple(stride) != (1, 1):
        return 0
    below = list(ladder)
    below = below[: below.index(rung) + 1] if rung in ladder else below
    tiles = [int(digit) for name in below if name.startswith("winograd") for digit in re.findall(r"\d", name)[:1]]
    return max((tile for tile in tiles if tile in WINOGRAD), default=0)
