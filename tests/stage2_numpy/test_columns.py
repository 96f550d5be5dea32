"""im2col and col2im: what one gathers, the other brings back."""

from __future__ import annotations

import numpy as np
import pytest

from shared.windows import output_size
from stage2_numpy import columns as room
from stage2_numpy.arrays import Scratch
from stage2_numpy.columns import Geometry, gather_columns, scatter_columns
from stage2_numpy.convolution import conv2d, conv2d_backward

CASES = [((4, 5), (3, 2), (1, 2)), ((7, 9), (3, 3), (2, 2)), ((1, 6), (1, 6), (1, 1)), ((8, 3), (2, 3), (3, 1))]


@pytest.mark.parametrize(("image", "window", "stride"), CASES)
def test_scattering_is_the_transpose_of_gathering(
    image: tuple[int, int], window: tuple[int, int], stride: tuple[int, int]
) -> None:
    """<gather(x), c> is <x, scatter(c)> for any x and c: this is what makes it the gradient."""
    g = Geometry(image, window, stride, (0, 0), output_size("conv2d", image, window, stride))
    rng = np.random.default_rng(0)
    x, columns = rng.standard_normal((2, 3, *image)), np.empty((3, *window, 2, *g.output))
    gather_columns(x, columns, g)
    slopes, back = rng.standard_normal(columns.shape), np.zeros((3, 2, *image))
    scatter_columns(slopes, back, g)
    np.testing.assert_allclose((columns * slopes).sum(), (x.swapaxes(0, 1) * back).sum(), rtol=1e-12)


def test_scattering_adds_to_what_is_there() -> None:
    g = Geometry((1, 3), (1, 2), (1, 1), (0, 0), (1, 2))
    padded = np.full((1, 1, 1, 3), 10.0)
    scatter_columns(np.array([1.0, 2, 3, 4]).reshape(1, 1, 2, 1, 1, 2), padded, g)
    assert padded.ravel().tolist() == [11, 15, 14]


@pytest.mark.parametrize("images", [0, 1, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_a_batch_in_pieces_is_the_batch_in_one(monkeypatch: pytest.MonkeyPatch, images: int, padding: int) -> None:
    """images: that there is room for; a piece has at least one, and the last of five images may be alone in its own."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((5, 2, 6, 5)), rng.standard_normal((3, 2, 3, 3))
    grad = rng.standard_normal((5, 3, 4 + 2 * padding, 3 + 2 * padding))
    bias, expected = np.ones(3), []
    for room_for in (5, images):
        monkeypatch.setattr(room, "COLUMNS_BYTES", room_for * 8 * 18 * grad[0, 0].size)
        scratch = Scratch()
        got = [conv2d(x, weights, bias, 1, padding, scratch=scratch)]
        got += conv2d_backward(grad, x, weights, 1, padding, scratch=scratch)
        expected = expected or got
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
