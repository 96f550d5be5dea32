"""Step mode: the learner's own lines as generators: what it computes, races that show, and Python's tools in it."""

import bdb
import gc
import math
import pdb
import sys
import traceback
import warnings
from types import GeneratorType

import numpy as np
import pytest
from numba import float32, int32, int64

from cuda_emulator import cuda, options
from cuda_emulator.poison import poison_value
from tests.cuda_emulator.syntax.stepping import ORDERS, line_of, step

TILE = 8


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
def one_of_two(x, out):
    inside = x[0] > 0
    out[0] = (x[0] if inside else 0.0) * x[1]
    out[1] = (x[0] if inside else -1) * x[1]
    out[2] = (x[0] if inside else x[1]) * x[1]
    out[3] = (x[9] if x.size > 9 else x[0]) * x[1]


def test_a_literal_that_is_not_chosen_gives_its_type_too():
    x, out = np.array([0.1, 0.3], np.float32), np.zeros(4)
    step(one_of_two, 1, 1, x, out)
    wide = float(x[0]) * float(x[1])
    assert out.tolist() == [wide, wide, float(x[0] * x[1]), float(x[0] * x[1])]
    compiled = np.zeros(4)
    one_of_two[1, 1](x, compiled)
    assert compiled.tolist() == out.tolist()


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
    out[15] = i32[2] ** (i32[2] - 1) == -(2**63)
    out[16] = i32[1] ** (i32[2] - 1)


def test_types_meet_as_numba_lets_them_meet():
    out = np.zeros(17)
    x32 = np.array([0.1, -1], np.float32)
    i32 = np.array([2**31 - 1, 3, 0], np.int32)
    step(types_that_meet, 1, 1, x32, i32, np.array([200], np.uint8), out)
    # float32 * int is float64; int32 + int32 is int64; an int64 wraps around; float32(0.1) is above 0.1; x // 0 is 0;
    # 0 ** -1 is the smallest integer, and 3 ** -1 is cut to 0.
    expected = [0, 1, 2**32 - 2, 400, 2, -4, 3, -2, 0, 0, 6, 0, 1, 44, -4, 1, 0]
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
    nothing = poison_value(np.int64)  # what a lane gives that takes no part; lanes 34 and 35 do not exist
    assert out[0].tolist() == [*range(2, 32), 30, 31, nothing, nothing]
    assert out[1].tolist() == [0, 1, *range(30), 32, 33]
    assert out[2].tolist() == (t ^ 1).tolist()
    assert out[3].tolist() == [8] * 32 + [nothing, nothing]  # nor does lane 8 of the short warp
    assert out[4].tolist() == [0x55555555] * 32 + [1, 1]
    assert out[5].tolist() == [0] * 32 + [1, 1]
    assert out[6].tolist() == [1] * 32 + [0, 0]
    assert out[7].tolist() == [1] * 34
    assert out[8, :8].tolist() == [0xF] * 4 + [0xF0] * 4
    assert out[9].tolist() == [0] * 32 + [4, 4]  # all 32 lanes are -1 as an int32, and True is 1
    assert out[10].tolist() == [3] * 34
    assert out[11].tolist() == [3] * 34
    assert out[12, :4].tolist() == [0xF] * 4
    assert out[13, :4].tolist() == [1, 2, 3, nothing]  # the mask leaves lane 4 out


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


def test_after_an_error_no_thread_is_left_half_way():
    with pytest.raises(AttributeError) as caught:
        step(stumbles, 1, 2, np.zeros(1))
    left = [
        each
        for each in gc.get_objects()
        if type(each) is GeneratorType and each.__name__ == "stumbles" and each.gi_frame
    ]
    assert caught.value.__traceback__ is not None  # which would have kept them
    assert not left


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
