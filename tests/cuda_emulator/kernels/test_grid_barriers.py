"""Barriers across the grid, `cuda.cg.this_grid().sync()`: traces, wrong kernels told by their line, sizes of grids."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, hooks, options
from cuda_emulator.lens import detecting
from cuda_emulator.lens.findings import findings
from cuda_emulator.runtime import check_report, limits
from cuda_emulator.runtime.check import next_order
from cuda_emulator.runtime.tracing import trace_launch
from tests.cuda_emulator.emulator_kernels.grids import BLOCKS, COUNT, STEPS, THREADS, rotate
from tests.wide import widely


@pytest.fixture(autouse=True)
def _the_detector_is_the_lens() -> Iterator[None]:
    hooks.register_detector(detecting.detect)
    check_report.reset()
    yield
    check_report.reset()


# ---------------------------------------------------------------- right kernels


def test_barriers_are_counted_and_order_the_blocks_in_the_lens() -> None:
    x, y = np.arange(COUNT, dtype=np.float32), np.empty(COUNT, np.float32)
    profile = rotate.profile(BLOCKS, THREADS, x, y, STEPS)
    assert profile.races == []
    assert profile.fault == ""
    assert len(profile.phases) == 2 * STEPS  # behind the last barrier there is nothing to record
    assert [each.times for each in profile.collectives] == [STEPS * len(profile.blocks)] * 2
    np.testing.assert_array_equal(x, np.arange(COUNT))  # the lens leaves the arguments as they were


def test_blocks_that_are_not_traced_run_and_meet_the_others() -> None:
    x, y = np.arange(COUNT, dtype=np.float32), np.empty(COUNT, np.float32)
    trace = trace_launch(rotate, BLOCKS, THREADS, (x, y, STEPS), blocks=[1, 3])
    assert trace.blocks == [1, 3]
    assert trace.fault == ""
    assert trace.rounds is not None
    assert trace.rounds.max() == 2 * STEPS - 1  # behind the last barrier there is nothing to record
    first = slice(trace.bounds[0], trace.bounds[1])
    assert (np.diff(trace.rounds[first]) >= 0).all()


def test_a_trace_that_is_too_large_is_made_of_fewer_blocks() -> None:
    x, y = np.arange(COUNT, dtype=np.float32), np.empty(COUNT, np.float32)
    whole = trace_launch(rotate, BLOCKS, THREADS, (x, y, STEPS))
    fewer = trace_launch(rotate, BLOCKS, THREADS, (x, y, STEPS), most_events=len(whole.events) - 1)
    assert 0 < len(fewer.blocks) < len(whole.blocks)
    with pytest.raises(ValueError, match="trace fewer blocks, or a smaller problem"):
        trace_launch(rotate, BLOCKS, THREADS, (x, y, STEPS), blocks=4, most_events=len(whole.events) - 1)


# ---------------------------------------------------------------- wrong kernels


@cuda.jit
def some_blocks(x, y, steps):  # type: ignore[no-untyped-def]
    if cuda.blockIdx.x > 1:
        cuda.cg.this_grid().sync()  # HERE
    x[cuda.grid(1)] = 0


def line_of(kernel: Any, mark: str = "# HERE") -> int:
    lines, first = inspect.getsourcelines(kernel.py_func)
    return next(first + number for number, line in enumerate(lines) if mark in line)


def test_the_lens_reports_such_a_barrier() -> None:
    x = np.ones(COUNT, np.float32)
    profile = some_blocks.profile(BLOCKS, THREADS, x, x.copy(), STEPS)
    assert "was reached by 3 of the 5 blocks" in profile.fault
    assert profile.fault_line == line_of(some_blocks)


@cuda.jit
def without_the_second(x, y, steps):  # type: ignore[no-untyped-def]
    group = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(steps):
        y[i] = x[i - 1] if i > 0 else x[x.size - 1]
        group.sync()
        x[i] = y[i]  # RACES


@cuda.jit
def with_the_barrier_of_a_block(x, y, steps):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    x[i] = i
    cuda.syncthreads()
    y[i] = x[(i + 1) % x.size]  # RACES
    cuda.cg.this_grid().sync()
    x[i] = y[i]


@cuda.jit
def behind_many(x, y, steps):  # type: ignore[no-untyped-def]
    """Only the last of many rounds is wrong."""
    group = cuda.cg.this_grid()
    i = cuda.grid(1)
    for step in range(steps):
        x[i] = step
        group.sync()
    y[i] = x[x.size - 1 - i]
    x[i] = 1  # RACES


@pytest.mark.parametrize("kernel", widely([without_the_second, with_the_barrier_of_a_block, behind_many]))
def test_blocks_race_where_no_barrier_across_the_grid_is_between_them(kernel: Any) -> None:
    x, y = np.ones(COUNT, np.float32), np.ones(COUNT, np.float32)
    with (
        options(check=True),
        pytest.raises(KernelError, match="Only a barrier across the grid orders two blocks") as told,
    ):
        kernel[BLOCKS, THREADS](x, y, STEPS)
    assert told.value.line == line_of(kernel, "# RACES")
    profile = kernel.profile(BLOCKS, THREADS, x, y, STEPS)
    assert profile.races
    assert any(race.between_blocks for race in profile.races)
    assert any("cuda.cg.this_grid().sync()" in found.remedy for found in findings(profile))


@cuda.jit
def tuple_over_a_barrier(x, y, steps):  # type: ignore[no-untyped-def]
    shape = x.shape
    if steps > 1:
        shape = y.shape
    cuda.cg.this_grid().sync()
    y[cuda.grid(1)] = shape[0]


def test_a_tuple_that_changes_is_not_kept_over_the_barrier() -> None:
    x = np.ones(COUNT, np.float32)
    with pytest.raises(KernelError, match=r"'shape' holds a value of type UniTuple.* on both sides"):
        tuple_over_a_barrier[BLOCKS, THREADS](x, x.copy(), STEPS)


# ---------------------------------------------------------------- the size of the grid


def most(kernel: Any, threads: int | tuple[int, ...], dynamic: int = 0) -> int:
    compiled = next(iter(kernel.overloads.values()))
    return int(compiled.max_cooperative_grid_blocks(threads, dynamic))


def test_a_grid_larger_than_the_device_holds_at_once_is_refused() -> None:
    small = cuda.jit(rotate.py_func)
    x = np.zeros(4, np.float32)
    with pytest.raises(KernelError, match="out of bounds"):
        small[1, 1024](x, x.copy(), 1)
    fits = most(small, 1024)
    assert fits == limits.MULTIPROCESSORS
    x = np.zeros((fits + 1) * 1024, np.float32)
    small[fits, 1024](x, x.copy(), 1)
    says = f"this device holds {fits} blocks of 1024 threads and 0 bytes of shared memory; this launch has {fits + 1}"
    for launch in (small[fits + 1, 1024], lambda *given: small.profile(fits + 1, 1024, *given)):
        with pytest.raises(KernelError, match=re.escape(says)):
            launch(x, x.copy(), 1)


def test_what_fits_depends_on_threads_and_shared_memory() -> None:
    x = np.zeros(COUNT, np.float32)
    kernel = cuda.jit(rotate.py_func)
    kernel[BLOCKS, THREADS](x, x.copy(), 1)
    each = {threads: most(kernel, threads) // limits.MULTIPROCESSORS for threads in (1, 32, 64, 65, 256, 1024)}
    assert each == {1: 16, 32: 16, 64: 16, 65: 10, 256: 4, 1024: 1}
    assert most(kernel, (16, 16)) == most(kernel, 256)
    assert most(kernel, 32, 16 * 1024) == 4 * limits.MULTIPROCESSORS


def test_a_kernel_without_such_barriers_may_have_any_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MULTIPROCESSORS", 1)

    @cuda.jit
    def fill(x):  # type: ignore[no-untyped-def]
        x[cuda.blockIdx.x] = 1

    x = np.zeros(100, np.float32)
    fill[100, 1](x)
    assert x.all()


def test_orders_of_blocks_change_between_barriers() -> None:
    forward, random = np.arange(7), np.random.default_rng(0).permutation(7)
    assert next_order(forward) is forward
    assert next_order(forward[::-1]).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert next_order(random).tolist() != random.tolist()
    assert sorted(next_order(random)) == sorted(random)


def test_an_error_behind_a_barrier_names_block_and_thread() -> None:
    @cuda.jit
    def late(x):  # type: ignore[no-untyped-def]
        cuda.cg.this_grid().sync()
        x[cuda.grid(1) + 1] = 1

    with pytest.raises(KernelError, match=re.escape("x[40] is out of bounds: x has shape (40,); in block (4, 0, 0)")):
        late[BLOCKS, THREADS](np.zeros(COUNT, np.float32))
