"""Who does the work of a launch: told of tiny kernels by their traces."""

from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.calling.kernel_launches import Launch, Out, backend
from groundup.course.grading.calling.kernel_memory import traced
from groundup.course.grading.calling.shared_work import Work, share_work, touched

pytestmark = pytest.mark.skipif(backend() != "emulator", reason="the emulator traces")


@cuda.jit
def strided(values, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = values[i]


@cuda.jit
def by_thread_0(values, out):
    if cuda.grid(1) == 0:
        for i in range(out.size):
            out[i] = values[i]


@cuda.jit
def by_block_1(values, out):
    if cuda.blockIdx.x == 1:
        for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):
            out[i] = values[i]


@cuda.jit
def by_one_thread_a_block(values, out):
    if cuda.threadIdx.x == 5:
        for i in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
            out[i] = values[i]


@cuda.jit
def by_one_warp_a_block(values, out):
    if cuda.threadIdx.x < 32:
        for i in range(cuda.blockIdx.x * 32 + cuda.threadIdx.x, out.size, cuda.gridDim.x * 32):
            out[i] = values[i]


@cuda.jit
def by_every_block(values, out):
    for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):
        out[i] = values[i]


@cuda.jit
def by_half_the_grid(values, out):
    half = cuda.gridsize(1) // 2
    if cuda.grid(1) % 2 == 0:
        for i in range(cuda.grid(1) // 2, out.size, half):
            out[i] = values[i]


def judged(kernel: Any, work: Work, patterns: bool = False) -> Tally:
    tally, launch = Tally(), Launch(3, 64)
    trace = traced(kernel, launch, np.arange(384, dtype=np.float32), Out((384,)))
    share_work(tally, work, touched(trace, work.place, work.kind), 3, 64, patterns=patterns)
    return tally


@pytest.mark.parametrize(
    ("kernel", "what", "cause"),
    [
        (by_thread_0, "thread 0 of block 0 writes 384 numbers of out", "does everything in a loop, and the other 191"),
        (by_block_1, "of block 1 writes 6 numbers of out", "only block 1 of 3 blocks works"),
        (by_one_thread_a_block, "writes 128 numbers of out", "only thread 5 of each block works, and the other 63"),
        (by_one_warp_a_block, "writes 4 numbers of out", "only warp 0 of each block works: a block has 2"),
        (by_every_block, "3 threads write the same element of out", "several threads compute the same number"),
        (by_half_the_grid, "writes 4 numbers of out", "a thread does the work of several"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_who_does_the_work_of_others_is_told(kernel: Any, what: str, cause: str) -> None:
    with pytest.raises(Wrong) as raised:
        judged(kernel, Work(1, 2))
    assert what in raised.value.what
    assert cause in raised.value.cause


def test_a_grid_stride_loop_shares_the_work() -> None:
    assert judged(strided, Work(1, 2)).count == 2
    assert judged(strided, Work(0, 2, "load")).count == 2


def test_where_only_patterns_are_refused_an_uneven_share_passes() -> None:
    assert judged(by_half_the_grid, Work(1, 2), patterns=True).count == 2
    with pytest.raises(Wrong, match="writes 384 numbers"):
        judged(by_thread_0, Work(1, 2), patterns=True)


def test_a_share_is_counted_in_rows_where_a_thread_takes_rows() -> None:
    with pytest.raises(Wrong, match="writes 24 rows of out") as raised:
        judged(by_thread_0, Work(1, 1, row=16, cause="a thread takes one row"))
    assert raised.value.cause == "a thread takes one row"
