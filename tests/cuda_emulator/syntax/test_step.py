"""Step mode: the learner's own lines as generators: what it computes, what it says, and Python's tools in it."""

import bdb
import math
import pdb
import sys
import traceback
import warnings

import numpy as np
import pytest
from numba import float32, int32, int64

from cuda_emulator import KernelError, KernelWarning, cuda, options
from cuda_emulator.compiler.source import FunctionSource
from cuda_emulator.poison import poison_value
from cuda_emulator.stepping.step import run_kernel

TILE = 8
ORDERS = ["forward", "reverse", 0, 1]


def step(kernel, grid, block, *arguments, dynamic_bytes=0, **options_of_step):
    """Launch in step mode."""
    extents = [(*shape, 1, 1)[:3] if isinstance(shape, tuple) else (shape, 1, 1) for shape in (grid, block)]
    run_kernel(FunctionSource(kernel.py_func), arguments, *extents, dynamic_bytes, **options_of_step)


def line_of(kernel, text):
    """The line of the kernel's file that holds this text."""
    source = FunctionSource(kernel.py_func)
    return source.first_line + next(i for i, line in enumerate(source.text.splitlines()) if text in line)


def refusal(kernel, grid, block, *arguments, at, **options_of_step):
    """The sentence that step mode refuses the kernel with; it must point to the line with the text `at`."""
    with pytest.raises(KernelError) as caught:
        step(kernel, grid, block, *arguments, **options_of_step)
    assert caught.value.filename == __file__
    assert caught.value.line == line_of(kernel, at)
    assert str(caught.value).startswith(f"{__file__}:{caught.value.line}: ")
    return caught.value.sentence


# ---- what it computes


@cuda.jit
def tiled_matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[y, x] = a[row, start + x] if row < a.shape[0] and start + x < a.shape[1] else 0
        tile_b[y, x] = b[start + y, column] if start + y < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@pytest.mark.parametrize("order", ORDERS)
def test_a_tiled_product_is_right_in_every_order_of_threads(order):
    numbers = np.random.default_rng(0)
    a, b = numbers.random((10, 9), dtype=np.float32), numbers.random((9, 11), dtype=np.float32)
    c = np.zeros((10, 11), np.float32)
    step(tiled_matmul, (2, 2), (TILE, TILE), a, b, c, order=order)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_options_step_runs_an_unchanged_launch_in_step_mode():
    a = np.ones((8, 8), np.float32)
    c = np.zeros((8, 8), np.float32)
    with options(step=True):
        tiled_matmul[(1, 1), (TILE, TILE)](a, a, c)
    np.testing.assert_array_equal(c, np.full((8, 8), 8, np.float32))


@cuda.jit
def types_that_meet(x32, i32, u8, out):
    out[0] = (x32[0] * 3 == x32[0] * float32(3)) + 0
    out[1] = x32[0] + x32[0] == np.float32(0.2)
    out[2] = i32[0] + i32[0]
    out[3] = u8[0] + u8[0]
    out[4] = True + True
    out[5] = -7 // 2
    out[6] = -7 % 5
    out[7] = int(-2.7)
    out[8] = (1 << 62) * 4
    out[9] = x32[0] < 0.1
    out[10] = max(i32[1], 2.5) * 2
    out[11] = 7 // i32[2] + 7 % i32[2]
    out[12] = math.sqrt(x32[1]) * 0 != 0
    out[13] = np.uint8(300)
    out[14] = ~i32[1]


