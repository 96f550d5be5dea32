"""Check mode: results that depend on the order of threads are told, with the element, both values and both orders."""

from pathlib import Path

import numpy as np
import pytest

from cuda_emulator import cuda, options
from cuda_emulator.errors import KernelError
from cuda_emulator.runtime.check import check_launch, different, orders
from cuda_emulator.runtime.launch import Ready
from tests.cuda_emulator.emulator_fakes import FAILS_IN_REVERSE, LAST_WRITER, OWN, SUM, FakeKernel, in_order


def kernel(out, what):  # type: ignore[no-untyped-def]
    """Stands for the learner's function; messages point here."""


def check(out: np.ndarray, what: int, blocks: int = 3) -> None:
    ready = Ready(FakeKernel(in_order), "kernel")
    check_launch(kernel, ready, [out, what], ("out", "what"), (blocks, 1, 1), (64, 1, 1), 0, seed=5)


def test_the_orders_are_forward_reverse_and_two_shuffles_that_the_seed_decides() -> None:
    names, threads, blocks = zip(*orders(8, 4, seed=5), strict=True)
    assert names == ("forward", "in reverse", "shuffled with seed 5", "shuffled with seed 6")
    assert threads[0].tolist() == list(range(8))
    assert threads[1].tolist() == list(range(8))[::-1]
    assert all(sorted(order.tolist()) == list(range(8)) and order.dtype == np.int64 for order in threads)
    assert all(sorted(order.tolist()) == list(range(4)) and order.dtype == np.int64 for order in blocks)
    assert [order.tolist() for order in threads] == [order.tolist() for _, order, _ in orders(8, 4, seed=5)]
    assert threads[2].tolist() != threads[3].tolist()


def test_a_kernel_without_a_race_runs_once_as_far_as_its_arrays_show() -> None:
    out = np.arange(64)
    check(out, OWN, blocks=3)
    assert out.tolist() == list(range(3, 67))


def test_a_race_names_array_index_values_and_orders() -> None:
    with pytest.raises(KernelError) as raised:
        check(np.zeros(64, np.int32), LAST_WRITER)
    message = str(raised.value)
    assert "out[2] is 63 with threads and blocks in order, and 0 with them in reverse." in message
    assert "cuda.syncthreads()" in message
    assert "cuda.atomic" in message
    assert raised.value.filename == __file__
    assert raised.value.line == kernel.__code__.co_firstlineno


def test_a_sum_may_round_differently_in_another_order() -> None:
    out = np.zeros(64, np.float32)
    check(out, SUM)
    exact = 3 * sum(1 / (t + 3) for t in range(64))
    assert out[0] == pytest.approx(exact, rel=1e-5)


def test_a_fault_in_another_order_says_which() -> None:
    with pytest.raises(KernelError, match="block 2 failed") as raised:
        check(np.zeros(64, np.int64), FAILS_IN_REVERSE)
    assert raised.value.__notes__ == ["It happened with threads and blocks in reverse; forward, the launch went well."]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (np.array([1, 2]), np.array([1, 3]), [False, True]),
        (np.array([True, False]), np.array([True, True]), [False, True]),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), [False, False]),
        (np.array([1.0, np.nan]), np.array([1.0, 0.0]), [False, True]),
        (np.array([np.inf, np.inf]), np.array([np.inf, -np.inf]), [False, True]),
        (np.array([np.inf, 1.0]), np.array([np.inf, 2.0]), [False, True]),
        (np.array([1e8, 1.0], np.float32), np.array([1e8 + 64, 1.5], np.float32), [False, False]),
        (np.array([1.0, 1.0], np.float32), np.array([1.00001, 1.001], np.float32), [False, True]),
        (np.array([1.0]), np.array([1.0 + 1e-9]), [True]),
        (np.array([1 + 1j]), np.array([1 + 2j]), [True]),
        (np.zeros((0,)), np.zeros((0,)), []),
    ],
)
def test_floats_differ_beyond_rounding_and_the_rest_where_it_is_not_equal(
    a: np.ndarray, b: np.ndarray, expected: list[bool]
) -> None:
    assert different(a, b).tolist() == expected


def test_arrays_in_tuples_and_fields_of_records_are_compared() -> None:
    records = np.zeros(4, [("key", np.int32), ("value", np.float32)])

    def writes(pair, records, grid, block, first, end, dynamic, status, threads, blocks):  # type: ignore[no-untyped-def]
        pair[1][0] = 1
        records["value"][3] = threads[0]

    with pytest.raises(KernelError, match=r"records\.value\[3\] is 0\.0 with .* and 7\.0"):
        check_launch(
            kernel,
            Ready(FakeKernel(writes), "kernel"),
            [(1, np.zeros(2)), records],
            ("pair", "records"),
            (1, 1, 1),
            (8, 1, 1),
            0,
            seed=0,
        )


@cuda.jit
def reverse(a):  # type: ignore[no-untyped-def]
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    cuda.syncthreads()
    a[t] = tile[63 - t]


def test_a_kernel_of_the_compiler_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path))
    with options(check=True):
        a = np.arange(64, dtype=np.float32)
        reverse[1, 64](a)
        assert a.tolist() == list(range(63, -1, -1))

        @cuda.jit
        def last(out):  # type: ignore[no-untyped-def]
            out[0] = cuda.grid(1)

        device = cuda.to_device(np.zeros(1, np.int32))
        with pytest.raises(KernelError, match=r"out\[0\] is 127 with threads and blocks in order, and 0 with them"):
            last[2, 64](device)


def test_a_uniform_statement_between_writing_and_reading_is_no_barrier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path))

    @cuda.jit
    def lacks_a_barrier(a, n):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(32, np.float32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        m = n * 2
        a[t] = tile[31 - t] + m
        cuda.syncthreads()

    with options(check=True), pytest.raises(KernelError, match="the result depends on the order in which threads run"):
        lacks_a_barrier[1, 32](np.arange(32, dtype=np.float32), 1)
