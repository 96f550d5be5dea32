"""Check mode: results that depend on the order of threads are told, with the element, both values and both orders."""

from pathlib import Path

import numpy as np
import pytest

from cuda_emulator import cuda, options
from cuda_emulator.errors import KernelError
from cuda_emulator.helpers.status import POISON
from cuda_emulator.hooks import Detection, Found
from cuda_emulator.runtime import check_report
from cuda_emulator.runtime.check import CheckedLaunch, check_launch, different, orders
from cuda_emulator.runtime.launch import Ready
from tests.cuda_emulator.emulator_fakes import FAILS_IN_REVERSE, LAST_WRITER, OWN, SUM, FakeKernel, in_order
from tests.wide import widely


def kernel(out, what):  # type: ignore[no-untyped-def]
    """Stands for the learner's function; messages point here."""


def check(out: np.ndarray, what: int, blocks: int = 3, found: Detection | None = None, source: str = "") -> None:
    ready = Ready(FakeKernel(in_order, source=source), "kernel")
    launch = CheckedLaunch(kernel, ready, [out, what], ("out", "what"), (blocks, 1, 1), (64, 1, 1), seed=5)
    check_launch(launch, lambda now: found)


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
    assert "leave check mode off" not in message


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

    given = [(1, np.zeros(2)), records]
    launch = CheckedLaunch(
        kernel, Ready(FakeKernel(writes), "kernel"), given, ("pair", "records"), (1, 1, 1), (8, 1, 1)
    )
    with pytest.raises(KernelError, match=r"records\.value\[3\] is 0\.0 with .* and 7\.0"):
        check_launch(launch)


def test_a_race_that_a_detector_found_is_told_though_the_results_are_equal() -> None:
    told = [("race on out[0]: use an atomic", 7), ("race on out[0], in a block", 7), ("race on out[1]", 9)]
    races = tuple(Found(sentence, "mine.py", line, "out") for sentence, line in told)
    found = Detection(races, blocks=3, grid_blocks=3, more="groundup lens mine.py:kernel")
    with pytest.raises(KernelError, match="race on out\\[0\\]: use an atomic") as raised:
        check(np.arange(64), OWN, found=found)
    assert (raised.value.filename, raised.value.line) == ("mine.py", 7)
    assert raised.value.__notes__ == ["also line 9: race on out[1]", "groundup lens mine.py:kernel shows more"]


def test_results_may_depend_on_the_order_if_every_access_was_looked_at_and_none_races() -> None:
    check_report.reset()
    found = Detection(blocks=3, grid_blocks=3)
    check(np.zeros(64, np.int32), LAST_WRITER, found=found, source="out[_atomic_add(a, 0, 1)] = i")
    assert "out[2] is 63 with threads and blocks in order, and 0 with them in reverse" in check_report.report()
    assert "no two threads race" in check_report.report()


def test_of_a_sample_they_may_if_the_kernel_takes_places_from_an_atomic() -> None:
    sample = Detection(blocks=1, grid_blocks=3)
    with pytest.raises(KernelError, match="so this is a race"):
        check(np.zeros(64, np.int32), LAST_WRITER, found=sample, source="_atomic_add(a, 0, 1)")
    check(np.zeros(64, np.int32), LAST_WRITER, found=sample, source="place = _atomic_add(a, 0, 1)\nout[place] = 1")


@pytest.mark.parametrize("blocks", [1, 3])
def test_atomics_excuse_no_array_that_they_have_nothing_to_do_with(blocks: int) -> None:
    found = Detection(blocks=blocks, grid_blocks=3)
    with pytest.raises(KernelError, match=r"out\[2\] is 63 with .* so this is a race"):
        check(np.zeros(64, np.int32), LAST_WRITER, found=found, source="b[i] = _atomic_add(a, 0, 1)\nout[2] = i")


def test_of_several_arrays_that_differ_each_is_judged() -> None:
    def writes(a, b, grid, block, first, end, dynamic, status, threads, blocks):  # type: ignore[no-untyped-def]
        a[0], b[0] = threads[0], threads[-1]

    source = "a[_atomic_add(c, 0, 1)] = i\nb[0] = i"
    given = [np.zeros(2, np.int64), np.zeros(3, np.int64)]
    launch = CheckedLaunch(
        kernel, Ready(FakeKernel(writes, source=source), "kernel"), given, ("a", "b"), (1, 1, 1), (8, 1, 1)
    )
    with pytest.raises(KernelError, match=r"b\[0\] is 7 with .* and 0 with"):
        check_launch(launch, lambda now: Detection(blocks=1, grid_blocks=1))
    launch.restore(launch.before)
    view = given[0][:1]  # the same memory by another name
    launch = CheckedLaunch(
        kernel, Ready(FakeKernel(writes, source=source), "kernel"), [given[0], view], ("a", "b"), (1, 1, 1), (8, 1, 1)
    )
    check_launch(launch, lambda now: Detection(blocks=1, grid_blocks=1))


