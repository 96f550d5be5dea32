"""Pools as a GPU launches them, several threads to a line; and both ways back of the maximum, which must agree."""

from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda import launch, pooling
from stage4_numba_cuda.arrays import asarray, empty, to_host, zeros
from stage4_numba_cuda.kernels import pooling as kernels
from stage4_numba_cuda.kernels.activations import IDENTITY, RELU, TANH

CASES = [((2, 3, 7, 5), 2, None), ((1, 2, 6, 9), (3, 2), (1, 2)), ((3, 1, 5, 5), 5, 1), ((2, 2, 8, 40), (2, 3), (3, 1))]


def images(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Small whole numbers: many ties."""
    return asarray(np.random.default_rng(seed).integers(-3, 3, shape).astype(np.float64), "float64")


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "_over", lambda a: launch.over_lines(a.shape[0] * a.shape[1], a.shape[2]))


@pytest.mark.parametrize(("shape", "size", "stride"), CASES)
def test_several_threads_to_a_line_find_the_same(
    shape: tuple[int, ...], size: Any, stride: Any, request: pytest.FixtureRequest
) -> None:
    def run() -> list[np.ndarray]:
        x = images(shape)
        output, indices = pooling.max_pool2d(x, size, stride)
        average = pooling.average_pool2d(x, size, stride)
        back = pooling.max_pool2d_backward(output, indices, shape, size=size, stride=stride)
        average_back = pooling.average_pool2d_backward(average, shape, size, stride)
        return [to_host(each) for each in (output, indices, average, back, average_back)]

    expected = run()
    request.getfixturevalue("many_threads")
    for got, wanted in zip(run(), expected, strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize(("shape", "size", "stride"), CASES)
def test_a_thread_a_plane_and_a_thread_a_number_give_the_same_gradient(
    shape: tuple[int, ...], size: Any, stride: Any
) -> None:
    output, indices = pooling.max_pool2d(images(shape), size, stride)
    grad = images(output.shape, seed=1)
    by_plane = pooling.max_pool2d_backward(grad, indices, shape)
    by_number = pooling.max_pool2d_backward(grad, indices, shape, size=size, stride=stride)
    assert np.array_equal(to_host(by_number), to_host(by_plane))


def test_activations_on_both_sides_of_the_maximum_are_part_of_its_kernels() -> None:
    x = np.tanh(np.random.default_rng(0).normal(size=(2, 5, 6)))
    planes = asarray(x.reshape(2, 30), "float64").reshape(2, 5, 6)
    output, indices = empty((2, 2, 3), "float64"), zeros((2, 2, 3), np.int32)
    pooling.launch_max_pool(planes, (2, 2), (2, 2), RELU, output, indices)
    largest = x[:, :4].reshape(2, 2, 2, 3, 2).max(axis=(2, 4))
    assert np.array_equal(to_host(output), np.maximum(largest, 0))
    grad = asarray(np.ones((2, 6)), "float64").reshape(2, 2, 3)
    back = empty((2, 5, 6), "float64")
    pooling.launch_max_backward(grad, output, RELU, indices, planes, TANH, (2, 2), (2, 2), back)
    won = np.zeros((2, 30))
    for plane in range(2):
        won[plane, to_host(indices)[plane].reshape(-1)] = (largest[plane] > 0).reshape(-1)
    np.testing.assert_allclose(to_host(back), won.reshape(x.shape) * (1 - x * x), rtol=1e-14)


def test_a_kernel_for_an_axis_knows_the_first_window_of_each_place() -> None:
    for size, stride in ((1, 1), (2, 2), (3, 1), (2, 5), (4, 3)):
        for place in range(12):
            windows = [i for i in range(12) if i * stride <= place < i * stride + size]
            if windows:
                assert kernels.first_window.py_func(place, size, stride) == windows[0]
    assert IDENTITY == pooling.IDENTITY
