"""The scales of convolution, pooling and batch normalisation: every minus of the formula made a plus.

    convolved, convolved_back, convolved_weights    the three sums of a convolution, as plain loops over the window
    transformed                                     the scale of a convolution by Winograd's transforms
    spectral                                        the scale of a convolution by FFT
    Normalised                                      the scales of batch normalisation

Called with absolute values, each sum is the scale of its operation (shared/checks/tolerance.py). Two ways to convolve
have larger scales of their own, because they add up other terms than the window's products; docs/numerics.md derives
them. All arrays are float64, images (N, C, H, W).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shared.checks.tolerance import eps
from shared.checks.winograd import POINTS, matrices

Pair = tuple[int, int]


def convolved(x: np.ndarray, weights: np.ndarray, stride: Pair, padding: Pair) -> np.ndarray:
    """(N, C, H, W) and (O, C, kh, kw) -> (N, O, H', W'), a term for each place in the window."""
    rows, columns = ((n + 2 * p - k) // s + 1 for n, k, s, p in _axes(x.shape, weights.shape, stride, padding))
    total = np.zeros((len(x), len(weights), rows, columns))
    padded = _padded(x, padding)
    for i, j, seen in _places(weights.shape, stride, (rows, columns)):
        total += np.einsum("nchw,oc->nohw", padded[seen], weights[:, :, i, j], optimize=True)
    return total


def convolved_back(
    grad: np.ndarray, weights: np.ndarray, shape: tuple[int, ...], stride: Pair, padding: Pair
) -> np.ndarray:
    """grad (N, O, H', W') -> (N, C, H, W), which is `shape`: what each pixel gets back through every window on it."""
    padded = _padded(np.zeros(shape), padding)
    for i, j, seen in _places(weights.shape, stride, grad.shape[2:]):
        padded[seen] += np.einsum("nohw,oc->nchw", grad, weights[:, :, i, j], optimize=True)
    (p, q), (height, width) = padding, shape[2:]
    return padded[:, :, p : p + height, q : q + width]


def convolved_weights(
    grad: np.ndarray, x: np.ndarray, shape: tuple[int, ...], stride: Pair, padding: Pair
) -> np.ndarray:
    """grad (N, O, H', W') and x (N, C, H, W) -> (O, C, kh, kw), which is `shape`."""
    total = np.zeros(shape)
    padded = _padded(x, padding)
    for i, j, seen in _places(shape, stride, grad.shape[2:]):
        total[:, :, i, j] = np.einsum("nohw,nchw->oc", grad, padded[seen], optimize=True)
    return total


def _axes(image: tuple[int, ...], window: tuple[int, ...], stride: Pair, padding: Pair) -> Iterator[tuple[int, ...]]:
    """(extent, window, stride, padding) of the rows, then of the columns."""
    return zip(image[2:], window[2:], stride, padding, strict=True)


def _padded(x: np.ndarray, padding: Pair) -> np.ndarray:
    (p, q) = padding
    return np.pad(x, ((0, 0), (0, 0), (p, p), (q, q)))


def _places(
    window: tuple[int, ...], stride: Pair, outputs: tuple[int, ...]
) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
    """(i, j, the pixels of the padded image under place (i, j) of all windows)."""
    for i, j in np.ndindex(*window[2:]):
        rows, columns = (
            slice(first, first + step * (count - 1) + 1, step)
            for first, step, count in zip((i, j), stride, outputs, strict=True)
        )
        yield i, j, (slice(None), slice(None), rows, columns)


# ---- Winograd

WINOGRAD = tuple(POINTS)
"""Sizes of a tile of outputs: F(2x2, 3x3) and F(4x4, 3x3)."""


def transformed(x: np.ndarray, weights: np.ndarray, padding: Pair, tile: int) -> np.ndarray:
    """The scale of Aᵀ [(G w Gᵀ) * (Bᵀ x B)] A, summed over the channels: (N, O, 1, 1), the largest of each image.

    Within a transform the roundings are independent, so that their squares add up, each with the square of its factor;
    over the channels the products add up as in any other sum. The largest of an image is taken, because the roundings
    of a whole tile flow into each of its outputs, and where the tiles begin is a stage's own choice.
    x, weights: 3 x 3 with stride 1
    """
    out, kernel, into = (np.array(each, float) ** 2 for each in matrices(tile))
    extents = [n + 2 * p - 2 for n, p in zip(x.shape[2:], padding, strict=True)]
    over = [-n % tile for n in extents]
    padded = np.pad(_padded(x**2, padding), ((0, 0), (0, 0), (0, over[0]), (0, over[1])))
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (tile + 2, tile + 2), axis=(2, 3))[:, :, ::tile, ::tile]
    images = np.sqrt(np.einsum("ai,nchwij,bj->nchwab", into, tiles, into, optimize=True))
    kernels = np.sqrt(np.einsum("ai,ocij,bj->ocab", kernel, weights**2, kernel, optimize=True))
    products = np.einsum("nchwab,ocab->nohwab", images, kernels, optimize=True) ** 2
    sizes = np.sqrt(np.einsum("ia,nohwab,jb->nohwij", out, products, out, optimize=True))
    return sizes.max(axis=(2, 3, 4, 5))[:, :, np.newaxis, np.newaxis]


def spectral(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum over the channels of ‖x‖ ‖w‖: (N, O, 1, 1).

    Each coefficient of a Fourier transform is a sum over the whole image, so that the rounding of its largest pixel is
    spread over all outputs; the transform keeps the Euclidean norm, and so does its error.
    """
    norms = (np.sqrt(np.sum(each**2, axis=(2, 3))) for each in (x, weights))
    return np.einsum("nc,oc->no", *norms)[:, :, np.newaxis, np.newaxis]


