"""Threads that have left when the others of their warp or block meet."""

from typing import Any

import numpy as np
import pytest
from numba import float32

from cuda_emulator import cuda
from groundup.course.grading.calling.early_returns import LANES_LEFT, NO_EARLY_RETURN, who_left
from groundup.course.grading.calling.kernel_launches import Launch, Out, backend

pytestmark = pytest.mark.skipif(backend() != "emulator", reason="the emulator tells who was there")


@cuda.jit
def all_come(values, out):
    i = cuda.grid(1)
    value = values[i] if i < values.size else values.dtype.type(0)
    value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)
    cuda.syncthreads()
    if i < out.size:
        out[i] = value


@cuda.jit
def lanes_leave(values, out):
    i = cuda.grid(1)
    if i >= values.size:
        return
    out[i] = values[i] + cuda.shfl_xor_sync(0xFFFFFFFF, values[i], 1)


@cuda.jit
def whole_warps_leave(values, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x >= 32:
        return
    out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, values[i], 1)


@cuda.jit
def threads_leave(values, out):
    tile = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    if i >= values.size:
        return
    tile[i] = values[i]
    cuda.syncthreads()
    out[i] = tile[63 - i]


@pytest.mark.parametrize(
    ("kernel", "size", "found"),
    [
        (all_come, 20, set()),
        (lanes_leave, 20, {LANES_LEFT}),
        (lanes_leave, 64, set()),
        (whole_warps_leave, 32, set()),
        (threads_leave, 20, {NO_EARLY_RETURN}),
        (threads_leave, 64, set()),
    ],
)
def test_who_has_left_is_found_where_the_others_meet(kernel: Any, size: int, found: set[str]) -> None:
    assert who_left(kernel, Launch(1, 64), [np.ones(size, np.float32), Out((size,))]) == found
