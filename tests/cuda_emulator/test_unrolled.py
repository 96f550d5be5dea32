"""Loops over numba.literal_unroll(tuple)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from cuda_emulator import cuda, options

BOTH_MODES = pytest.mark.parametrize("mode", [{}, {"check": True}, {"step": True}], ids=["plain", "check", "step"])
CASES = (np.arange(3.0), np.arange(5), np.float32([[1, 2], [3, 4]])[::-1])


@cuda.jit
def unrolled(pairs, out):  # type: ignore[no-untyped-def]
    i = 0
    for each in numba.literal_unroll(CASES):
        out[i] = np.sum(each)
        i += 1
    for value in numba.literal_unroll(pairs):
        doubled = value * 2
        cuda.syncthreads()
        out[i] = doubled
        i += 1
    for k, (j, w) in numba.literal_unroll(((7, (0, 1.5)), (8, (1, 2)))):
        out[i] = w + j + k
        i += 1


@BOTH_MODES
def test_a_loop_over_literal_unroll_runs_its_body_for_each_type(mode: dict[str, Any]) -> None:
    for _ in range(2):  # the second kernel comes from the cache
        out = np.zeros(7)
        with options(**mode):
            cuda.jit(unrolled.py_func)[1, 1]((np.float32(1.5), 3), out)
        assert out.tolist() == [3, 10, 10, 3, 6, 8.5, 11]


def test_kernels_that_differ_in_a_captured_tuple_of_large_arrays_are_two() -> None:
    def of(values: tuple[np.ndarray[Any, Any], ...]) -> Any:
        @cuda.jit
        def kernel(out):  # type: ignore[no-untyped-def]
            for each in numba.literal_unroll(values):
                out[0] += each.sum()

        return kernel

    for number in (1, 2):
        large, out = np.ones(5000), np.zeros(1)
        large[2500] = number  # NumPy's text of the array has dots there
        of((large,))[1, 1](out)
        assert out[0] == 4999 + number


@cuda.jit
def changing(a, out):  # type: ignore[no-untyped-def]
    other = 2.0
    for each in numba.literal_unroll((a[0], other, a[1], 1)):
        out[0] += each
        other = a[0] = a[1] = 100.0


@BOTH_MODES
def test_the_items_are_read_before_the_loop(mode: dict[str, Any]) -> None:
    out = np.zeros(1)
    with options(**mode):
        changing[1, 1](np.array([4.0, 8.0]), out)
    assert out[0] == 15
