"""A walk computes what NumPy computes, and records who did what, where and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.walking.walk import Block, walk_block
from cuda_emulator.walking.walked_launch import Launched

"""Its arrays are views with gaps, which a launch takes in step mode only."""


@cuda.jit(device=True)
def doubled(x):
    return x + x


@cuda.jit
def halves(x, out):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = doubled(x[i])
    cuda.syncthreads()
    if i < 40:
        out[i] = tile[63 - i]
    else:
        out[i] = np.float32(0)
    for k in range(i % 3):
        out[i] += np.float32(k)


def launched(kernel: Any = halves, arguments: Any = None, block: int = 64) -> Launched:
    x = np.arange(64, dtype=np.float32)
    return Launched(kernel, 1, block, arguments or (x, np.zeros(64, np.float32)))


def line(text: str, kernel: Any = halves) -> int:
    source = kernel.source
    return source.first_line + next(i for i, each in enumerate(source.text.splitlines()) if text in each)


def steps_at(walk: Any, text: str) -> list[Any]:
    return [step for step in walk.steps if walk.marks[step.mark].line == line(text)]


def test_a_step_has_the_threads_that_are_at_a_statement_together() -> None:
    walk = launched().walk()
    assert [len(step.threads) for step in steps_at(walk, "tile[63 - i]")] == [40]
    assert [len(step.threads) for step in steps_at(walk, "np.float32(0)")] == [24]
    # A loop's header is a step in each iteration; those that make none come to it once.
    assert [len(step.threads) for step in steps_at(walk, "for k")] == [64, 21]
    assert [len(step.threads) for step in steps_at(walk, "np.float32(k)")] == [42, 21]


def test_an_access_names_array_elements_and_values_of_all_its_threads() -> None:
    walk = launched().walk()
    (read,) = steps_at(walk, "tile[63 - i]")[0].accesses[:1]
    assert walk.arrays[read.array].name == "tile"
    assert walk.arrays[read.array].space == "shared"
    assert walk.marks[read.mark].text == "tile[63 - i]"
    assert read.threads == list(range(40))
    assert read.places == [63 - i for i in range(40)]
    assert read.values == [2.0 * (63 - i) for i in range(40)]


def test_a_call_goes_into_the_device_function_and_back_to_the_line() -> None:
    walk = launched().walk()
    lines = [(walk.marks[step.mark].function, step.depth) for step in walk.steps]
    at = lines.index(("doubled", 1))
    assert lines[at - 1] == lines[at + 1] == ("halves", 0)
    before, after = walk.steps[at - 1], walk.steps[at + 1]
    assert walk.marks[before.mark].line == walk.marks[after.mark].line
    assert [access.kind for access in before.accesses] == ["read"]
    assert [access.kind for access in after.accesses] == ["write"]
    assert before.changes[5] == [(1, "x", 5.0)]


def test_barriers_divide_the_walk_into_phases() -> None:
    walk = launched().walk()
    assert walk.barriers == [(halves.source.filename, line("cuda.syncthreads()"))]
    (barrier,) = steps_at(walk, "cuda.syncthreads()")
    assert barrier.collective == "syncthreads"
    assert {step.phase for step in walk.steps[: walk.steps.index(barrier) + 1]} == {0}
    assert {step.phase for step in walk.steps[walk.steps.index(barrier) + 1 :]} == {1}


def test_the_variables_that_a_statement_assigns_are_recorded() -> None:
    walk = launched().walk()
    (step,) = steps_at(walk, "i = cuda.threadIdx.x")
    assert step.changes[7] == [(0, "i", 7)]
    first, second = steps_at(walk, "for k")
    assert (first.changes[5], second.changes[5]) == ([(0, "k", 0)], [(0, "k", 1)])
    assert not first.changes.get(3)  # it makes no iteration


@cuda.jit
def exchange(x, out):
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 1)


def test_a_shuffle_shows_what_each_lane_gave_and_got() -> None:
    walk = launched(exchange).walk()
    (step,) = [step for step in walk.steps if step.collective]
    assert step.collective == "shfl_xor_sync"
    assert step.results[4] == (4.0, 5.0)
    assert [access.kind for access in step.accesses] == ["read", "write"]


def test_lanes_that_a_group_leaves_out_are_waited_for() -> None:
    walk = launched(exchange, block=32).walk(groups=lambda phase: [[0], list(range(1, 32))])
    assert walk.fault == ""
    assert walk.arrays[1].after is not None
    assert walk.arrays[1].after[:32].tolist() == [float(i ^ 1) for i in range(32)]


@cuda.jit
def some_skip(x, out):
    i = cuda.threadIdx.x
    for k in range(3):
        if i < 20:
            continue
        out[i] += x[k]


def test_threads_that_have_skipped_the_rest_of_an_iteration_wait_for_the_others_at_the_next() -> None:
    walk = launched(some_skip).walk()
    at = line("for k", some_skip)
    assert [len(step.threads) for step in walk.steps if walk.marks[step.mark].line == at] == [64, 64, 64]


@cuda.jit
def too_far(x, out):
    i = cuda.threadIdx.x
    out[i] = x[i + 1]


@cuda.jit
def some_wait(x, out):
    i = cuda.threadIdx.x
    if i < 20:
        cuda.syncthreads()
    out[i] = x[i]


@pytest.mark.parametrize(
    ("kernel", "sentence", "text"),
    [
        (too_far, "x[64] is out of bounds", "x[i + 1]"),
        (some_wait, "20 of the 64 live threads", "cuda.syncthreads()"),
    ],
)
def test_a_mistake_ends_the_walk_at_its_line_and_keeps_the_steps_before(kernel: Any, sentence: str, text: str) -> None:
    walk = launched(kernel).walk()
    assert sentence in walk.fault
    assert walk.fault_line == line(text, kernel)
    assert walk.steps


def test_of_threads_that_are_not_watched_only_the_writes_are_recorded() -> None:
    walk, whole = launched().walk(watched=range(32)), launched().walk()
    assert [(step.mark, step.threads) for step in walk.steps] == [(step.mark, step.threads) for step in whole.steps]
    for step, full in zip(walk.steps, whole.steps, strict=True):
        assert [each for each in step.accesses if each.kind != "read"] == [
            each for each in full.accesses if each.kind != "read"
        ]
        assert all(max(each.threads) < 32 for each in step.accesses if each.kind == "read")
        assert step.changes.keys() == {thread for thread in full.changes if thread < 32}


def test_a_long_walk_is_cut() -> None:
    walk = launched().walk(most=300)
    assert walk.cut
    assert 0 < len(walk.steps) < len(launched().walk().steps)


@cuda.jit
def all_blocks_meet(x, out):
    cuda.cg.this_grid().sync()
    out[cuda.grid(1)] = x[0]


def test_blocks_that_wait_for_each_other_are_refused_with_the_reason() -> None:
    arguments = np.ones(1, np.float32), np.zeros(64, np.float32)
    assert "launch it with one block" in Launched(all_blocks_meet, 2, 32, arguments).walk().fault
    assert Launched(all_blocks_meet, 1, 32, arguments).walk().fault == ""


def test_a_block_that_the_grid_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="block: expected a number from 0 to 0, got 1"):
        launched().walk(1)


@cuda.jit
def indices_that_are_computed(x, y, out):
    i = cuda.threadIdx.x
    row = min(i + 1, 3)
    out[i + 0, row - 1] = x[row - 1, -i] + y[int(x[row - 1, 0]) % 2, max(i, 1) - 1]
    out[i, row % 2] += y[(i + 1) % 2, i if i > 0 else 0]
    cuda.atomic.add(out, (i, row - 1), x[i - 1, 0])
    if x[i, i] > y[-1, i - 1]:
        out[i, 0] = -x[i - 1, i - 1]


def test_an_access_is_named_as_the_source_has_it() -> None:
    values = [np.ones((4, 4)), np.ones((2, 4)), np.zeros((4, 4))]
    launched = Launched(indices_that_are_computed, (1,), (4,), values, 0)
    shape = launched.grid, launched.block, 0, 0
    kernel = indices_that_are_computed
    walk = walk_block(Block(kernel.source, kernel.parameters, *shape), launched.fresh(), watched=range(4))
    assert walk.fault == ""
    texts = {walk.marks[access.mark].text for step in walk.steps for access in step.accesses}
    assert texts == {
        *("out[i + 0, row - 1]", "x[row - 1, -i]", "x[row - 1, 0]", "out[i, row % 2]"),
        *("y[int(x[row - 1, 0]) % 2, max(i, 1) - 1]", "y[(i + 1) % 2, i if i > 0 else 0]"),
        *("cuda.atomic.add(out, (i, row - 1), x[i - 1, 0])", "x[i - 1, 0]", "x[i, i]", "y[-1, i - 1]"),
    } | (texts & {"out[i, 0]", "x[i - 1, i - 1]"})
    assert not [mark.text for mark in walk.marks if "__" in mark.text]
