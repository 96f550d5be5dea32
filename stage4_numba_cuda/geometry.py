"""Where the windows of one convolution lie: its sizes, and the tables on the device that its kernels look them up in.

The kernels of implicit GEMM gather from the image what a matrix of windows would hold. Where a number lies is the sum
of two parts: where the window begins, and how far into the window the product lies, which is the same for all windows.
The second part is worked out here, once for each convolution, so that no kernel divides for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from shared.windows import Pair

from .arrays import Array
from .backend import cuda
from .kernels import convolution_gather as gather
from .launch import divided


@dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution, for any number of images. Equal sizes are equal objects.

    channels, image: of x, (C, H, W); filters: O; window: (kh, kw); output: (H', W')
    """

    channels: int
    image: Pair
    filters: int
    window: Pair
    stride: Pair
    padding: Pair
    output: Pair

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """(down, right, top, left): the strides and the padding, as the kernels take them."""
        return (*self.stride, *self.padding)

    @property
    def terms(self) -> int:
        """How many products are summed for an output: C kh kw."""
        return self.channels * math.prod(self.window)

    @property
    def weights(self) -> int:
        """How many numbers all kernels have: O C kh kw."""
        return self.filters * self.terms


@dataclass(frozen=True)
class Tables:
    """What one pass of a convolution looks up, on the device.

    taps: int32 (4, products of a sum, filled up to whole tiles); numbers: int32 (13,); the names of their rows and
    numbers are in kernels/convolution_gather.py
    rows: channels of the result; spread: whether the pass needs the kernels for a stride, see `gatherer` there
    """

    taps: Array
    numbers: Array
    rows: int
    spread: bool


TILE = 32
"""The products of a sum are filled up to a multiple of this: the depth of the kernels' tiles."""


@cache
def forward_tables(g: Geometry) -> Tables:
    """Of the forward pass, and of dL/dweights: the products of an output are C kh kw, a window begins at the place
    times the stride, less the padding."""
    (height, width), (kh, kw) = g.image, g.window
    c, i, j = np.indices((g.channels, kh, kw)).reshape(3, -1)
    taps = np.arange(g.terms), c * height * width + i * width + j, i, j
    numbers = _numbers(g.filters, g.terms, g.output, g.stride, (-g.padding[0], -g.padding[1]), g.channels, g.image)
    return _tables(taps, numbers, g.filters, spread=False)


@cache
def backward_tables(g: Geometry) -> Tables:
    """Of dL/dx: the products of a number of x are O kh kw. Number (i, j) of a kernel met it at the place that is i rows
    above and j columns left of its own, plus the padding, divided by the stride."""
    (height, width), (kh, kw) = g.output, g.window
    o, i, j = np.indices((g.filters, kh, kw)).reshape(3, -1)
    spread = g.stride != (1, 1)
    offset = o * height * width - (0 if spread else i * width + j)
    taps = o * g.terms + i * kw + j, offset, -i, -j
    numbers = _numbers(g.channels, kh * kw, g.image, (1, 1), g.padding, g.filters, g.output, g.stride)
    return _tables(taps, numbers, g.channels, spread)


def _numbers(
    rows: int, row_step: int, result: Pair, step: Pair, first: Pair, channels: int, image: Pair, every: Pair = (1, 1)
) -> tuple[int, ...]:
    return rows, row_step, math.prod(result), result[1], *step, *first, *image, channels * math.prod(image), *every


def _tables(taps: tuple[np.ndarray, ...], numbers: tuple[int, ...], rows: int, spread: bool) -> Tables:
    filled = np.zeros((4, divided(len(taps[0]), TILE) * TILE), np.int32)
    filled[gather.ROW] = gather.NEVER
    filled[:, : len(taps[0])] = taps
    return Tables(cuda.to_device(filled), cuda.to_device(np.array(numbers, np.int32)), rows, spread)