def test_types_meet_as_numba_lets_them_meet():
    out = np.zeros(15)
    x32 = np.array([0.1, -1], np.float32)
    i32 = np.array([2**31 - 1, 3, 0], np.int32)
    step(types_that_meet, 1, 1, x32, i32, np.array([200], np.uint8), out)
    # float32 * int is float64; int32 + int32 is int64; an int64 wraps around; float32(0.1) is above 0.1; x // 0 is 0.
    expected = [0, 1, 2**32 - 2, 400, 2, -4, 3, -2, 0, 0, 6, 0, 1, 44, -4]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def lanes(out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 2)
    out[1, t] = cuda.shfl_up_sync(0xFFFFFFFF, t, 2)
    out[2, t] = cuda.shfl_xor_sync(-1, t, 1)
    out[3, t] = cuda.shfl_sync(0xFFFFFFFF, t, 40)
    out[4, t] = cuda.ballot_sync(0xFFFFFFFF, t % 2 == 0)
    out[5, t] = cuda.any_sync(0xFFFFFFFF, t == 33)
    out[6, t] = cuda.all_sync(0xFFFFFFFF, t < 33)
    out[7, t] = cuda.eq_sync(0xFFFFFFFF, t < 32)
    out[8, t] = cuda.match_any_sync(0xFFFFFFFF, t // 4)
    alike, same = cuda.match_all_sync(0xFFFFFFFF, t // 32)
    out[9, t] = alike + same
    out[10, t] = cuda.syncthreads_count(t > 30)
    out[11, t] = cuda.syncthreads_and(t >= 0) + cuda.syncthreads_or(t == 3) * 2
    if t < 4:
        out[12, t] = cuda.activemask()
        out[13, t] = cuda.shfl_down_sync(0xF, t, 1) if t != 9 else 0


def test_warps_answer_as_a_device_does_and_the_last_one_is_short():
    out = np.zeros((14, 34), np.int64)
    step(lanes, 1, 34, out)
    t = np.arange(34)
    assert out[0].tolist() == [*range(2, 32), 30, 31, 32, 33]
    assert out[1].tolist() == [0, 1, *range(30), 32, 33]
    assert out[2].tolist() == (t ^ 1).tolist()
    assert out[3].tolist() == [8] * 32 + [32, 33]  # lane 8 of the short warp does not exist: its own value
    assert out[4].tolist() == [0x55555555] * 32 + [1, 1]
    assert out[5].tolist() == [0] * 32 + [1, 1]
    assert out[6].tolist() == [1] * 32 + [0, 0]
    assert out[7].tolist() == [1] * 34
    assert out[8, :8].tolist() == [0xF] * 4 + [0xF0] * 4
    assert out[9].tolist() == [0] * 32 + [4, 4]  # all 32 lanes are -1 as an int32, and True is 1
    assert out[10].tolist() == [3] * 34
    assert out[11].tolist() == [3] * 34
    assert out[12, :4].tolist() == [0xF] * 4
    assert out[13, :4].tolist() == [1, 2, 3, 3]


@cuda.jit(device=True)
def block_maximum(value):
    best = cuda.shared.array(1, int64)
    if cuda.threadIdx.x == 0:
        best[0] = value
    cuda.syncthreads()
    cuda.atomic.max(best, 0, value)
    cuda.syncthreads()
    return best[0]


@cuda.jit(device=True)
def sign(x):
    if x < 0:
        return -1
    return 1 if x > 0 else 0


@cuda.jit
def memory_of_all_kinds(x, out, table):
    one, other = cuda.shared.array(4, int32), cuda.shared.array(4, int32)
    dynamic = cuda.shared.array(0, float32)
    local = cuda.local.array(3, int32)
    fixed = cuda.const.array_like(table)
    t = cuda.threadIdx.x
    one[t], other[t] = t, 10 * t
    dynamic[t] = t / 2
    local[t % 3] = t
    cuda.syncthreads()
    out[0, t] = one[3 - t] + other[3 - t]
    out[1, t] = dynamic[3 - t] * 2 if cuda.syncthreads_or(t == 1) and dynamic.size == 6 else -1
    out[2, t] = local[t % 3] + fixed[-1]
    out[3, t] = block_maximum(sign(x[t]) * t)


def test_shared_local_constant_and_dynamic_memory_and_functions_that_synchronise():
    out = np.zeros((4, 4), np.int64)
    step(memory_of_all_kinds, 1, 4, np.array([5, 0, -3, 2]), out, np.array([1, 100]), dynamic_bytes=26)
    assert out.tolist() == [[33, 22, 11, 0], [3, 2, 1, 0], [100, 101, 102, 103], [3, 3, 3, 3]]


@cuda.jit
def atomics(cells, floats):
    t = cuda.threadIdx.x
    cuda.atomic.add(cells, 0, t)
    cuda.atomic.sub(cells, 1, t)
    cuda.atomic.max(cells, 2, t)
    cuda.atomic.min(cells, 3, -t)
    cuda.atomic.inc(cells, 4, 2)
    cuda.atomic.dec(cells, 5, 2)
    cuda.atomic.and_(cells, 6, ~(1 << t))
    cuda.atomic.or_(cells, 7, 1 << t)
    cuda.atomic.xor(cells, -1, t)
    cuda.atomic.exch(cells, 9, 7)
    cuda.atomic.cas(cells, 10, t, t + 1)
    cuda.atomic.max(floats, (0, 0), t)
    cuda.atomic.nanmax(floats, (0, 1), t)


def test_atomics_keep_the_rules_of_numba_cuda():
    cells, floats = np.zeros(12, np.int64), np.full((1, 2), np.nan, np.float32)
    cells[6] = 0xFF
    step(atomics, 1, 4, cells, floats)
    assert cells.tolist() == [6, -6, 3, -3, 1, 2, 0xF0, 0xF, 0, 7, 4, 0]
    assert np.isnan(floats[0, 0])  # max leaves a NaN alone
    assert floats[0, 1] == 3  # nanmax takes it for missing


# ---- poison


def test_poison_is_nan_for_floats_true_for_bool_and_a_pattern_for_integers():
    assert np.isnan(poison_value(np.float32))
    assert np.isnan(poison_value(np.complex64))
    assert poison_value(np.int32) == -842150451
    assert poison_value(np.uint16) == 0xCDCD
    assert poison_value(np.bool_) is np.True_


@cuda.jit
def forgets_to_write(out):
    tile = cuda.shared.array(2, float32)
    mine = cuda.local.array(2, int32)
    counter = cuda.shared.array(1, int32)
    out[cuda.blockIdx.x] = tile[0], mine[1], counter[0]
    tile[0] = mine[1] = counter[0] = 1


def test_fresh_memory_of_every_block_and_thread_is_poisoned():
    out = np.zeros((2, 3))
    step(forgets_to_write, 2, 1, out)
    np.testing.assert_array_equal(out, [[np.nan, -842150451, -842150451]] * 2)
    step(forgets_to_write, 2, 1, out, poison=False)
    np.testing.assert_array_equal(out, np.zeros((2, 3)))


# ---- what it says


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


# ---- races show


@cuda.jit
def shift(x, out):
    cell = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    cell[t] = x[t]
    out[t] = cell[t - 1] if t > 0 else 0


def test_orders_expose_a_missing_barrier():
    x = np.arange(16, dtype=np.float32)
    results = []
    for order in ORDERS:
        out = np.zeros(16, np.float32)
        step(shift, 1, 16, x, out, order=order)
        results.append(out)
    # In order, each thread finds what its left neighbour has just written: right by luck, in that order only.
    np.testing.assert_array_equal(results[0], [0, *range(15)])
    assert all(np.isnan(result).any() for result in results[1:])


# ---- Python's tools


@cuda.jit
def talks(out):
    t = cuda.threadIdx.x
    print("thread", t, "has", t * 0.5)
    cuda.syncthreads()
    if t == 1:
        print("after")


def test_print_comes_out_in_the_order_of_the_threads(capsys):
    step(talks, 1, 2, np.zeros(1))
    assert capsys.readouterr().out == "thread 0 has 0.0\nthread 1 has 0.5\nafter\n"


@cuda.jit
def stumbles(x):
    cuda.syncthreads()
    x.no_such_thing  # noqa: B018


def test_what_python_raises_keeps_its_type_its_line_and_names_the_thread():
    with pytest.raises(AttributeError, match="no_such_thing") as caught:
        step(stumbles, 1, 2, np.zeros(1))
    assert caught.value.__notes__ == ["in block (0, 0, 0), thread (0, 0, 0)"]
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.name) == (__file__, line_of(stumbles, "x.no_such_thing"), "stumbles")
    assert last.line == "x.no_such_thing  # noqa: B018"


@cuda.jit
def stops(out):
    t = cuda.threadIdx.x
    cuda.syncthreads()
    if t == 1:
        breakpoint()
    out[t] = t * 10


def test_a_breakpoint_stops_in_the_learners_line_and_knows_the_thread(monkeypatch):
    seen = []

    class Debugger(pdb.Pdb):
        def interaction(self, frame, *rest):
            seen.append(
                (frame.f_code.co_filename, frame.f_lineno, frame.f_locals["t"], eval("cuda.grid(1)", frame.f_globals))
            )
            self.set_continue()

    monkeypatch.setattr("sys.breakpointhook", lambda: Debugger(nosigint=True).set_trace(sys._getframe(1)))
    out = np.zeros(3)
    step(stops, 1, 3, out)
    ((filename, line, t, place),) = seen
    assert filename == __file__
    assert line_of(stops, "breakpoint()") <= line <= line_of(stops, "out[t] = t * 10")
    assert (t, place) == (1, 1)
    assert out.tolist() == [0, 10, 20]


def test_leaving_the_debugger_ends_the_launch(monkeypatch):
    def quit_debugger():
        raise bdb.BdbQuit

    monkeypatch.setattr("sys.breakpointhook", quit_debugger)
    with pytest.raises(bdb.BdbQuit), warnings.catch_warnings():
        step(stops, 1, 3, np.zeros(3))
