"""Step mode refuses what a device would not survive, and says it with the thread and the learner's line."""

import numpy as np
import pytest
from numba import float32

from cuda_emulator import KernelError, KernelWarning, cuda
from tests.cuda_emulator.syntax.stepping import ORDERS, line_of, refusal, step


@cuda.jit
def barrier_in_a_branch(out):
    t = cuda.threadIdx.x
    if t < 20:
        cuda.syncthreads()
    out[t] = t


def test_a_barrier_that_a_part_of_the_block_reaches_is_refused_with_counts_and_line():
    sentence = refusal(barrier_in_a_branch, 1, 64, np.zeros(64), at="cuda.syncthreads()")
    assert sentence.startswith("cuda.syncthreads() was reached by 20 of the 64 live threads of block (0, 0, 0).")
    assert sentence.endswith("Thread (20, 0, 0) has reached the kernel's end")


def test_divergence_warn_goes_on_as_a_device_may():
    out = np.zeros(64)
    with pytest.warns(KernelWarning, match="reached by 20 of the 64 live threads"):
        step(barrier_in_a_branch, 1, 64, out, divergence="warn")
    assert out.tolist() == list(range(64))


@cuda.jit
def two_barriers(out):
    if cuda.threadIdx.x % 2:
        cuda.syncthreads()  # odd
    else:
        cuda.syncthreads()  # even


def test_threads_at_two_barriers_do_not_meet():
    sentence = refusal(two_barriers, 1, 6, np.zeros(1), at="# even")
    assert "reached by 3 of the 6 live threads" in sentence
    assert f"waits at cuda.syncthreads() in line {line_of(two_barriers, '# odd')}" in sentence


@cuda.jit
def rounds_differ(out):
    for _ in range(cuda.threadIdx.x + 1):
        cuda.syncthreads()


def test_a_barrier_in_a_loop_with_a_different_number_of_rounds_is_refused():
    assert "reached by 2 of the 3 live threads" in refusal(rounds_differ, 1, 3, np.zeros(1), at="cuda.syncthreads()")


@cuda.jit
def leaves_early(out, n):
    t = cuda.threadIdx.x
    if t >= n:
        return
    for k in range(3):
        out[t] += cuda.syncthreads_count(True)
        if t == k:
            return


def test_threads_that_returned_are_not_waited_for():
    out = np.zeros(6)
    step(leaves_early, 1, 6, out, 4)
    assert out.tolist() == [4, 7, 9, 9, 0, 0]


@cuda.jit
def half_a_warp(out):
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 1)


@cuda.jit
def other_half(out):
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_down_sync(0xF, t, 1)


def test_a_shuffle_whose_mask_names_lanes_that_are_elsewhere_is_refused():
    sentence = refusal(half_a_warp, 1, 48, np.zeros(48), at="shfl_down_sync")
    assert sentence.startswith(
        "cuda.shfl_down_sync() names 32 live lanes of the warp in its mask, and 16 of them are here; in block (0, 0, 0)"
    )
    assert sentence.endswith("Thread (16, 0, 0) has reached the kernel's end")


def test_a_lane_that_its_own_mask_leaves_out_is_refused():
    sentence = refusal(other_half, 1, 8, np.zeros(8), at="shfl_down_sync")
    assert "called with the mask 0x0000000f, which does not name the calling lane" in sentence
    assert "in block (0, 0, 0), thread (4, 0, 0)" in sentence


@cuda.jit
def reads_past_the_end(table, out):
    i = cuda.grid(1)
    out[i] = table[1, i + 2]


def test_an_index_outside_an_array_is_refused_with_name_index_shape_block_and_thread():
    sentence = refusal(reads_past_the_end, 2, 4, np.zeros((3, 9)), np.zeros(8), at="table[1, i + 2]")
    assert sentence.startswith("table[1, 9] is out of bounds along axis 1: table has shape (3, 9); in block (1, 0, 0)")
    assert "thread (3, 0, 0)" in sentence


@cuda.jit
def adds_past_the_end(out):
    cuda.atomic.add(out, cuda.threadIdx.x, 1)


def test_an_atomic_outside_an_array_is_refused_at_the_learners_line():
    sentence = refusal(adds_past_the_end, 1, 4, np.zeros(2, np.int32), at="cuda.atomic.add")
    assert sentence.startswith("out[2] is out of bounds: out has shape (2,); in block (0, 0, 0), thread (2, 0, 0)")


