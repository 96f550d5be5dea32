"""How many multiplications a convolution takes, counted from its shapes: a prediction of which way is the fastest.

    by_windows     a product for each output, channel and place in the window
    by_winograd    F(m x m, 3 x 3): (m + 2)^2 products a tile of m by m outputs, for each channel and filter
    by_fourier     the transforms of images, kernels and outputs, and a product for each frequency, channel and filter

x is (N, C, H, W), weights (O, C, kh, kw), the stride is 1. Only multiplications of real numbers count: no addition, and
no number that has to be fetched. So the count is a prediction, and a time decides.
"""

from __future__ import annotations

from math import ceil, log2

from shared.windows import Pair, output_size

Shape = tuple[int, int, int, int]


def by_windows(x: Shape, weights: Shape, padding: Pair = (0, 0)) -> int:
    """N O H' W' sums of C kh kw products."""
    rows, columns = output_size("conv2d", x, weights[2:], (1, 1), padding)
    return x[0] * weights[0] * rows * columns * weights[1] * weights[2] * weights[3]


def by_winograd(x: Shape, weights: Shape, padding: Pair = (0, 0), outputs: int = 2) -> int:
    """The products alone: F(2, 3) transforms by additions, and halves are shifts. weights: 3 by 3."""
    rows, columns = output_size("conv2d", x, weights[2:], (1, 1), padding)
    tiles = ceil(rows / outputs) * ceil(columns / outputs)
    return x[0] * weights[0] * weights[1] * tiles * (outputs + 2) ** 2


def by_fourier(x: Shape, weights: Shape, padding: Pair = (0, 0)) -> float:
    """Of the rung `fourier`, on planes of P pixels, P = (H + 2 padding) (W + 2 padding).

    A fast transform of P real numbers takes P log2(P) multiplications. N C planes of images and O C kernels are
    transformed, and N O planes of outputs are transformed back. A transform of real numbers has P / 2 frequencies, and
    a product of two complex numbers takes 4 multiplications.
    """
    batch, channels, height, width = x
    filters = weights[0]
    pixels = (height + 2 * padding[0]) * (width + 2 * padding[1])
    planes = batch * channels + filters * channels + batch * filters
    return planes * pixels * log2(pixels) + 4 * (pixels / 2) * batch * channels * filters


def crossover(batch: int, channels: int, filters: int, side: int) -> int:
    """The smallest odd kernel for which by_fourier is less than by_windows, on images of side by side that keep their
    size; 0 if none is."""
    x = (batch, channels, side, side)
    for size in range(1, side + 1, 2):
        weights, padding = (filters, channels, size, size), (size // 2, size // 2)
        if by_fourier(x, weights, padding) < by_windows(x, weights, padding):
            return size
    return 0
