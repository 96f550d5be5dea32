"""The numbers of the guide to convolution: a 4 x 4 image, a 3 x 3 kernel, and what follows from them.

The figures are drawn from here. tests/docs/test_convolution_guide.py computes the same with the stages' own functions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

IMAGE: Matrix = np.array([[1.0, 2, 0, 1], [0, 3, 1, 2], [2, 1, 0, 1], [1, 0, 2, 1]])
KERNEL: Matrix = np.array([[1.0, 0, -1], [2, 1, 0], [0, -1, 1]])
BIAS = 1.0
SLOPES: Matrix = np.array([[1.0, 2], [-1, 3]])
"""dL/dy: how the loss reacts to each number of the output."""

PLANE: Matrix = np.array([[1.0, 3, 2, 1], [3, 0, 1, 2], [0, 1, 4, 4], [2, 1, 0, 4]])
"""The image of the pooling example. Its ties: two numbers 3 in the first window, three numbers 4 in the last."""


def correlate(image: Matrix, kernel: Matrix) -> Matrix:
    """out[r, s] = sum over i, j of image[r + i, s + j] * kernel[i, j], for every place at which the kernel fits."""
    return np.einsum("rsij,ij->rs", np.lib.stride_tricks.sliding_window_view(image, kernel.shape), kernel)


def padded(image: Matrix, border: int) -> Matrix:
    """The image with this many rows and columns of zeros around it."""
    return np.pad(image, border)


def flipped(kernel: Matrix) -> Matrix:
    """The kernel turned by half a circle."""
    return kernel[::-1, ::-1]


SUMS = correlate(IMAGE, KERNEL)
OUTPUT = SUMS + BIAS
GRAD_WEIGHTS = correlate(IMAGE, SLOPES)
GRAD_INPUT = correlate(padded(SLOPES, 2), flipped(KERNEL))
COLUMNS = np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3)).reshape(4, 9).T
"""im2col: a column for each window."""

INPUT_TRANSFORM: Matrix = np.array([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]])
KERNEL_TRANSFORM: Matrix = np.array([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUT_TRANSFORM: Matrix = np.array([[1.0, 1, 1, 0], [0, 1, -1, 1]])
"""The three matrices of Winograd's F(2, 3), as the guide derives them."""
IMAGE_TILE = INPUT_TRANSFORM @ IMAGE @ INPUT_TRANSFORM.T
KERNEL_TILE = KERNEL_TRANSFORM @ KERNEL @ KERNEL_TRANSFORM.T
PRODUCTS = IMAGE_TILE * KERNEL_TILE
WINOGRAD = OUTPUT_TRANSFORM @ PRODUCTS @ OUTPUT_TRANSFORM.T