@cuda.jit
def counts_from_the_end(out):
    out[-1 - cuda.threadIdx.x] = cuda.threadIdx.x


def test_negative_indices_count_from_the_end():
    out = np.zeros(3)
    step(counts_from_the_end, 1, 3, out)
    assert out.tolist() == [2, 1, 0]


@cuda.jit
def asserts(x):
    i = cuda.grid(1)
    assert x[i] >= 0, "x must not be negative"
    if x[i] == 9:
        raise ValueError("nine")


@pytest.mark.parametrize(
    ("value", "at", "said", "cause"),
    [
        (-1, "assert x", "assert x[i] >= 0", "x must not be negative"),
        (9, "raise V", "raise ValueError('nine')", "nine"),
    ],
)
def test_assert_and_raise_come_out_with_block_thread_and_cause(value, at, said, cause):
    x = np.array([1, 1, value])
    with pytest.raises(KernelError, match=r"in block \(1, 0, 0\), thread \(0, 0, 0\)") as caught:
        step(asserts, 2, 2, x)
    assert caught.value.line == line_of(asserts, at)
    assert said in str(caught.value)
    assert str(caught.value.__cause__) == cause


@cuda.jit
def shape_of_the_day(n, out):
    tile = cuda.shared.array(n, float32)
    out[0] = tile[0]


@cuda.jit
def claims_a_comparison(a):
    assert a[0] * 2 > a[1] + 1, "too small"


def test_an_assertion_is_quoted_as_it_was_written():
    said = refusal(claims_a_comparison, 1, 1, np.zeros(2), at="assert")
    assert said.startswith("assert a[0] * 2 > a[1] + 1, 'too small': in block (0, 0, 0)")


@cuda.jit
def stores_what_is_too_large(out, u):
    out[0] = (1 << 31) + 5
    out[1] = -(1 << 40) - 3
    u[0] = -1
    u[1] = 300.7


def test_an_integer_that_is_too_large_for_an_array_wraps_around():
    out, u = np.zeros(2, np.int32), np.zeros(2, np.uint8)
    step(stores_what_is_too_large, 1, 1, out, u)
    assert out.tolist() == [5 - 2**31, -3]
    assert u.tolist() == [255, 44]


@cuda.jit(device=True)
def anybody_above(x, least):
    return cuda.any_sync(0xFFFFFFFF, x > least)


@cuda.jit
def continues_in_loops_that_vote(out):
    t = cuda.threadIdx.x
    x = t
    while cuda.any_sync(0xFFFFFFFF, x > 0):
        x -= 1
        if x == 5:
            continue
        out[0, t] += 1
    x = t
    while cuda.syncthreads_or(x > 0):
        x -= 1
        if x == 5:
            continue
        out[1, t] += 1
    x = t
    while anybody_above(x, 0):
        x -= 1
        if x == 5:
            continue
        out[2, t] += cuda.popc(cuda.activemask())


@pytest.mark.parametrize("order", ORDERS)
def test_a_vote_in_the_condition_of_a_while_is_one_call_however_its_round_is_reached(order):
    out = np.zeros((3, 32), np.int64)
    step(continues_in_loops_that_vote, 1, 32, out, order=order)
    rounds = np.where(np.arange(32) > 5, 30, 31)
    np.testing.assert_array_equal(out[:2], [rounds, rounds])
    # In each round all count that are there, one fewer where one had just come to 5.
    x = np.arange(32)[:, None] - np.arange(1, 32)
    there = (x != 5).sum(axis=0)
    np.testing.assert_array_equal(out[2], ((x != 5) * there).sum(axis=1))


def test_a_shared_array_whose_shape_is_an_argument_is_refused():
    assert "shape that is known when the kernel is compiled" in refusal(
        shape_of_the_day, 1, 1, 4, np.zeros(1), at="shared.array"
    )


@cuda.jit
def too_much(out):
    tile = cuda.shared.array((80, 80), np.float64)
    out[0] = tile.size


def test_more_shared_memory_than_a_block_has_is_refused():
    with pytest.raises(KernelError, match="may use 49152 bytes of shared memory, this launch needs 51200"):
        step(too_much, 1, 1, np.zeros(1))


def test_an_order_that_is_none_is_refused():
    with pytest.raises(ValueError, match="expected 'forward', 'reverse' or a seed, got 'sideways'"):
        step(counts_from_the_end, 1, 3, np.zeros(3), order="sideways")
