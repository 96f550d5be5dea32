"""Mini-batches that stage 4 picks on the device: equal, bit for bit, to the host's arithmetic on the same indices."""

from typing import Any

import numpy as np
import pytest

from shared.data.batches import as_targets
from stage4_numba_cuda import launch
from stage4_numba_cuda.arrays import asarray
from stage4_numba_cuda.backend import cuda
from stage4_numba_cuda.kernels import gather

DTYPES = ["float32", "float64"]
N = 97
BATCHES = [(0, 32), (32, 32), (96, 1), (64, 33), (0, N)]
"""(position, rows): full batches, tails of one row and of more, all samples at once."""

RNG = np.random.default_rng(0)
ORDER = RNG.permutation(N).astype(np.int32)
LABELS = RNG.integers(0, 10, N).astype(np.int32)


def device(values: Any, dtype: Any) -> Any:
    return cuda.to_device(np.asarray(values, dtype))


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    return cuda.to_device(np.full(shape, np.nan if dtype != "int32" else -77, dtype))


def grid(out: Any) -> Any:
    return launch.elementwise(out.size) if out.ndim == 1 else launch.over_matrix(*out.shape)


def batch(position: int, rows: int) -> np.ndarray:
    """The samples of a batch."""
    return ORDER[position : position + rows]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [1, 33, 784])
def test_pixels_are_divided_exactly_as_the_data_set_is(features: int, dtype: str) -> None:
    images = np.random.default_rng(1).integers(0, 256, (N, features)).astype(np.uint8)
    images.flat[:N] = np.arange(N)
    for position, rows in BATCHES:
        x = poisoned((rows, features), dtype)
        gather.gather_bytes[grid(x)](device(images, "uint8"), device(ORDER, "int32"), device([position], "int64"), x)
        expected = (images[batch(position, rows)].astype(np.float32) / np.float32(255)).astype(dtype)
        assert np.array_equal(x.copy_to_host(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_byte_becomes_the_host_s_float(dtype: str) -> None:
    images = np.arange(256, dtype=np.uint8)[None]
    x = poisoned((1, 256), dtype)
    gather.gather_bytes[grid(x)](device(images, "uint8"), device([0], "int32"), device([0], "int64"), x)
    expected = images.astype(np.float32)
    expected /= 255  # as shared/data/datasets.py writes it
    assert np.array_equal(x.copy_to_host(), expected.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_floats_are_copied_unchanged(dtype: str) -> None:
    values = np.random.default_rng(2).normal(size=(N, 35)).astype(np.float32)
    for position, rows in BATCHES:
        x = poisoned((rows, 35), dtype)
        gather.gather_rows[grid(x)](asarray(values), device(ORDER, "int32"), device([position], "int64"), x)
        assert np.array_equal(x.copy_to_host(), values[batch(position, rows)])


def test_labels_follow_the_same_order() -> None:
    for position, rows in BATCHES:
        y = poisoned((rows,), "int32")
        gather.gather_labels[grid(y)](device(LABELS, "int32"), device(ORDER, "int32"), device([position], "int64"), y)
        assert np.array_equal(y.copy_to_host(), LABELS[batch(position, rows)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [1, 2, 10, 40])
def test_targets_are_what_the_host_makes_of_the_labels(classes: int, dtype: str) -> None:
    labels = LABELS % max(2, min(classes, 10))
    for position, rows in BATCHES:
        targets = poisoned((rows, classes), dtype)
        gather.gather_targets[grid(targets)](
            device(labels, "int32"), device(ORDER, "int32"), device([position], "int64"), targets
        )
        expected = as_targets(labels[batch(position, rows)], "mean_squared_error", classes, dtype)
        assert np.array_equal(targets.copy_to_host(), expected)


def test_a_small_grid_covers_many_rows() -> None:
    values = np.arange(3 * 40, dtype=np.float32).reshape(40, 3)
    x = poisoned((40, 3), "float32")
    gather.gather_rows[(1, 1), (2, 3)](asarray(values), device(np.arange(40), "int32"), device([0], "int64"), x)
    assert np.array_equal(x.copy_to_host(), values)
