"""Check mode tells reads of global memory that nobody has written; what copies, slices and kernels wrote is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, hooks, options
from cuda_emulator.poison import POISONS
from cuda_emulator.runtime import check_report, unwritten
from cuda_emulator.runtime.unwritten import Unwritten, unwritten_bytes


@pytest.fixture(autouse=True)
def _without_a_detector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(hooks, "_detector", None)
    monkeypatch.setattr(hooks, "_profiler", lambda *arguments, **options: None)
    check_report.reset()
    yield
    check_report.reset()


@cuda.jit
def fill(out, count):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < count:
        out[i] = i


@cuda.jit
def doubled(x, out, count):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < count:
        out[i] = 2 * x[i]


def told(x: Any, count: int) -> str:
    """What check mode says about a kernel that reads the first elements of x; "" if nothing."""
    with options(check=True):
        try:
            doubled[2, 32](x, cuda.device_array(64, np.float64), count)
        except KernelError as error:
            return str(error)
    return ""


def test_a_result_that_depends_on_unwritten_global_memory_names_the_argument_and_the_line() -> None:
    said = told(cuda.device_array(64, np.int32), 64)
    assert "the result depends on elements of x that nobody has written: out[0] is -1684300902.0, and" in said
    assert f"{__file__}:{doubled.py_func.__code__.co_firstlineno + 4}" in said


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8, np.int32, np.uint64, np.bool_])
def test_it_is_told_for_every_type(dtype: Any) -> None:
    assert "elements of x that nobody has written" in told(cuda.device_array(64, dtype), 64)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_what_a_kernel_wrote_may_have_the_value_of_fresh_memory(dtype: Any) -> None:
    x = cuda.device_array(512, dtype)
    with options(check=True):
        fill[2, 256](x, 512)
    assert not told(x, 512)


def test_elements_that_a_kernel_left_out_stay_unwritten() -> None:
    x = cuda.device_array(64, np.float32)
    with options(check=True):
        fill[2, 32](x, 40)
    assert not told(x, 40)
    assert "elements of x" in told(x, 41)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copy_to_device(np.zeros(64, np.float32)),
        lambda x: cuda.to_device(np.zeros(64, np.float32), to=x),
        lambda x: x.__setitem__(slice(None), 3),
        lambda x: [x.__setitem__(i, 3) for i in range(64)],
        lambda x: [part.__setitem__(..., 3) for part in x.split(8)],
        lambda x: x.reshape(8, 8).__setitem__((slice(None), slice(0, 8)), 3),
        lambda x: fill[2, 32](x, 64),  # a launch without check mode
    ],
    ids=["copy_to_device", "to_device", "slice", "elements", "parts", "view", "launch"],
)
def test_what_the_host_wrote_is_not_accused(write: Callable[[Any], Any]) -> None:
    x = cuda.device_array(64, np.float32)
    write(x)
    assert not told(x, 64)


def test_a_part_that_the_host_left_out_is_told() -> None:
    x = cuda.device_array(64, np.float32)
    x[1:] = 5
    assert "out[0] is nan" in told(x, 64)
    assert not told(x[1:], 63)


def test_the_array_of_an_out_argument_is_fresh() -> None:
    @cuda.jit
    def adds(out):  # type: ignore[no-untyped-def]
        out[cuda.grid(1)] += 1

    with options(check=True), pytest.raises(KernelError, match="elements of out that nobody has written"):
        adds[1, 8](cuda.Out(np.zeros(8, np.int32)))


def test_memory_that_stays_unwritten_holds_the_same_values_as_before() -> None:
    x = cuda.device_array(64, np.float32)
    before = x.copy_to_host().view(np.int32).tolist()
    with options(check=True):
        fill[2, 32](x, 10)
    assert x.copy_to_host()[:10].tolist() == list(range(10))
    assert x.copy_to_host().view(np.int32).tolist()[10:] == before[10:]


def test_arguments_that_overlap_are_filled_once() -> None:
    x = cuda.device_array(8, np.float32)
    state = Unwritten([("a", x._array), ("b", x.view(np.int32)._array[2:])])
    assert state.names == ["a", "b"]
    state.fill(POISONS[1], state.names)
    assert not np.isnan(x.copy_to_host()).any()
    state.settle()
    assert np.isnan(x.copy_to_host()).all()


def test_freed_memory_is_forgotten() -> None:
    known = len(unwritten._known)
    x = cuda.device_array(8, np.float32)
    assert len(unwritten._known) == known + 1
    del x
    assert len(unwritten._known) == known


def test_the_unwritten_bytes_of_a_view_are_those_of_its_elements() -> None:
    owner = np.zeros((3, 4), np.int16)
    unwritten.note_fresh(owner)
    unwritten.note_written(owner[1])
    unwritten.note_written(owner[:, 2])
    unwritten.note_written(owner[2, 4:])  # no element
    found = unwritten_bytes(owner[1:])
    assert found is not None
    np.testing.assert_array_equal(found.reshape(2, 4, 2).all(-1), [[0, 0, 0, 0], [1, 1, 0, 1]])
    np.testing.assert_array_equal(found, np.repeat([0, 0, 0, 0, 1, 1, 0, 1], 2))
    unwritten.note_written(owner)
    assert unwritten_bytes(owner) is None


def test_what_a_launch_without_checks_may_have_written_is_known_no_more() -> None:
    arrays = [np.zeros(4, np.float32) for _ in range(3)]
    for array in arrays:
        unwritten.note_fresh(array)
    unwritten.forget([7, arrays[0][1:], (1.5, (arrays[1],)), np.zeros(2)])
    assert [unwritten_bytes(array) is None for array in arrays] == [True, True, False]


def test_only_elements_without_a_written_byte_count_as_unwritten() -> None:
    array = np.zeros(3, np.int32)
    unwritten.note_fresh(array)
    unwritten.note_written(array.view(np.uint8)[5:6])
    part = Unwritten([("array", array)])
    part.fill(POISONS[0], ["array"])
    assert array[1] == 0
    assert (array[[0, 2]] != 0).all()
    array[2] = 7
    part.settle()
    assert array.tolist() == [0, 0, 7]
    part.note()
    found = unwritten_bytes(array)
    assert found is not None
    np.testing.assert_array_equal(found, np.repeat([1, 0, 0], 4))