def test_a_result_that_depends_on_fresh_memory_names_the_read() -> None:
    def reads(out, grid, block, first, end, dynamic, status, threads, blocks):  # type: ignore[no-untyped-def]
        out[1] = status[POISON] & 0xFF

    found = Detection(unwritten=(Found("tile[1] is read before it is written.", "mine.py", 8),), grid_blocks=1)
    ready = Ready(FakeKernel(reads), "kernel")
    launch = CheckedLaunch(kernel, ready, [np.zeros(3, np.int32)], ("out",), (1, 1, 1), (8, 1, 1))
    with pytest.raises(KernelError, match=r"mine\.py:8: tile\[1\] is read .* out\[1\] is 255, and 126 with other"):
        check_launch(launch, lambda now: found)
    with pytest.raises(KernelError, match="depends on shared or local memory that is read before it is written"):
        check_launch(launch)


def test_a_race_between_two_names_of_one_array_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", str(tmp_path))

    @cuda.jit
    def shifted(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i + 1 < b.size:
            b[i + 1] = a[i]

    memory = cuda.to_device(np.arange(64, dtype=np.float32))
    with options(check=True):
        for a, b in [(memory, memory), (memory[:-1], memory[1:])]:
            with pytest.raises(KernelError, match=r"race on a\[\d+\] \(global memory, read after write\)"):
                shifted[2, 32](a, b)
        host = np.arange(64, dtype=np.float32)
        shifted[2, 32](host, host)  # two copies on a device
        assert host[:3].tolist() == [0, 0, 1]


def test_a_uniform_statement_between_writing_and_reading_is_no_barrier() -> None:
    @cuda.jit
    def lacks_a_barrier(a, n):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(32, np.float32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        m = n * 2
        a[t] = tile[31 - t] + m
        cuda.syncthreads()

    with (
        options(check=True),
        pytest.raises(KernelError, match=r"race on tile\[\d+\] \(shared memory"),
    ):
        lacks_a_barrier[1, 32](np.arange(32, dtype=np.float32), 1)


@cuda.jit
def largest(x, out):  # type: ignore[no-untyped-def]
    i = cuda.threadIdx.x
    value = x[i]
    distance = 16
    while distance > 0:
        value = max(value, cuda.shfl_down_sync(0xFFFFFFFF, value, distance))
        distance //= 2
    if i == 0:
        out[0] = value


@cuda.jit
def half_sums(x, out):  # type: ignore[no-untyped-def]
    """The upper lanes of the half read from lanes that the mask does not name; nothing is made of these values."""
    i = cuda.threadIdx.x
    value = x[i]
    if i < 16:
        distance = 8
        while distance > 0:
            value += cuda.shfl_down_sync(0x0000FFFF, value, distance)
            distance //= 2
        if i == 0:
            out[0] = value


@cuda.jit
def two_shuffles(x, out):  # type: ignore[no-untyped-def]
    i = cuda.threadIdx.x
    mask = 0x0000FFFF if i < 16 else 0xFFFF0000
    unused = cuda.shfl_xor_sync(mask, x[i], 16)
    used = cuda.shfl_xor_sync(mask, x[i], 24)
    out[i] = used if i == 3 else x[i]
    if i > 31:
        out[i] = unused


@pytest.mark.parametrize("dtype", widely(["float32", "int64", "int32", "float64"]))
def test_a_result_that_depends_on_a_lane_beyond_the_block_is_refused(dtype: str) -> None:
    x, out = np.arange(24, dtype=dtype), np.zeros(1, dtype)
    with options(check=True):
        largest[1, 32](np.arange(32, dtype=dtype), out)
        assert out[0] == 31
        with pytest.raises(
            KernelError,
            match=r"^.*: cuda.shfl_down_sync\(\) reads from lane 24, which is not in the block: it has 24 threads; in "
            r"block \(0, 0, 0\), thread \(8, 0, 0\)\. On a device this gives garbage\. The result depends on it: "
            r"out\[0\] is \S+, and \S+ with other values\. Launch whole warps of 32 threads",
        ):
            largest[1, 24](x, out)


def test_what_comes_from_a_lane_that_takes_no_part_may_be_thrown_away() -> None:
    out = np.zeros(1)
    with options(check=True):
        half_sums[1, 32](np.arange(32.0), out)
    assert out[0] == sum(range(16))


def test_of_two_shuffles_the_one_is_named_whose_values_are_used() -> None:
    with options(check=True), pytest.raises(KernelError, match=r"reads from lane 24, which takes no part") as raised:
        two_shuffles[1, 32](np.arange(32.0), np.zeros(32))
    assert raised.value.line == two_shuffles.py_func.__code__.co_firstlineno + 5


@pytest.mark.parametrize("mode", [{}, {"step": True}])
def test_outside_check_mode_too_such_a_value_shows(mode: dict[str, bool]) -> None:
    real, whole = np.zeros(32, np.float32), np.zeros(32, np.int32)
    with options(**mode):
        two_shuffles[1, 32](np.arange(32, dtype=np.float32), real)
        two_shuffles[1, 32](np.arange(32, dtype=np.int32), whole)
    expected = np.arange(32.0)
    expected[3] = np.nan
    np.testing.assert_array_equal(real, expected)
    assert whole[3] == -842150451
