"""Step mode: the learner's own lines as generators: fresh memory, races that show, and Python's tools in it."""

import bdb
import gc
import pdb
import sys
import traceback
import warnings
from types import GeneratorType

import numpy as np
import pytest
from numba import float32, int32

from cuda_emulator import KernelError, KernelWarning, cuda
from cuda_emulator.poison import poison_value
from tests.cuda_emulator.syntax.stepping import ORDERS, line_of, refusal, step

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


# ---- what only step mode says


@cuda.jit
def checked(x):
    assert x[0] * 2 > x[1] + 1, "too small"
    if cuda.threadIdx.x < 20:
        cuda.syncthreads()


def test_an_assertion_is_quoted_as_it_was_written_and_its_cause_kept():
    with pytest.raises(KernelError, match=r"assert x\[0\] \* 2 > x\[1\] \+ 1, 'too small': in block") as caught:
        step(checked, 1, 1, np.zeros(2))
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_barrier_that_a_part_reaches_names_a_thread_that_is_elsewhere_or_is_a_warning():
    x = np.ones(2) * 3
    said = refusal(checked, 1, 64, x, at="cuda.syncthreads()")
    assert said.endswith("Thread (20, 0, 0) has reached the kernel's end")
    with pytest.warns(KernelWarning, match="reached by 20 of the 64 live threads"):
        step(checked, 1, 64, x, divergence="warn")


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
def shape_of_the_day(n, out):
    tile = cuda.shared.array(n, float32)
    out[0] = tile[0]


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
        step(shift, 1, 3, np.zeros(3), np.zeros(3), order="sideways")
