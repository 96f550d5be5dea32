"""Batch normalisation's kernels as a GPU launches them: many threads a channel, and parts of the batch side by side.

On a CPU the room launches one thread a channel; tests/floors/test_batch_norm.py tests that.
"""

import numpy as np
import pytest

from stage4_numba_cuda import batch_norm, launch
from stage4_numba_cuda.arrays import asarray, empty, to_host
from stage4_numba_cuda.kernels import batch_norm as kernels
from tests.wide import widely

SHAPES = [(7, 3, 5), (4, 2, 300), (37, 5, 1), (2, 1, 1), (9, 2, 256)]
"""(N, C, L): numbers of an image fewer than threads, more, one, as many; images that no number of parts divides."""
EPS = {"float32": float(np.finfo("float32").eps), "float64": float(np.finfo("float64").eps)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("parts", "threads"), widely([(4, 32), (1, 256), (3, 8), (64, 64)]))
def test_threads_and_parts_of_a_channel_are_joined_without_a_loss(parts: int, threads: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        # Far from zero, and the first number further still: what a sum of squares would not survive.
        x = (1e4 + rng.normal(size=shape)).astype(dtype)
        x[0, :, 0] += dtype == "float64"
        images, channels, length = shape
        found = asarray(np.full((parts, 3 * channels), np.nan), dtype).reshape(parts, 3, channels)
        kernels.statistics[(channels, parts), threads](asarray_3d(x), found)
        vectors = [asarray(each, dtype) for each in (np.ones(channels), np.zeros(channels), *np.zeros((2, channels)))]
        output, saved = empty(shape, dtype), empty((3, channels), dtype)
        grid, block = launch.over_lines(images * channels, length)
        number = np.dtype(dtype).type
        kernels.normalise[grid, block](
            asarray_3d(x), found, *vectors, number(1), number(1e-5), 1, 1, output, 0, 0, saved, output
        )
        exact = x.astype(np.float64) - 1e4
        mean, variance = exact.mean(axis=(0, 2)), exact.var(axis=(0, 2))
        spread = np.abs(exact - exact[:1, :, :1]).max()
        expected = (exact - mean[:, np.newaxis]) / np.sqrt(variance + 1e-5)[:, np.newaxis]
        np.testing.assert_allclose(to_host(output), expected, rtol=0, atol=100 * EPS[dtype] * spread**2)
        np.testing.assert_allclose(to_host(vectors[2]), mean + 1e4, rtol=2 * EPS[dtype])
        count = images * length
        np.testing.assert_allclose(to_host(vectors[3]), variance * count / (count - 1), rtol=100 * EPS[dtype])


@pytest.mark.parametrize(("parts", "threads"), widely([(4, 32), (1, 256), (3, 8), (64, 64)]))
def test_the_way_back_adds_the_same_parts(parts: int, threads: int) -> None:
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        channels = shape[1]
        x, grad = asarray_3d(rng.normal(size=shape)), asarray_3d(rng.normal(size=shape))
        gamma, beta = asarray(rng.normal(size=channels), "float64"), asarray(np.zeros(channels), "float64")
        running = [asarray(np.ones(channels), "float64") for _ in range(2)]
        _, saved = batch_norm.batch_norm(as_images(x), gamma, beta, *running, True)
        expected = batch_norm.batch_norm_backward(as_images(grad), saved)
        found = asarray(np.full((parts, 2 * channels), np.nan), "float64").reshape(parts, 2, channels)
        kernels.sums[(channels, parts), threads](grad, grad, 0, x, saved.statistics, found)
        grads = [empty((channels,), "float64") for _ in range(2)]
        grad_input, added = empty(shape, "float64"), empty(shape, "float64")
        grid, block = launch.over_lines(shape[0] * channels, shape[2])
        kernels.backward[grid, block](grad, grad, 0, x, saved.statistics, gamma, found, 1, *grads, added, 1, grad_input)
        for got, wanted in zip((grad_input, *grads), expected, strict=True):
            got = to_host(got)
            np.testing.assert_allclose(got, to_host(wanted).reshape(got.shape), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(to_host(added), to_host(grad))


def test_parts_are_no_more_than_there_are_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_norm, "multiprocessors", lambda: 132)
    assert batch_norm.part_shape((64, 32, 28, 28), 3) == (9, 3, 32)
    assert batch_norm.part_shape((2, 3), 2) == (2, 2, 3)
    assert batch_norm.part_shape((1000, 1, 8, 8), 2) == (64, 2, 1)


def asarray_3d(x: np.ndarray) -> object:
    flat = asarray(x.reshape(len(x), -1), x.dtype.name)
    return flat.reshape(*x.shape)


def as_images(array: object) -> object:
    return array.reshape(*array.shape, 1)  # type: ignore[attr-defined]