# ---- batch normalisation


@dataclass(frozen=True)
class Normalised:
    """x̂ = (x - mean) / √(variance + ε) and its scale, for x as (values of a channel, channels)."""

    hat: np.ndarray
    size: np.ndarray
    inverse: np.ndarray
    mean_size: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(
        cls, x: np.ndarray, mean: np.ndarray, mean_size: np.ndarray, variance: np.ndarray, epsilon: float
    ) -> Normalised:
        """mean_size: the size of the terms of the mean: mean |x|, or |running mean|.

        x - mean becomes |x| + mean |x|: the mean was rounded at the size of x. In rows far from 0 that is the largest
        of all errors, and no way to compute the variance escapes it. |x̂| comes from the rounding of the variance.
        """
        inverse = 1.0 / np.sqrt(variance + epsilon)
        hat = (x - mean) * inverse
        return cls(hat, (np.abs(x) + mean_size) * inverse + np.abs(hat), inverse, mean_size, variance)

    def variance_size(self, dtype: str, k: float) -> np.ndarray:
        """The scale of the variance: its condition, and the square of the mean's rounding error.

        A mean is rounded at its own size, and where the variances of parts of a batch are merged (Chan, Golub and
        LeVeque 1979), that error meets the distance of two means, which is at most some deviations: |mean| deviation.
        The difference E[x²] - mean² would need mean² here: that formula loses every digit where mean² eps is as large
        as the variance, and so it is caught.
        """
        merged = self.mean_size * np.sqrt(self.variance)
        return self.variance + merged + eps(dtype) * np.sqrt(k) * self.mean_size**2

    def grad_input_size(self, grad: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        """The scale of gamma / √(variance + ε) (g - mean g - x̂ mean(g x̂))."""
        g, hat = np.abs(grad), np.abs(self.hat)
        means = g.mean(axis=0), (g * hat).mean(axis=0), (g * self.size).mean(axis=0)
        return np.abs(gamma) * self.inverse * (g + means[0] + self.size * means[1] + hat * means[2])
