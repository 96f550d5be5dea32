"""Where the windows of a convolution lie, and their copies as the columns of a matrix.

A column holds the kh kw C numbers that one window meets. The columns of a whole batch are kh kw times as large as the
batch, so they are made for a piece of the batch at a time. Then they are still in the cache when they are multiplied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from shared.windows import Pair

from .arrays import Array, Scratch, borrow

COLUMNS_BYTES = 2**20
"""How large the columns of one piece of the batch may become: what the second-level cache of one core holds."""


@dataclass(frozen=True)
class Geometry:
    """Where the windows of one convolution lie."""

    image: Pair
    window: Pair
    stride: Pair
    padding: Pair
    output: Pair

    @property
    def padded(self) -> Pair:
        """(rows, columns) of the image with its border of zeros."""
        return self.image[0] + 2 * self.padding[0], self.image[1] + 2 * self.padding[1]

    def interior(self, padded: Array) -> Array:
        """The image within the padded one, as a view."""
        (top, left), (rows, columns) = self.padding, self.image
        return padded[..., top : top + rows, left : left + columns]

    def shifted(self, padded: Array, i: int, j: int) -> Array:
        """What position (i, j) of the window meets at all places of the window: a view (…, H', W')."""
        (rows, columns), (down, right) = self.output, self.stride
        return padded[..., i : i + down * (rows - 1) + 1 : down, j : j + right * (columns - 1) + 1 : right]

    def windows(self, padded: Array) -> Array:
        """All windows as a view (N, C, H', W', kh, kw) that repeats the numbers and copies none."""
        return sliding_window_view(padded, self.window, axis=(2, 3))[:, :, :: self.stride[0], :: self.stride[1]]


def gather_columns(padded: Array, columns: Array, g: Geometry) -> None:
    """im2col: copy the numbers of every window into a column of its own.

    padded: (N, C, rows, columns), images with their border; columns: (C, kh, kw, N, H', W'), to be filled
    """
    of_image, of_channel, of_row, of_pixel = padded.strides
    steps = (of_channel, of_row, of_pixel, of_image, g.stride[0] * of_row, g.stride[1] * of_pixel)
    np.copyto(columns, as_strided(padded, columns.shape, steps))


def scatter_columns(columns: Array, padded: Array, g: Geometry) -> None:
    """col2im, the way back of gather_columns: add each number to the pixel that it was copied from.

    columns: (C, kh, kw, N, H', W'); padded: (C, N, rows, columns), added to in place: it may be a view into a larger
    array, even one in which a row goes on into the next
    """
    for i, j in product(range(g.window[0]), range(g.window[1])):
        pixels = g.shifted(padded, i, j)
        pixels += columns[:, i, j]


def columns_by_piece(x: Array, g: Geometry, scratch: Scratch | None) -> Iterator[tuple[slice, Array]]:
    """Piece by piece of the batch: its slice, and its columns (C kh kw, n H' W'), valid until the next piece."""
    channels, (kh, kw), (rows, columns) = x.shape[1], g.window, g.output
    size = min(len(x), images_a_piece(channels * kh * kw * rows * columns * x.itemsize))
    padded = x
    if any(g.padding):
        padded = borrow(scratch, "convolution padded", (size, channels, *g.padded), x.dtype)
        padded.fill(0)  # the border; the images are written over the interior, piece after piece
    for piece in pieces(len(x), size):
        images = x[piece]
        n = len(images)
        if padded is not x:
            np.copyto(g.interior(padded[:n]), images)
            images = padded[:n]
        copied = borrow(scratch, "convolution columns", (channels, kh, kw, n, rows, columns), x.dtype)
        gather_columns(images, copied, g)
        yield piece, copied.reshape(channels * kh * kw, -1)


def images_a_piece(bytes_an_image: int) -> int:
    """How many images make one piece of the batch, where the columns of one have this many bytes."""
    return max(1, COLUMNS_BYTES // bytes_an_image)


def pieces(count: int, size: int) -> Iterator[slice]:
    """The slices that cut a batch into pieces; the last one may be smaller."""
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def pad(x: Array, g: Geometry) -> Array:
    """x with its border of zeros; x itself where the border is empty."""
    if not any(g.padding):
        return x
    padded = np.zeros((*x.shape[:2], *g.padded), x.dtype)
    np.copyto(g.interior(padded), x)
    return padded
