"""Sums on stage 4: every rung of both ladders against float64 NumPy, at shapes that fit no block."""

from typing import Any

import numpy as np
import pytest

from shared.checks.tolerance import compare
from stage4_numba_cuda import reductions
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, cuda

SHAPES = [(1, 1), (1, 77), (31, 32), (15, 33), (33, 31), (257, 33), (1000, 3), (3, 1000)]
SIZES = [1, 2, 31, 32, 33, 511, 512, 513, 4099]
DTYPES = ["float32", "float64"]

needs_shuffles = pytest.mark.skipif(BACKEND.name == "simulator", reason="Numba's simulator has no shuffles")
TOTAL_RUNGS = [
    pytest.param(rung, marks=[needs_shuffles] if rung == "warps" else []) for rung in reductions.TOTAL_LADDER
]


def random(shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def poisoned(shape: Any, dtype: str) -> Any:
    return cuda.to_device(np.full(shape, np.nan, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rung", reductions.COLUMN_SUMS_LADDER)
def test_every_rung_sums_the_columns_of_any_matrix(rung: str, dtype: str) -> None:
    for shape in SHAPES:
        matrix = random(shape, dtype)
        out = poisoned(shape[1], dtype)
        reductions.COLUMN_SUMS_LADDER[rung](asarray(matrix, dtype), out)
        exact = matrix.sum(axis=0, dtype=np.float64)
        scale = np.abs(matrix).sum(axis=0, dtype=np.float64)
        found = compare(rung, to_host(out), exact, dtype, k=shape[0], scale=scale, case=str(shape))
        assert found.ok, found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rung", TOTAL_RUNGS)
def test_every_rung_sums_any_vector(rung: str, dtype: str) -> None:
    for size in SIZES:
        vector = random(size, dtype)
        out = poisoned(1, dtype)
        reductions.TOTAL_LADDER[rung](asarray(vector, dtype), out)
        exact = vector.sum(dtype=np.float64, keepdims=True)
        scale = np.abs(vector).sum(dtype=np.float64)
        found = compare(rung, to_host(out), exact, dtype, k=size, scale=scale, case=str(size))
        assert found.ok, found


def test_column_sums_give_the_same_bits_every_time() -> None:
    matrix = asarray(random((1000, 33), "float32"))
    first = to_host(reductions.column_sums(matrix))
    for _ in range(3):
        assert np.array_equal(to_host(reductions.column_sums(matrix)), first)


def test_totals_give_the_same_bits_every_time() -> None:
    vector = asarray(random(4099, "float32"))
    assert len({reductions.total(vector) for _ in range(4)}) == 1


def test_a_nan_reaches_its_own_column_and_no_other() -> None:
    matrix = random((40, 35), "float32")
    matrix[39, 34] = np.nan
    sums = to_host(reductions.column_sums(asarray(matrix)))
    assert np.isnan(sums[34])
    assert not np.isnan(sums[:34]).any()
